"""A tile as a table of a document: what it holds, its channels, the program of its core.

Inside, names are short: `a_full` is the tile's `core_0_2_a_full`, and `@name` any other.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from bd_patterns import Pattern
from bdforge.design.document.meanings import meaning
from bdforge.design.document.repeats import Repeating
from bdforge.design.document.tables import COMMENT
from bdforge.design.document.to_programs import CHANNEL, FILL, MOVE, SEND, TILE
from bdforge.design.document.to_tile import BUFFER, LOCK, RING
from bdforge.design.model import Channel, Tile
from bdforge.design.tile_memory import PING_PONG, Acquire, Bd, Buffer, Lock, Packet, Release, slot_tags, whole

Plain = dict[str, Any]
"""A table."""


def plain_tile(tile: Tile, shown: Tile, program: str) -> Plain:
    """The table of a tile, with the addresses and numbers of BDs that `shown` has; its core runs a program by name."""
    names, reserved = Names(shown), tile.reserved_bds
    return TILE.filled(
        name=tile.name,
        at=[tile.column, tile.row],
        reserved_bds=[reserved.start, reserved.stop] if reserved else [],
        core=program,
        holds=Repeating(names.holds()),
        channels=Repeating([_channel(names, channel) for channel in shown.channels]),
    )


class Names:
    """What the buffers and locks of a tile are called in its table, and which of them are rings."""

    def __init__(self, tile: Tile):
        self.tile, self.rings = tile, _rings(tile)
        self.slots = {b.name: (name, slot) for name, ring in self.rings.items() for slot, b in enumerate(ring)}

    def local(self, name: str) -> str:
        prefix = f"{self.tile.name}_"
        return name.removeprefix(prefix) if name.startswith(prefix) else f"@{name}"

    def holds(self) -> list[Plain]:
        """Rings, buffers and locks in the tile's order: a ring stands where its first buffer does."""
        buffers = [b for b in self.tile.buffers if self.slots.get(b.name, ("", 0))[1] == 0]
        locks = [lock for lock in self.tile.locks if not lock.name.endswith("_full") or not self._of_ring(lock)]
        found: list[Plain] = []
        for buffer in buffers:
            if buffer.name not in self.slots:
                found.append(self._buffer(buffer))
                continue
            ring = self.slots[buffer.name][0]
            while not buffer.over and (lock := locks.pop(0)).name != f"{self.tile.name}_{ring}_free":
                found.append(self._lock(lock))
            found.append(self._ring(ring))
        return found + [self._lock(lock) for lock in locks]

    def _of_ring(self, lock: Lock) -> bool:
        return any(
            lock.name in (f"{self.tile.name}_{ring}_free", f"{self.tile.name}_{ring}_full") for ring in self.rings
        )

    def _ring(self, name: str) -> Plain:
        buffers = self.rings[name]
        below, role = buffers[0].over, buffers[0].role.rpartition(", ")[0]
        free = next((lock for lock in self.tile.locks if lock.name == f"{self.tile.name}_{name}_free"), None)
        counts = free.role.removesuffix(": room") if free else role
        return RING.filled(
            ring=name,
            elements=buffers[0].elements,
            type=buffers[0].type,
            slots=len(buffers),
            room=None if free is None or free.init == len(buffers) else free.init,
            role=role,
            counts=None if counts == role else counts,
            addresses=[] if buffers[0].address is None else [buffer.address for buffer in buffers],
            mode=buffers[0].mode,
            over=self.slots[below][0] if below else "",
        )

    def _buffer(self, buffer: Buffer) -> Plain:
        values: Any = list(buffer.values)
        if len(set(values)) == 1 and len(values) == buffer.elements:
            values = values[0]
        return BUFFER.filled(
            buffer=self.local(buffer.name), elements=buffer.elements, type=buffer.type, role=buffer.role,
            address=buffer.address, words=list(buffer.words), values=values, mode=buffer.mode,
            over=self.local(buffer.over) if buffer.over else "",
        )  # fmt: skip

    def _lock(self, lock: Lock) -> Plain:
        in_order = self.tile.locks[lock.id : lock.id + 1] == (lock,)
        return LOCK.filled(lock=self.local(lock.name), init=lock.init, role=lock.role, id=None if in_order else lock.id)


def _rings(tile: Tile) -> dict[str, list[Buffer]]:
    """Buffers that take turns between two locks as `Slots.of` makes them, by name, where locks stand in their order."""
    named: dict[str, list[Buffer]] = {}
    for buffer in tile.buffers:
        stem, _, tag = buffer.name.rpartition("_")
        if stem.startswith(f"{tile.name}_") and (tag in PING_PONG or tag.isdigit()):
            named.setdefault(stem.removeprefix(f"{tile.name}_"), []).append(buffer)
    order = [lock.name for lock in tile.locks]
    in_turn = {name: buffers for name, buffers in named.items() if _alike(tile, name, buffers)}
    locked = {name: buffers for name, buffers in in_turn.items() if not buffers[0].over and _between_locks(tile, name)}
    below = [[buffer.name for buffer in buffers] for buffers in locked.values()]
    over = {name for name, buffers in in_turn.items() if [buffer.over for buffer in buffers] in below}
    over -= {lock.removeprefix(f"{tile.name}_").rpartition("_")[0] for lock in order}
    rings = {name: buffers for name, buffers in in_turn.items() if name in locked or name in over}
    starts = [order.index(f"{tile.name}_{name}_free") for name in locked]
    first = [tile.buffers.index(buffers[0]) for buffers in rings.values()]
    return rings if starts == sorted(starts) and first == sorted(first) else {}


