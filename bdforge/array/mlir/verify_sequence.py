"""Rules of the runtime sequence. A rule yields (operation at fault, message).

Source of the rules on `aiex.npu.dma_memcpy_nd`: mlir-aie 5ff2ab97, `NpuDmaMemcpyNdOp::verify` and `verifyStridesWraps`.
"""

from xdsl.dialects.builtin import IndexType

from bdforge.array.mlir.allocate import element_bits
from bdforge.array.mlir.attributes import BlockFloatType
from bdforge.array.mlir.control_ops import ConfigureOp, RunOp, StartBdChainOp
from bdforge.array.mlir.device_ops import DeviceOp, device_named, named
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.memory_ops import LockOp
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.register_ops import AddressedOp, NpuPushQueueOp, NpuWriteBdOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp, SetLockOp
from bdforge.array.mlir.task_ops import TaskOp, TaskUserOp
from bdforge.array.mlir.verify_array import Faults, block_floats, burst, must_stand_in, number, packet, rule
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BITS, GRANULE_BYTES, SHIM
from bdforge.devices.txn_format.bd_encoding import is_linear, transfer_faults


@rule
def in_sequence(op: TaskOp | TaskUserOp) -> Faults:
    """Tasks belong to the sequence itself, not to a loop or an aiex.configure in it."""
    if not isinstance(op.parent_op(), RuntimeSequenceOp):
        parent = op.parent_op()
        inside = "" if parent is None else f", not in {parent.name}"
        yield op, f"must stand directly in an aie.runtime_sequence{inside}"


@rule
def task(op: TaskOp) -> Faults:
    """A packet header that fits, a repeat count that is one."""
    yield from packet(op, op.packet)
    if op.repeat_count < 0:
        yield op, f"repeat_count = {op.repeat_count} is negative"


@rule
def set_lock(op: SetLockOp) -> Faults:
    """With a value that a lock holds."""
    yield from number(op, "lock value", op.value, op.lock.tile.limits)


@rule
def push_queue(op: NpuPushQueueOp) -> Faults:
    """With a repeat count that fits its field."""
    yield from number(op, "repeat_count", op.repeat_count, SHIM)


@rule
def writebd(op: NpuWriteBdOp) -> Faults:
    """Fields of its tile's BDs: only shims have bursts, and theirs no size of dimension 2."""
    holder, fields = enclosing(op, DeviceOp), op.fields
    if holder is None:
        return
    kind = holder.device.kind(fields["column"], fields["row"])
    if (burst := fields.get("burst_length")) and kind is not TileKind.SHIM:
        yield op, f"burst_length = {burst} is for shims; a {kind}'s DMA has no bursts"
    if fields["d2_size"] and kind is TileKind.SHIM:
        yield op, f"d2_size = {fields['d2_size']}: a shim's BD has no such field, its length ends dimension 2; write 0"


@rule
def addressed(op: AddressedOp) -> Faults:
    """Column and row come together."""
    if (op.column is None) != (op.row is None):
        yield op, "needs both column and row, or neither"


@rule
def memcpy(op: NpuDmaMemcpyNdOp) -> Faults:
    """A transfer that a shim BD can make."""
    yield from packet(op, op.packet)
    yield from block_floats(op, op.buffer_type.element_type)
    bits = element_bits(op.buffer_type.element_type)
    if bits > GRANULE_BITS and not isinstance(op.buffer_type.element_type, BlockFloatType):
        yield op, f"elements of {bits} bits are too wide; the widest have {GRANULE_BITS}"
        return
    if op.offset * bits % GRANULE_BITS:
        yield op, f"starts at byte {op.offset * bits / 8:g}, which is no multiple of {GRANULE_BYTES}"
    linear = is_linear(op.sizes, op.strides)
    yield from ((op, text) for text, _ in transfer_faults(SHIM, op.sizes, op.strides, bits, linear=linear))
    yield from number(op, "bd_id", op.id, SHIM)
    yield from burst(op)


must_stand_in((RuntimeSequenceOp,), ConfigureOp, problem="must stand in an aie.runtime_sequence", deep=True)
must_stand_in((ConfigureOp,), RunOp, problem="must stand in an aiex.configure", deep=True)


@rule
def configure(op: ConfigureOp) -> Faults:
    """Of a device of the module, the same kind of array."""
    target, parent = device_named(op, op.symbol), enclosing(op, DeviceOp)
    if parent is not None and target.device_name is not parent.device_name:
        yield op, f"device @{op.symbol} is {target.device_name}, but the running one {parent.device_name}"


@rule
def run(op: RunOp) -> Faults:
    """A sequence of the configured device, with arguments of its types."""
    holder = enclosing(op, ConfigureOp)
    assert holder is not None
    target = named(device_named(op, holder.symbol), RuntimeSequenceOp, op.symbol)
    wanted, given = [a.type for a in target.arguments], [a.type for a in op.args]
    if len(wanted) != len(given):
        yield op, f"@{op.symbol} takes {len(wanted)} arguments, not {len(given)}"
    for index, (want, got) in enumerate(zip(wanted, given, strict=False)):
        if want != got:
            yield op, f"argument {index} of @{op.symbol} is of type {want}, not {got}"


@rule
def start_chain(op: StartBdChainOp) -> Faults:
    """Of a template, with arguments of its types."""
    wanted, arguments = op.template.body.blocks[0].args, getattr(op, "args")  # noqa: B009
    given = [a.type for a in arguments]
    for value, argument in zip(wanted, arguments, strict=False):
        if isinstance(value.type, IndexType) and not isinstance(argument.owner, LockOp):
            yield op, f"argument {value.index} of @{op.symbol} stands for a lock; give an aie.lock"
    if [a.type for a in wanted] != given:
        yield op, f"@{op.symbol} takes ({', '.join(str(a.type) for a in wanted)}), not ({', '.join(map(str, given))})"
