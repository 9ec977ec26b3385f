"""What the SSA values of a runtime sequence stand for: host memory, a tile's buffers, constants."""

from collections.abc import Callable
from dataclasses import dataclass

from xdsl.dialects.builtin import DYNAMIC_INDEX, DenseArrayBase, MemRefType, UnrankedMemRefType
from xdsl.ir import Operation, SSAValue

from bdforge.array.mlir.allocate import element_bits, is_row_major
from bdforge.array.mlir.memory_ops import BufferOp, LockOp

UNCHANGED_VIEWS = ("memref.cast", "memref.assume_alignment", "memref.memory_space_cast")
VIEWS = (*UNCHANGED_VIEWS, "memref.subview", "memref.reinterpret_cast")


@dataclass(frozen=True, slots=True)
class ArgumentMemory:
    """Argument `argument` of the runtime sequence from byte `offset_bytes` on."""

    argument: int
    offset_bytes: int = 0
    contiguous: bool = True


Memory = ArgumentMemory | BufferOp


class Values:
    """What values mean at the current point of a sequence."""

    def __init__(self):
        self._known: dict[SSAValue, Memory | LockOp] = {}

    def bind(self, value: SSAValue, known: Memory | LockOp) -> None:
        """Let `value` stand for some memory, or that of a BD template for a lock, from now on."""
        self._known[value] = known

    def lock(self, value: SSAValue) -> LockOp:
        """The lock that a value stands for: mlir.verify_array and verify_sequence know of no other values."""
        lock = self._known.get(value, value.owner)
        assert isinstance(lock, LockOp)
        return lock

    def memory(self, value: SSAValue) -> Memory:
        """The memory that a memref value stands for; ValueError if it is neither host memory nor a buffer."""
        found = self._known.get(value, value.owner)
        if isinstance(found, ArgumentMemory | BufferOp):
            return found
        owner = value.owner.name if isinstance(value.owner, Operation) else "a block argument"
        raise ValueError(
            f"this memory comes from {owner}; it must be an argument of the runtime sequence, a view of one or a buffer"
        )

    def view(self, op: Operation, warn: Callable[[str], None] = lambda _: None) -> None:
        """Bind the result of a view of host memory (one of VIEWS); ValueError unless offsets are constant.

        As in mlir-aie (`traceSubviewToBlockArgument`) the offsets of a chain of views add up to the argument. MLIR
        itself counts a reinterpret_cast's from the start of the memory below, so `warn` is told where that differs.
        """
        if not op.results:
            return
        source = self.memory(op.operands[0])
        if not isinstance(source, ArgumentMemory):
            raise ValueError(f"{op.name} of a tile's buffer; only host memory has views in a runtime sequence")
        result, start, contiguous = op.results[0], 0, source.contiguous
        if op.name == "memref.subview":
            start, contiguous = _bytes(op, _subview_offset(op)), _is_contiguous(result)
        elif op.name == "memref.reinterpret_cast":
            start, contiguous = _bytes(op, sum(_static(op, "static_offsets"))), _is_contiguous(result)
            if source.offset_bytes:
                warn(
                    f"its offset is counted from its source, {source.offset_bytes} bytes into the argument, as "
                    "mlir-aie does; MLIR itself would count from the start of the argument"
                )
        self._known[result] = ArgumentMemory(source.argument, source.offset_bytes + start, contiguous)


def bits_of(value: SSAValue) -> int:
    """Bits per element of a memref value."""
    assert isinstance(value.type, MemRefType | UnrankedMemRefType)
    return element_bits(value.type.element_type)


def _static(op: Operation, name: str) -> tuple[int, ...]:
    attribute = op.properties.get(name)
    values = attribute.get_values() if isinstance(attribute, DenseArrayBase) else ()
    if DYNAMIC_INDEX in values:
        raise ValueError(f"{name.removeprefix('static_')} of {op.name} must be constants in a runtime sequence")
    return tuple(int(value) for value in values)


def _subview_offset(op: Operation) -> int:
    """First element of a subview, counted from its source's first; ValueError unless its strides are 1."""
    if any(stride != 1 for stride in _static(op, "static_strides")):
        raise ValueError("memref.subview with strides other than 1 cannot be lowered; put them into the transfer")
    source = op.operands[0].type
    strides = source.get_strides() if isinstance(source, MemRefType) else None
    if strides is None or None in strides:
        raise ValueError(f"memref.subview of {source}, whose strides are not known")
    return sum(offset * (stride or 0) for offset, stride in zip(_static(op, "static_offsets"), strides, strict=True))


def _bytes(op: Operation, elements: int) -> int:
    bits = elements * bits_of(op.operands[0])
    if elements < 0 or bits % 8:
        raise ValueError(f"{op.name} starts at element {elements}, which is not a whole byte of its source")
    return bits // 8


def _is_contiguous(value: SSAValue) -> bool:
    return isinstance(value.type, MemRefType) and is_row_major(value.type)
