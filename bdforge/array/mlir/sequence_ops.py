"""The host's program: runtime sequence, tasks, transfers, waits."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import StringAttr, SymbolNameConstraint, SymbolRefAttr, i32
from xdsl.ir import SSAValue
from xdsl.irdl import irdl_op_definition, prop_def, region_def, traits_def, var_operand_def
from xdsl.traits import NoTerminator, SymbolOpInterface

from bdforge.array.mlir.array_ops import ShimDmaAllocationOp
from bdforge.array.mlir.device_ops import DeviceOp, named
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.fields import behind, integer, text, word
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.operation import AieOperation, NumbersOp, UInt32, enclosing

DEFAULT_SEQUENCE = "sequence"


@irdl_op_definition
class RuntimeSequenceOp(AieOperation):
    """Program that the host has the array's controller run; its arguments are host buffers."""

    name = "aie.runtime_sequence"
    sym_name = prop_def(SymbolNameConstraint(), default_value=StringAttr(DEFAULT_SEQUENCE))
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), SymbolOpInterface())
    assembly_format = "custom<OptionalName>($sym_name) custom<ArgumentsAndBody>($body) attr-dict"

    @property
    def symbol(self) -> str:
        """Its name; "sequence" by default."""
        return self.text("sym_name") or DEFAULT_SEQUENCE

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """Host buffers and scalars by position."""
        return self.body.block.args


@irdl_op_definition
class NpuDmaWaitOp(AieOperation):
    """Wait for one token of a named channel."""

    name = "aiex.npu.dma_wait"
    symbol = text(SymbolRefAttr)
    """Name of the shim_dma_allocation."""
    assembly_format = "attr-dict"

    @property
    def allocation(self) -> ShimDmaAllocationOp:
        """The named channel; ValueError if nothing has that name."""
        return named(enclosing(self, DeviceOp), ShimDmaAllocationOp, self.symbol)


@irdl_op_definition
class NpuSyncOp(NumbersOp):
    """Wait for one token of each of a block of channels."""

    name = "aiex.npu.sync"
    column = integer()
    """First column."""
    row = integer()
    """First row."""
    direction = word(Direction)
    channel = integer()
    columns = integer(key="column_num")
    rows = integer(key="row_num")
    NUMBERS: ClassVar[tuple[str, ...]] = ("column", "row", "direction", "channel", "column_num", "row_num")


@irdl_op_definition
class NpuRtpWriteOp(NumbersOp):
    """Store a 32-bit runtime parameter."""

    name = "aiex.npu.rtp_write"
    buffer = text(SymbolRefAttr)
    index = integer(UInt32)
    """Which 32-bit word of the buffer."""
    value = integer()
    """What is stored."""
    assembly_format = (
        "`(` $buffer `,` $index `,` custom<IntegerOrValue>($value, $numbers) `)` attr-dict (`:` type($numbers)^)?"
    )
    NUMBERS: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def buffer_op(self) -> BufferOp:
        """The buffer; ValueError if nothing has that name."""
        return named(enclosing(self, DeviceOp), BufferOp, self.buffer)


@irdl_op_definition
class SetLockOp(AieOperation):
    """Store a lock's value."""

    name = "aiex.set_lock"
    lock = behind(LockOp, "its operand must come from aie.lock")
    value = integer()
    """What is stored."""
    numbers = var_operand_def(i32)
    assembly_format = "`(` $lock_value `,` custom<IntegerOrValue>($value, $numbers) `)` attr-dict"
    NUMBERS: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def is_modern(self) -> bool | None:
        """A literal stands in both forms; a constant in the newest only."""
        return super().is_modern or None
