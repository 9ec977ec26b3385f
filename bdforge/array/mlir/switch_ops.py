"""Stream switches as they are set: the physical form of a device, which gives its routes (input_physical.mlir)."""

from xdsl.dialects.builtin import IndexType
from xdsl.irdl import irdl_op_definition, operand_def, opt_prop_def, region_def, result_def, traits_def, var_operand_def
from xdsl.traits import NoTerminator

from bdforge.array.mlir.device_ops import on_tile
from bdforge.array.mlir.fields import behind, defined_by, integer, port, word
from bdforge.array.mlir.operation import AieOperation, Bool, Int8
from bdforge.devices.coded_words import PortBundle


class SwitchSettingsOp(AieOperation):
    """Base of the operations that hold a tile's settings."""

    tile = on_tile()
    result = result_def(IndexType)
    settings = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = "`(` $tile_value `)` custom<EndedBody>($settings) attr-dict"

    @property
    def connects(self) -> list["ConnectOp"]:
        """Its circuits."""
        return [op for op in self.settings.block.ops if isinstance(op, ConnectOp)]


@irdl_op_definition
class SwitchboxOp(SwitchSettingsOp):
    """What a tile's stream switch joins."""

    name = "aie.switchbox"

    @property
    def mastersets(self) -> list["MastersetOp"]:
        """Its packet-switched master ports."""
        return [op for op in self.settings.block.ops if isinstance(op, MastersetOp)]

    @property
    def packet_rules(self) -> list["PacketRulesOp"]:
        """Its packet-switched slave ports."""
        return [op for op in self.settings.block.ops if isinstance(op, PacketRulesOp)]


@irdl_op_definition
class ShimMuxOp(SwitchSettingsOp):
    """Which ports at the south of a shim's switch lead to its DMA; the switch is to the north of the mux."""

    name = "aie.shim_mux"


@irdl_op_definition
class ConnectOp(AieOperation):
    """A slave port whose words go to a master port."""

    name = "aie.connect"
    source = port("source_")
    """The slave port."""
    destination = port("dest_")
    """The master port."""
    assembly_format = (
        "`<` custom<PortBundleWord>($source_bundle) `:` $source_channel `,` "
        "custom<PortBundleWord>($dest_bundle) `:` $dest_channel `>` attr-dict"
    )


@irdl_op_definition
class AmselOp(AieOperation):
    """One msel of one arbiter."""

    name = "aie.amsel"
    arbiter = integer(Int8, "arbiterID")
    msel = integer(Int8)
    result = result_def(IndexType)
    assembly_format = "`<` $arbiterID `>` `(` $msel `)` attr-dict"


@irdl_op_definition
class MastersetOp(AieOperation):
    """A master port that sends the packets of some msels of one arbiter."""

    name = "aie.masterset"
    destination = port("dest_")
    """The master port."""
    keep_header_attr = opt_prop_def(Bool, prop_name="keep_pkt_header")
    amsels = var_operand_def(IndexType)
    result = result_def(IndexType)
    assembly_format = "`(` custom<PortBundleWord>($dest_bundle) `:` $dest_channel `,` $amsels `)` attr-dict"

    @property
    def keep_header(self) -> bool | None:
        """Whether headers stay in front of the data; None where the text leaves it to the port."""
        return self.flag("keep_pkt_header") if "keep_pkt_header" in self.properties else None

    @property
    def arbiters(self) -> list[AmselOp]:
        """Its msels."""
        return [defined_by(value, AmselOp, "its operands must come from aie.amsel") for value in self.amsels]


@irdl_op_definition
class PacketRulesOp(AieOperation):
    """A slave port whose packets go where the first rule that matches their id says."""

    name = "aie.packet_rules"
    source = port("source_")
    """The slave port."""
    rules_region = region_def("single_block")
    traits = traits_def(NoTerminator())
    assembly_format = (
        "`(` custom<PortBundleWord>($source_bundle) `:` $source_channel `)` custom<EndedBody>($rules_region) attr-dict"
    )

    @property
    def rules(self) -> list["PacketRuleOp"]:
        """Its rules, in order."""
        return [op for op in self.rules_region.block.ops if isinstance(op, PacketRuleOp)]


@irdl_op_definition
class PacketRuleOp(AieOperation):
    """Ids with `(id ^ value) & mask == 0` go to one msel."""

    name = "aie.rule"
    mask = integer(Int8)
    """Bits of the id that count."""
    value = integer(Int8)
    """What they must be."""
    target = behind(AmselOp, "its last operand must come from aie.amsel")
    assembly_format = "`(` $mask `,` $value `,` $target_value `)` attr-dict"


@irdl_op_definition
class WireOp(AieOperation):
    """A bundle of wires between two switches, or a switch and its tile; says nothing that the device does not."""

    name = "aie.wire"
    source = operand_def(IndexType)
    dest = operand_def(IndexType)
    source_bundle = word(PortBundle, "source_bundle")
    """Ports at one end."""
    dest_bundle = word(PortBundle, "dest_bundle")
    """Ports at the other."""
    assembly_format = (
        "`(` $source `:` custom<PortBundleWord>($source_bundle) `,` "
        "$dest `:` custom<PortBundleWord>($dest_bundle) `)` attr-dict"
    )
