"""Banks of memory: what each holds, and which buffers in use at the same time share one."""

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import NamedTuple

from bdforge.array.lower.dma_programs import static_tasks
from bdforge.array.mlir.allocate import allocate, element_bits
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.show.memory_map import FREE, BufferView, Span, TileMemory, buffer_views
from bdforge.devices import TileKind


class Mover(NamedTuple):
    """A channel that moves a buffer, and the lock that it takes for it."""

    direction: Direction
    channel: int
    lock: LockOp | None

    def __str__(self) -> str:
        return f"{self.direction} {self.channel}"


class Conflict(NamedTuple):
    """Two buffers that channels move and that share `banks`; `turns`: they take turns on one channel, ping and pong."""

    one: str
    other: str
    banks: range
    turns: bool
    channels: tuple[str, ...]

    def __str__(self) -> str:
        return f"turns of {self.channels[0]}" if self.turns else " and ".join(self.channels)


class BankUse(NamedTuple):
    """One bank of a tile: bytes in use, by what, and its conflicts."""

    bank: int
    used_bytes: int
    holds: tuple[str, ...]
    conflicts: tuple[Conflict, ...]


Movers = dict[tuple[int, int, int], list[Mover]]
"""By column, row and address of a buffer, or of a view that begins where a BD does."""


def movers_of(device: DeviceOp) -> Movers:
    """The channels of static DMA programs that move each buffer, in the order of the text."""
    found: Movers = {}
    placed, seen = allocate(device).buffers, {(*view.place, view.start) for view in buffer_views(device)}
    for program in (op for op in device.walk() if isinstance(op, DmaProgramOp)):
        for task in static_tasks(program):
            for bd in task.bds:
                buffer, lock = bd.buffer_op, next((use.lock for use in bd.acquires), None)
                if isinstance(buffer, BufferOp):
                    begin = *buffer.tile.place, placed[buffer] + bd.offset * element_bits(buffer.type.element_type) // 8
                    place = begin if begin in seen else (*buffer.tile.place, placed[buffer])
                    found.setdefault(place, []).append(Mover(task.op.direction, task.op.channel, lock))
    return found


def bank_use(memory: TileMemory, movers: Movers, views: Sequence[BufferView]) -> list[BankUse]:
    """The banks of a tile that hold anything; of a buffer that cores see by `views`, what they see of it.

    In a core any two buffers that channels move conflict when they share a bank: while channels have one, the core has
    the other. A memtile's physical banks are interleaved, so that only ping and pong are named there, by the banks that
    mlir-aie counts. Views of different views, such as modes of a tile, are not in use together.
    """
    limits = memory.limits
    spans = [span for span in memory.spans if span.what != FREE]
    held = [one for span in spans for one in _held(span, views)]
    conflicts = list(_conflicts(memory, movers, held))
    found = []
    for bank in range(limits.banks):
        first, end = bank * limits.bank_bytes, (bank + 1) * limits.bank_bytes
        inside = [span for span in spans if span.start < end and span.end > first]
        used = sum(min(span.end, end) - max(span.start, first) for span in inside)
        names = tuple(span.what for span, _ in held if span.start < end and span.end > first)
        if inside:
            here = tuple(conflict for conflict in conflicts if bank in conflict.banks)
            found.append(BankUse(bank, used, names, here))
    return found


def _held(span: Span, views: Sequence[BufferView]) -> list[tuple[Span, str]]:
    """What a span holds, and what that is seen in: views that no other is a part of, or else itself."""
    inside = [view for view in views if span.start <= view.start and view.end <= span.end]
    parents = {view.within for view in inside}
    seen = [(Span(view.start, view.end, view.name), view.within) for view in inside if view.name not in parents]
    return seen or [(span, "")]


def _conflicts(memory: TileMemory, movers: Movers, held: Sequence[tuple[Span, str]]) -> Iterator[Conflict]:
    moved = [(one, movers.get((memory.column, memory.row, one[0].start), [])) for one in held]
    for ((one, of), by_one), ((other, of_other), by_other) in combinations([(o, by) for o, by in moved if by], 2):
        if of and of_other and of != of_other:
            continue
        banks = [memory.limits.banks_of(span.start, span.size_bytes) for span in (one, other)]
        shared = range(max(b.start for b in banks), min(b.stop for b in banks))
        common = _in_turn(by_one, by_other, memory.kind)
        if shared and (common or memory.kind is TileKind.CORE):
            channels = common or tuple(sorted({str(by_one[0]), str(by_other[0])}))
            yield Conflict(one.what, other.what, shared, bool(common), channels)


def _in_turn(one: Sequence[Mover], other: Sequence[Mover], kind: TileKind) -> tuple[str, ...]:
    """Channels on which two buffers take turns; those of a memtile serve several operands, each with its lock."""
    return tuple(
        dict.fromkeys(
            str(a)
            for a in one
            for b in other
            if (a.direction, a.channel) == (b.direction, b.channel) and (kind is TileKind.CORE or a.lock is b.lock)
        )
    )
