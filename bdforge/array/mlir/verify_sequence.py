"""Rules of the runtime sequence. A rule yields (operation at fault, message).

Source of the rules on `aiex.npu.dma_memcpy_nd`: mlir-aie 5ff2ab97, `NpuDmaMemcpyNdOp::verify` and `verifyStridesWraps`.
"""

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Operation

from bdforge.array.mlir.allocate import element_bits
from bdforge.array.mlir.attributes import BlockFloatType
from bdforge.array.mlir.control_ops import (
    ConfigureOp,
    RunOp,
    StartBdChainOp,
)
from bdforge.array.mlir.device_ops import DeviceOp, device_named, named
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.memory_ops import LockOp
from bdforge.array.mlir.operation import enclosing
from bdforge.array.mlir.register_ops import AddressedOp, NpuPushQueueOp, NpuWriteBdOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp, SetLockOp
from bdforge.array.mlir.task_ops import (
    TaskOp,
    TaskUserOp,
)
from bdforge.array.mlir.verify_array import Faults, block_floats, burst, packet, rule
from bdforge.devices import TileKind
from bdforge.devices.fits import exceeded
from bdforge.devices.limits import GRANULE_BITS, GRANULE_BYTES, SHIM, TASK_REPEAT_MAX


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
    limit = op.lock.tile.limits.lock_value_max
    if not 0 <= op.value <= limit:
        yield op, f"value {op.value} is outside 0 to {limit}, what a lock holds"


@rule
def push_queue(op: NpuPushQueueOp) -> Faults:
    """With a repeat count that fits its field."""
    limit = TASK_REPEAT_MAX - 1
    if not 0 <= op.repeat_count <= limit:
        yield op, f"repeat_count = {op.repeat_count} is outside 0 to {limit}, what the queue's field holds"


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
    sizes, strides, offset = op.sizes[::-1], op.strides[::-1], op.offset
    bits = element_bits(op.buffer_type.element_type)
    if bits > GRANULE_BITS and not isinstance(op.buffer_type.element_type, BlockFloatType):
        yield op, f"elements of {bits} bits are too wide; the widest have {GRANULE_BITS}"
        return
    yield from _alignment(op, offset, sizes, strides, bits)
    yield from _positive(op, sizes, strides)
    yield from _ranges(op, sizes, strides, bits)
    yield from burst(op)


def _alignment(op: Operation, offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], bits: int) -> Faults:
    if offset * bits % GRANULE_BITS:
        yield op, f"starts at byte {offset * bits / 8:g}, which is no multiple of {GRANULE_BYTES}"
    if sizes[0] * bits % GRANULE_BITS:
        problem = (
            f"the innermost size, {sizes[0]} elements of {bits} bits, is {sizes[0] * bits / 8:g} bytes; "
            f"it must be a multiple of {GRANULE_BYTES}"
        )
        yield op, problem
    for dimension, stride in enumerate(strides):
        if stride * bits % GRANULE_BITS and not (dimension == 0 and stride == 1):
            problem = (
                f"the stride of dimension {dimension}, {stride} elements of {bits} bits, is {stride * bits / 8:g} "
                f"bytes; it must be a multiple of {GRANULE_BYTES}"
            )
            yield op, problem


def _positive(op: Operation, sizes: tuple[int, ...], strides: tuple[int, ...]) -> Faults:
    for dimension, (size, stride) in enumerate(zip(sizes, strides, strict=True)):
        if size < 1:
            yield op, f"the size of dimension {dimension} is {size}; it must be positive"
        lowest = 0 if dimension == len(sizes) - 1 else 1
        if size > 1 and stride < lowest:
            yield op, f"the stride of dimension {dimension} is {stride}; it must be at least {lowest}"


def _ranges(op: Operation, sizes: tuple[int, ...], strides: tuple[int, ...], bits: int) -> Faults:
    linear = sizes[1:3] == (1, 1) and strides[:3] == (1, 0, 0)
    words = (0 if linear else sizes[0] * bits // GRANULE_BITS, *sizes[1:])
    steps = [stride * bits // GRANULE_BITS if size > 1 else 0 for size, stride in zip(sizes, strides, strict=True)]
    *inner, iteration = zip(words, steps, strict=True)
    for field, dimension, value, most in exceeded(SHIM, dims=inner[::-1], iteration=iteration):
        if field == "runs":
            yield op, f"the outermost size is {value}; a shim BD repeats at most {most} times"
        elif "step" in field:
            yield op, f"the stride of dimension {dimension} is {value} words; a shim BD holds at most {most}"
        else:
            what = "size of dimension 1 is" if dimension else "innermost size is"
            unit = "" if dimension else " words"
            yield op, f"the {what} {value}{unit}; a shim BD holds at most {most}, so split it"


@rule
def configure(op: ConfigureOp) -> Faults:
    """Of a device of the module, the same kind of array, from a sequence."""
    if enclosing(op, RuntimeSequenceOp) is None:
        yield op, "must stand in an aie.runtime_sequence"
    target, parent = device_named(op, op.symbol), enclosing(op, DeviceOp)
    if parent is not None and target.device_name is not parent.device_name:
        yield op, f"device @{op.symbol} is {target.device_name}, but the running one {parent.device_name}"


@rule
def run(op: RunOp) -> Faults:
    """In an aiex.configure, a sequence of its device, with arguments of its types."""
    holder = enclosing(op, ConfigureOp)
    if holder is None:
        yield op, "must stand in an aiex.configure"
        return
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
