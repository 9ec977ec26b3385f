"""Tasks of the runtime sequence."""

from typing import ClassVar

from xdsl.dialects.builtin import IndexType, SymbolRefAttr, UnitAttr
from xdsl.ir import Block
from xdsl.irdl import irdl_op_definition, opt_prop_def, prop_def, region_def, result_def

from bdforge.array.mlir.array_ops import ShimDmaAllocationOp
from bdforge.array.mlir.attributes import PacketInfoAttr
from bdforge.array.mlir.bd_ops import DmaBdOp, bd_chain_from, bd_of
from bdforge.array.mlir.device_ops import DeviceOp, TileOp, named, on_tile
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.fields import behind, flag, integer, optional_data, optional_integer, word
from bdforge.array.mlir.operation import AieOperation, enclosing


class TaskOp(AieOperation):
    """Base of the operations that make a task: BDs of one channel, not yet started."""

    issue_token = flag()
    """Whether its end sends a token to wait for."""
    repeat_count = integer(default=0)
    """How often it runs again after the first time."""
    packet = optional_data(PacketInfoAttr)
    """Packet header of its BDs, if given for all."""
    result = result_def(IndexType)

    @property
    def tile(self) -> TileOp:
        """Tile of the channel."""
        return self.allocation_of("alloc").tile

    @property
    def direction(self) -> Direction:
        """S2MM or MM2S."""
        return self.allocation_of("alloc").direction

    @property
    def channel(self) -> int:
        """Channel of that direction."""
        return self.allocation_of("alloc").channel

    def allocation_of(self, name: str) -> ShimDmaAllocationOp:
        """The shim_dma_allocation that a property names; ValueError if there is none."""
        return named(enclosing(self, DeviceOp), ShimDmaAllocationOp, self.text(name))


class ChannelOp(AieOperation):
    """Base of the tasks that name a tile's channel."""

    tile = on_tile()
    direction = word(Direction)
    channel = integer()


class ConfigureTaskOp(TaskOp):
    """Base of the tasks whose BDs are written out."""

    body = region_def()

    @property
    def blocks(self) -> list[Block]:
        """BD blocks in chain order, from the entry block on."""
        first = self.body.blocks.first
        return [] if first is None else [block for block in bd_chain_from(first)[0] if bd_of(block)]

    @property
    def bds(self) -> list[DmaBdOp]:
        """BDs in chain order."""
        return [bd for block in self.blocks if (bd := bd_of(block)) is not None]


@irdl_op_definition
class DmaConfigureTaskOp(ChannelOp, ConfigureTaskOp):
    """Write the BDs of a task for a tile's channel."""

    name = "aiex.dma_configure_task"
    assembly_format = (
        "`(` $tile_value `,` custom<DirectionWord>($direction) `,` $channel (`,` $packet^)? `)` $body attr-dict"
    )


@irdl_op_definition
class DmaConfigureTaskForOp(ConfigureTaskOp):
    """Write the BDs of a task for a named shim channel."""

    name = "aiex.dma_configure_task_for"
    alloc = prop_def(SymbolRefAttr)
    assembly_format = "$alloc $body attr-dict"

    @property
    def allocation(self) -> ShimDmaAllocationOp:
        """The named channel; ValueError if nothing has that name."""
        return self.allocation_of("alloc")


class TaskUserOp(AieOperation):
    """Base of the operations on a task."""

    task = behind(TaskOp, "its operand must come from aiex.dma_configure_task or a relative")
    assembly_format = "`(` $task_value `)` attr-dict"


@irdl_op_definition
class DmaStartTaskOp(TaskUserOp):
    """Push a task to its channel's queue."""

    name = "aiex.dma_start_task"
    repeat_count = optional_integer()
    """How often the task runs again, if not as often as the task says (newest mlir-aie)."""
    no_token_attr = opt_prop_def(UnitAttr, prop_name="no_token")
    MODERN_NAMES: ClassVar[tuple[str, ...]] = ("repeat_count", "no_token")

    @property
    def no_token(self) -> bool:
        """Whether this run sends no token though the task would (newest mlir-aie)."""
        return "no_token" in self.properties


@irdl_op_definition
class DmaAwaitTaskOp(TaskUserOp):
    """Wait for a task's token, then free its BDs."""

    name = "aiex.dma_await_task"


@irdl_op_definition
class DmaFreeTaskOp(TaskUserOp):
    """Free a task's BDs without waiting."""

    name = "aiex.dma_free_task"
