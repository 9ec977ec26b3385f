"""Cores, flows, and names of the shims' channels."""

from typing import NamedTuple, cast

from xdsl.dialects import func
from xdsl.dialects.builtin import IndexType, IntegerAttr, SymbolNameConstraint, i1
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, prop_def, region_def, result_def, traits_def
from xdsl.traits import SymbolOpInterface

from bdforge.array.mlir.attributes import PacketInfoAttr
from bdforge.array.mlir.device_ops import NO_TILE, TileOp, on_tile
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.fields import (
    PropertyField,
    defined_by,
    integer,
    optional_data,
    optional_text,
    port_definitions,
    read_port,
    text,
    word,
)
from bdforge.array.mlir.operation import AieOperation, Bool, Int64
from bdforge.devices.coded_words import PortBundle
from bdforge.devices.limits import DEFAULT_STACK_BYTES


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

    @property
    def callees(self) -> tuple[str, ...]:
        """Functions that its body calls, each once, in the order of their first calls."""
        return tuple(dict.fromkeys(op.callee.string_value() for op in self.walk() if isinstance(op, func.CallOp)))


class Endpoint(NamedTuple):
    """One end of a flow."""

    tile: TileOp
    bundle: PortBundle
    channel: int

    def __str__(self) -> str:
        return f"{self.tile.place} {self.bundle} : {self.channel}"


def endpoint(operand: str, prefix: str) -> Endpoint:
    """The tile of an operand, and its port of properties `<prefix>bundle` and `<prefix>channel`."""

    def read(op: AieOperation, _: str) -> Endpoint:
        return Endpoint(defined_by(getattr(op, operand), TileOp, NO_TILE), *read_port(op, prefix))

    return cast(Endpoint, PropertyField(lambda _: {operand: operand_def(IndexType), **port_definitions(prefix)}, read))


@irdl_op_definition
class FlowOp(AieOperation):
    """A circuit through the stream switches; several with one source are a broadcast."""

    name = "aie.flow"
    source = endpoint("source_value", "source_")
    """Where words enter."""
    destination = endpoint("dest_value", "dest_")
    """Where words leave."""
    assembly_format = (
        "`(` $source_value `,` custom<PortBundleWord>($source_bundle) `:` $source_channel `,` "
        "$dest_value `,` custom<PortBundleWord>($dest_bundle) `:` $dest_channel `)` attr-dict"
    )


@irdl_op_definition
class ShimDmaAllocationOp(AieOperation):
    """A name for a shim's DMA channel, for the runtime sequence."""

    name = "aie.shim_dma_allocation"
    tile = on_tile()
    """The shim."""
    symbol = text(SymbolNameConstraint(), "sym_name")
    direction = word(Direction, "channel_dir")
    channel = integer(Int64, "channel_index")
    plio = prop_def(Bool, default_value=IntegerAttr(0, i1))
    packet = optional_data(PacketInfoAttr)
    """Packet header of its transfers, if any."""
    traits = traits_def(SymbolOpInterface())
    assembly_format = (
        "$sym_name `(` $tile_value `,` custom<DirectionWord>($channel_dir) `,` $channel_index "
        "(`,` $packet^)? `)` attr-dict"
    )
