"""DMA programs: channels, buffer descriptors (BDs) and their chains."""

from collections.abc import Iterator

from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, SymbolNameConstraint, i1
from xdsl.ir import Block
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
from xdsl.traits import IsTerminator, NoTerminator, SymbolOpInterface

from bdforge.array.mlir.attributes import number
from bdforge.array.mlir.bd_ops import DmaBdOp, bd_chain_from
from bdforge.array.mlir.device_ops import on_tile
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.fields import integer, text, word
from bdforge.array.mlir.operation import AieOperation, Bool, Int32


class PaddingOp(AieOperation):
    """Base of what starts a channel's BDs, and names with it the value that its BDs pad with (mlir-aie #3512)."""

    pad_value = integer(default=0)
    """Value of its BDs' padding (from mlir-aie 1.4.1 on); 0 by default."""
    direction = word(Direction, "channel_dir")
    channel = integer(key="channel_index")
    repeat_count_attr = prop_def(Int32, prop_name="repeat_count", default_value=number(0))

    @property
    def repeat_count(self) -> int:
        """How often the task runs again after the first time."""
        return self.number("repeat_count", 0)

    @property
    def is_modern(self) -> bool | None:
        """Older tools leave the value out without a word, which does no harm to 0."""
        return True if self.pad_value else None

    @property
    def blocks(self) -> list[Block]:
        """One block per BD: of a chain those from its first block on."""
        return bd_chain_from(self.successors[0])[0]


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
    assembly_format = (
        "`(` custom<DirectionWord>($channel_dir) `,` $channel_index `)` attr-dict custom<RegionList>($bds_regions)"
    )

    @property
    def loop(self) -> bool:
        """Whether the last BD goes on with the first."""
        return self.flag("loop", True)

    @property
    def blocks(self) -> list[Block]:
        return [region.block for region in self.regions]


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
    entry_arg_types = prop_def(ArrayAttr)
    body = region_def()
    traits = traits_def(SymbolOpInterface())
    assembly_format = "$sym_name custom<TypedArgumentsAndBody>($body, $entry_arg_types) attr-dict"


DMA_PROGRAMS = (MemOp, MemtileDmaOp, ShimDmaOp)
