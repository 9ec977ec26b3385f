"""Operations that describe the array: devices, tiles, buffers, locks, flows, cores."""

from typing import NamedTuple

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    StringAttr,
    SymbolNameConstraint,
    i1,
)
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
)
from xdsl.traits import SymbolOpInterface

from bdforge.devices.limits import DEFAULT_STACK_BYTES
from bdforge.mlir.attributes import PacketInfo, PacketInfoAttr
from bdforge.mlir.device_ops import (
    DEFAULT_DEVICE,
    DeviceOp,
    EndOp,
    LogicalTileOp,
    TileOp,
    tile_of,
)
from bdforge.mlir.memory_ops import (
    BufferOp,
    ExternalBufferOp,
    LockOp,
    UseLockOp,
    parse_initial_value,
)
from bdforge.mlir.operation import (
    OPTIONS,
    AieOperation,
    Bool,
    Int32,
    Int64,
)
from bdforge.mlir.words import WORD_DIRECTIVES, Bundle, Direction


@irdl_op_definition
class CoreOp(AieOperation):
    """Program of a core tile."""

    name = "aie.core"
    tile_value = operand_def(IndexType)
    stack_size_attr = opt_prop_def(Int32, prop_name="stack_size")
    link_with_attr = opt_prop_def(StringAttr, prop_name="link_with")
    elf_file_attr = opt_prop_def(StringAttr, prop_name="elf_file")
    dynamic_objfifo_lowering = opt_prop_def(Bool)
    body = region_def()
    result = result_def(IndexType)
    assembly_format = "`(` $tile_value `)` $body attr-dict"
    irdl_options = OPTIONS

    @property
    def tile(self) -> TileOp:
        """Tile that runs it."""
        return tile_of(self.tile_value)

    @property
    def stack_size(self) -> int:
        """Bytes at the bottom of its tile's memory."""
        return self.number("stack_size", DEFAULT_STACK_BYTES)

    @property
    def link_with(self) -> str | None:
        """Object file of its kernels, if named."""
        return self.text("link_with")

    @property
    def elf_file(self) -> str | None:
        """Finished program, if named."""
        return self.text("elf_file")


class Endpoint(NamedTuple):
    """One end of a flow."""

    tile: TileOp
    bundle: Bundle
    channel: int


@irdl_op_definition
class FlowOp(AieOperation):
    """A circuit through the stream switches; several with one source are a broadcast."""

    name = "aie.flow"
    source_value = operand_def(IndexType)
    dest_value = operand_def(IndexType)
    source_bundle = prop_def(Int32)
    source_channel = prop_def(Int32)
    dest_bundle = prop_def(Int32)
    dest_channel = prop_def(Int32)
    custom_directives = WORD_DIRECTIVES
    assembly_format = (
        "`(` $source_value `,` custom<BundleWord>($source_bundle) `:` $source_channel `,` "
        "$dest_value `,` custom<BundleWord>($dest_bundle) `:` $dest_channel `)` attr-dict"
    )
    irdl_options = OPTIONS

    @property
    def source(self) -> Endpoint:
        """Where words enter."""
        bundle = Bundle.from_code(self.number("source_bundle"))
        return Endpoint(tile_of(self.source_value), bundle, self.number("source_channel"))

    @property
    def destination(self) -> Endpoint:
        """Where words leave."""
        bundle = Bundle.from_code(self.number("dest_bundle"))
        return Endpoint(tile_of(self.dest_value), bundle, self.number("dest_channel"))


@irdl_op_definition
class ShimDmaAllocationOp(AieOperation):
    """A name for a shim's DMA channel, for the runtime sequence."""

    name = "aie.shim_dma_allocation"
    tile_value = operand_def(IndexType)
    sym_name = prop_def(SymbolNameConstraint())
    channel_dir = prop_def(Int32)
    channel_index = prop_def(Int64)
    plio = prop_def(Bool, default_value=IntegerAttr(0, i1))
    packet_attr = opt_prop_def(PacketInfoAttr, prop_name="packet")
    traits = traits_def(SymbolOpInterface())
    custom_directives = WORD_DIRECTIVES
    assembly_format = (
        "$sym_name `(` $tile_value `,` custom<DirectionWord>($channel_dir) `,` $channel_index "
        "(`,` $packet^)? `)` attr-dict"
    )
    irdl_options = OPTIONS

    @property
    def symbol(self) -> str:
        """Its name."""
        return self.text("sym_name") or ""

    @property
    def tile(self) -> TileOp:
        """The shim."""
        return tile_of(self.tile_value)

    @property
    def direction(self) -> Direction:
        """S2MM or MM2S."""
        return Direction.from_code(self.number("channel_dir"))

    @property
    def channel(self) -> int:
        """Channel of that direction."""
        return self.number("channel_index")

    @property
    def packet(self) -> PacketInfo | None:
        """Packet header of its transfers, if any."""
        attribute = self.properties.get("packet")
        return attribute.data if isinstance(attribute, PacketInfoAttr) else None


__all__ = [
    "DEFAULT_DEVICE",
    "BufferOp",
    "CoreOp",
    "DeviceOp",
    "EndOp",
    "Endpoint",
    "ExternalBufferOp",
    "FlowOp",
    "LockOp",
    "LogicalTileOp",
    "ShimDmaAllocationOp",
    "TileOp",
    "UseLockOp",
    "parse_initial_value",
    "tile_of",
]
