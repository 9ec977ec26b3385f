"""A document as a design: the tables of its text, `for` and expressions made into what they stand for."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path as File
from typing import Any

from bdforge.common.files import SETTINGS_BYTES_MAX, parsed_toml, read_text
from bdforge.common.messages import clip, listed
from bdforge.design.core_code import Core
from bdforge.design.document.document_values import (
    STRING,
    DocumentError,
    Scope,
    Source,
    Wrong,
    described,
    flag,
    number,
    one_of,
    plain,
    refuse,
    text,
)
from bdforge.design.document.program_reading import OPERAND, SEQUENCE, Surrounding, read_program
from bdforge.design.document.tables import Key, Table, choice, each, later, made, many, told
from bdforge.design.document.to_programs import HEADER, PROGRAM, TILE, WALK, moved, packet
from bdforge.design.document.to_tile import (
    Given,
    TileUnderWay,
    channel_of,
    direction_and_number,
    element_type,
    indexed,
    word_of,
)
from bdforge.design.document.toml_places import Path
from bdforge.design.model import Allocation, Cascade, Design, Flow, Port, Subject, Tile
from bdforge.design.placement import placed
from bdforge.design.sequence import Event, LockWrite, RegisterWrite, RtpWrite, Sequence, Task, TaskBd, TokenWait
from bdforge.design.tile_memory import Buffer, Lock
from bdforge.devices import DeviceError, TileKind, mlir_device_named
from bdforge.devices.limits import GRANULE_BYTES

_KIND = "design"
STDIN = "-"
_ORDER = [TileKind.SHIM, TileKind.MEMTILE, TileKind.CORE]


def document_in(path: File) -> str | None:
    """The text of the file of a document, None of a file of another kind; "-" is what comes on standard input.

    DocumentError for a file that cannot be read, or whose text is no TOML.
    """
    if str(path) == STDIN:
        return read_text("/dev/stdin", DocumentError, SETTINGS_BYTES_MAX)
    text = read_text(path, DocumentError, SETTINGS_BYTES_MAX)
    return text if parsed_toml(text, path, DocumentError).get("kind") == _KIND else None


def design_of(content: str, where: str) -> Design:
    """The placed design that the text of a document says; DocumentError lists every reason why it says none.

    `where` names the text in messages, which tell lines and columns of it.
    """
    raw = parsed_toml(content, where, DocumentError)
    scope = Scope()
    given = told(DOCUMENT, raw, scope)
    reading = _Reading(given or {})
    found = None if given is None else told(lambda given, scope: reading.design(raw, scope), given, scope)
    refuse(scope.faults, content, where)
    assert found is not None
    return replace(found, place_of=Source(content, where).of(reading.paths))


def surrounding(design: Design) -> Surrounding:
    """What a placed design's program may name of it."""
    found = Surrounding({one.name: (one.direction, one.channel, one.tile.column) for one in design.allocations})
    for tile in design.tiles:
        found.locks.update((lock.name, tile.address(lock)) for lock in tile.locks)
        for buffer in tile.buffers:
            found.buffers[buffer.name] = at = tile.address(buffer)
            words = enumerate(buffer.words)
            found.buffers.update((f"{buffer.name}.{word}", at + GRANULE_BYTES * slot) for slot, word in words)
    return found


