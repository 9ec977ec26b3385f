"""What a tile's table of a document holds: buffers, rings and locks, and where the names in it lead."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from bdforge.common.messages import clip, listed
from bdforge.design.document.document_values import STRING, Scope, Wrong, described, number, plain, text
from bdforge.design.document.tables import Key, Table, choice, made, many
from bdforge.design.document.toml_places import Path
from bdforge.design.model import Subject
from bdforge.design.tile_memory import Buffer, Lock, slot_tags

_TYPE = re.compile(r"(?:u?i|bf|f)[1-9][0-9]?")
_MOST_SLOTS = 1 << 10  # of a ring, and values of a buffer that are all one
_MOST_ELEMENTS = 1 << 20
Given = Mapping[str, Any]
"""A table's values by key."""


@dataclass(slots=True)
class TileUnderWay:
    """A tile of a document: what it holds, and where the names in its table lead.

    `everything` is of all tiles, `paths` say where all parts of the document's design stand.
    """

    given: Given
    scope: Scope
    everything: dict[str, Buffer | Lock]
    paths: dict[Subject, Path]
    buffers: list[Buffer] = field(default_factory=list)
    locks: list[Lock] = field(default_factory=list)
    rings: dict[str, list[Buffer]] = field(default_factory=dict)
    channels: int = 0
    bds: list[Path] = field(default_factory=list)
    statements: int = 0

    @property
    def name(self) -> str:
        return self.given["name"]

    @property
    def place(self) -> tuple[int, int]:
        column, row = self.given["at"]
        return column, row

    def hold(self) -> None:
        """Make its buffers and locks, before anything is looked for in them."""
        self.paths[self.name,] = self.scope.path
        self.given["holds"](self)
        self.everything |= {held.name: held for held in (*self.buffers, *self.locks)}

    def full(self, name: str) -> str:
        return name[1:] if name.startswith("@") else f"{self.name}_{name}"

    def lock(self, name: str, init: int, role: str, id_: int | None = None) -> None:
        self.locks.append(Lock(self.full(name), len(self.locks) if id_ is None else id_, init, role))

    def find(self, name: str, kind: type) -> Any:
        """Its buffer or lock of a name, or another tile's."""
        held = self.everything.get(self.full(name))
        if isinstance(held, kind):
            return held
        own = [one.name.removeprefix(f"{self.name}_") for one in (*self.buffers, *self.locks) if isinstance(one, kind)]
        raise Wrong(f"{self.name} has no {kind.__name__.lower()} {clip(name)}; there is {listed(own) or 'none'}")

    def ring(self, name: str) -> list[Buffer]:
        if name not in self.rings:
            raise Wrong(f"{self.name} has no ring {clip(name)}; there is {listed(self.rings) or 'none'}")
        return self.rings[name]


@described({"type": "string", "pattern": f"^{_TYPE.pattern}$"})
def element_type(found: Any, scope: Scope) -> str:
    if not _TYPE.fullmatch(plain(found, scope)):
        raise Wrong(f"{clip(repr(found))} is no type; write what MLIR calls elements, such as i8 or bf16")
    return found


@described(STRING)
def word(found: Any, scope: Scope) -> str:
    """A name of a word."""
    if not text(found, scope).isidentifier():
        raise Wrong(f"{clip(repr(found))} is no name; use letters, digits and _")
    return text(found, scope)


@described(STRING)
def buffer_named(found: Any, scope: Scope) -> Buffer:
    """A buffer of the tile's, or with @ of another one's."""
    return scope.inside.find(text(found, scope), Buffer)


@described(STRING)
def lock_named(found: Any, scope: Scope) -> Lock:
    """A lock likewise."""
    return scope.inside.find(text(found, scope), Lock)


@described(STRING)
def element_named(found: Any, scope: Scope) -> tuple[Buffer, int | None]:
    """A buffer, or of "rtp.k_steps" the place of its word with that name, too."""
    return word_of(text(found, scope), lambda name: scope.inside.find(name, Buffer))


def word_of(name: str, find: Callable[[str], Buffer]) -> tuple[Buffer, int | None]:
    """The buffer of "rtp.k_steps" and which of its words that is; None of "rtp"."""
    held, dot, called = name.partition(".")
    buffer = find(held)
    if dot and called not in buffer.words:
        raise Wrong(f"{clip(held)} has no word {clip(called)}; there is {listed(buffer.words) or 'none'}")
    return buffer, buffer.words.index(called) if dot else None


def indexed(element: tuple[Buffer, int | None], index: int | str) -> tuple[Buffer, int | str]:
    """A buffer and the element that a word's name or an index says."""
    buffer, named = element
    if named is not None and index != 0:
        raise Wrong(f"{index} beside the name of a word; leave it")
    return buffer, index if named is None else named


