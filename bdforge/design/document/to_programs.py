"""What runs in a tile of a document: the chains of BDs on its channels, and the program of its core."""

import re
from itertools import chain
from typing import Any

from bd_patterns import Pattern, PatternError
from bdforge.common.messages import clip
from bdforge.design.core_code import Advance, Call, Load, Loop, Rotating, Rotation, Store, SwitchOn
from bdforge.design.document.document_values import (
    STRING,
    Kind,
    Scope,
    Wrong,
    described,
    number,
    numbers,
    plain,
    schema_of,
    text,
)
from bdforge.design.document.pattern_text import pattern
from bdforge.design.document.tables import Key, Table, choice, later, made, many
from bdforge.design.document.to_tile import (
    HELD,
    Given,
    buffer_named,
    direction_and_number,
    element_named,
    indexed,
    lock_named,
)
from bdforge.design.model import Channel
from bdforge.design.tile_memory import Acquire, Bd, Buffer, Lock, Packet, Release
from bdforge.devices.limits import DEFAULT_STACK_BYTES

_SLOT = re.compile(r"(\w+)\[(\w+)(?: \+ (\d+))?\]")
_pair = numbers(2)


def _channel(given: Given, scope: Scope) -> Channel:
    (direction, index), bds, tile = given["dma"], tuple(chain(*given["bds"])), scope.inside
    subject = tile.name, tile.channels
    tile.paths[subject] = scope.path
    tile.paths.update(((*subject, place), path) for place, path in enumerate(tile.bds))
    tile.channels, tile.bds = tile.channels + 1, []
    return Channel(direction, index, bds, given["role"], given["back"], given["runs"])


@described({"type": ["integer", "string"]})
def _back(found: Any, scope: Scope) -> int | None:
    return None if found == "end" else number(found, scope)


def _in_ring(given: Given, scope: Scope) -> tuple[Bd, ...]:
    """BDs that fill or send slots of a ring."""
    tile, fills = scope.inside, "fill" in given
    name = given["fill" if fills else "send"]
    ring = tile.ring(name)
    free, full = (tile.find(f"{name}_{state}", Lock) for state in ("free", "full"))
    waits, gives = (free, full) if fills else (full, free)
    guards = Acquire(waits, given["acquire"]), Release(gives, given["release"])
    slots = range(len(ring)) if given["slot"] is None else [given["slot"]]
    for slot in slots:
        if not 0 <= slot < len(ring):
            raise Wrong(f"slot = {slot}: ring {clip(name)} has slots 0 to {len(ring) - 1}")
    tile.bds += [scope.path] * len(slots)
    return tuple(_bd(given, ring[slot], *guards) for slot in slots)


def _move(given: Given, scope: Scope) -> tuple[Bd, ...]:
    scope.inside.bds.append(scope.path)
    return (_bd(given, given["move"], given["acquire"], given["release"]),)


def _bd(given: Given, buffer: Buffer, acquire: Acquire | None, release: Release | None) -> Bd:
    return Bd(buffer, moved(given, buffer), acquire, release, given["padding"], packet(given), given["id"])


def moved(given: Given, buffer: Buffer) -> Pattern:
    """What a BD walks by its dims or pattern, from its offset on; without any, all of the buffer."""
    if given["pattern"] is not None:
        if given["dims"] is not None:
            raise Wrong("dims beside pattern; give one")
        return given["pattern"].shifted(given["offset"])
    if given["dims"] is None and given["offset"] != 0:
        raise Wrong("offset without dims; add dims = [[elements, 1]]")
    sizes, strides = zip(*(given["dims"] or [(buffer.elements, 1)]), strict=True)
    try:
        return Pattern(sizes, strides, given["offset"])
    except PatternError as error:
        raise Wrong(str(error)) from None


def packet(given: Given) -> Packet | None:
    """The header of a BD's data."""
    if given["packet"] is None and given["packet_type"] != 0:
        raise Wrong("packet_type without packet; add packet, its id")
    return None if given["packet"] is None else Packet(given["packet"], given["packet_type"])


def _acquired(lock: Lock, given: Given) -> Acquire:
    """By how much an acquire moves its lock, and whether the lock must hold exactly that."""
    if given["equal"] is not None and given["count"] != 1:
        raise Wrong("count beside equal, which is the count, too; give one")
    return Acquire(lock, given["count"] if given["equal"] is None else given["equal"], given["equal"] is not None)


