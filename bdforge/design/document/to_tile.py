"""What a tile's table of a document stands for: buffers, locks, channels and the program of its core."""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from bd_patterns import Pattern, PatternError
from bdforge.common.messages import clip, listed
from bdforge.design.core_code import Advance, Call, Load, Loop, Rotating, Rotation, Statement, Store
from bdforge.design.document import grammar
from bdforge.design.document.expand import Expansion, Numbers, maybe, named, number, text
from bdforge.design.document.tables import Wrong
from bdforge.design.model import Channel
from bdforge.design.tile_memory import Acquire, Bd, Buffer, Lock, Packet, Release, slot_tags

_SLOT = re.compile(r"(\w+)\[(\w+)(?: \+ (\d+))?\]")
_MOST_SLOTS = 1 << 10  # of a ring, and values of a buffer that are all one
_MOST_ELEMENTS = 1 << 20


@dataclass(slots=True)
class TileUnderWay:
    """A tile of a document: what it holds, and where the names in its table lead. `everything` is of all tiles."""

    form: grammar.Tile
    names: Numbers
    expansion: Expansion
    everything: dict[str, Buffer | Lock]
    name: str = ""
    column: int = 0
    row: int = 0
    buffers: list[Buffer] = field(default_factory=list)
    locks: list[Lock] = field(default_factory=list)
    rings: dict[str, list[Buffer]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.name = text(self.form.name, self.names)
        self.column, self.row = (number(value, self.names) for value in self.form.at)

    def hold(self) -> None:
        """Make its buffers and locks, before anything is looked for in them."""
        self.expansion.all(self.form.holds, self.names, self._held)
        self.everything |= {held.name: held for held in (*self.buffers, *self.locks)}

    def _held(self, item: Any, names: Numbers) -> None:
        match item:
            case grammar.Ring():
                self._ring(item, names)
            case grammar.Buffer():
                self._buffer(item, names)
            case _:
                init, role = number(item.init, names), text(item.role, names)
                self._lock(text(item.lock, names), init, role, maybe(item.id, names))

    def _full(self, name: str) -> str:
        return name[1:] if name.startswith("@") else f"{self.name}_{name}"

    def _lock(self, name: str, init: int, role: str, id_: int | None = None) -> None:
        self.locks.append(Lock(self._full(name), len(self.locks) if id_ is None else id_, init, role))

    def _ring(self, item: grammar.Ring, names: Numbers) -> None:
        name, role, slots = text(item.ring, names), text(item.role, names), number(item.slots, names)
        counts = role if item.counts is None else text(item.counts, names)
        if not 1 <= slots <= _MOST_SLOTS:
            raise Wrong(f"slots = {slots}: a ring has 1 to {_MOST_SLOTS}")
        addresses = [number(one, names) for one in item.addresses or ()] or [None] * slots
        if len(addresses) != slots:
            raise Wrong(f"{len(addresses)} addresses for {slots} slots")
        elements = number(item.elements, names)
        self.rings[name] = [
            Buffer(self._full(f"{name}_{tag}"), elements, item.type, f"{role}, {tag}", address)
            for tag, address in zip(slot_tags(slots), addresses, strict=True)
        ]
        self.buffers += self.rings[name]
        self._lock(f"{name}_free", slots if item.room is None else number(item.room, names), f"{counts}: room")
        self._lock(f"{name}_full", 0, f"{counts}: data")

    def _buffer(self, item: grammar.Buffer, names: Numbers) -> None:
        name, elements, role = text(item.buffer, names), number(item.elements, names), text(item.role, names)
        address, given = maybe(item.address, names), item.values
        if not isinstance(given, list):
            given = [] if given is None else [given] * min(elements, _MOST_ELEMENTS)
        values = tuple(number(value, names) if isinstance(value, str) else value for value in given)
        self.buffers.append(Buffer(self._full(name), elements, item.type, role, address, values=values))

    def _find(self, name: str, kind: type) -> Any:
        held = self.everything.get(self._full(name))
        if isinstance(held, kind):
            return held
        own = [one.name.removeprefix(f"{self.name}_") for one in (*self.buffers, *self.locks) if isinstance(one, kind)]
        raise Wrong(f"{self.name} has no {kind.__name__.lower()} {clip(name)}; there is {listed(own) or 'none'}")

    def _ring_of(self, name: str) -> list[Buffer]:
        if name not in self.rings:
            raise Wrong(f"{self.name} has no ring {clip(name)}; there is {listed(self.rings) or 'none'}")
        return self.rings[name]

    def channels(self) -> list[Channel]:
        """Its channels with their BDs."""
        return self.expansion.all(self.form.channels, self.names, self._channel)

    def _channel(self, item: grammar.Channel, names: Numbers) -> Channel:
        direction, index = channel_of(text(item.dma, names))
        back = None if item.back == "end" else number(item.back, names)
        chains = self.expansion.all(item.bds, names, lambda bd, inner: tuple(self._bds(bd, inner)))
        bds = tuple(bd for chain in chains for bd in chain)
        return Channel(direction, index, bds, text(item.role, names), back, number(item.runs, names))

    def _bds(self, item: Any, names: Numbers) -> Iterator[Bd]:
        if isinstance(item, grammar.Move):
            acquire, release = self._acquire(item.acquire, names), self._release(item.release, names)
            yield _bd(item, names, self._find(text(item.move, names), Buffer), acquire, release)
            return
        fills = isinstance(item, grammar.Fill)
        name = text(item.fill if fills else item.send, names)
        ring = self._ring_of(name)
        free, full = (self._find(f"{name}_{state}", Lock) for state in ("free", "full"))
        waits, gives = (free, full) if fills else (full, free)
        acquire, release = Acquire(waits, number(item.acquire, names)), Release(gives, number(item.release, names))
        for slot in range(len(ring)) if item.slot is None else [number(item.slot, names)]:
            if not 0 <= slot < len(ring):
                raise Wrong(f"slot = {slot}: ring {clip(name)} has slots 0 to {len(ring) - 1}")
            yield _bd(item, names, ring[slot], acquire, release)

    def _acquire(self, found: str | grammar.Guard | None, names: Numbers) -> Acquire | None:
        if found is None:
            return None
        if isinstance(found, str):
            return Acquire(self._find(text(found, names), Lock))
        return Acquire(self._find(text(found.lock, names), Lock), *_moved_by(found.count, found.equal, names))

    def _release(self, found: str | grammar.Guard | None, names: Numbers) -> Release | None:
        if found is None:
            return None
        if isinstance(found, str):
            return Release(self._find(text(found, names), Lock))
        if found.equal is not None:
            raise Wrong("release: equal is for acquires; give count")
        return Release(self._find(text(found.lock, names), Lock), number(found.count, names))

    def body(self, statements: Iterable[Any]) -> tuple[Statement, ...]:
        """Statements of its core, with the tile's buffers and locks."""
        return tuple(map(self._statement, statements))

    def _statement(self, item: Any) -> Statement:
        names = self.names
        match item:
            case grammar.Acquire(acquire=name, count=count, equal=equal):
                return Acquire(self._find(name, Lock), *_moved_by(count, equal, names))
            case grammar.Release(release=name, count=count):
                return Release(self._find(name, Lock), number(count, names))
            case grammar.Advance(advance=name, turns=turns):
                return Advance(Rotation(name, number(turns, names)))
            case grammar.Call(call=name, arguments=arguments):
                return Call(name, tuple(map(self._argument, arguments)))
            case grammar.Load(load=name, source=source, index=index):
                return Load(name, self._find(source, Buffer), named(index, names))
            case grammar.Store(store=value, to=target, index=index):
                return Store(named(value, names), self._find(target, Buffer), named(index, names))
            case _:
                count = None if item.loop == "forever" else named(item.loop, names)
                return Loop(count, self.body(item.body), item.index)

    def _argument(self, found: Any) -> Any:
        if isinstance(found, int):
            return found
        if isinstance(found, grammar.Rotating):
            rotation = Rotation(found.turn, number(found.turns, self.names))
            return Rotating(rotation, tuple(self._find(name, Buffer) for name in found.of))
        if found.startswith("%"):
            return found[1:]
        if turn := _SLOT.fullmatch(found):
            ring = self._ring_of(turn[1])
            return Rotation(turn[2], len(ring)).of(ring).ahead(int(turn[3] or 0))
        return self._find(found, Buffer)


def channel_of(found: str) -> tuple[str, int]:
    """("S2MM", 0) of "S2MM 0"."""
    direction, _, index = found.partition(" ")
    if direction not in ("S2MM", "MM2S") or not index.isdecimal():
        raise Wrong(f"{clip(repr(found))} is no channel; write S2MM or MM2S and its number")
    return direction, int(index)


def moved(item: Any, buffer: Buffer, names: Numbers) -> Pattern:
    """The pattern of a BD's offset and dims; without any, all of the buffer."""
    if item.dims is None and item.offset != 0:
        raise Wrong("offset without dims; add dims = [[elements, 1]]")
    dims = item.dims or [[buffer.elements, 1]]
    sizes, strides = zip(*([number(value, names) for value in pair] for pair in dims), strict=True)
    try:
        return Pattern(sizes, strides, number(item.offset, names))
    except PatternError as error:
        raise Wrong(str(error)) from None


def _moved_by(count: int | str, equal: int | str | None, names: Numbers) -> tuple[int, bool]:
    """By how much an acquire moves its lock, and whether the lock must hold exactly that."""
    if equal is not None and count != 1:
        raise Wrong("count beside equal, which is the count, too; give one")
    return number(count if equal is None else equal, names), equal is not None


def packet(item: Any, names: Numbers) -> Packet | None:
    """The header of a BD's data."""
    if item.packet is None and item.packet_type != 0:
        raise Wrong("packet_type without packet; add packet, its id")
    return None if item.packet is None else Packet(number(item.packet, names), number(item.packet_type, names))


def _bd(item: Any, names: Numbers, buffer: Buffer, acquire: Acquire | None, release: Release | None) -> Bd:
    pattern = moved(item, buffer, names)
    padding = tuple((number(before, names), number(after, names)) for before, after in item.padding)
    return Bd(buffer, pattern, acquire, release, padding, packet(item, names), maybe(item.id, names))
