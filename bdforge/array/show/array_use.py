"""What a design uses, tile by tile, gathered once for tables and pictures."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp

from bdforge.array.mlir.allocate import allocate
from bdforge.array.mlir.array_ops import CoreOp, ShimDmaAllocationOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.stream_ops import CascadeFlowOp
from bdforge.array.mlir.task_ops import DmaConfigureTaskForOp, DmaConfigureTaskOp
from bdforge.array.routing import Routing, route
from bdforge.array.show.bank_use import BankUse, bank_use, movers_of
from bdforge.array.show.memory_map import TileMemory, buffer_views, memory_map
from bdforge.devices import TileKind, TileLimits

Coordinates = tuple[int, int]


@dataclass(slots=True)
class TileUse:
    """What a design puts on one tile."""

    column: int
    row: int
    kind: TileKind
    limits: TileLimits
    memory: TileMemory | None
    banks: list[BankUse]
    core: CoreOp | None = None
    buffers: list[BufferOp] = field(default_factory=list)
    locks: list[tuple[int, LockOp]] = field(default_factory=list)
    static_bds: int = 0
    runtime_bds: set[int] = field(default_factory=set)  # ids that the sequence names
    open_bds: bool = False  # whether the sequence leaves ids to the allocator
    channels: set[tuple[Direction, int]] = field(default_factory=set)
    names: dict[tuple[Direction, int], str] = field(default_factory=dict)  # of shim channels


@dataclass(slots=True)
class DesignUse:
    """A device with its tiles, routes and cascades."""

    device: DeviceOp
    tiles: dict[Coordinates, TileUse]
    routing: Routing
    cascades: list[tuple[Coordinates, Coordinates]]


def devices_of(module: ModuleOp) -> list[DeviceOp]:
    """Devices of a module, in the order of the text."""
    return [op for op in module.walk() if isinstance(op, DeviceOp)]


def use_of(device: DeviceOp) -> DesignUse:
    """Everything that a device uses; AllocationError and RoutingError where it does not fit."""
    memory = {(m.column, m.row): m for m in memory_map(device)}
    tiles: dict[Coordinates, TileUse] = {}
    ops, movers, views = list(device.walk()), movers_of(device), buffer_views(device)
    for op in ops:
        if isinstance(op, TileOp):
            at = (op.column, op.row)
            if at not in tiles:
                seen = [view for view in views if view.place == at]
                banks = bank_use(memory[at], movers, seen) if at in memory else []
                tiles[at] = TileUse(*at, op.kind, op.limits, memory.get(at), banks)
    for op, lock_id in allocate(device).locks.items():
        _at(tiles, op.tile).locks.append((lock_id, op))
    named = {op.symbol: op for op in ops if isinstance(op, ShimDmaAllocationOp)}
    for op in ops:
        _count(tiles, op)
        _count_task(tiles, named, op)
    routing = route(device)
    _count_flows(tiles, routing)
    for use in tiles.values():
        use.locks.sort(key=lambda item: item[0])
    cascades = [
        ((op.source.column, op.source.row), (op.destination.column, op.destination.row))
        for op in ops
        if isinstance(op, CascadeFlowOp)
    ]
    return DesignUse(device, dict(sorted(tiles.items())), routing, cascades)


def _at(tiles: dict[Coordinates, TileUse], tile: TileOp) -> TileUse:
    return tiles[tile.column, tile.row]


def _count(tiles: dict[Coordinates, TileUse], op) -> None:
    match op:
        case BufferOp():
            _at(tiles, op.tile).buffers.append(op)
        case CoreOp():
            _at(tiles, op.tile).core = op
        case DmaProgramOp():
            use = _at(tiles, op.tile)
            use.static_bds += len(list(op.bds))
            use.channels |= {(start.direction, start.channel) for start in [*op.starts, *op.region_dmas]}
        case ShimDmaAllocationOp():
            use = _at(tiles, op.tile)
            use.channels.add((op.direction, op.channel))
            use.names[op.direction, op.channel] = op.symbol


def _count_task(tiles: dict[Coordinates, TileUse], named: Mapping[str, ShimDmaAllocationOp], op) -> None:
    """Channels and BDs of the runtime sequence; symbols that name nothing are left to the verifier."""
    match op:
        case DmaConfigureTaskOp():
            channel, ids = op, [bd.bd_id for bd in op.bds]
        case DmaConfigureTaskForOp():
            channel, ids = named.get(op.text("alloc") or ""), [bd.bd_id for bd in op.bds]
        case NpuDmaMemcpyNdOp():
            channel, ids = named.get(op.metadata), [op.id]
        case _:
            return
    if channel is not None:
        use = _at(tiles, channel.tile)
        use.channels.add((channel.direction, channel.channel))
        _count_runtime(use, ids)


def _count_runtime(use: TileUse, ids: Iterable[int | None]) -> None:
    for bd in ids:
        if bd is None:
            use.open_bds = True
        else:
            use.runtime_bds.add(bd)


def _count_flows(tiles: dict[Coordinates, TileUse], routing: Routing) -> None:
    for net in routing.nets:
        ends = [(net.start, Direction.MM2S), *((end, Direction.S2MM) for end in net.ends.values())]
        for end, direction in ends:
            if end.bundle == "DMA":
                _at(tiles, end.tile).channels.add((direction, end.channel))


def ranges(numbers: Iterable[int]) -> str:
    """Numbers as text, runs of three or more shortened: `0-3, 5, 6`."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [f"{a}-{b}" if b - a > 1 else ", ".join(map(str, sorted({a, b}))) for a, b in runs]
    return ", ".join(texts)


def places(tiles: Sequence[Coordinates]) -> str:
    """Tiles as text, by columns and rows: `(0, 2)`, `(0-7, 2-5)`, `(0, 2, 4, 6; 1)`; other sets row by row."""
    rows: dict[int, set[int]] = defaultdict(set)
    for column, row in tiles:
        rows[row].add(column)
    blocks: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for row, columns in sorted(rows.items()):
        blocks[tuple(sorted(columns))].append(row)
    texts = []
    for columns, block in blocks.items():
        parts = ranges(columns), ranges(block)
        texts.append(f"({parts[0]}{';' if any(',' in part for part in parts) else ','} {parts[1]})")
    return " ".join(texts)
