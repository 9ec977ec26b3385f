"""Operations that describe the array: devices, tiles, buffers, locks, flows, cores."""

from typing import NamedTuple

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, IntegerAttr, SymbolNameConstraint, i1
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, region_def, result_def, traits_def
from xdsl.traits import SymbolOpInterface

from bdforge.devices.limits import DEFAULT_STACK_BYTES
from bdforge.mlir.attributes import PacketInfo, PacketInfoAttr
from bdforge.mlir.device_ops import DEFAULT_DEVICE, DeviceOp, EndOp, LogicalTileOp, TileOp, on_tile, tile_of
from bdforge.mlir.fields import integer, optional_text, text, word
from bdforge.mlir.memory_ops import BufferOp, ExternalBufferOp, LockOp, UseLockOp, parse_initial_value
from bdforge.mlir.operation import OPTIONS, AieOperation, Bool, Int32, Int64
from bdforge.mlir.words import WORD_DIRECTIVES, Bundle, Direction


@irdl_op_definition
class CoreOp(AieOperation):
    """Program of a core tile."""

    name = "aie.core"
    tile = on_tile()
    """Tile that runs it."""
    stack_size = integer(default=DEFAULT_STACK_BYTES)
    """Bytes at the bottom of its tile's memory."""
    link_with = optional_text()
    """Object file of its kernels, if named."""
    elf_file = optional_text()
    """Finished program, if named."""
    dynamic_objfifo_lowering = opt_prop_def(Bool)
    body = region_def()
    result = result_def(IndexType)
    assembly_format = "`(` $tile_value `)` $body attr-dict"
    irdl_options = OPTIONS

    @property
    def callees(self) -> tuple[str, ...]:
        """Functions that its body calls, each once, in the order of their first calls."""
        return tuple(dict.fromkeys(op.callee.string_value() for op in self.walk() if isinstance(op, func.CallOp)))


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
    tile = on_tile()
    """The shim."""
    symbol = text(SymbolNameConstraint(), "sym_name")
    """Its name."""
    direction = word(Direction, "channel_dir")
    """S2MM or MM2S."""
    channel = integer(Int64, "channel_index")
    """Channel of that direction."""
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
    def packet(self) -> PacketInfo | None:
        """Packet header of its transfers, if any."""
        attribute = self.properties.get("packet")
        return attribute.data if isinstance(attribute, PacketInfoAttr) else None


__all__ = [
    "DEFAULT_DEVICE", "BufferOp", "CoreOp", "DeviceOp", "EndOp", "Endpoint", "ExternalBufferOp", "FlowOp", "LockOp",
    "LogicalTileOp", "ShimDmaAllocationOp", "TileOp", "UseLockOp", "parse_initial_value", "tile_of",
]  # fmt: skip
