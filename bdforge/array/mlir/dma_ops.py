"""DMA programs: channels, buffer descriptors (BDs) and their chains."""

from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, SymbolNameConstraint, i1
from xdsl.ir import Attribute, Block, Region
from xdsl.irdl import (
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    successor_def,
    traits_def,
    var_region_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import IsTerminator, NoTerminator, SymbolOpInterface

from bdforge.array.mlir.bd_ops import DmaBdOp, DmaBdPacketOp, NextBdOp, bd_chain_from, bd_of
from bdforge.array.mlir.device_ops import on_tile
from bdforge.array.mlir.enums import WORD_DIRECTIVES, Direction, parse_word
from bdforge.array.mlir.fields import integer, text, word
from bdforge.array.mlir.operation import AieOperation, Bool, Int32, body_of, number, parse_attr_dict, print_attr_dict


class PaddingOp(AieOperation):
    """Base of what starts a channel's BDs, and names with it the value that its BDs pad with (mlir-aie #3512)."""

    pad_value = integer(default=0)
    """Value of its BDs' padding (from mlir-aie 1.4.1 on); 0 by default."""
    direction = word(Direction, "channel_dir")
    """S2MM or MM2S."""
    channel = integer(key="channel_index")
    """Channel of that direction."""
    repeat_count_attr = prop_def(Int32, prop_name="repeat_count", default_value=number(0))

    @property
    def repeat_count(self) -> int:
        """How often the task runs again after the first time."""
        return self.number("repeat_count", 0)

    @property
    def is_modern(self) -> bool | None:
        """Older tools leave the value out without a word, which does no harm to 0."""
        return True if self.pad_value else None


@irdl_op_definition
class DmaStartOp(PaddingOp):
    """Start a chain of BDs on a channel, then go on with the next block."""

    name = "aie.dma_start"
    first_block = successor_def()
    """Block of the first BD."""
    next_block = successor_def()
    """Block to go on with: another dma_start or the end."""
    result = result_def(i1)
    traits = traits_def(IsTerminator())
    custom_directives = WORD_DIRECTIVES
    assembly_format = (
        "`(` custom<DirectionWord>($channel_dir) `,` $channel_index `,` $first_block `,` $next_block "
        "(`,` `repeat_count` `=` $repeat_count^)? `)` attr-dict"
    )


@irdl_op_definition
class DmaOp(PaddingOp):
    """A channel's BDs in region form, one region per BD."""

    name = "aie.dma"
    loop_attr = prop_def(Bool, prop_name="loop", default_value=IntegerAttr(1, i1))
    sym_name = opt_prop_def(SymbolNameConstraint())
    bds_regions = var_region_def("single_block")
    result = result_def(i1)
    traits = traits_def(NoTerminator())

    @property
    def loop(self) -> bool:
        """Whether the last BD goes on with the first."""
        return self.flag("loop", True)

    @property
    def blocks(self) -> list[Block]:
        """One block per BD, in order."""
        return [region.block for region in self.regions]

    @classmethod
    def parse(cls, parser: Parser) -> "DmaOp":
        """Read `(direction, channel) {...} [{bd}, {bd}]`."""
        parser.parse_punctuation("(")
        properties: dict[str, Attribute] = {"channel_dir": parse_word(parser, Direction).attribute}
        parser.parse_punctuation(",")
        properties["channel_index"] = number(parser.parse_integer(allow_boolean=False))
        parser.parse_punctuation(")")
        attributes = parse_attr_dict(parser, cls, properties)
        regions = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: body_of(parser))
        return cls.build(properties=properties, attributes=attributes, regions=[regions], result_types=[i1])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        printer.print_string(f"({self.direction}, {self.channel})")
        print_attr_dict(printer, self, ("channel_dir", "channel_index"))
        printer.print_string(" ")
        with printer.in_square_brackets():
            printer.print_list(self.regions, printer.print_region)


class DmaProgramOp(AieOperation):
    """Base of the static DMA programs."""

    tile = on_tile()
    """Tile whose DMA it programs."""
    body = region_def()
    result = result_def(IndexType)
    assembly_format = "`(` $tile_value `)` $body attr-dict"

    @property
    def starts(self) -> list[DmaStartOp]:
        """Started tasks in chain order, from the entry block on (block form)."""
        found: dict[DmaStartOp, None] = {}
        block = self.body.blocks.first
        while block is not None and isinstance(op := block.last_op, DmaStartOp) and op not in found:
            found[op] = None
            block = op.next_block
        return list(found)

    @property
    def region_dmas(self) -> list[DmaOp]:
        """Channels in region form."""
        return [op for block in self.body.blocks for op in block.ops if isinstance(op, DmaOp)]

    @property
    def bds(self) -> Iterator[DmaBdOp]:
        """Every BD, in text order."""
        return (op for op in self.walk() if isinstance(op, DmaBdOp))


@irdl_op_definition
class MemOp(DmaProgramOp):
    """DMA program of a core tile."""

    name = "aie.mem"


@irdl_op_definition
class MemtileDmaOp(DmaProgramOp):
    """DMA program of a memtile."""

    name = "aie.memtile_dma"


@irdl_op_definition
class ShimDmaOp(DmaProgramOp):
    """DMA program of a shim (not used with a runtime sequence)."""

    name = "aie.shim_dma"


@irdl_op_definition
class BdChainOp(AieOperation):
    """A template of BD blocks for aiex.dma_start_bd_chain."""

    name = "aie.bd_chain"
    symbol = text(SymbolNameConstraint(), "sym_name")
    """Its name."""
    entry_arg_types = prop_def(ArrayAttr)
    body = region_def()
    traits = traits_def(SymbolOpInterface())

    @classmethod
    def parse(cls, parser: Parser) -> "BdChainOp":
        """Read `@name (%a: type, ...) {...}`."""
        symbol = parser.parse_symbol_name()
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        body = parser.parse_region(arguments)
        properties: dict[str, Attribute] = {
            "sym_name": symbol,
            "entry_arg_types": ArrayAttr([argument.type for argument in arguments]),
        }
        attributes = parse_attr_dict(parser, cls, properties)
        return cls.build(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        printer.print_string(" ")
        printer.print_symbol_name(self.symbol)
        print_arguments_and_body(printer, self.body)
        print_attr_dict(printer, self, ("sym_name", "entry_arg_types"))


def print_arguments_and_body(printer: Printer, body: Region) -> None:
    """Write `(%a: type, ...) {...}`."""
    with printer.in_parens():
        printer.print_list(body.blocks[0].args, printer.print_block_argument)
    printer.print_string(" ")
    printer.print_region(body, print_entry_block_args=False, print_empty_block=False)


DMA_PROGRAMS = (MemOp, MemtileDmaOp, ShimDmaOp)


__all__ = [
    "DMA_PROGRAMS", "BdChainOp", "DmaBdOp", "DmaBdPacketOp", "DmaOp", "DmaProgramOp", "DmaStartOp", "MemOp",
    "MemtileDmaOp", "NextBdOp", "ShimDmaOp", "bd_chain_from", "bd_of", "print_arguments_and_body",
]  # fmt: skip
