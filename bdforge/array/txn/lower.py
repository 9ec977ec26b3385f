"""From a runtime sequence in MLIR to the operations of an instruction stream, as mlir-aie lowers it, word for word.

Sources: mlir-aie 5ff2ab97, `AIEDmaToNpu.cpp`, `AIEDMATasksToNPU.cpp`, `AIEXDialect.cpp`, `AIETargetNPU.cpp`. What
mlir-aie refuses is refused; what it silently cuts to a field's width is refused too.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

from xdsl.dialects.builtin import IndexType, MemRefType, ModuleOp, UnrankedMemRefType
from xdsl.ir import Block, SSAValue
from xdsl.ir import Operation as MlirOperation

from bdforge.array.mlir.allocate import AddressMap
from bdforge.array.mlir.control_ops import ConfigureOp, NpuLoadPdiOp, NpuPreemptOp, RunOp, StartBdChainOp
from bdforge.array.mlir.device_ops import DeviceOp, device_named
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.newer_ops import expand_mode
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.register_ops import (
    NpuAddressPatchOp,
    NpuBlockWriteOp,
    NpuMaskWrite32Op,
    NpuPushQueueOp,
    NpuWrite32Op,
    NpuWriteBdOp,
)
from bdforge.array.mlir.sequence_ops import NpuDmaWaitOp, NpuRtpWriteOp, NpuSyncOp, RuntimeSequenceOp, SetLockOp
from bdforge.array.mlir.task_ops import ConfigureTaskOp, DmaStartTaskOp
from bdforge.array.mlir.trace_ops import TraceOp
from bdforge.array.txn.argument_values import VIEWS, ArgumentMemory, Values, bits_of
from bdforge.array.txn.dma_tasks import TaskLowering
from bdforge.array.txn.target import (
    REFUSING,
    ControllerIds,
    LoweringError,
    LoweringTarget,
    Policy,
    TileChannel,
    faults_of,
    lowering_error,
)
from bdforge.devices import Device
from bdforge.devices.limits import BYTE_BITS
from bdforge.devices.registers import RUNTIME_AXI_CACHE, address
from bdforge.devices.txn_format.bd_encoding import burst_code, encode_bd, memcpy_transfer, raw_bd_words
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, MaskWrite, Operation, Patch, Preempt

__all__ = ["LoweringError", "lower", "lower_module", "select_sequence"]

_SILENT = ("arith.constant", "memref.get_global", "aie.end")


def lower(
    sequence: RuntimeSequenceOp,
    device_op: DeviceOp | None = None,
    allocation: AddressMap | None = None,
    policy: Policy = REFUSING,
    controller_ids: ControllerIds = ControllerIds.AIECC,
) -> list[Operation]:
    """Operations that a runtime sequence executes, each with the MLIR location that it came from.

    The device is the one around the sequence unless given; `allocation` places its buffers and locks
    (`bdforge.array.mlir.allocate` by default). `policy` may let pass what hardware or mlir-aie would misread.
    `controller_ids` says which tiles' tokens carry one. LoweringError names file, line and column of what cannot be
    lowered; AllocationError is raised for a device that its tiles cannot hold.
    """
    device_op = device_op or _device_around(sequence)
    lowering = _Lowering(LoweringTarget(device_op, [], allocation, policy, controller_ids))
    lowering.bind_arguments(sequence)
    lowering.block(sequence.body.block)
    for target in lowering.targets.values():
        target.report_open_addresses()
    return lowering.target.operations


def lower_module(
    module: ModuleOp,
    sequence: str | None = None,
    policy: Policy = REFUSING,
    controller_ids: ControllerIds = ControllerIds.AIECC,
) -> tuple[Device, list[Operation]]:
    """Device and operations of a module's runtime sequence; `sequence` is its name where there are several."""
    chosen = select_sequence(module, sequence)
    return _device_around(chosen).device, lower(chosen, policy=policy, controller_ids=controller_ids)


def select_sequence(module: ModuleOp, name: str | None = None) -> RuntimeSequenceOp:
    """The module's runtime sequence called `name` (or `device::name`), or its only one; LoweringError lists them."""
    found = [op for op in module.walk() if isinstance(op, RuntimeSequenceOp)]
    chosen = [op for op in found if name in (None, op.symbol, f"{_device_around(op).symbol}::{op.symbol}")]
    if len(chosen) == 1:
        return chosen[0]
    names = ", ".join(f"{_device_around(op).symbol}::{op.symbol}" for op in found) or "none"
    wanted = "a runtime sequence" if name is None else f"a runtime sequence called {name!r}"
    problem = "no" if not chosen else "more than one"
    raise lowering_error(module, f"{problem} match for {wanted}; the module has {names}")


def _device_around(op: MlirOperation) -> DeviceOp:
    if (device := enclosing(op, DeviceOp)) is None:
        raise lowering_error(op, "is outside of an aie.device")
    return device


