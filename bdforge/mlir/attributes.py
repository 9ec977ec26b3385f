"""Attributes and types of the aie and aiex dialects."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Data, OpaqueSyntaxAttribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer
from xdsl.utils.mlir_lexer import MLIRTokenKind

from bdforge.mlir.legacy import LEGACY_DIMENSION


class Dimension(NamedTuple):
    """One loop of a BD, in elements."""

    size: int
    stride: int


class Padding(NamedTuple):
    """Zero elements that widen one dimension of a BD."""

    before: int
    after: int


class PacketInfo(NamedTuple):
    """What a BD writes into its packet header."""

    type: int
    id: int


class BdIteration(NamedTuple):
    """What a BD adds to its start each time that it runs: `stride` elements, over again after `size` times."""

    size: int
    stride: int
    current: int


RecordT = TypeVar("RecordT", bound=tuple[int, ...])


def parse_record(parser: AttrParser, fields: Sequence[str], defaults: dict[str, int] | None = None) -> list[int]:
    """Values of `<name = integer, ...>` in the order of `fields`, however the text orders them."""
    start = parser.pos
    parser.parse_punctuation("<")
    if parser._current_token.kind in (MLIRTokenKind.INTEGER_LIT, MLIRTokenKind.MINUS) and "stride" in fields:
        parser.raise_error(LEGACY_DIMENSION, start)
    values: dict[str, int] = {}
    parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_field(parser, fields, values))
    parser.parse_punctuation(">")
    values = (defaults or {}) | values
    if missing := [name for name in fields if name not in values]:
        parser.raise_error(f"'{missing[0]} = ...' is missing", start)
    return [values[name] for name in fields]


def _parse_field(parser: AttrParser, fields: Sequence[str], values: dict[str, int]) -> None:
    start = parser.pos
    name = parser.parse_identifier(f"; expected one of {', '.join(fields)}")
    if name not in fields:
        parser.raise_error(f"'{name}' is unknown here; expected one of {', '.join(fields)}", start)
    if name in values:
        parser.raise_error(f"'{name}' is given twice", start)
    parser.parse_punctuation("=")
    values[name] = parser.parse_integer(allow_boolean=False)


def print_record(printer: Printer, fields: Sequence[str], values: Sequence[int]) -> None:
    """Write `<name = integer, ...>`."""
    printer.print_string(f"<{', '.join(f'{name} = {value}' for name, value in zip(fields, values, strict=True))}>")


_DIMENSION = ("size", "stride")
_PADDING = ("const_pad_before", "const_pad_after")
_PACKET = ("pkt_type", "pkt_id")
_ITERATION = ("size", "stride", "current")


@irdl_attr_definition
class PacketInfoAttr(Data[PacketInfo]):
    """`#aie.packet_info<pkt_type = 0, pkt_id = 3>`."""

    name = "aie.packet_info"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> PacketInfo:
        """Read `<pkt_type = t, pkt_id = i>`."""
        return PacketInfo(*parse_record(parser, _PACKET))

    def print_parameter(self, printer: Printer) -> None:
        """Write `<pkt_type = t, pkt_id = i>`."""
        print_record(printer, _PACKET, self.data)


@irdl_attr_definition
class IterationAttr(Data[BdIteration]):
    """`#aie.bd_iteration<size = 4, stride = 1024, current = 0>`."""

    name = "aie.bd_iteration"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> BdIteration:
        """Read `<size = n, stride = t, current = c>`; `current` is 0 where it is left out."""
        return BdIteration(*parse_record(parser, _ITERATION, {"current": 0}))

    def print_parameter(self, printer: Printer) -> None:
        """Write `<size = n, stride = t, current = c>`."""
        print_record(printer, _ITERATION, self.data)


@irdl_attr_definition
class DimensionAttr(Data[Dimension]):
    """`#aie.bd_dim_layout<size = 4, stride = 8>`."""

    name = "aie.bd_dim_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Dimension:
        """Read `<size = s, stride = t>`."""
        return Dimension(*parse_record(parser, _DIMENSION))

    def print_parameter(self, printer: Printer) -> None:
        """Write `<size = s, stride = t>`."""
        print_record(printer, _DIMENSION, self.data)


@irdl_attr_definition
class PaddingAttr(Data[Padding]):
    """`#aie.bd_pad_layout<const_pad_before = 1, const_pad_after = 0>`."""

    name = "aie.bd_pad_layout"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> Padding:
        """Read `<const_pad_before = p, const_pad_after = q>`."""
        return Padding(*parse_record(parser, _PADDING))

    def print_parameter(self, printer: Printer) -> None:
        """Write `<const_pad_before = p, const_pad_after = q>`."""
        print_record(printer, _PADDING, self.data)


@irdl_attr_definition
class DimensionsAttr(OpaqueSyntaxAttribute, Data[tuple[Dimension, ...]]):
    """`#aie<bd_dim_layout_array[<size = 4, stride = 8>, ...]>`, outermost first."""

    name = "aie.bd_dim_layout_array"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Dimension, ...]:
        """Read the list in square brackets."""
        read = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_record(parser, _DIMENSION))
        return tuple(Dimension(*record) for record in read)

    def print_parameter(self, printer: Printer) -> None:
        """Write the list in square brackets."""
        with printer.in_square_brackets():
            printer.print_list(self.data, lambda record: print_record(printer, _DIMENSION, record))


@irdl_attr_definition
class PaddingsAttr(OpaqueSyntaxAttribute, Data[tuple[Padding, ...]]):
    """`#aie<bd_pad_layout_array[<const_pad_before = 1, const_pad_after = 0>, ...]>`, outermost first."""

    name = "aie.bd_pad_layout_array"

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[Padding, ...]:
        """Read the list in square brackets."""
        read = parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: parse_record(parser, _PADDING))
        return tuple(Padding(*record) for record in read)

    def print_parameter(self, printer: Printer) -> None:
        """Write the list in square brackets."""
        with printer.in_square_brackets():
            printer.print_list(self.data, lambda record: print_record(printer, _PADDING, record))


@irdl_attr_definition
class BlockFloatType(ParametrizedAttribute, TypeAttribute):
    """`!aiex.bfp<"v8bfp16ebs8">`: elements that share an exponent (npu2)."""

    name = "aiex.bfp"
    block_type: StringAttr