@described(lambda: {"anyOf": [STRING, _GUARD.schema()]})
def _guard_acquire(found: Any, scope: Scope) -> Acquire:
    if isinstance(found, str):
        return Acquire(lock_named(found, scope))
    given = _GUARD(found, scope)
    return _acquired(given["lock"], given)


@described(lambda: {"anyOf": [STRING, _GUARD.schema()]})
def _guard_release(found: Any, scope: Scope) -> Release:
    if isinstance(found, str):
        return Release(lock_named(found, scope))
    given = _GUARD(found, scope)
    if given["equal"] is not None:
        raise Wrong("equal is for acquires; give count")
    return Release(given["lock"], given["count"])


_GUARD = Table(
    "A lock with the number by which it moves; `equal`: it must hold exactly that.",
    {"lock": Key(lock_named), "count": Key(number, 1), "equal": Key(number, None)},
    "table",
)
WALK = {"offset": Key(number, 0), "dims": Key(many(_pair, 1), None), "pattern": Key(pattern, None)}
"""Of any BD: (size, stride) pairs in elements, outermost first, or a pattern; else it moves all of its buffer."""
HEADER = {"packet": Key(number, None), "packet_type": Key(number, 0), "id": Key(number, None)}
"""Of any BD: the header of its data, and its number."""
_PADDING = described({"type": "array"})(lambda found, scope: tuple(many(_pair)(found, scope)))
_SENT = {"padding": Key(_PADDING, ())} | HEADER
_TURNS = {"slot": Key(number, None), **WALK, "acquire": Key(number, 1), "release": Key(number, 1)} | _SENT
_OF_RING = "{} a slot of a ring, without `slot` each in turn; the locks move by `acquire` and `release`."
FILL = Table(_OF_RING.format("Fill"), {"fill": Key(text)} | _TURNS)
SEND = Table(_OF_RING.format("Send"), {"send": Key(text)} | _TURNS)
MOVE = Table(
    "Move a buffer, between any locks or none.",
    {"move": Key(buffer_named), **WALK}
    | {"acquire": Key(_guard_acquire, None), "release": Key(_guard_release, None)}
    | _SENT,
)
_BD = choice({"fill": made(FILL, _in_ring), "send": made(SEND, _in_ring), "move": made(MOVE, _move)})
CHANNEL = Table(
    'A chain of BDs on a DMA channel ("S2MM 0"), that goes on with BD `back`, or ends after `runs` rounds.',
    {
        "dma": Key(direction_and_number), "role": Key(text, ""), "back": Key(_back, 0), "runs": Key(number, 1),
        "bds": Key(many(_BD, 1)),
    },
)  # fmt: skip
TILE = Table(
    "A tile at (column, row). Inside, `a_full` is short for the tile's own `name`_a_full, `@name` is any other.",
    {
        "name": Key(text), "at": Key(_pair), "reserved_bds": Key(_pair, (0, 0)), "core": Key(text, None),
        "holds": Key(later(many(HELD)), lambda tile: ()),
        "channels": Key(later(many(made(CHANNEL, _channel))), lambda tile: ()),
    },
)  # fmt: skip


@described({"type": ["number", "string"]})
def _named(found: Any, scope: Scope) -> Any:
    """A number; "%name" is an integer that a core knows by name."""
    if isinstance(found, str) and found.startswith("%"):
        return found[1:]
    return found if isinstance(found, float) else number(found, scope)


@described({"type": ["number", "string"]})
def _times(found: Any, scope: Scope) -> Any:
    if isinstance(found, str) and found != "forever" and "".join(found.lower().split()) == "forever":
        raise Wrong(f"{found!r} is no number; write 'forever'")
    return None if found == "forever" else _named(found, scope)


@described(lambda: {"anyOf": [{"type": ["string", "integer"]}, ROTATING.schema(), OF_PLACE.schema()]})
def _argument(found: Any, scope: Scope) -> Any:
    if isinstance(found, dict) and "number" in found:
        return _of_place(found, scope)
    if isinstance(found, dict):
        given = ROTATING(found, scope)
        return Rotating(Rotation(given["turn"], given["turns"]), tuple(given["of"]))
    if not isinstance(found, str) or found.startswith("%"):
        return _named(found, scope)
    if turn := _SLOT.fullmatch(found):
        ring = scope.inside.ring(turn[1])
        return Rotation(turn[2], len(ring)).of(ring).ahead(int(turn[3] or 0))
    return buffer_named(found, scope)