class _Lowering:
    """Walks a sequence in program order."""

    def __init__(self, target: LoweringTarget):
        self.target = target
        self.values = Values()
        self.tasks = TaskLowering(self.values)
        self.targets = {target.device_op: target}
        self.pdi_ids: dict[str, int] = {}
        self.running: list[RuntimeSequenceOp] = []

    def bind_arguments(self, sequence: RuntimeSequenceOp) -> None:
        """Let a sequence's memref arguments stand for host memory, by position."""
        self.running.append(sequence)
        for index, argument in enumerate(sequence.arguments):
            if isinstance(argument.type, MemRefType | UnrankedMemRefType):
                self.values.bind(argument, ArgumentMemory(index))

    def block(self, block: Block) -> None:
        """Lower every operation of a block."""
        for op in block.ops:
            self.target.place = op
            with faults_of(op):
                self.operation(op)

    def operation(self, op: MlirOperation) -> None:
        """Lower one operation."""
        if op.name in _SILENT or isinstance(op, TraceOp):
            return
        if op.name in VIEWS:
            self.values.view(op, partial(self.target.caution, "view-offset"))
            return
        handler = _HANDLERS.get(op.name)
        if handler is None:
            raise ValueError("has no form in an instruction stream")
        handler(self, op)

    # transfers and tasks

    def memcpy(self, op: NpuDmaMemcpyNdOp) -> None:
        target, allocation = self.target, self.target.shim_channel(op.metadata)
        channel = TileChannel.of(allocation)
        column, row = channel.tile
        memory, bits = self.values.memory(op.buffer), bits_of(op.buffer)
        if not isinstance(memory, ArgumentMemory):
            raise ValueError("the memory must be an argument of the runtime sequence or a view of one")
        limits = target.limits(column, row)
        transfer = memcpy_transfer(limits, op.sizes, op.strides, bits)
        packet = op.packet or allocation.packet
        words = encode_bd(
            limits.kind,
            length_words=transfer.length_words,
            dims_words=transfer.dims_words,
            iteration=transfer.iteration,
            packet=packet,
            burst=burst_code(target.device.generation, op.burst_length),
            axi_cache=RUNTIME_AXI_CACHE if op.axcache is None else op.axcache,
            too_wide=target.too_wide,
        )
        target.write_bd(column, row, op.id, words)
        target.patch(column, row, op.id, memory.argument, memory.offset_bytes + op.offset * bits // BYTE_BITS)
        self.tasks.ids.written[column, row, op.id] = op
        token = op.issue_token or allocation.direction == "S2MM"  # S2MM transfers always send a token
        target.push(channel, op.id, op.sizes[0] - 1, token)

    def dma_wait(self, op: NpuDmaWaitOp) -> None:
        self.target.sync(TileChannel.of(self.target.shim_channel(op.symbol)))

    def configure_task(self, op: ConfigureTaskOp) -> None:
        self.tasks.configure(self.target, op, op.body)

    def start_bd_chain(self, op: StartBdChainOp) -> None:
        template = op.template
        arguments: tuple[SSAValue, ...] = tuple(getattr(op, "args"))  # noqa: B009
        parameters = template.body.blocks[0].args
        for parameter, argument in zip(parameters, arguments, strict=True):
            if isinstance(parameter.type, IndexType):
                self.values.bind(parameter, self.values.lock(argument))
            else:
                self.values.bind(parameter, self.values.memory(argument))
        task = self.tasks.configure(self.target, op, template.body)
        self.target.place = op
        self.tasks.start(self.target, task)

    def start_task(self, op: DmaStartTaskOp) -> None:
        self.tasks.start(self.target, self.tasks.of(op), op.repeat_count, op.no_token)

    def await_task(self, op: MlirOperation) -> None:
        self.tasks.wait(self.target, self.tasks.of(op))

    def free_task(self, op: MlirOperation) -> None:
        self.tasks.free(self.tasks.of(op))

    # registers

    def sync(self, op: NpuSyncOp) -> None:
        self.target.sync(TileChannel(op.column, op.row, op.direction, op.channel), op.columns, op.rows)

    def rtp_write(self, op: NpuRtpWriteOp) -> None:
        self.target.write(self.target.word_of_buffer(op.buffer, op.index), op.value)

    def set_lock(self, op: SetLockOp) -> None:
        tile = op.lock.tile
        offset = self.target.registers(tile.column, tile.row).lock_offset(self.target.lock_id(op.lock))
        self.target.write(address(tile.column, tile.row, offset), op.value)

    def write32(self, op: NpuWrite32Op) -> None:
        self.target.write(self.target.register_address(op), op.value)

    def maskwrite32(self, op: NpuMaskWrite32Op) -> None:
        self.target.emit(MaskWrite, self.target.register_address(op), op.value, op.mask)

    def blockwrite(self, op: NpuBlockWriteOp) -> None:
        hint = 0 if op.column is None or op.row is None else op.column | op.row << 8
        words = tuple(int(word) for word in op.data)
        self.target.emit(BlockWrite, self.target.register_address(op), words, hint)

    def writebd(self, op: NpuWriteBdOp) -> None:
        fields = dict(op.fields)
        column, row, bd = fields.pop("column"), fields.pop("row"), fields.pop("bd_id")
        words = raw_bd_words(
            self.target.device.kind(column, row), self.target.device.generation, fields, self.target.too_wide
        )
        self.target.write_bd(column, row, bd, words)

    def address_patch(self, op: NpuAddressPatchOp) -> None:
        argument, offset = op.argument, op.offset_bytes
        if (buffer := op.buffer) is not None:
            memory = self.values.memory(buffer)
            if argument is not None or not isinstance(memory, ArgumentMemory):
                raise ValueError("patches with an argument's arg_idx, or with a host buffer of the sequence")
            argument, offset = memory.argument, memory.offset_bytes + offset
        elif argument is None:
            raise ValueError("needs arg_idx = N : i32, the position of the argument whose address is written")
        for what, value in (("arg_idx", argument), ("arg_plus", offset)):
            if value < 0:
                raise ValueError(f"{what} is {value}; it must be 0 or more")
        self.target.emit(Patch, op.address, argument, offset)

    def push_queue(self, op: NpuPushQueueOp) -> None:
        channel = TileChannel(op.column, op.row, op.direction, op.channel)
        self.target.push(channel, op.bd_id, op.repeat_count, op.issue_token)

    def preempt(self, op: NpuPreemptOp) -> None:
        self.target.emit(Preempt, op.number("level"))

    # other configurations

    def load_pdi(self, op: NpuLoadPdiOp) -> None:
        self._load(op, op.device_ref, op.number("id", 0), op.number("size", 0), op.number("address", 0))

    def _load(
        self, op: MlirOperation, device: str | None, pdi_id: int | None = None, size: int = 0, at: int = 0
    ) -> None:
        """LOADPDI; devices of aiex.configure are numbered from 1 in the order in which they are loaded."""
        if device is not None:
            device_named(op, device)
            pdi_id = self.pdi_ids.setdefault(device, len(self.pdi_ids) + 1) if pdi_id is None else pdi_id
        mode = expand_mode(op) if device is not None else "none"
        self.target.emit(LoadPdi, pdi_id or 0, size, at, device=device, expanded="" if mode in (None, "none") else mode)

    def configure(self, op: ConfigureOp) -> None:
        """Load a device, then run the body against it."""
        configured = device_named(op, op.symbol)
        self._load(op, op.symbol)
        outer, self.target = self.target, self._target_of(configured)
        self.block(op.body.block)
        self.target = outer

    def run(self, op: RunOp) -> None:
        """Run another sequence of the configured device in place."""
        sequence = self.target.named(RuntimeSequenceOp, op.symbol)
        if sequence in self.running:
            raise ValueError(f"runtime sequence @{op.symbol} runs itself")
        arguments = tuple(op.args)
        for parameter, argument in zip(sequence.arguments, arguments, strict=True):
            if isinstance(argument.type, MemRefType | UnrankedMemRefType):
                self.values.bind(parameter, self.values.memory(argument))
        self.running.append(sequence)
        self.block(sequence.body.block)
        self.running.pop()

    def _target_of(self, device_op: DeviceOp) -> LoweringTarget:
        if device_op not in self.targets:
            self.targets[device_op] = LoweringTarget(
                device_op, self.target.operations, policy=self.target.policy, controller_ids=self.target.controller_ids
            )
        return self.targets[device_op]


_HANDLERS: dict[str, Callable[[_Lowering, Any], None]] = {
    "aiex.npu.dma_memcpy_nd": _Lowering.memcpy,
    "aiex.npu.dma_wait": _Lowering.dma_wait,
    "aiex.dma_configure_task": _Lowering.configure_task,
    "aiex.dma_configure_task_for": _Lowering.configure_task,
    "aiex.dma_start_bd_chain": _Lowering.start_bd_chain,
    "aiex.dma_start_bd_chain_for": _Lowering.start_bd_chain,
    "aiex.dma_start_task": _Lowering.start_task,
    "aiex.dma_await_task": _Lowering.await_task,
    "aiex.dma_free_task": _Lowering.free_task,
    "aiex.npu.sync": _Lowering.sync,
    "aiex.npu.rtp_write": _Lowering.rtp_write,
    "aiex.set_lock": _Lowering.set_lock,
    "aiex.npu.write32": _Lowering.write32,
    "aiex.npu.maskwrite32": _Lowering.maskwrite32,
    "aiex.npu.blockwrite": _Lowering.blockwrite,
    "aiex.npu.writebd": _Lowering.writebd,
    "aiex.npu.address_patch": _Lowering.address_patch,
    "aiex.npu.push_queue": _Lowering.push_queue,
    "aiex.npu.preempt": _Lowering.preempt,
    "aiex.npu.load_pdi": _Lowering.load_pdi,
    "aiex.configure": _Lowering.configure,
    "aiex.run": _Lowering.run,
}