@described(STRING)
def direction_and_number(found: Any, scope: Scope) -> tuple[str, int]:
    """("S2MM", 0) of "S2MM 0"."""
    return channel_of(text(found, scope))


def channel_of(found: str) -> tuple[str, int]:
    """("S2MM", 0) of "S2MM 0"."""
    direction, _, index = found.partition(" ")
    if direction not in ("S2MM", "MM2S") or not index.isdecimal():
        raise Wrong(f"{clip(repr(found))} is no channel; write S2MM or MM2S and its number")
    return direction, int(index)


def _held(make: Callable[[Given, Scope], None]) -> Callable[[Given, Scope], None]:
    def hold(given: Given, scope: Scope) -> None:
        tile = scope.inside
        before = len(tile.buffers), len(tile.locks)
        make(given, scope)
        fresh = *tile.buffers[before[0] :], *tile.locks[before[1] :]
        tile.paths.update(((held.name,), scope.path) for held in fresh)

    return hold


def _ring(given: Given, scope: Scope) -> None:
    tile, name, role, slots = scope.inside, given["ring"], given["role"], given["slots"]
    counts = role if given["counts"] is None else given["counts"]
    if not 1 <= slots <= _MOST_SLOTS:
        raise Wrong(f"slots = {slots}: a ring has 1 to {_MOST_SLOTS}")
    below = tile.ring(given["over"]) if given["over"] else []
    if below and len(below) != slots:
        raise Wrong(f"{slots} slots over a ring of {len(below)}; give it as many")
    addresses = given["addresses"] or [None] * slots
    if len(addresses) != slots:
        raise Wrong(f"{len(addresses)} addresses for {slots} slots")
    what, mode = (given["elements"], given["type"]), given["mode"]
    tile.rings[name] = [
        Buffer(tile.full(f"{name}_{tag}"), *what, f"{role}, {tag}", address, mode=mode, over=over)
        for tag, address, over in zip(slot_tags(slots), addresses, [b.name for b in below] or [""] * slots, strict=True)
    ]
    tile.buffers += tile.rings[name]
    if below:
        return
    tile.lock(f"{name}_free", slots if given["room"] is None else given["room"], f"{counts}: room")
    tile.lock(f"{name}_full", 0, f"{counts}: data")


def _buffer(given: Given, scope: Scope) -> None:
    elements, values = given["elements"], given["values"]
    if not isinstance(values, list):
        values = [] if values is None else [values] * min(elements, _MOST_ELEMENTS)
    name, role = scope.inside.full(given["buffer"]), given["role"]
    words = tuple(given["words"])
    if len(words) > elements or len(set(words)) < len(words) or (words and given["type"] != "i32"):
        raise Wrong(f"words: {listed(words)} are no names of different words of {elements} x {given['type']}")
    over = scope.inside.full(given["over"]) if given["over"] else ""
    made = Buffer(
        name, elements, given["type"], role, given["address"], range(0), tuple(values), words, given["mode"], over
    )
    scope.inside.buffers.append(made)


def _lock(given: Given, scope: Scope) -> None:
    scope.inside.lock(given["lock"], given["init"], given["role"], given["id"])


@described({"type": ["number", "string", "array"]})
def _start(found: Any, scope: Scope) -> Any:
    if isinstance(found, list):
        return [_start(one, scope.at(place)) for place, one in enumerate(found)]
    return found if isinstance(found, float) else number(found, scope)


RING = Table(
    "Buffers that take turns between two locks, `ring`_free (which starts at `room`) and `ring`_full. They are called "
    "ping and pong, three or more by numbers. `counts`: what the locks count, if not `role`. One that lies "
    "`over` another ring, which is of another `mode`, has its bytes and its locks.",
    {
        "ring": Key(text), "elements": Key(number), "type": Key(element_type), "slots": Key(number, 2),
        "room": Key(number, None), "role": Key(text, ""), "counts": Key(text, None),
        "addresses": Key(many(number), None), "mode": Key(word, ""), "over": Key(text, ""),
    },
)  # fmt: skip
BUFFER = Table(
    "A buffer; its memory starts as `values`, one for all or one each. `words` are names of its i32, in order. Those "
    "of different modes of a tile may share bytes, and do where one lies `over` the other.",
    {
        "buffer": Key(text), "elements": Key(number), "type": Key(element_type), "role": Key(text, ""),
        "address": Key(number, None), "words": Key(many(word), ()), "values": Key(_start, None),
        "mode": Key(word, ""), "over": Key(text, ""),
    },
)  # fmt: skip
LOCK = Table(
    "A lock; by default its number is its place among its tile's.",
    {"lock": Key(text), "init": Key(number, 0), "role": Key(text, ""), "id": Key(number, None)},
)
HELD = choice(
    {"ring": made(RING, _held(_ring)), "buffer": made(BUFFER, _held(_buffer)), "lock": made(LOCK, _held(_lock))}
)
