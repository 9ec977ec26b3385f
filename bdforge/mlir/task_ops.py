"""Tasks of the runtime sequence."""

from typing import ClassVar

from xdsl.dialects.builtin import IndexType, SymbolRefAttr, UnitAttr
from xdsl.ir import Block
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, region_def, result_def

from bdforge.mlir.array_ops import ShimDmaAllocationOp
from bdforge.mlir.attributes import PacketInfo, PacketInfoAttr
from bdforge.mlir.bd_ops import DmaBdOp, bd_chain_from, bd_of
from bdforge.mlir.device_ops import DeviceOp, TileOp, tile_of
from bdforge.mlir.fields import flag, integer, optional_integer
from bdforge.mlir.operation import OPTIONS, AieOperation, Int32, enclosing
from bdforge.mlir.words import WORD_DIRECTIVES, Direction


class TaskOp(AieOperation):
    """Base of the operations that make a task: BDs of one channel, not yet started."""

    issue_token = flag()
    """Whether its end sends a token to wait for."""
    repeat_count = integer(default=0)
    """How often it runs again after the first time."""
    packet_attr = opt_prop_def(PacketInfoAttr, prop_name="packet")
    result = result_def(IndexType)

    @property
    def packet(self) -> PacketInfo | None:
        """Packet header of its BDs, if given for all."""
        attribute = self.properties.get("packet")
        if isinstance(attribute, PacketInfoAttr):
            return attribute.data
        return None

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
        return allocation_named(self, self.text(name))


class ChannelOp(AieOperation):
    """Base of the tasks that name a tile's channel."""

    tile_value = operand_def(IndexType)
    direction_code = prop_def(Int32, prop_name="direction")
    channel_attr = prop_def(Int32, prop_name="channel")

    @property
    def tile(self) -> TileOp:
        """Tile of the channel."""
        return tile_of(self.tile_value)

    @property
    def direction(self) -> Direction:
        """S2MM or MM2S."""
        return Direction.from_code(self.number("direction"))

    @property
    def channel(self) -> int:
        """Channel of that direction."""
        return self.number("channel")


def allocation_named(op: AieOperation, symbol: str | None) -> ShimDmaAllocationOp:
    """The device's shim_dma_allocation called `symbol`; ValueError if there is none."""
    device = enclosing(op, DeviceOp)
    known = [] if device is None else [o for o in device.body.block.ops if isinstance(o, ShimDmaAllocationOp)]
    for allocation in known:
        if allocation.symbol == symbol:
            return allocation
    names = ", ".join(f"@{o.symbol}" for o in known) or "none"
    raise ValueError(f"no aie.shim_dma_allocation is called @{symbol}; the device has {names}")


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
    custom_directives = WORD_DIRECTIVES
    assembly_format = (
        "`(` $tile_value `,` custom<DirectionWord>($direction) `,` $channel (`,` $packet^)? `)` $body attr-dict"
    )
    irdl_options = OPTIONS


@irdl_op_definition
class DmaConfigureTaskForOp(ConfigureTaskOp):
    """Write the BDs of a task for a named shim channel."""

    name = "aiex.dma_configure_task_for"
    alloc = prop_def(SymbolRefAttr)
    assembly_format = "$alloc $body attr-dict"
    irdl_options = OPTIONS

    @property
    def allocation(self) -> ShimDmaAllocationOp:
        """The named channel; ValueError if nothing has that name."""
        return self.allocation_of("alloc")


class TaskUserOp(AieOperation):
    """Base of the operations on a task."""

    task_value = operand_def(IndexType)
    assembly_format = "`(` $task_value `)` attr-dict"

    @property
    def task(self) -> TaskOp:
        """The task; ValueError if the operand is none."""
        owner = self.task_value.owner
        if not isinstance(owner, TaskOp):
            raise ValueError(f"{self.name} on a value that is no task")
        return owner


@irdl_op_definition
class DmaStartTaskOp(TaskUserOp):
    """Push a task to its channel's queue."""

    name = "aiex.dma_start_task"
    repeat_count = optional_integer()
    """How often the task runs again, if not as often as the task says (newest mlir-aie)."""
    no_token_attr = opt_prop_def(UnitAttr, prop_name="no_token")
    MODERN_NAMES: ClassVar[tuple[str, ...]] = ("repeat_count", "no_token")
    irdl_options = OPTIONS

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
