"""Packets, cascades and streams of cores."""

from xdsl.irdl import AnyAttr, irdl_op_definition, operand_def, prop_def, region_def, result_def, traits_def
from xdsl.traits import NoTerminator

from bdforge.array.mlir.array_ops import Endpoint, endpoint
from bdforge.array.mlir.device_ops import on_tile
from bdforge.array.mlir.directives import PACKET_ID_BITS
from bdforge.array.mlir.fields import flag, integer, word
from bdforge.array.mlir.operation import AieOperation, Int8
from bdforge.devices import PortBundle


class PacketEndOp(AieOperation):
    """Base of the ends of a packet flow."""

    endpoint = endpoint("tile_value", "")
    """Tile, bundle and channel."""
    assembly_format = "`<` $tile_value `,` custom<PortBundleWord>($bundle) `:` $channel `>` attr-dict"


@irdl_op_definition
class PacketSourceOp(PacketEndOp):
    """Where a packet flow starts."""

    name = "aie.packet_source"


@irdl_op_definition
class PacketDestOp(PacketEndOp):
    """Where a packet flow arrives."""

    name = "aie.packet_dest"


@irdl_op_definition
class PacketFlowOp(AieOperation):
    """Packets of one id go from one source to all destinations."""

    name = "aie.packet_flow"
    id_attr = prop_def(Int8, prop_name="ID")
    keep_header = flag("keep_pkt_header")
    """Whether the header word stays in front of the data."""
    priority_route = flag()
    """Whether the router places it first."""
    ports = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "`(` custom<PacketId>($ID) `)` custom<EndedBody>($ports) attr-dict"

    @property
    def id(self) -> int:
        """Packet id."""
        return self.number("ID") % (1 << PACKET_ID_BITS)

    @property
    def sources(self) -> list[Endpoint]:
        """Where packets enter; one after verifying."""
        return [op.endpoint for op in self.ports.block.ops if isinstance(op, PacketSourceOp)]

    @property
    def source(self) -> Endpoint:
        """Where packets enter."""
        return self.sources[0]

    @property
    def destinations(self) -> list[Endpoint]:
        """Where packets leave."""
        return [op.endpoint for op in self.ports.block.ops if isinstance(op, PacketDestOp)]


@irdl_op_definition
class CascadeFlowOp(AieOperation):
    """A 512-bit FIFO from one core to its neighbour."""

    name = "aie.cascade_flow"
    source = on_tile()
    """Core that puts."""
    destination = on_tile()
    """Core that gets."""
    assembly_format = "`(` $source_value `,` $destination_value `)` attr-dict"


@irdl_op_definition
class ConfigureCascadeOp(AieOperation):
    """Sides on which a core's cascade enters and leaves."""

    name = "aie.configure_cascade"
    tile = on_tile()
    input = word(PortBundle, "inputDir")
    """Where it gets from."""
    output = word(PortBundle, "outputDir")
    """Where it puts to."""
    assembly_format = (
        "`(` $tile_value `,` custom<PortBundleWord>($inputDir) `,` custom<PortBundleWord>($outputDir) `)` attr-dict"
    )


@irdl_op_definition
class GetCascadeOp(AieOperation):
    """Take a value from the cascade; waits for one."""

    name = "aie.get_cascade"
    cascade_value = result_def(AnyAttr())
    assembly_format = "`(` `)` attr-dict `:` type($cascade_value)"


@irdl_op_definition
class PutCascadeOp(AieOperation):
    """Give a value to the cascade; waits for room."""

    name = "aie.put_cascade"
    cascade_value = operand_def(AnyAttr())
    assembly_format = "`(` $cascade_value `:` type($cascade_value) `)` attr-dict"


@irdl_op_definition
class GetStreamOp(AieOperation):
    """Take a word from a stream port of the core."""

    name = "aie.get_stream"
    channel = operand_def(AnyAttr())
    stream_value = result_def(AnyAttr())
    assembly_format = "`(` $channel `:` type($channel) `)` attr-dict `:` type($stream_value)"


@irdl_op_definition
class PutStreamOp(AieOperation):
    """Give a word to a stream port of the core."""

    name = "aie.put_stream"
    channel = operand_def(AnyAttr())
    stream_value = operand_def(AnyAttr())
    assembly_format = "`(` $channel `:` type($channel) `,` $stream_value `:` type($stream_value) `)` attr-dict"


@irdl_op_definition
class EventOp(AieOperation):
    """A marker in the trace; no effect."""

    name = "aie.event"
    value = integer(key="val")
    """0 or 1."""
    assembly_format = "`(` $val `)` attr-dict"