def _alike(tile: Tile, name: str, buffers: Sequence[Buffer]) -> bool:
    """Whether buffers are slots of a ring: one behind the other, the same but for name, place and what lies below."""
    tags = slot_tags(len(buffers))
    stem, role = f"{tile.name}_{name}", buffers[0].role.rpartition(", ")[0]
    at = tile.buffers.index(buffers[0])
    alike = [
        replace(buffers[0], name=f"{stem}_{tag}", role=f"{role}, {tag}", address=b.address, banks=b.banks, over=b.over)
        for tag, b in zip(tags, buffers, strict=True)
    ]
    return tuple(alike) == tile.buffers[at : at + len(buffers)] and not buffers[0].values


def _between_locks(tile: Tile, name: str) -> bool:
    stem = f"{tile.name}_{name}"
    locks = [lock for lock in tile.locks if lock.name in (f"{stem}_free", f"{stem}_full")]
    if len(locks) != 2:
        return False
    free, full = locks
    counts = free.role.removesuffix(": room")
    ids = tile.locks.index(free), tile.locks.index(full)
    return (
        (free.name, full.name, full.init) == (f"{stem}_free", f"{stem}_full", 0)
        and (free.role, full.role) == (f"{counts}: room", f"{counts}: data")
        and ids == (free.id, full.id)
        and ids[1] == ids[0] + 1
    )


def _channel(names: Names, channel: Channel) -> Plain:
    bds = [_bd(names, bd) for bd in channel.bds]
    return CHANNEL.filled(
        dma=f"{channel.direction} {channel.index}",
        role=channel.role,
        back="end" if channel.back is None else channel.back,
        runs=channel.runs,
        bds=_whole_rings(names, bds) or Repeating(bds),
    )


def _whole_rings(names: Names, bds: list[Plain]) -> list[Plain]:
    """One BD for all slots of a ring in turn, where that is what the chain does."""
    way = next((key for key in ("fill", "send") if key in bds[0]), "")
    ring = bds[0].get(way, "")
    rest = [{key: value for key, value in bd.items() if key != "slot"} for bd in bds]
    slots = list(range(len(names.rings.get(ring, ()))))
    if not way or [bd.get("slot") for bd in bds] != slots or any(other != rest[0] for other in rest):
        return []
    return rest[:1]


def _bd(names: Names, bd: Bd) -> Plain:
    ring, slot = names.slots.get(bd.buffer.name, ("", 0))
    said = plain_pattern(bd.pattern, bd.buffer) | plain_packet(bd.packet)
    said |= {"padding": [list(pair) for pair in bd.padding], "id": bd.bd_id}
    way = _way(names, bd, ring)
    if way and bd.acquire and bd.release:
        table = FILL if way == "fill" else SEND
        return table.filled(**{way: ring}, slot=slot, acquire=bd.acquire.count, release=bd.release.count, **said)
    guards = plain_guard("acquire", names, bd.acquire) | plain_guard("release", names, bd.release)
    return MOVE.filled(move=names.local(bd.buffer.name), **guards, **said)


def plain_packet(packet: Packet | None) -> Plain:
    """The header of a BD's data."""
    return {"packet": packet.id, "packet_type": packet.type} if packet else {}


def _way(names: Names, bd: Bd, ring: str) -> str:
    """Whether a BD fills or sends a slot of a ring, as its locks tell; "" where it does neither."""
    if not ring or not bd.acquire or not bd.release or bd.acquire.exactly:
        return ""
    stem = f"{names.tile.name}_{ring}_"
    locks = bd.acquire.lock.name, bd.release.lock.name
    return {(f"{stem}free", f"{stem}full"): "fill", (f"{stem}full", f"{stem}free"): "send"}.get(locks, "")


def plain_guard(key: str, names: Names, guard: Acquire | Release | None) -> Plain:
    """A lock and by how much it moves, below its key; nothing without one."""
    if guard is None:
        return {}
    name = names.local(guard.lock.name)
    exactly = isinstance(guard, Acquire) and guard.exactly
    if exactly:
        return {key: {"lock": name, "equal": guard.count}}
    return {key: name if guard.count == 1 else {"lock": name, "count": guard.count}}


def plain_pattern(pattern: Pattern, buffer: Buffer) -> Plain:
    """Offset and dims of a BD; nothing where it moves all of its buffer in order."""
    if pattern == whole(buffer):
        return {}
    dims = {"dims": [list(pair) for pair in pattern.dims()]}
    return {"offset": pattern.offset} | dims | {COMMENT: meaning(pattern)}


def element(buffer: Buffer, index: int | str, of: str, at: str, called: str = "") -> Plain:
    """An element of a buffer that is `called` so, by its word's name or by its index: the values of keys `of`, `at`."""
    called = called or buffer.name
    if isinstance(index, int) and index < len(buffer.words):
        return {of: f"{called}.{buffer.words[index]}"}
    return {of: called, at: named(index)}


def named(value: float | int | str) -> float | int | str:
    """A number, or an integer by name."""
    return f"%{value}" if isinstance(value, str) else value