@dataclass(slots=True)
class _Reading:
    """What tables lead to whose parts are read later."""

    given: Given
    tiles: dict[str, Tile] = field(default_factory=dict)
    everything: dict[str, Buffer | Lock] = field(default_factory=dict)
    arguments: dict[str, Buffer] = field(default_factory=dict)
    paths: dict[Subject, Path] = field(default_factory=dict)
    numbers: Counter[str] = field(default_factory=Counter)

    def design(self, raw: Mapping[str, Any], scope: Scope) -> Design:
        given, names = self.given, {}
        for name, number_ in given["let"].items():
            names[name] = number(number_, Scope(names, scope.faults, ("let", name)))
        scope = replace(scope, names=names, patterns=given["patterns"])
        for tile in self._tiles(raw, scope):
            if tile.name in self.tiles:
                raise Wrong(f"two tiles are called {clip(tile.name)}; rename one")
            self.tiles[tile.name] = tile
        here = replace(scope, inside=self)
        parts = {key: tuple(part(raw.get(key, []), here.at(key))) for key, part in _PARTS.items()}
        if scope.faults.reasons:
            raise Wrong
        found = placed(
            Design(
                given["name"],
                given["device"],
                tuple(self.tiles.values()),
                parts["flow"],
                parts["allocations"],
                parts["cascade"],
                parts["runtime_sequence"],
                tuple(given["comments"]),
                reference=given["reference"],
                made_from=given["made_from"],
                kernels=tuple(given["kernels"]),
                macros=tuple(text(macro, scope) for macro in given["macros"]),
                problems=tuple(given["problems"]),
                code_at_end=given["code_at_end"],
            )
        )
        if not raw.keys() & {"sequence", "operand"}:
            return found
        return replace(found, program=read_program(raw, Scope(names, scope.faults), lambda: surrounding(found)))

    def _tiles(self, raw: Mapping[str, Any], scope: Scope) -> Iterable[Tile]:
        """Shims, memtiles, cores, each column by column."""
        try:
            array = mlir_device_named(self.given["device"])
            tile = made(TILE, lambda one, inner: TileUnderWay(one, inner, self.everything, self.paths))
            found = many(tile)(raw["tile"], scope.at("tile"))
            kinds = {id(tile): array.kind(*tile.place) for tile in found}
        except DeviceError as error:
            raise Wrong(str(error)) from None
        found.sort(key=lambda tile: (_ORDER.index(kinds[id(tile)]), *tile.place))
        for tile in found:
            told(lambda one, inner: one.hold(), tile, tile.scope)
        finished = [told(lambda one, inner: self._tile(one, kinds[id(one)]), tile, tile.scope) for tile in found]
        return [tile for tile in finished if tile is not None]

    def _tile(self, tile: TileUnderWay, kind: TileKind) -> Tile:
        channels = tuple(tile.given["channels"](tile))
        core = None if tile.given["core"] is None else self._core(tile, tile.given["core"])
        reserved = range(*tile.given["reserved_bds"])
        return Tile(tile.name, *tile.place, kind, tuple(tile.buffers), tuple(tile.locks), channels, core, reserved)

    def _core(self, tile: TileUnderWay, name: str) -> Core:
        programs = self.given["program"]
        if name not in programs:
            raise Wrong(f"core: there is no program {clip(name)}; there is {listed(programs) or 'none'}")
        self.paths[tile.name, "core"] = ("program", name)
        found = PROGRAM(programs[name], replace(tile.scope, path=("program", name), inside=tile))
        link_with = found["link_with"] or (f"{self.given['name']}.o" if self.given["kernels"] else "")
        return Core(found["body"], found["stack_bytes"], link_with)

    def held(self, name: str, kind: type) -> Any:
        """A buffer or lock by its whole name."""
        found = self.everything.get(name)
        if not isinstance(found, kind):
            raise Wrong(f"no tile has a {kind.__name__.lower()} {clip(name)}; give its whole name")
        return found


@described({"type": "object"})
def _tables(found: Any, scope: Scope) -> dict[str, Any]:
    if not isinstance(found, dict):
        raise Wrong(f"should be a table, got {clip(repr(found))}")
    return found


@described({})
def _as_it_is(found: Any, scope: Scope) -> Any:
    return found


@described({"type": "array", "items": {"type": "object"}})
def _problems(found: Any, scope: Scope) -> list[dict[str, int | str]]:
    """As they are: whoever builds the design judges them by its sequence's sizes."""
    if not isinstance(found, list):
        raise Wrong(f"should be a list of tables, got {clip(repr(found))}")
    for problem in found:
        sizes = _tables(problem, scope).values()
        strange = [one for one in sizes if isinstance(one, bool) or not isinstance(one, int | str)]
        if strange:
            raise Wrong(f"should give numbers, got {clip(repr(strange[0]))}")
    return found


@described(lambda: {"type": "object", "additionalProperties": PROGRAM.schema()})
def _programs(found: Any, scope: Scope) -> dict[str, Any]:
    """Programs by name: each is read for every core that runs it."""
    return {name: _tables(one, scope.at(name)) for name, one in _tables(found, scope).items()}


# Flows, cascades, names of channels.


