"""Memory and locks of tiles."""

from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, IndexType, MemRefType, SymbolNameConstraint, i32
from xdsl.ir import Operation
from xdsl.irdl import irdl_op_definition, operand_def, opt_operand_def, opt_prop_def, result_def, traits_def
from xdsl.traits import OptionalSymbolOpInterface

from bdforge.array.mlir.dense import numpy_of
from bdforge.array.mlir.device_ops import TileOp, on_tile
from bdforge.array.mlir.enums import Blocking, LockAction
from bdforge.array.mlir.fields import defined_by, flag, integer, optional_integer, optional_text, optional_word, word
from bdforge.array.mlir.operation import AieOperation, Int32, Int64, RuntimeNumber


class MemoryOp(AieOperation):
    """Base of what holds elements."""

    symbol = optional_text(SymbolNameConstraint(), "sym_name")
    result = result_def(MemRefType)
    traits = traits_def(OptionalSymbolOpInterface())

    @property
    def type(self) -> MemRefType:
        """Shape and element type."""
        assert isinstance(self.result.type, MemRefType)
        return self.result.type


@irdl_op_definition
class BufferOp(MemoryOp):
    """Memory of a tile."""

    name = "aie.buffer"
    tile = on_tile()
    """Tile that holds it."""
    address = optional_integer()
    """Byte address in its tile, if fixed."""
    bank = optional_integer(key="mem_bank")
    """Memory bank, if fixed."""
    initial_value_attr = opt_prop_def(DenseIntOrFPElementsAttr, prop_name="initial_value")
    assembly_format = "`(` $tile_value `)` attr-dict `:` custom<TypeAndValue>(type($result), $initial_value)"

    @property
    def initial_value(self) -> np.ndarray | None:
        """Contents on load, if given, in the buffer's shape."""
        attribute = self.properties.get("initial_value")
        return numpy_of(attribute) if isinstance(attribute, DenseIntOrFPElementsAttr) else None


@irdl_op_definition
class ExternalBufferOp(MemoryOp):
    """Host memory for aie.shim_dma."""

    name = "aie.external_buffer"
    address = integer(Int64, default=0)
    """Byte address in host memory; 0 where the text gives none."""
    assembly_format = "attr-dict `:` type($result)"


@irdl_op_definition
class LockOp(AieOperation):
    """A counting semaphore of a tile."""

    name = "aie.lock"
    tile = on_tile()
    """Tile that holds it."""
    id = optional_integer(key="lockID")
    """Number in its tile, if fixed."""
    init = integer(default=0)
    """Value on load."""
    symbol = optional_text(SymbolNameConstraint(), "sym_name")
    result = result_def(IndexType)
    traits = traits_def(OptionalSymbolOpInterface())
    assembly_format = "`(` $tile_value (`,` $lockID^)? `)` attr-dict"


DECLARATIONS = (TileOp, BufferOp, ExternalBufferOp, LockOp)
"""What a region may declare as well as the device: it is there before anything runs."""


@irdl_op_definition
class UseLockOp(AieOperation):
    """Acquire or release a lock."""

    name = "aie.use_lock"
    lock_value = operand_def(IndexType)
    amount = opt_operand_def(i32)
    action = word(LockAction)
    """Acquire, AcquireGreaterEqual or Release."""
    value_attr = opt_prop_def(Int32, prop_name="value")
    blocking = optional_word(Blocking)
    """Whether it waits, if given."""
    enabled = flag("acq_en", True)
    """False where `acq_en = false` switches the acquire off."""
    NUMBERS: ClassVar[tuple[str, ...]] = ("value",)
    assembly_format = (
        "`(` $lock_value `,` custom<LockActionWord>($action) custom<AmountAndBlocking>($value, $amount, $blocking) `)` "
        "attr-dict"
    )

    @property
    def lock(self) -> LockOp:
        """The lock."""
        return defined_by(self.lock_value, LockOp, "its operand must come from aie.lock")

    @property
    def is_acquire(self) -> bool:
        """Whether it waits (and subtracts)."""
        return self.action is not LockAction.RELEASE

    @property
    def value(self) -> int:
        """How much it takes or gives; 1 by default. RuntimeNumber where only the running core knows (`amount`)."""
        if self.amount is not None:
            raise RuntimeNumber("value", self.amount)
        return self.number("value", 1)

    def fold(self) -> None:
        """In a core the amount may be known only when it runs; a BD has a field for it."""
        try:
            super().fold()
        except RuntimeNumber:
            if not _runs_on_a_core(self):
                raise


def _runs_on_a_core(op: Operation) -> bool:
    parent = op.parent_op()
    while parent is not None and parent.name not in ("aie.core", "func.func"):
        parent = parent.parent_op()
    return parent is not None