ROTATING = Table(
    'Of these buffers the one whose turn it is. For a ring\'s: "a[turn]", "a[turn + 1]".',
    {"turn": Key(plain), "turns": Key(number, 2), "of": Key(many(buffer_named, 1))},
    "table",
)


OF_PLACE = Table('A number by the core\'s place: "row - 2", "column".', {"number": Key(number)}, "table")


@described(lambda: {"anyOf": [schema_of(number), OF_PLACE.schema()]})
def _case_number(found: Any, scope: Scope) -> int:
    return _of_place(found, scope) if isinstance(found, dict) else number(found, scope)


def _of_place(found: Any, scope: Scope) -> int:
    column, row = scope.inside.place
    return OF_PLACE(found, scope.naming({"column": column, "row": row}))["number"]


@described({"type": "array", "items": {"$ref": "#/$defs/statement"}})
def _body(found: Any, scope: Scope) -> tuple[Any, ...]:
    return tuple(many(_placed_statement)(found, scope))


ADVANCE = Table("The next turn of a rotation of so many turns.", {"advance": Key(plain), "turns": Key(number, 2)})
LOAD = Table(
    'Name an element of a buffer, by its index or as "rtp.k_steps".',
    {"load": Key(plain), "from": Key(element_named), "index": Key(_named, 0)},
)
STORE = Table(
    "Write a number, or an integer by name, to an element of a buffer.",
    {"store": Key(_named), "to": Key(element_named), "index": Key(_named, 0)},
)
_integer = described(STRING)(lambda found, scope: _known(_named(found, scope)))


def _known(name: Any) -> str:
    if not isinstance(name, str):
        raise Wrong(f'{name} is known beforehand; switch on an integer by name, such as "%opcode"')
    return name


CASE = Table("What is run where the integer is `case`.", {"case": Key(_case_number), "body": Key(_body)})
SWITCH = Table(
    "Run the body of the `case` whose number an integer by name is, else `default`; names of a body end with it.",
    {"switch": Key(_integer), "cases": Key(many(CASE, 1)), "default": Key(_body, ())},
)
_STATEMENTS: dict[str, tuple[Table, Any]] = {
    "acquire": (
        Table(
            "Wait for a lock and take from it; `equal`: it must hold exactly that.",
            {"acquire": Key(lock_named), "count": Key(number, 1), "equal": Key(number, None)},
        ),
        lambda given: _acquired(given["acquire"], given),
    ),
    "release": (
        Table("Give to a lock.", {"release": Key(lock_named), "count": Key(number, 1)}),
        lambda given: Release(given["release"], given["count"]),
    ),
    "advance": (ADVANCE, lambda given: Advance(Rotation(given["advance"], given["turns"]))),
    "call": (
        Table(
            'Call a kernel with buffers, slots of rings by rotation, numbers, and integers by name ("%tiles").',
            {"call": Key(plain), "with": Key(many(_argument), ())},
        ),
        lambda given: Call(given["call"], tuple(given["with"])),
    ),
    "load": (LOAD, lambda given: Load(given["load"], *indexed(given["from"], given["index"]))),
    "store": (STORE, lambda given: Store(given["store"], *indexed(given["to"], given["index"]))),
    "loop": (
        Table(
            'Repeat `body`: a number of times, "%name" times or "forever"; `index` names the round.',
            {"loop": Key(_times), "index": Key(plain, "round"), "body": Key(_body)},
        ),
        lambda given: Loop(given["loop"], given["body"], given["index"]),
    ),
    "switch": (SWITCH, lambda given: SwitchOn(given["switch"], _cases(given["cases"]), given["default"])),
}


def _cases(cases: list[Given]) -> tuple[tuple[int, tuple[Any, ...]], ...]:
    return tuple((case["case"], case["body"]) for case in cases)


def _statement(table: Table, make: Any) -> Kind:
    return made(table, lambda given, scope: make(given))


STATEMENT = choice({key: _statement(table, make) for key, (table, make) in _STATEMENTS.items()})


@described(lambda: schema_of(STATEMENT))
def _placed_statement(found: Any, scope: Scope) -> Any:
    tile = scope.inside
    tile.paths[tile.name, "core", tile.statements] = scope.path
    tile.statements += 1
    return STATEMENT(found, scope)


PROGRAM = Table(
    "What a core runs.",
    {"stack_bytes": Key(number, DEFAULT_STACK_BYTES), "link_with": Key(plain, ""), "body": Key(_body)},
    "table",
)