@described(STRING)
def _port(found: Any, scope: Scope) -> Port:
    match text(found, scope).split():
        case [tile, bundle, index] if index.isdecimal():
            return Port(tile, int(index), bundle)
    raise Wrong(f"{clip(repr(found))} is no port; write tile, bundle and number, such as 'mem_0 DMA 1'")


def _repeated(kind: Any) -> Any:
    """One of a kind by its text, or a list of those, which may repeat: { for = …, name = "…" }."""
    table = Table("A name that repeats.", {"name": Key(kind)})

    def one(found: Any, scope: Scope) -> Any:
        return table(found, scope)["name"] if isinstance(found, dict) else kind(found, scope)

    @described({"type": ["string", "array", "object"]})
    def read(found: Any, scope: Scope) -> tuple[Any, ...]:
        items = found if isinstance(found, list) else [found]
        return tuple(one(item, inner) for item, inner in each(items, scope))

    return read


FLOW = Table(
    'A way from a port ("mem_0 DMA 1") to others: a circuit, or for packets with an id.',
    {
        "role": Key(text, ""), "from": Key(_port), "to": Key(_repeated(_port)), "packet": Key(number, None),
        "keep_header": Key(flag, False),
    },
)  # fmt: skip
CASCADE = Table("A cascade between neighbours.", {"from": Key(text), "to": Key(text)})
ALLOCATION = Table(
    'A name for a shim\'s channel ("shim_0 MM2S 1"), as sequences use it.', {"name": Key(text), "channel": Key(text)}
)


def _numbered(kind: str, make: Callable[[Given, Scope], Any]) -> Callable[[Given, Scope], Any]:
    """Makes things that their place among those of their kind tells."""

    def number_it(given: Given, scope: Scope) -> Any:
        reading = scope.inside
        reading.paths[kind, reading.numbers[kind]] = scope.path
        reading.numbers[kind] += 1
        return make(given, scope)

    return number_it


def _flow(given: Given, scope: Scope) -> Flow:
    return Flow(given["from"], given["to"], given["role"], given["packet"], given["keep_header"])


def _allocation(given: Given, scope: Scope) -> Allocation:
    tile, _, channel = given["channel"].partition(" ")
    tiles = scope.inside.tiles
    if tile not in tiles:
        raise Wrong(f"channel: there is no tile {clip(tile)}; there is {listed(tiles)}")
    scope.inside.paths[given["name"],] = scope.path
    return Allocation(given["name"], tiles[tile], *channel_of(channel))


# The sequence of one problem.


def _task(given: Given, scope: Scope) -> Task:
    if given["bds"] is not None and (said := [key for key in _TASK_BD if given[key] != _TASK_BD[key].default]):
        raise Wrong(f"{', '.join(sorted(said))} beside bds; say it in each of them")
    bds = given["bds"] or [_task_bd(given, scope)]
    return Task(given["task"], given["on"], tuple(bds), given["repeat_count"], given["token"])


def _task_bd(given: Given, scope: Scope) -> TaskBd:
    arguments = scope.inside.arguments
    if given["argument"] not in arguments:
        raise Wrong(f"argument: there is no {clip(given['argument'])}; there is {listed(arguments) or 'none'}")
    if given["id"] is None:
        raise Wrong("id: missing; add the number of the task's BD")
    buffer = arguments[given["argument"]]
    return TaskBd(buffer, moved(given, buffer), given["id"], given["label"], packet=packet(given))


def _event(given: Given, scope: Scope) -> Event:
    return Event(given["comment"], *(tuple(given[key]) for key in ("tasks", "writes", "waits", "free")))


def _wait(given: Given, scope: Scope) -> TokenWait:
    direction, channel = given["token"]
    return TokenWait(int(direction == "MM2S"), channel, given["column"], given["columns"])


def _argument(given: Given, scope: Scope) -> Buffer:
    buffer = Buffer(given["name"], given["elements"], given["type"], given["role"])
    scope.inside.arguments[buffer.name] = buffer
    return buffer


def _sequence(given: Given, scope: Scope) -> Sequence:
    scope.inside.arguments = {}
    arguments = tuple(given["arguments"](scope.inside))
    return Sequence(given["name"], given["comment"], arguments, tuple(given["events"](scope.inside)))


