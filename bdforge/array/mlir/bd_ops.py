"""Buffer descriptors (BDs) and their chains."""

import math
from collections.abc import Callable, Collection
from typing import ClassVar, Self

from xdsl.dialects.builtin import DenseArrayBase, IntegerAttr, ShapedType
from xdsl.ir import Attribute, Block, SSAValue
from xdsl.irdl import (
    AnyAttr,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    successor_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator

from bdforge.array.mlir import bd_clauses
from bdforge.array.mlir.attributes import (
    DimensionsAttr,
    IterationAttr,
    PacketInfo,
    PacketInfoAttr,
    PaddingsAttr,
    number,
)
from bdforge.array.mlir.fields import data_list, integer, memref, optional_data, optional_integer
from bdforge.array.mlir.memory_ops import BufferOp, ExternalBufferOp, UseLockOp
from bdforge.array.mlir.operation import AieOperation, Int32


@irdl_op_definition
class NextBdOp(AieOperation):
    """Go on with another BD block."""

    name = "aie.next_bd"
    dest = successor_def()
    traits = traits_def(IsTerminator())
    assembly_format = "$dest attr-dict"


@irdl_op_definition
class DmaBdPacketOp(AieOperation):
    """Packet header of the BD in the same block."""

    name = "aie.dma_bd_packet"
    packet_type = prop_def(Int32)
    packet_id = prop_def(Int32)
    assembly_format = "`(` $packet_type `,` $packet_id `)` attr-dict"

    @property
    def packet(self) -> PacketInfo:
        """Type and id."""
        return PacketInfo(self.number("packet_type"), self.number("packet_id"))


_CLAUSE_NAMES = (*bd_clauses.STATIC, bd_clauses.SEGMENTS)


@irdl_op_definition
class DmaBdOp(AieOperation):
    """One transfer: which elements of a buffer, in which order."""

    name = "aie.dma_bd"
    buffer = operand_def(AnyAttr())
    """Memory that it reads or writes: result of a buffer op, or an argument of the sequence."""
    buffer_type = memref("buffer")
    """Its memref type."""
    dynamic = var_operand_def(AnyAttr())
    offset = integer(default=0)
    """First element; 0 by default."""
    length_attr = opt_prop_def(Int32, prop_name="len")
    dims = data_list(DimensionsAttr, "dimensions")
    """(size, stride) in elements, outermost first; empty means linear."""
    padding = data_list(PaddingsAttr, "pad_dimensions")
    """(before, after) in elements, outermost first; empty means none."""
    pad_value = integer(default=0)
    """Value of padding; 0 by default."""
    bd_id = optional_integer()
    """BD number, if fixed."""
    packet_attr = opt_prop_def(PacketInfoAttr, prop_name="packet")
    next_bd_id = optional_integer()
    """Number of the next BD, if fixed."""
    burst_length = integer(default=0)
    """Bytes of a shim's bursts; 0 means the longest."""
    iteration = optional_data(IterationAttr)
    """What each further execution of the BD adds, in elements, if given (from mlir-aie 1.4.2 on)."""
    axcache = optional_integer(IntegerAttr)
    """AXI cache code of a shim's transfers, if given."""
    static_offset = opt_prop_def(Int32)
    static_len = opt_prop_def(Int32)
    static_sizes = opt_prop_def(DenseArrayBase)
    static_strides = opt_prop_def(DenseArrayBase)
    segments = opt_prop_def(DenseArrayBase, prop_name=bd_clauses.SEGMENTS)
    MODERN_NAMES: ClassVar[tuple[str, ...]] = ("iteration", "axcache")

    @property
    def is_modern(self) -> bool | None:
        """By its clauses, and by attributes that the other form would leave out without a word."""
        if super().is_modern or any(name in self.properties for name in _CLAUSE_NAMES) or self.dynamic:
            return True
        return False if any(name in self.properties for name in bd_clauses.MARCH_NAMES) else None

    def fold(self) -> None:
        """Keep the March form's attributes alone, of which a pad value of 0 says nothing."""
        if any(name in self.properties for name in _CLAUSE_NAMES) or self.dynamic:
            found = bd_clauses.folded(self.properties, self.dynamic)
            for name in _CLAUSE_NAMES:
                self.properties.pop(name, None)
            self.properties |= found
            self.operands = [self.buffer]
        self.properties.setdefault("offset", number(0))
        if not self.pad_value:
            self.properties.pop("pad_value", None)

    def unfolded(self, value: Callable[[int], SSAValue]) -> Self:
        """A copy with clauses; no value of padding, which stands with the channel there."""
        copy = self.clone()
        copy.properties.pop("pad_value", None)
        bd_clauses.unfold(copy.properties)
        return copy

    @property
    def buffer_op(self) -> BufferOp | ExternalBufferOp | None:
        """The operation that defines the buffer, or None for host memory of a sequence."""
        owner = self.buffer.owner
        return owner if isinstance(owner, BufferOp | ExternalBufferOp) else None

    @property
    def element_type(self) -> Attribute:
        """Type of one element."""
        return self.buffer_type.element_type

    @property
    def length(self) -> int:
        """Elements moved, padding included; the whole buffer by default (0 where the type has no shape)."""
        if (length := self.number("len")) is not None:
            return length
        shape = self.buffer_type
        return math.prod(shape.get_shape()) if isinstance(shape, ShapedType) else 0

    @property
    def has_length(self) -> bool:
        """Whether the text gives a length."""
        return "len" in self.properties

    @property
    def packet(self) -> PacketInfo | None:
        """Packet header, from the attribute or an aie.dma_bd_packet in the block."""
        if (packet := self.held("packet")) is not None:
            return packet
        block = self.parent_block()
        headers = [] if block is None else [op.packet for op in block.ops if isinstance(op, DmaBdPacketOp)]
        return headers[0] if headers else None

    @property
    def use_locks(self) -> list[UseLockOp]:
        """Lock operations of its block, in text order."""
        block = self.parent_block()
        return [] if block is None else [op for op in block.ops if isinstance(op, UseLockOp)]

    @property
    def acquires(self) -> list[UseLockOp]:
        """Locks acquired before the transfer."""
        return [op for op in self.use_locks if op.is_acquire]

    @property
    def releases(self) -> list[UseLockOp]:
        """Locks released after it."""
        return [op for op in self.use_locks if not op.is_acquire]

    @property
    def next(self) -> "DmaBdOp | None":
        """The BD that the block goes on with, or None where the chain ends (block form)."""
        block = self.parent_block()
        last = None if block is None else block.last_op
        return bd_of(last.dest) if isinstance(last, NextBdOp) else None

    @classmethod
    def parse(cls, parser: Parser) -> "DmaBdOp":
        """Read `(%buffer : type, offset, len, [dims], [pads], pad_value = v) {...}`."""
        parser.parse_punctuation("(")
        operand = parser.parse_unresolved_operand()
        parser.parse_punctuation(":")
        buffer = parser.resolve_operand(operand, parser.parse_type())
        properties: dict[str, Attribute] = {}
        dynamic = [] if bd_clauses.parse_march(parser, properties) else bd_clauses.parse_modern(parser, properties)
        parser.parse_punctuation(")")
        attributes = parser.parse_optional_attr_dict()
        return cls(operands=[buffer, dynamic], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the custom form, that of 1.4 where the properties are in it."""
        printer.print_string("(")
        printer.print_ssa_value(self.buffer)
        printer.print_string(" : ")
        printer.print_attribute(self.buffer.type)
        if "static_offset" in self.properties:
            bd_clauses.print_modern(printer, self.properties)
            shown: Collection[str] = (*_CLAUSE_NAMES, "pad_dimensions")
        else:
            shown = self._print_march(printer)
        printer.print_string(")")
        braces = {name: value for name, value in self.properties.items() if name not in shown}
        printer.print_op_attributes(braces | self.attributes)

    def _print_march(self, printer: Printer) -> Collection[str]:
        if self.has_length:
            printer.print_string(f", {self.offset}, {self.length}")
        elif self.offset:
            printer.print_string(f", {self.offset}")
        shown = self._positional()
        for name in shown:
            if isinstance(attribute := self.properties.get(name), DimensionsAttr | PaddingsAttr):
                printer.print_string(", ")
                attribute.print_parameter(printer)
        if "pad_value" in shown:
            printer.print_string(f", pad_value = {self.pad_value}")
        return shown

    def _positional(self) -> tuple[str, ...]:
        """Properties that can stand in parentheses: upstream's format takes each part only after those before it."""
        given = [name in self.properties for name in bd_clauses.POSITIONAL]
        count = 2 if self.has_length else 1
        while count > 1 and count < len(given) and given[count]:
            count += 1
        return bd_clauses.POSITIONAL[:count]


def bd_of(block: Block) -> DmaBdOp | None:
    """The BD of a block, or None for a block without one (end of a chain)."""
    return next((op for op in block.ops if isinstance(op, DmaBdOp)), None)


def bd_chain_from(block: Block) -> tuple[list[Block], Block | None]:
    """BD blocks from `block` on, following next_bd, and the block it loops back to (None if it ends)."""
    blocks: dict[Block, None] = {}
    while block not in blocks:
        last = block.last_op
        if bd_of(block) is None and not isinstance(last, NextBdOp):
            return list(blocks), None
        blocks[block] = None
        if not isinstance(last, NextBdOp):
            return list(blocks), None
        block = last.dest
    return list(blocks), block
