"""Operations of the runtime sequence close to registers, and reconfiguration."""

from typing import ClassVar

import numpy as np
from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    SymbolRefAttr,
    UnrankedMemRefType,
)
from xdsl.dialects.memref import GetGlobalOp
from xdsl.ir import SSAValue
from xdsl.irdl import AnyAttr, irdl_op_definition, operand_def, opt_prop_def, prop_def, var_operand_def

from bdforge.array.mlir.dense import numpy_of
from bdforge.array.mlir.device_ops import DeviceOp, named
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.fields import defined_by, flag, integer, optional_integer, optional_text, word
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.array.mlir.operation import AieOperation, Int32, NumbersOp, UInt32, enclosing
from bdforge.array.mlir.upstream import GlobalOp


class AddressedOp(AieOperation):
    """Base of raw stores: a full address, an offset in a tile, or words from the start of a buffer."""

    address = integer(UInt32)
    """Words from the buffer's start if there is a buffer, else bytes: in the tile if there is one, else full."""
    buffer = optional_text(SymbolRefAttr)
    column = optional_integer()
    row = optional_integer()

    @property
    def buffer_op(self) -> BufferOp | None:
        """The buffer, if any; ValueError if nothing has that name."""
        return None if self.buffer is None else named(enclosing(self, DeviceOp), BufferOp, self.buffer)


@irdl_op_definition
class NpuWrite32Op(NumbersOp, AddressedOp):
    """Store 32 bits."""

    name = "aiex.npu.write32"
    value = integer(UInt32)
    """What is stored."""
    NUMBERS: ClassVar[tuple[str, ...]] = ("address", "value")


@irdl_op_definition
class NpuMaskWrite32Op(NumbersOp, AddressedOp):
    """Change the masked bits of 32."""

    name = "aiex.npu.maskwrite32"
    value = integer(UInt32)
    """What is stored where the mask is 1."""
    mask = integer(UInt32)
    """Bits that change."""
    NUMBERS: ClassVar[tuple[str, ...]] = ("address", "value", "mask")


@irdl_op_definition
class NpuBlockWriteOp(AddressedOp):
    """Store the words of a memref.global one after the other."""

    name = "aiex.npu.blockwrite"
    data_value = operand_def(AnyAttr())
    assembly_format = "`(` $data_value `)` attr-dict `:` type($data_value)"

    @property
    def data(self) -> np.ndarray:
        """The words, as uint32; ValueError unless they come from a memref.global with a value."""
        source = defined_by(
            self.data_value, GetGlobalOp, "the data of aiex.npu.blockwrite must come from memref.get_global"
        )
        found = named(enclosing(self, DeviceOp), GlobalOp, source.name_.root_reference.data)
        if not isinstance(value := found.initial_value, DenseIntOrFPElementsAttr):
            raise ValueError(f"memref.global @{found.symbol} has no value to write")
        return np.frombuffer(numpy_of(value).tobytes(), dtype=np.uint32)


WRITEBD_FIELDS = (
    "column", "row", "bd_id", "buffer_length", "buffer_offset", "enable_packet", "out_of_order_id", "packet_id",
    "packet_type", "d0_size", "d0_stride", "d1_size", "d1_stride", "d2_size", "d2_stride", "iteration_current",
    "iteration_size", "iteration_stride", "next_bd", "use_next_bd", "valid_bd", "lock_rel_val", "lock_rel_id",
    "lock_acq_enable", "lock_acq_val", "lock_acq_id", "d0_zero_before", "d1_zero_before", "d2_zero_before",
    "d0_zero_after", "d1_zero_after", "d2_zero_after",
)  # fmt: skip
"""Of `aiex.npu.writebd`, besides the burst length, which may be missing."""


@irdl_op_definition
class NpuWriteBdOp(AieOperation):
    """Write a BD from raw fields: sizes are wraps, strides are steps less 1, lengths are words."""

    name = "aiex.npu.writebd"
    vars().update((f"{name}_attr", prop_def(Int32, prop_name=name)) for name in WRITEBD_FIELDS)
    burst_length = opt_prop_def(Int32)
    assembly_format = "attr-dict"

    @property
    def fields(self) -> dict[str, int]:
        """Every field by its name in the text."""
        return {name: a.value.data for name, a in self.properties.items() if isinstance(a, IntegerAttr)}


@irdl_op_definition
class NpuAddressPatchOp(AieOperation):
    """Put the address of a host buffer into a BD."""

    name = "aiex.npu.address_patch"
    sources = var_operand_def(AnyAttr())
    address = integer(UInt32, "addr")
    """Full address of the BD's address field."""
    argument = optional_integer(key="arg_idx")
    """Which argument of the sequence, where that names the buffer."""
    offset_bytes = integer(key="arg_plus")
    """Bytes added to the buffer's address."""
    NUMBERS: ClassVar[tuple[str, ...]] = ("arg_plus",)
    assembly_format = "custom<PatchSources>($sources, type($sources)) attr-dict"

    @property
    def is_modern(self) -> bool | None:
        """A buffer instead of an argument's position is of the newest form."""
        return super().is_modern or self.buffer is not None

    @property
    def buffer(self) -> SSAValue | None:
        """The host buffer, or a view of one, where it is not named by the position of an argument."""
        return next((value for value in self.sources if isinstance(value.type, MemRefType | UnrankedMemRefType)), None)


@irdl_op_definition
class NpuPushQueueOp(NumbersOp):
    """Start a BD by its number."""

    name = "aiex.npu.push_queue"
    column = integer()
    row = integer()
    direction = word(Direction)
    channel = integer()
    issue_token = flag(required=True)
    """Whether the task's end sends a token."""
    repeat_count = integer()
    """How often the task runs again after the first time."""
    bd_id = integer()
    """The BD to start with."""
    NUMBERS: ClassVar[tuple[str, ...]] = ("bd_id", "repeat_count")
    assembly_format = (
        "`(` $column `,` $row `,` custom<DirectionWord>($direction) `:` $channel `)` custom<BdAndRepeat>($numbers) "
        "attr-dict (`:` type($numbers)^)?"
    )


@irdl_op_definition
class ControlPacketOp(AieOperation):
    """A packet that reads or writes registers."""

    name = "aiex.control_packet"
    address = integer(UInt32)
    """Register address; which tile depends on the packet's route."""
    length = optional_integer()
    """Words to read, if given."""
    opcode = integer()
    """0 write, 1 read."""
    stream_id = integer()
    """Packet id of the answer."""
    data_attr = opt_prop_def(DenseArrayBase, prop_name="data")
    assembly_format = "attr-dict"

    @property
    def data(self) -> list[int]:
        """Words to write."""
        attribute = self.properties.get("data")
        return [int(v) for v in attribute.get_values()] if isinstance(attribute, DenseArrayBase) else []