def _rtp(given: Given, scope: Scope) -> RtpWrite:
    element = word_of(given["rtp"], lambda name: scope.inside.held(name, Buffer))
    buffer, slot = indexed(element, given["slot"])
    return RtpWrite(buffer, int(slot), given["value"])


_TASK_BD = {"argument": Key(text, None), **WALK, "label": Key(text, ""), **HEADER}
TASK_BD = Table("A BD of a task's chain.", _TASK_BD)
TASK = Table(
    "A task of a shim's channel: one BD, or a chain of `bds`; it runs repeat_count + 1 times.",
    {"task": Key(text), "on": Key(text)}
    | _TASK_BD
    | {"bds": Key(many(made(TASK_BD, _task_bd), 1), None), "repeat_count": Key(number, 0), "token": Key(flag, False)},
)
_WRITE = choice(
    {
        "rtp": made(
            Table(
                'Word `slot` of a core\'s run-time parameters, or "core_0_2_rtp.k_steps" by its name, becomes `value`.',
                {"rtp": Key(text), "slot": Key(number, 0), "value": Key(number)},
            ),
            _rtp,
        ),
        "lock": made(
            Table("A lock becomes `value`.", {"lock": Key(text), "value": Key(number)}),
            lambda given, scope: LockWrite(scope.inside.held(given["lock"], Lock), given["value"]),
        ),
        "address": made(
            Table(
                "Registers from full address `address` on; several are a constant with a name.",
                {"address": Key(number), "values": Key(many(number, 1)), "name": Key(text, "")},
            ),
            lambda given, scope: RegisterWrite(given["address"], tuple(given["values"]), given["name"]),
        ),
    }
)
WAIT = Table(
    'A token of a channel ("S2MM 0") of each of `columns` shims, from `column` on.',
    {"token": Key(direction_and_number), "column": Key(number), "columns": Key(number, 1)},
)
EVENT = Table(
    "What a sequence does in a row: tasks, writes, waits, BDs that are free again.",
    {
        "comment": Key(text, ""), "tasks": Key(many(made(TASK, _task)), ()), "writes": Key(many(_WRITE), ()),
        "waits": Key(many(made(WAIT, _wait)), ()), "free": Key(_repeated(text), ()),
    },
)  # fmt: skip
ARGUMENT = Table(
    "A host buffer.",
    {"name": Key(text), "elements": Key(number), "type": Key(element_type), "role": Key(text, "")},
)
RUNTIME_SEQUENCE = Table(
    "A runtime sequence for one problem.",
    {
        "name": Key(text), "comment": Key(text, ""), "arguments": Key(later(many(made(ARGUMENT, _argument)))),
        "events": Key(later(many(made(EVENT, _event)))),
    },
)  # fmt: skip
_PARTS = {
    "flow": many(made(FLOW, _numbered("flow", _flow))),
    "allocations": many(made(ALLOCATION, _allocation)),
    "cascade": many(made(CASCADE, _numbered("cascade", lambda given, scope: Cascade(given["from"], given["to"])))),
    "runtime_sequence": many(made(RUNTIME_SEQUENCE, _sequence)),
}
"""What of a document is read when its tiles are known."""


def _part(kind: Any) -> Any:
    """What is read at its time, from the text's tables."""
    return described(kind.schema)(lambda found, scope: found)


DOCUMENT = Table(
    "A whole design. `let` are numbers by name, of those before them, `patterns` access patterns likewise.",
    {
        "kind": Key(one_of(_KIND)), "name": Key(text), "device": Key(text), "comments": Key(many(text), ()),
        "reference": Key(plain, ""), "kernels": Key(many(plain), ()), "macros": Key(_as_it_is, ()),
        "code_at_end": Key(flag, False), "made_from": Key(_tables, None), "let": Key(_tables, {}),
        "patterns": Key(_tables, {}), "problems": Key(_problems, ()), "tile": Key(_part(many(TILE))),
        "flow": Key(_part(_PARTS["flow"]), ()),
        "allocations": Key(_part(_PARTS["allocations"]), ()), "cascade": Key(_part(_PARTS["cascade"]), ()),
        "program": Key(_programs, {}), "runtime_sequence": Key(_part(_PARTS["runtime_sequence"]), ()),
        "sequence": Key(_part(SEQUENCE), None), "operand": Key(_part(many(OPERAND)), ()),
    },
    "table",
)  # fmt: skip
