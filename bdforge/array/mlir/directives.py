"""Parts of assembly formats (`custom<...>`) that several operations read and write alike."""

from typing import ClassVar, TypeVar

from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, StringAttr
from xdsl.ir import Block, Region
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    ParsingState,
    PrintingState,
    RegionVariable,
    SymbolNameAttributeVariable,
    VariadicRegionVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser
from xdsl.printer import Printer

from bdforge.array.mlir.attributes import number
from bdforge.array.mlir.enums import DeviceName, Direction, LockAction
from bdforge.array.mlir.legacy import LEGACY_DEVICES
from bdforge.devices.coded_words import CodedWord, PortBundle

WordT = TypeVar("WordT", bound=CodedWord)
PACKET_ID_BITS = 8  # width of the attribute, not of the hardware's field


def parse_word(parser: Parser, words: type[WordT]) -> WordT:
    """Read a word, bare or quoted."""
    start = parser.pos
    text = parser.parse_optional_identifier_or_str_literal()
    if text not in words.__members__.values():
        parser.raise_error(_word_problem(words, text), start)
    return words(text)


def _word_problem(words: type[CodedWord], text: str | None) -> str:
    if words is DeviceName and text in LEGACY_DEVICES:
        return LEGACY_DEVICES[text]
    found = "this" if text is None else f"'{text}'"
    return f"{found} is not a {words.__name__}; expected one of {', '.join(words)}"


class WordDirective(CustomDirective):
    """A positional word."""

    WORDS: ClassVar[type[CodedWord]]
    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read the word, keep its code."""
        self.value.set(state, number(parse_word(parser, self.WORDS).code))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the word bare."""
        state.print_whitespace(printer)
        attribute = self.value.get(op)
        assert isinstance(attribute, IntegerAttr)
        printer.print_string(self.WORDS.from_code(attribute.value.data))


def _directive(words: type[CodedWord]) -> type[CustomDirective]:
    """What `custom<...>` reads and writes a word by, called as its kind: `DirectionWord` for a `Direction`."""
    inside = {"WORDS": words, "__annotations__": {"value": AttributeVariable}, "__doc__": words.__doc__}
    return irdl_custom_directive(type(f"{words.__name__}Word", (WordDirective,), inside))


@irdl_custom_directive
class OptionalName(CustomDirective):
    """A symbol, or a string, that may be left out."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read it, if it is there."""
        if isinstance(self.value, SymbolNameAttributeVariable):
            found = parser.parse_optional_symbol_name()
        else:
            text = parser.parse_optional_str_literal()
            found = None if text is None else StringAttr(text)
        if found is not None:
            self.value.set(state, found)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write it, if it is there."""
        self.value.print(printer, state, op)


@irdl_custom_directive
class EndedBody(CustomDirective):
    """A region whose last block ends with `aie.end`, which the text may leave out and never shows."""

    body: RegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read it."""
        region = body_of(parser)
        if (last := region.blocks[-1].last_op) is None or last.name != "aie.end":
            region.blocks[-1].add_op(parser.ctx.get_op("aie.end").create())
        self.body.set(state, region)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write it without its end."""
        state.print_whitespace(printer)
        printer.print_region(self.body.get(op), print_block_terminators=False)


def body_of(parser: Parser) -> Region:
    """Read a region, with at least one block."""
    region = parser.parse_region()
    if not region.blocks:
        region.add_block(Block())
    return region


@irdl_custom_directive
class ArgumentsAndBody(CustomDirective):
    """`(%a: type, ...) {...}`, newer mlir-aie's `attributes {...}` before the body too."""

    body: RegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read them."""
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        if parser.parse_optional_keyword("attributes"):
            state.attributes |= parser.parse_optional_attr_dict()
        self.body.set(state, parser.parse_region(arguments))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write arguments and body."""
        region = self.body.get(op)
        with printer.in_parens():
            printer.print_list(region.blocks[0].args, printer.print_block_argument)
        printer.print_string(" ")
        printer.print_region(region, print_entry_block_args=False, print_empty_block=False)


@irdl_custom_directive
class TypedArgumentsAndBody(ArgumentsAndBody):
    """`(%a: type, ...) {...}`, whose types an attribute repeats."""

    body: RegionVariable
    types: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read them."""
        arguments = parser.parse_comma_separated_list(parser.Delimiter.PAREN, parser.parse_argument)
        self.types.set(state, ArrayAttr([argument.type for argument in arguments]))
        self.body.set(state, parser.parse_region(arguments))


@irdl_custom_directive
class RegionList(CustomDirective):
    """`[{bd}, {bd}]`."""

    regions: VariadicRegionVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read them, each with a block."""
        self.regions.set(state, parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: body_of(parser)))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write them."""
        state.print_whitespace(printer)
        with printer.in_square_brackets():
            printer.print_list(self.regions.get(op), printer.print_region)


@irdl_custom_directive
class PacketId(CustomDirective):
    """A packet's id, which the attribute holds signed."""

    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read it; it has to fit the attribute."""
        start = parser.pos
        packet_id = parser.parse_integer(allow_boolean=False)
        if not -(1 << (PACKET_ID_BITS - 1)) <= packet_id < 1 << PACKET_ID_BITS:
            parser.raise_error(f"packet id {packet_id} does not fit {PACKET_ID_BITS} bits", start)
        signed = packet_id - (1 << PACKET_ID_BITS) if packet_id >> (PACKET_ID_BITS - 1) == 1 else packet_id
        self.value.set(state, IntegerAttr(signed, PACKET_ID_BITS))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write it unsigned."""
        packet_id = self.value.get(op)
        assert isinstance(packet_id, IntegerAttr)
        printer.print_string(str(packet_id.value.data % (1 << PACKET_ID_BITS)))


DIRECTIVES = (
    *map(_directive, (Direction, PortBundle, LockAction, DeviceName)), OptionalName, EndedBody,
    ArgumentsAndBody, TypedArgumentsAndBody, RegionList, PacketId,
)  # fmt: skip
