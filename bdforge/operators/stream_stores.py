"""Where streams stand in memtiles and cores: a store for each one, or for chunks of all that go the same way.

A slot of such a store in a memtile has a row of each stream, chunk by chunk: the first chunk of the first stream, that
of the second, ..., then the second chunks. In DRAM the rows lie apart, so that BDs to or from there walk a stream's
*part* of a slot; those to or from a core take all of it, for cores cut it in chunks by the BDs of their own.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import accumulate

from bd_patterns import Pattern
from bdforge.design import Acquire, Bd, Locks, Release, Slots
from bdforge.design.tile_memory import whole
from bdforge.devices.limits import BYTE_BITS, GRANULE_BITS, MEMTILE
from bdforge.devices.types import TYPES
from bdforge.operators.tile_streams import StreamTiling, TileStream

_WORD = TYPES["int32"]
_LARGEST_SIZE = min(MEMTILE.static_size, *MEMTILE.wraps)
"""Of a dimension of a memtile's BD."""

Streams = tuple[TileStream, ...]


@dataclass(frozen=True, slots=True)
class TileStore:
    """Slots of a memtile, the part of each stream in one, None for all of it; and how cores get or give one."""

    slots: Slots
    parts: tuple[Pattern | None, ...]
    walk: Pattern | None = None

    @classmethod
    def of(cls, tiling: StreamTiling, streams: Streams, locks: Locks, tag: str, role: str, count: int) -> "TileStore":
        """`count` slots for a row of each stream, called by their names and `tag`."""
        name = "_".join(stream.name.lower() for stream in streams) + tag
        role = f"{tiling.names(streams)} {role}"
        if len(streams) == 1:
            (one,) = streams
            elements = one.elements if one in tiling.held else tiling.elements(one)
            return cls(Slots.of(locks, name, elements, one.type, role, count), (None,), one.walk)
        words = chunk_words(tiling, streams)
        made = Slots.of(locks, name, tiling.chunks * sum(words), _WORD, role, count, parts=len(streams))
        return cls(made, tuple(_part(*place, tiling.chunks, sum(words)) for place in _places(words)))

    def fill(self) -> tuple[Bd, ...]:
        """BDs that fill one slot after the other."""
        bds = self.slots.fill(len(self.parts))
        return tuple(replace(bd, pattern=self.walk or bd.pattern) for bd in bds)

    def send(self, times: int = 1) -> Iterator[tuple[Bd, ...]]:
        """BDs that send one slot after the other; of several times, all but the last one leave it full."""
        slots, count = self.slots, len(self.parts)
        for time in range(times):
            released = Release(slots.free if time == times - 1 else slots.full, count)
            yield tuple(
                Bd(buffer, self.walk or whole(buffer), Acquire(slots.full, count), released) for buffer in slots.buffers
            )

    def fill_part(self, number: int) -> tuple[Bd, ...]:
        """Those that fill a stream's part."""
        return self._part(number, Acquire(self.slots.free), Release(self.slots.full))

    def send_part(self, number: int) -> tuple[Bd, ...]:
        """Those that send it."""
        return self._part(number, Acquire(self.slots.full), Release(self.slots.free))

    def _part(self, number: int, acquire: Acquire, release: Release) -> tuple[Bd, ...]:
        return tuple(Bd(buffer, self.parts[number] or whole(buffer), acquire, release) for buffer in self.slots.buffers)


def chunk_words(tiling: StreamTiling, streams: Streams) -> tuple[int, ...]:
    """Words of each stream in a chunk."""
    return tuple(tiling.piece(stream) * stream.type.bits // GRANULE_BITS for stream in streams)


def chunk_slots(tiling: StreamTiling, streams: Streams, locks: Locks, vector_bytes: int) -> tuple[Slots, int]:
    """Those of a core, a chunk of each stream one behind the other, in whole vectors; how many elements DMAs move."""
    name = "_".join(stream.name.lower() for stream in streams)
    role = f"{'chunk' if tiling.chunks > 1 else 'tile'} of {tiling.names(streams)}"
    if len(streams) == 1:
        (one,) = streams
        elements = one.elements // tiling.chunks
        return Slots.of(locks, name, elements, one.type, role, tiling.buffers), one.type.memory_elements(elements)
    words, vector = sum(chunk_words(tiling, streams)), vector_bytes * BYTE_BITS // GRANULE_BITS
    return Slots.of(locks, name, -(-words // vector) * vector, _WORD, role, tiling.buffers), words


def _places(words: tuple[int, ...]) -> Iterator[tuple[int, int]]:
    """(first word, words) of each stream in a chunk of all."""
    yield from zip(accumulate(words[:-1], initial=0), words, strict=True)


def _part(first: int, words: int, chunks: int, together: int) -> Pattern:
    """A stream's words in a row of chunks; of a single one what came last."""
    if words == 1:
        return Pattern((1,), (1,), (chunks - 1) * together + first)
    run = _run_of(words)
    return Pattern((chunks, words // run, run), (together, run, 1), first)


def _run_of(words: int) -> int:
    """The longest run that a dimension of a memtile's BD takes, of which a chunk is some."""
    return next(run for run in range(min(words, _LARGEST_SIZE), 0, -1) if words % run == 0)


def walkable(tiling: StreamTiling) -> bool:
    """Whether a memtile's BDs walk the parts of a slot."""
    stores = [store for some in (tiling.inputs, tiling.held, tiling.outputs) for store in tiling.stores(some)]
    sizes = [(tiling.chunks, n // _run_of(n)) for some in stores if len(some) > 1 for n in chunk_words(tiling, some)]
    return all(size <= _LARGEST_SIZE for two in sizes for size in two)
