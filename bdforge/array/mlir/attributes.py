"""Attributes and types of the aie and aiex dialects."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import ClassVar, NamedTuple, TypeVar, cast

from xdsl.dialects.builtin import IntegerAttr, StringAttr, i32
from xdsl.ir import Data, OpaqueSyntaxAttribute, ParametrizedAttribute, TypeAttribute
from xdsl.irdl import irdl_attr_definition
from xdsl.parser import AttrParser
from xdsl.printer import Printer

from bdforge.array.mlir.legacy import LEGACY_DIMENSION


@lru_cache(maxsize=4096)
def number(value: int) -> IntegerAttr:
    """An i32 attribute, the dialect's usual integer."""
    return IntegerAttr(value, i32)


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


class RecordAttr(Data[RecordT]):
    """Base of attributes that are a record: `<name = integer, ...>`, however the text orders its fields."""

    RECORD: ClassVar[Callable[..., tuple[int, ...]]]
    FIELDS: ClassVar[tuple[str, ...]]
    """Their names in the text, in the record's order."""
    DEFAULTS: ClassVar[Mapping[str, int]] = {}
    """Values of fields that the text may leave out."""

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> RecordT:
        """Read `<name = integer, ...>`."""
        start = parser.pos
        parser.parse_punctuation("<")
        if "stride" in cls.FIELDS and parser.parse_optional_integer(allow_boolean=False) is not None:
            parser.raise_error(LEGACY_DIMENSION, start)
        values: dict[str, int] = {}
        parser.parse_comma_separated_list(parser.Delimiter.NONE, lambda: _parse_field(parser, cls.FIELDS, values))
        parser.parse_punctuation(">")
        values = {**cls.DEFAULTS, **values}
        if missing := [name for name in cls.FIELDS if name not in values]:
            parser.raise_error(f"'{missing[0]} = ...' is missing", start)
        return cast(RecordT, cls.RECORD(*(values[name] for name in cls.FIELDS)))

    def print_parameter(self, printer: Printer) -> None:
        """Write `<name = integer, ...>`."""
        pairs = zip(self.FIELDS, self.data, strict=True)
        printer.print_string(f"<{', '.join(f'{name} = {value}' for name, value in pairs)}>")


class RecordsAttr(OpaqueSyntaxAttribute, Data[tuple[RecordT, ...]]):
    """Base of attributes that are records in square brackets, outermost dimension first."""

    OF: ClassVar[type[RecordAttr]]

    @classmethod
    def parse_parameter(cls, parser: AttrParser) -> tuple[RecordT, ...]:
        """Read the list in square brackets."""
        return tuple(parser.parse_comma_separated_list(parser.Delimiter.SQUARE, lambda: cls.OF.parse_parameter(parser)))

    def print_parameter(self, printer: Printer) -> None:
        """Write the list in square brackets."""
        with printer.in_square_brackets():
            printer.print_list(self.data, lambda record: self.OF(record).print_parameter(printer))


def _parse_field(parser: AttrParser, fields: Sequence[str], values: dict[str, int]) -> None:
    start = parser.pos
    name = parser.parse_identifier(f"; expected one of {', '.join(fields)}")
    if name not in fields:
        parser.raise_error(f"'{name}' is unknown here; expected one of {', '.join(fields)}", start)
    if name in values:
        parser.raise_error(f"'{name}' is given twice", start)
    parser.parse_punctuation("=")
    values[name] = parser.parse_integer(allow_boolean=False)


@irdl_attr_definition
class PacketInfoAttr(RecordAttr[PacketInfo]):
    """`#aie.packet_info<pkt_type = 0, pkt_id = 3>`."""

    name = "aie.packet_info"
    RECORD, FIELDS = PacketInfo, ("pkt_type", "pkt_id")


@irdl_attr_definition
class IterationAttr(RecordAttr[BdIteration]):
    """`#aie.bd_iteration<size = 4, stride = 1024, current = 0>`."""

    name = "aie.bd_iteration"
    RECORD, FIELDS, DEFAULTS = BdIteration, ("size", "stride", "current"), {"current": 0}


@irdl_attr_definition
class DimensionAttr(RecordAttr[Dimension]):
    """`#aie.bd_dim_layout<size = 4, stride = 8>`."""

    name = "aie.bd_dim_layout"
    RECORD, FIELDS = Dimension, ("size", "stride")


@irdl_attr_definition
class PaddingAttr(RecordAttr[Padding]):
    """`#aie.bd_pad_layout<const_pad_before = 1, const_pad_after = 0>`."""

    name = "aie.bd_pad_layout"
    RECORD, FIELDS = Padding, ("const_pad_before", "const_pad_after")


@irdl_attr_definition
class DimensionsAttr(RecordsAttr[Dimension]):
    """`#aie<bd_dim_layout_array[<size = 4, stride = 8>, ...]>`."""

    name = "aie.bd_dim_layout_array"
    OF = DimensionAttr


@irdl_attr_definition
class PaddingsAttr(RecordsAttr[Padding]):
    """`#aie<bd_pad_layout_array[<const_pad_before = 1, const_pad_after = 0>, ...]>`."""

    name = "aie.bd_pad_layout_array"
    OF = PaddingAttr


@irdl_attr_definition
class BlockFloatType(ParametrizedAttribute, TypeAttribute):
    """`!aiex.bfp<"v8bfp16ebs8">`: elements that share an exponent (npu2)."""

    name = "aiex.bfp"
    block_type: StringAttr
