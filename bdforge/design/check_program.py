"""Whether a core reaches what its program names, and turns and numbers are what they can be."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations, product

from bdforge.design.core_code import Advance, Call, Load, Loop, Rotating, Statement, Store, SwitchOn, statements
from bdforge.design.model import Tile
from bdforge.design.reasons import Places, Reason, within
from bdforge.design.tile_memory import Acquire, Buffer, Release
from bdforge.devices import TileKind
from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS


def program_reasons(tile: Tile, places: Places) -> Iterator[Reason]:
    """What is wrong with the statements of a tile's core; `places` are all tiles, whose nearest it reaches."""
    if tile.core is None:
        return
    if tile.kind is not TileKind.CORE:
        yield Reason("core", f"a {tile.kind} runs no program", "use a core")
        return
    around = [(tile.column + east, tile.row + north) for east, north in CORE_LOCK_WINDOWS]
    near = [places[place] for place in around if place in places and places[place].kind is TileKind.CORE]
    reach = {held.name for each in near for held in (*each.buffers, *each.locks)}
    in_modes = {buffer.name: (each.name, buffer) for each in near for buffer in each.buffers if buffer.mode}
    for number, statement in enumerate(statements(tile.core.body)):
        for name in _named(statement):
            if name not in reach:
                what = f"{name} is nothing of the core or its neighbours"
                yield Reason("reach", what, "use what is nearer", about=("core", number))
        yield from within(("core", number), (*_statement(statement), *_sharing(statement, in_modes)))


def _sharing(statement: Statement, in_modes: Mapping[str, tuple[str, Buffer]]) -> Iterator[Reason]:
    """Arguments of a call whose bytes are the same, since they belong to two modes of a tile."""
    if not isinstance(statement, Call):
        return
    given = [a.buffers if isinstance(a, Rotating) else (a,) for a in statement.arguments]
    known = [[in_modes[b.name] for b in some if isinstance(b, Buffer) and b.name in in_modes] for some in given]
    for some, others in combinations(known, 2):
        for (tile, one), (other_tile, other) in product(some, others):
            if tile == other_tile and one.mode != other.mode and _meet(one, other):
                what = f"{statement.function} gets {one.name} and {other.name}, which share bytes as two modes"
                yield Reason("mode", what, "give it buffers of one mode")


def _meet(one: Buffer, other: Buffer) -> bool:
    first, second = one.address or 0, other.address or 0
    return first < second + other.bytes and second < first + one.bytes


def _named(statement: Statement) -> Iterator[str]:
    """Buffers and locks that a statement may use."""
    match statement:
        case Acquire() | Release():
            yield statement.lock.name
        case Load() | Store():
            yield statement.buffer.name
        case Call(_, arguments):
            for argument in arguments:
                buffers = argument.buffers if isinstance(argument, Rotating) else (argument,)
                yield from (buffer.name for buffer in buffers if isinstance(buffer, Buffer))


def _statement(statement: Statement) -> Iterator[Reason]:
    match statement:
        case Acquire(lock, count) | Release(lock, count) if not 1 <= count <= CORE.lock_value_max:
            yield Reason("lock", f"it takes or gives {count} of {lock.name}", f"use 1 to {CORE.lock_value_max}")
        case Load(_, buffer, int(index)) | Store(_, buffer, int(index)) if not 0 <= index < buffer.elements:
            yield Reason("index", f"element {index} of {buffer.name}, which has {buffer.elements}", "stay inside")
        case Load(name, buffer) if "f" in buffer.type:
            yield Reason("load", f"{name} would be {buffer.type}", "load integers, give kernels buffers")
        case Store(int(number) | float(number), buffer) if not _fits(number, buffer.type):
            yield Reason("store", f"{number} is no {buffer.type}", "use a number or a buffer of another type")
        case Loop(int(count)) if count < 0:
            yield Reason("loop", f"{count} rounds", "use 0 or more")
        case SwitchOn(name, cases):
            yield from _cases(name, [number for number, _ in cases])
        case Advance(rotation) if rotation.turns < 1:
            yield Reason("rotation", f"{rotation.name} has {rotation.turns} turns", "give it 1 or more")
        case Call(function, arguments):
            for argument in arguments:
                if isinstance(argument, int) and not _fits(argument, "i32"):
                    yield Reason("number", f"{function} gets {argument}, which is no i32", "give it a smaller one")
                if isinstance(argument, Rotating) and len(argument.buffers) != argument.rotation.turns:
                    rotation, got = argument.rotation, len(argument.buffers)
                    what = f"{function} gets {got} buffers for the {rotation.turns} turns of {rotation.name}"
                    yield Reason("rotation", what, "give one buffer for each turn")


def _cases(name: str, numbers: list[int]) -> Iterator[Reason]:
    if not numbers:
        yield Reason("switch", f"a switch on {name} has no case", "give it one, or leave it out")
    for number, count in Counter(numbers).items():
        if count > 1:
            yield Reason("switch", f"{count} cases of {name} are {number}", "join them")
        if not _fits(number, "i32"):
            yield Reason("switch", f"a case of {name} is {number}, which is no i32", "give it a smaller one")


def _fits(number: float, type_: str) -> bool:
    """Whether MLIR takes a number as an element: integers with or without a sign."""
    bits = int(type_.lstrip("iubf"))
    return "f" in type_ or (isinstance(number, int) and -(1 << (bits - 1)) <= number < 1 << bits)
