"""Stream switches as they are set: the physical form of a device, which gives its routes (input_physical.mlir)."""

from xdsl.dialects.builtin import IndexType
from xdsl.ir import Attribute
from xdsl.irdl import (
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.traits import NoTerminator

from bdforge.mlir.device_ops import ended_body, on_tile
from bdforge.mlir.fields import integer
from bdforge.mlir.operation import OPTIONS, AieOperation, Bool, Int8, Int32, number, parse_attr_dict, print_attr_dict
from bdforge.mlir.words import WORD_DIRECTIVES, Bundle, parse_word

PortName = tuple[Bundle, int]
"""Bundle and channel of a port of the switch around it."""


class SwitchSettingsOp(AieOperation):
    """Base of the operations that hold a tile's settings."""

    tile = on_tile()
    """The tile."""
    result = result_def(IndexType)
    settings = region_def("single_block")
    traits = traits_def(NoTerminator())

    @property
    def connects(self) -> list["ConnectOp"]:
        """Its circuits."""
        return [op for op in self.settings.block.ops if isinstance(op, ConnectOp)]

    @classmethod
    def parse(cls, parser: Parser) -> "SwitchSettingsOp":
        """Read `(%tile) {settings} {...}`."""
        with parser.in_parens():
            tile = parser.parse_operand(IndexType())
        body = ended_body(parser)
        attributes = parse_attr_dict(parser, cls, {})
        return cls.build(operands=[tile], result_types=[IndexType()], attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        with printer.in_parens():
            printer.print_ssa_value(self.operands[0])
        printer.print_string(" ")
        printer.print_region(self.settings, print_block_terminators=False)
        print_attr_dict(printer, self, ())


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
    source_bundle = prop_def(Int32)
    source_channel = prop_def(Int32)
    dest_bundle = prop_def(Int32)
    dest_channel = prop_def(Int32)
    custom_directives = WORD_DIRECTIVES
    assembly_format = (
        "`<` custom<BundleWord>($source_bundle) `:` $source_channel `,` "
        "custom<BundleWord>($dest_bundle) `:` $dest_channel `>` attr-dict"
    )
    irdl_options = OPTIONS

    @property
    def source(self) -> PortName:
        """The slave port."""
        return Bundle.from_code(self.number("source_bundle")), self.number("source_channel")

    @property
    def destination(self) -> PortName:
        """The master port."""
        return Bundle.from_code(self.number("dest_bundle")), self.number("dest_channel")


@irdl_op_definition
class AmselOp(AieOperation):
    """One msel of one arbiter."""

    name = "aie.amsel"
    arbiter = integer(Int8, "arbiterID")
    """Number of the arbiter."""
    msel = integer(Int8)
    """Number of the msel."""
    result = result_def(IndexType)
    assembly_format = "`<` $arbiterID `>` `(` $msel `)` attr-dict"
    irdl_options = OPTIONS


@irdl_op_definition
class MastersetOp(AieOperation):
    """A master port that sends the packets of some msels of one arbiter."""

    name = "aie.masterset"
    dest_bundle = prop_def(Int32)
    dest_channel = prop_def(Int32)
    keep_header_attr = opt_prop_def(Bool, prop_name="keep_pkt_header")
    amsels = var_operand_def(IndexType)
    result = result_def(IndexType)

    @property
    def destination(self) -> PortName:
        """The master port."""
        return Bundle.from_code(self.number("dest_bundle")), self.number("dest_channel")

    @property
    def keep_header(self) -> bool | None:
        """Whether headers stay in front of the data; None where the text leaves it to the port."""
        return self.flag("keep_pkt_header") if "keep_pkt_header" in self.properties else None

    @property
    def arbiters(self) -> list[AmselOp]:
        """Its msels."""
        return [amsel_of(value.owner) for value in self.amsels]

    @classmethod
    def parse(cls, parser: Parser) -> "MastersetOp":
        """Read `(bundle : channel, %amsel, ...) {...}`."""
        with parser.in_parens():
            properties = _port(parser, "dest")
            parser.parse_punctuation(",")
            amsels = parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: parser.parse_operand(IndexType()))
        attributes = parse_attr_dict(parser, cls, properties)
        return cls.build(operands=[amsels], result_types=[IndexType()], properties=properties, attributes=attributes)

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        bundle, channel = self.destination
        with printer.in_parens():
            printer.print_string(f"{bundle} : {channel}, ")
            printer.print_list(self.amsels, printer.print_ssa_value)
        print_attr_dict(printer, self, ("dest_bundle", "dest_channel"))


@irdl_op_definition
class PacketRulesOp(AieOperation):
    """A slave port whose packets go where the first rule that matches their id says."""

    name = "aie.packet_rules"
    source_bundle = prop_def(Int32)
    source_channel = prop_def(Int32)
    rules_region = region_def("single_block")
    traits = traits_def(NoTerminator())

    @property
    def source(self) -> PortName:
        """The slave port."""
        return Bundle.from_code(self.number("source_bundle")), self.number("source_channel")

    @property
    def rules(self) -> list["PacketRuleOp"]:
        """Its rules, in order."""
        return [op for op in self.rules_region.block.ops if isinstance(op, PacketRuleOp)]

    @classmethod
    def parse(cls, parser: Parser) -> "PacketRulesOp":
        """Read `(bundle : channel) {rules} {...}`."""
        with parser.in_parens():
            properties = _port(parser, "source")
        body = ended_body(parser)
        attributes = parse_attr_dict(parser, cls, properties)
        return cls.build(properties=properties, attributes=attributes, regions=[body])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        bundle, channel = self.source
        printer.print_string(f"({bundle} : {channel}) ")
        printer.print_region(self.rules_region, print_block_terminators=False)
        print_attr_dict(printer, self, ("source_bundle", "source_channel"))


@irdl_op_definition
class PacketRuleOp(AieOperation):
    """Ids with `(id ^ value) & mask == 0` go to one msel."""

    name = "aie.rule"
    mask = integer(Int8)
    """Bits of the id that count."""
    value = integer(Int8)
    """What they must be."""
    amsel = operand_def(IndexType)
    assembly_format = "`(` $mask `,` $value `,` $amsel `)` attr-dict"
    irdl_options = OPTIONS

    @property
    def target(self) -> AmselOp:
        """Where the packets go."""
        return amsel_of(self.amsel.owner)


@irdl_op_definition
class WireOp(AieOperation):
    """A bundle of wires between two switches, or a switch and its tile; says nothing that the device does not."""

    name = "aie.wire"
    source = operand_def(IndexType)
    dest = operand_def(IndexType)
    source_bundle = prop_def(Int32)
    dest_bundle = prop_def(Int32)
    custom_directives = WORD_DIRECTIVES
    assembly_format = (
        "`(` $source `:` custom<BundleWord>($source_bundle) `,` "
        "$dest `:` custom<BundleWord>($dest_bundle) `)` attr-dict"
    )
    irdl_options = OPTIONS


def amsel_of(owner: object) -> AmselOp:
    """The aie.amsel behind an operand; ValueError for anything else (refused when verifying)."""
    if not isinstance(owner, AmselOp):
        raise ValueError("an operand of aie.masterset and aie.rule must come from aie.amsel")
    return owner


def _port(parser: Parser, side: str) -> dict[str, Attribute]:
    """Read `bundle : channel`."""
    bundle = parse_word(parser, Bundle)
    parser.parse_punctuation(":")
    channel = parser.parse_integer(allow_boolean=False)
    return {f"{side}_bundle": bundle.attribute, f"{side}_channel": number(channel)}
