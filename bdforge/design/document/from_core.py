"""Programs of cores as tables of a document: one for all that differ by nothing but their own column or row.

A number that a core gives to a kernel, or of a case, is then said by its place: `{ number = "row - 2" }`.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from bdforge.design.core_code import Advance, Argument, Call, Core, Load, Loop, Rotating, Statement, Store, SwitchOn
from bdforge.design.document.from_tile import Names, Plain, element, named, plain_guard
from bdforge.design.document.to_programs import ADVANCE, CASE, LOAD, PROGRAM, ROTATING, STORE, SWITCH
from bdforge.design.model import Tile
from bdforge.design.tile_memory import Acquire, Buffer, Release

_Placed = Sequence[tuple[Any, Tile]]
"""The same part of several programs, and whose it is."""


class _DiffersError(Exception):
    """Programs that differ by more than what their places tell."""


def programs_of(tiles: Iterable[Tile]) -> tuple[dict[str, Plain], dict[str, str]]:
    """Programs by name, and the name of the one that each tile's core runs."""
    alike: dict[str, list[tuple[Plain, Tile]]] = {}
    for tile in tiles:
        if tile.core:
            plain = _program(tile, tile.core)
            alike.setdefault(repr(_without_numbers(plain)), []).append((plain, tile))
    programs: dict[str, Plain] = {}
    run: dict[str, str] = {}
    for plain, some in (one for group in alike.values() for one in _shared(group)):
        name = f"core_{len(programs)}" if programs else "core"
        programs[name] = plain
        run |= dict.fromkeys((tile.name for tile in some), name)
    return programs, run


def _shared(group: _Placed) -> Iterator[tuple[Plain, list[Tile]]]:
    """One program for all, with numbers by their places; else one for each that differs."""
    try:
        yield _common(group), [tile for _, tile in group]
    except _DiffersError:
        apart: dict[str, tuple[Plain, list[Tile]]] = {}
        for plain, tile in group:
            apart.setdefault(repr(plain), (plain, []))[1].append(tile)
        yield from apart.values()


def _common(parts: _Placed) -> Any:
    first, _ = parts[0]
    if all(part == first for part, _ in parts):
        return first
    if isinstance(first, dict):
        return {key: _common([(part[key], tile) for part, tile in parts]) for key in first}
    if isinstance(first, list):
        return [_common([(part[i], tile) for part, tile in parts]) for i in range(len(first))]
    for name in ("row", "column"):
        if len(apart := {part - getattr(tile, name) for part, tile in parts}) == 1:
            (more,) = apart
            return {"number": f"{name} {'-' if more < 0 else '+'} {abs(more)}" if more else name}
    raise _DiffersError


def _without_numbers(plain: Any, given: bool = False) -> Any:
    """A program without the numbers that it gives to kernels, and those of its cases."""
    match plain:
        case dict():
            return {key: _without_numbers(part, key in ("with", "case")) for key, part in plain.items()}
        case list():
            return [_without_numbers(part, given) for part in plain]
        case int() if given:
            return None
    return plain


def _program(tile: Tile, core: Core) -> Plain:
    names = Names(tile)
    return {"stack_bytes": core.stack_bytes} | PROGRAM.filled(link_with=core.link_with, body=_body(names, core.body))


def _statement(names: Names, statement: Statement) -> Plain:
    match statement:
        case Acquire() | Release():
            key = "acquire" if isinstance(statement, Acquire) else "release"
            (found,) = plain_guard(key, names, statement).values()
            return {key: found} if isinstance(found, str) else {key: found["lock"], **dict(list(found.items())[1:])}
        case Advance(rotation):
            return ADVANCE.filled(advance=rotation.name, turns=rotation.turns)
        case Call(function, arguments):
            return {"call": function, "with": [_argument(names, argument) for argument in arguments]}
        case Load(name, buffer, index):
            return LOAD.filled(load=name, **element(buffer, index, "from_", "index", names.local(buffer.name)))
        case Store(value, buffer, index):
            return STORE.filled(store=named(value), **element(buffer, index, "to", "index", names.local(buffer.name)))
        case Loop(count, body, index):
            times = "forever" if count is None else named(count)
            return {"loop": times, "index": index, "body": _body(names, body)}
        case SwitchOn(name, cases, default):
            told = [CASE.filled(case=number, body=_body(names, body)) for number, body in cases]
            return SWITCH.filled(switch=named(name), cases=told, default=_body(names, default))


def _body(names: Names, body: Iterable[Statement]) -> list[Plain]:
    return [_statement(names, statement) for statement in body]


def _argument(names: Names, argument: Argument) -> Any:
    match argument:
        case Buffer():
            return names.local(argument.name)
        case Rotating(rotation, buffers):
            found = [names.slots.get(buffer.name, ("", 0)) for buffer in buffers]
            ring, ahead = found[0]
            slots = len(names.rings.get(ring, ()))
            if slots == rotation.turns and found == [(ring, (ahead + i) % slots) for i in range(len(buffers))]:
                return f"{ring}[{rotation.name}{f' + {ahead}' if ahead else ''}]"
            of = [names.local(buffer.name) for buffer in buffers]
            return ROTATING.filled(turn=rotation.name, turns=rotation.turns, of=of)
        case _:
            return named(argument)
