"""The host's program: runtime sequence, tasks, transfers, waits."""

from collections.abc import Sequence
from typing import ClassVar

from xdsl.dialects.builtin import IndexType, IntegerAttr, StringAttr, SymbolNameConstraint, SymbolRefAttr, i32
from xdsl.ir import Attribute, SSAValue
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    prop_def,
    region_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer
from xdsl.traits import NoTerminator, SymbolOpInterface

from bdforge.array.mlir.array_ops import ShimDmaAllocationOp
from bdforge.array.mlir.device_ops import DeviceOp, named
from bdforge.array.mlir.dma_ops import print_arguments_and_body
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.fields import behind, integer, text, word
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.operation import (
    UNSIGNED32,
    AieOperation,
    Int32,
    NumbersOp,
    UInt32,
    enclosing,
    modern,
    number,
    parse_attr_dict,
    print_attr_dict,
    print_number,
    print_types,
    resolve_numbers,
)

DEFAULT_SEQUENCE = "sequence"


@irdl_op_definition
class RuntimeSequenceOp(AieOperation):
    """Program that the host has the array's controller run; its arguments are host buffers."""

    name = "aie.runtime_sequence"
    sym_name = prop_def(SymbolNameConstraint(), default_value=StringAttr(DEFAULT_SEQUENCE))
    body = region_def("single_block")
    traits = traits_def(NoTerminator(), SymbolOpInterface())

    @property
    def symbol(self) -> str:
        """Its name; "sequence" by default."""
        return self.text("sym_name") or DEFAULT_SEQUENCE

    @property
    def arguments(self) -> Sequence[SSAValue]:
        """Host buffers and scalars by position."""
        return self.body.block.args

    @classmethod
    def parse(cls, parser: Parser) -> "RuntimeSequenceOp":
        """Read `@name (%a: type, ...) {...}`, newer mlir-aie's `attributes {...}` before the body too."""
        properties: dict[str, Attribute] = {}
        if (symbol := parser.parse_optional_symbol_name()) is not None:
            properties["sym_name"] = symbol
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        early = parse_attr_dict(parser, cls, properties) if parser.parse_optional_keyword("attributes") else {}
        body = parser.parse_region(arguments)
        attributes = early | parse_attr_dict(parser, cls, properties)
        return cls.build(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        if self.symbol != DEFAULT_SEQUENCE:
            printer.print_string(" ")
            printer.print_symbol_name(self.symbol)
        print_arguments_and_body(printer, self.body)
        print_attr_dict(printer, self, ("sym_name",))


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
    """S2MM or MM2S."""
    channel = integer()
    """Channel of that direction."""
    columns = integer(key="column_num")
    """Number of columns."""
    rows = integer(key="row_num")
    """Number of rows."""
    NUMBERS: ClassVar[tuple[str, ...]] = ("column", "row", "direction", "channel", "column_num", "row_num")


@irdl_op_definition
class NpuRtpWriteOp(AieOperation):
    """Store a 32-bit runtime parameter."""

    name = "aiex.npu.rtp_write"
    buffer = text(SymbolRefAttr)
    """Name of the buffer."""
    index = integer(UInt32)
    """Which 32-bit word of the buffer."""
    value = integer()
    """What is stored."""
    numbers = var_operand_def(i32)
    NUMBERS: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def buffer_op(self) -> BufferOp:
        """The buffer; ValueError if nothing has that name."""
        return named(enclosing(self, DeviceOp), BufferOp, self.buffer)

    @classmethod
    def parse(cls, parser: Parser) -> "NpuRtpWriteOp":
        """Read `(@buffer, index, value)`, from 1.4 on `(@buffer, index, %value) : i32`."""
        properties: dict[str, Attribute] = {}
        operands: list[UnresolvedOperand] = []
        with parser.in_parens():
            properties["buffer"] = SymbolRefAttr(parser.parse_symbol_name())
            parser.parse_punctuation(",")
            properties["index"] = IntegerAttr(parser.parse_integer(allow_boolean=False), UNSIGNED32)
            parser.parse_punctuation(",")
            if (operand := parser.parse_optional_unresolved_operand()) is not None:
                operands.append(operand)
            else:
                properties["value"] = number(parser.parse_integer(allow_boolean=False))
        attributes = parse_attr_dict(parser, cls, properties)
        numbers = resolve_numbers(parser, operands)
        return cls(operands=[numbers], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        printer.print_string("(")
        printer.print_symbol_name(self.buffer)
        printer.print_string(f", {self.index}, ")
        print_number(printer, self.value)
        printer.print_string(")")
        print_attr_dict(printer, self, ("buffer", "index", "value"))
        if modern(printer):
            print_types(printer, 1)


@irdl_op_definition
class SetLockOp(AieOperation):
    """Store a lock's value."""

    name = "aiex.set_lock"
    lock_value = operand_def(IndexType)
    lock = behind(LockOp, "its operand must come from aie.lock")
    """The lock."""
    amount = opt_operand_def(i32)
    value_attr = prop_def(Int32, prop_name="value")
    NUMBERS: ClassVar[tuple[str, ...]] = ("value",)

    @property
    def is_modern(self) -> bool | None:
        """A literal stands in both forms; a constant in the newest only."""
        return super().is_modern or None

    @property
    def value(self) -> int:
        """What is stored."""
        return self.number("value")

    @classmethod
    def parse(cls, parser: Parser) -> "SetLockOp":
        """Read `(%lock, value)`, which the newest tools may print as `(%lock, %value)`."""
        properties: dict[str, Attribute] = {}
        with parser.in_parens():
            lock = parser.parse_operand(IndexType())
            parser.parse_punctuation(",")
            if (operand := parser.parse_optional_unresolved_operand()) is None:
                properties["value"] = number(parser.parse_integer(allow_boolean=False))
        amount = None if operand is None else parser.resolve_operand(operand, i32)
        attributes = parse_attr_dict(parser, cls, properties)
        return cls(operands=[lock, amount], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the custom form, which every version reads."""
        with printer.in_parens():
            printer.print_ssa_value(self.lock_value)
            printer.print_string(f", {self.value}")
        print_attr_dict(printer, self, ("value",))
