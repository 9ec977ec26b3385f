"""Buffers as BDs show them: what the tasks that an image starts walk over, and between which locks."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bdforge.array.emulator.bd_access import DecodedBd, chain, decode_bd
from bdforge.array.lower.array_state import ArrayState, PushedTask, TileState
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS

_WINDOWS = ("west ", "", "east ")


@dataclass(frozen=True, slots=True)
class MovedBuffer:
    """Bytes of a tile's memory from `address` on; `window` is "" for the tile's own, else which neighbour's."""

    window: str
    address: int
    size_bytes: int

    def __str__(self) -> str:
        return f"{self.window}{self.address:#x} {self.size_bytes} B"


@dataclass(frozen=True, slots=True)
class BufferRing:
    """A task of a channel: the buffers that its chain of BDs walks over, in the order of the chain.

    `endless` chains lead back to their start; others run `runs` times. `acquires` and `releases` are locks, `packets`
    the ids of what is sent.
    """

    channel: str
    bds: tuple[int, ...]
    buffers: tuple[MovedBuffer, ...]
    endless: bool
    runs: int
    acquires: tuple[int, ...]
    releases: tuple[int, ...]
    packets: tuple[int, ...]

    @property
    def depth(self) -> int:
        """How many buffers it has: two are ping and pong."""
        return len(self.buffers)


def rings_of(state: ArrayState) -> dict[tuple[int, int], list[BufferRing]]:
    """The tasks that a configuration itself starts, by column and row; those of sequences are not in it."""
    found = {place: list(_rings(tile)) for place, tile in sorted(state.tiles.items())}
    return {place: rings for place, rings in found.items() if rings}


def _rings(tile: TileState) -> Iterator[BufferRing]:
    for task in tile.tasks:
        if task.bd in tile.bds:
            yield _ring(tile, task)


def _ring(tile: TileState, task: PushedTask) -> BufferRing:
    def decoded(bd: int) -> DecodedBd:
        return decode_bd(tile.kind, tuple(tile.bds.get(bd, tile.bds[task.bd])))

    ids = chain(decoded, task.bd)
    bds = [decoded(bd) for bd in ids]
    return BufferRing(
        f"{task.direction} {task.channel}", tuple(ids), tuple(_joined(tile.kind, bds)), bds[-1].use_next,
        task.repeat + 1, tuple(dict.fromkeys(_own(tile.kind, bd.acquire[0]) for bd in bds if bd.acquire)),
        tuple(dict.fromkeys(_own(tile.kind, bd.release[0]) for bd in bds if bd.release)),
        tuple(sorted({bd.packet[1] for bd in bds if bd.packet and task.direction == "MM2S"})),
    )  # fmt: skip


def _own(kind: TileKind, lock: int) -> int:
    """A lock by the number that its tile has for it, or, of a memtile's neighbour, by that of the window."""
    own = range(MEMTILE_WINDOW_LOCKS, 2 * MEMTILE_WINDOW_LOCKS)
    return lock - MEMTILE_WINDOW_LOCKS if kind is TileKind.MEMTILE and lock in own else lock


def _joined(kind: TileKind, bds: Sequence[DecodedBd]) -> Iterator[MovedBuffer]:
    """What BDs walk over; walks that overlap are of one buffer, which stands where its first BD does."""
    spans: list[list[int]] = []
    for start, end in (_span(bd) for bd in bds):
        meeting = [span for span in spans if start < span[1] and span[0] < end]
        if not meeting:
            spans.append([start, end])
            continue
        first, *others = meeting
        first[:] = min(start, *(s for s, _ in meeting)), max(end, *(e for _, e in meeting))
        spans = [span for span in spans if not any(span is other for other in others)]
    for start, end in spans:
        window, address = divmod(start, MEMTILE_WINDOW_BYTES) if kind is TileKind.MEMTILE else (1, start)
        yield MovedBuffer(_WINDOWS[min(window, 2)], address, end - start)


def _span(bd: DecodedBd) -> tuple[int, int]:
    """First byte, and the one behind the last, of all passes over a BD, as its channel addresses them."""
    unit = 1 if bd.access is not None else GRANULE_BYTES
    start = bd.address * unit
    steps = (bd.iteration_wrap - 1) * bd.iteration_step * GRANULE_BYTES
    low, high = start + bd.order.low * GRANULE_BYTES, start + (bd.order.high + 1) * GRANULE_BYTES
    return low, high + steps
