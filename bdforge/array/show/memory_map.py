"""Memory maps: which bytes of each tile are taken, and by what."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from xdsl.dialects import memref
from xdsl.dialects.builtin import MemRefType
from xdsl.ir import SSAValue

from bdforge.array.mlir.allocate import allocate, buffer_bytes, memref_bytes
from bdforge.array.mlir.array_ops import CoreOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.array.mlir.operation import constant_of
from bdforge.devices import TileKind, TileLimits

STACK, FREE = "stack", "free"


class Span(NamedTuple):
    """Bytes `start` to `end` (exclusive) of a tile's memory; `what` is "stack", "free" or a buffer's name."""

    start: int
    end: int
    what: str

    @property
    def size_bytes(self) -> int:
        """Length in bytes."""
        return self.end - self.start


class TileMemory(NamedTuple):
    """Memory of one tile, from byte 0 to its end without gaps."""

    column: int
    row: int
    limits: TileLimits
    spans: tuple[Span, ...]

    @property
    def kind(self) -> TileKind:
        """Memtile or core."""
        return self.limits.kind

    @property
    def limit_bytes(self) -> int:
        """Size of the memory."""
        return self.limits.memory_bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of stack and buffers."""
        return sum(span.size_bytes for span in self.spans if span.what != FREE)


class BufferView(NamedTuple):
    """Bytes `start` to `end` (exclusive) of the tile at `place` that cores see as a value `name`, part of `within`."""

    place: tuple[int, int]
    start: int
    end: int
    name: str
    within: str


def buffer_views(device: DeviceOp) -> list[BufferView]:
    """What cores see of buffers by `memref.view`, where the text tells from where on, by tile, each once."""
    placed = allocate(device).buffers
    found = (_view(op, placed) for op in device.walk() if isinstance(op, memref.ViewOp))
    return sorted(dict.fromkeys(view for view in found if view), key=lambda view: (view.place, view.start, -view.end))


def _view(op: memref.ViewOp, placed: Mapping[BufferOp, int]) -> BufferView | None:
    held, kind = _held(op.result), op.result.type
    if held is None or op.sizes or not isinstance(kind, MemRefType):
        return None
    buffer, shift = held
    start = placed[buffer] + shift
    names = (f"%{value_name(value) or '?'}" for value in (op.result, op.source))
    return BufferView(buffer.tile.place, start, start + memref_bytes(kind), *names)


def _held(value: SSAValue) -> tuple[BufferOp, int] | None:
    """The buffer that a value is seen in, and from which byte on."""
    op = value.owner
    if isinstance(op, BufferOp):
        return op, 0
    if not isinstance(op, memref.ViewOp) or (shift := constant_of(op.byte_shift)) is None:
        return None
    below = _held(op.source)
    return below and (below[0], below[1] + shift)


def memory_map(device: DeviceOp) -> list[TileMemory]:
    """Memory of every tile that the text names and that has any, by column and row.

    AllocationError where buffers and stack do not fit. The program memory of cores is no part of it.
    """
    tiles = {(op.column, op.row): op for op in device.walk() if isinstance(op, TileOp) and op.limits.memory_bytes}
    taken: dict[tuple[int, int], list[Span]] = {tile: [] for tile in tiles}
    for op, start in allocate(device).buffers.items():
        span = Span(start, start + buffer_bytes(op), f"@{op.symbol}" if op.symbol else "unnamed buffer")
        taken[op.tile.column, op.tile.row].append(span)
    for op in device.walk():
        if isinstance(op, CoreOp) and op.stack_size:
            taken[op.tile.column, op.tile.row].append(Span(0, op.stack_size, STACK))
    return [tile_memory(tiles[tile], sorted(taken[tile])) for tile in sorted(tiles)]


def tile_memory(tile: TileOp, taken: Sequence[Span]) -> TileMemory:
    """The memory of a tile of which spans are taken, given in order."""
    limit, spans, end = tile.limits.memory_bytes, [], 0
    for span in [*taken, Span(limit, limit, FREE)]:
        if span.start > end:
            spans.append(Span(end, span.start, FREE))
        if span.size_bytes:
            spans.append(span)
        end = max(end, span.end)
    return TileMemory(tile.column, tile.row, tile.limits, tuple(spans))
