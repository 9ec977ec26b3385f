"""Everything that can be said about a design without running it."""

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from xdsl.dialects.builtin import ModuleOp

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.boot import set_dmas
from bdforge.array.emulator.device_load import check_acquire, first_line, host_memory, lowered
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.errors import EmulationError, LoadError
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.order_verification import order_faults
from bdforge.array.emulator.scheduler import Scheduler
from bdforge.array.emulator.silicon_rules import check_argument
from bdforge.array.emulator.strictness import CAUTIONS, Strictness
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.array.emulator.tokens import lost_tokens
from bdforge.array.lower import allocated
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.lower.dma_programs import PlacedBd, placed_bds, static_tasks
from bdforge.array.mlir import MlirError, location, parsed
from bdforge.array.mlir.allocate import AddressMap
from bdforge.array.mlir.array_ops import CoreOp, FlowOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.dma_ops import DmaProgramOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp, UseLockOp
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.array.mlir.trace_ops import trace_warnings
from bdforge.array.txn.lower import lower
from bdforge.array.txn.static_bd import write_static_bd
from bdforge.array.txn.target import LoweringError
from bdforge.array.txn.writer import Writer
from bdforge.common.messages import listed
from bdforge.devices.txn_format.operations import Patch


@dataclass(frozen=True)
class Verification:
    """Every fault found (none for a good design), warnings, and the design in one line."""

    faults: tuple[str, ...]
    warnings: tuple[str, ...]
    summary: str


class _Collector(Strictness):
    """Remembers faults instead of raising them, each once: several parts may meet one."""

    def __init__(self, permissive: Collection[str]) -> None:
        super().__init__(Strictness.without(permissive).permitted)
        self.found: dict[str, str] = {}

    def fault(self, name: str, error: Exception) -> None:
        if self.permits(name) or name in CAUTIONS:
            super().fault(name, LoadError(first_line(error)))
        else:
            self.add(LoadError(f"{first_line(error)} [{name}]"))

    def add(self, error: Exception) -> None:
        self.found.setdefault(first_line(error), str(error))


def verify_design(mlir: str, file: str = "<string>", permissive: Collection[str] = ()) -> Verification:
    """Parse, verify, allocate, encode all static BDs, route all flows and lower all sequences; nothing runs.

    `permissive` names checks whose faults are warnings (`strictness.CHECKS`).

    MlirError for text that is no valid MLIR; all other faults are in the result.
    """
    return verify_module(parsed(mlir, file), file, permissive)


def verify_module(module: ModuleOp, file: str = "<string>", permissive: Collection[str] = ()) -> Verification:
    """`verify_design` of a text that has been parsed."""
    collector = _Collector(permissive)
    counts: Counter[str] = Counter()
    for warning in trace_warnings(module):
        collector.warn(warning)
    devices = [op for op in module.walk() if isinstance(op, DeviceOp)]
    for device in devices:
        _device(device, collector, counts)
    if not devices:
        collector.add(LoadError(f"{file}: there is no aie.device"))
    return Verification(tuple(collector.found.values()), tuple(collector.warnings), _summary(module, counts))


def check_device(device: DeviceOp, permissive: Collection[str] = ()) -> None:
    """LoadError for faults of what is configured before any sequence runs."""
    collector = _Collector(permissive)
    _static(device, collector, Counter())
    if collector.found:
        raise LoadError(listed(collector.found.values(), "\n"))


def _static(device: DeviceOp, collector: _Collector, counts: Counter[str]) -> AddressMap | None:
    """Collect faults of what is configured; where buffers and locks lie, if they fit."""
    try:
        allocation = allocated(device, collector)
    except MlirError as error:
        collector.add(error)
        return None
    array = Array(device.device, HostBuffers(), Scheduler(), collector)
    host_memory(device, array)
    for op in (op for op in device.walk() if isinstance(op, DmaProgramOp)):
        try:
            counts["BDs"] += _program(array, op, allocation, collector)
        except EmulationError as error:
            collector.add(error)
    for use in (op for op in device.walk() if isinstance(op, UseLockOp) and enclosing(op, CoreOp) and op.is_acquire):
        check_acquire(use, collector)
    _lowered(device, collector)
    return allocation


def _device(device: DeviceOp, collector: _Collector, counts: Counter[str]) -> None:
    if (allocation := _static(device, collector, counts)) is None:
        return
    for op in (op for op in device.walk() if isinstance(op, RuntimeSequenceOp)):
        try:
            operations = lower(op, device, allocation, collector)
            counts["operations"] += len(operations)
            for patch in (operation for operation in operations if isinstance(operation, Patch)):
                check_argument(collector, patch, "" if patch.location is None else f" ({patch.location})")
            for problem in lost_tokens(device, operations):
                collector.add(EmulationError(problem))
            for error in order_faults(op, device.device, operations):
                collector.fault("dram-order", error)
        except (MlirError, EmulationError) as error:
            collector.add(error)


def _lowered(device: DeviceOp, collector: _Collector) -> None:
    """Every fault of the register writes that is left; a search for routes that gave up may still be aiecc's to end."""
    try:
        lowered(device, collector)
    except MlirError as error:
        if getattr(error, "definite", True):
            collector.add(error)
        else:
            collector.warn(str(error))


def _program(array: Array, op: DmaProgramOp, allocation: AddressMap, collector: _Collector) -> int:
    """Number of BDs in a region; every one that cannot be encoded, or that its channel cannot run, is a fault."""
    tile = array.tile(op.tile.column, op.tile.row)
    try:
        tasks = static_tasks(op)
        bds = placed_bds(op, tasks)
    except LoweringError as error:
        raise LoadError(first_line(error)) from None
    for bd in bds:
        writer = Writer()
        try:
            write_static_bd(writer, op.tile, bd.op, bd.id, bd.next, allocation, collector)
            set_dmas(tile, ArrayState(writer.operations).tiles[tile.column, tile.row])
            for task in (task for task in tasks if bd.op in task.bds):
                _check_use(tile, tile.channels[task.op.direction, task.op.channel], bd)
        except LoweringError as error:
            collector.add(LoadError(first_line(error)))
        except EmulationError as error:
            collector.add(error)
    return len(bds)


def _check_use(tile: EmulatedTile, channel: DmaChannel, bd: PlacedBd) -> None:
    """What a channel would find wrong with a BD before it moves a word: memory beyond its windows, the other half."""
    decoded = tile.bd(bd.id)
    channel.check_join(decoded)
    channel.bd = bd.id
    channel.check_half([bd.id], f" ({location(bd.op)})")
    tile.dma_memory(decoded.address, decoded.order, channel)


def _summary(module: ModuleOp, counts: Counter[str]) -> str:
    kinds = {
        "devices": DeviceOp, "tiles": TileOp, "buffers": BufferOp, "locks": LockOp, "flows": FlowOp | PacketFlowOp,
        "runtime sequences": RuntimeSequenceOp,
    }  # fmt: skip
    found = {name: sum(isinstance(op, kind) for op in module.walk()) for name, kind in kinds.items()}
    found = found | {"static BDs": counts["BDs"], "operations": counts["operations"]}
    return ", ".join(f"{number} {name if number != 1 else name.removesuffix('s')}" for name, number in found.items())
