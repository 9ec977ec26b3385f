"""Parts of assembly formats with operands: numbers that may be values, and memory with what it holds at first."""

from xdsl.dialects.builtin import (
    DenseArrayBase,
    DenseIntOrFPElementsAttr,
    IntegerAttr,
    MemRefType,
    TensorType,
    UnitAttr,
)
from xdsl.dialects.utils import DynamicIndexList
from xdsl.ir import Attribute
from xdsl.irdl import IRDLOperation
from xdsl.irdl.declarative_assembly_format import (
    AttributeVariable,
    CustomDirective,
    FormatDirective,
    OptionalOperandVariable,
    ParsingState,
    PrintingState,
    TypeDirective,
    VariadicOperandVariable,
    irdl_custom_directive,
)
from xdsl.parser import Parser, UnresolvedOperand
from xdsl.printer import Printer

from bdforge.array.mlir.attributes import number
from bdforge.array.mlir.dense import is_dense
from bdforge.array.mlir.directives import parse_word
from bdforge.array.mlir.enums import Blocking

MEMCPY_DIMS = 4


@irdl_custom_directive
class IntegerOrValue(CustomDirective):
    """A number, which from 1.4 on may be an operand."""

    attribute: AttributeVariable
    operands: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read either."""
        operand = parser.parse_optional_unresolved_operand()
        if operand is None:
            self.attribute.set(state, number(parser.parse_integer(allow_boolean=False)))
        self.operands.set(state, [] if operand is None else [operand])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write what is there."""
        (self.operands if self.operands.get(op) else self.attribute).print(printer, state, op)


@irdl_custom_directive
class AmountAndBlocking(CustomDirective):
    """`, value, blocking`, each of which may be missing."""

    value: AttributeVariable
    amount: OptionalOperandVariable
    blocking: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read what there is."""
        operand = value = None
        if more := parser.parse_optional_punctuation(","):
            if (operand := parser.parse_optional_unresolved_operand()) is None:
                value = parser.parse_optional_integer(allow_boolean=False)
            more = operand is value or parser.parse_optional_punctuation(",")
        self.amount.set(state, operand)
        if value is not None:
            self.value.set(state, number(value))
        if more:
            self.blocking.set(state, number(parse_word(parser, Blocking).code))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write what there is."""
        amount = self.value if self.amount.get(op) is None else self.amount
        if amount.is_present(op):
            printer.print_string(",")
            amount.print(printer, state, op)
        if isinstance(blocking := self.blocking.get(op), IntegerAttr):
            printer.print_string(f", {Blocking.from_code(blocking.value.data)}")


@irdl_custom_directive
class BdAndRepeat(CustomDirective):
    """` bd_id %b repeat %n` from 1.4 on."""

    numbers: VariadicOperandVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read both, or neither."""
        operands = []
        if parser.parse_optional_keyword("bd_id"):
            operands.append(parser.parse_unresolved_operand())
            parser.parse_keyword("repeat")
            operands.append(parser.parse_unresolved_operand())
        self.numbers.set(state, operands)

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write both, or neither."""
        for label, value in zip((" bd_id ", " repeat "), self.numbers.get(op), strict=False):
            printer.print_string(label)
            printer.print_ssa_value(value)


@irdl_custom_directive
class PatchSources(CustomDirective):
    """`(%plus : i32)` from 1.4 on, and ` buffer %a : type` in the newest form."""

    sources: VariadicOperandVariable
    types: TypeDirective

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read what there is."""
        found = parser.parse_optional_comma_separated_list(parser.Delimiter.PAREN, lambda: _typed_operand(parser))
        if found is not None and parser.parse_optional_keyword("buffer"):
            found.append(_typed_operand(parser))
        self.sources.set(state, [operand for operand, _ in found or ()])
        self.types.set(state, [kind for _, kind in found or ()])

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write the number, if any: only the newest form names a buffer, which nothing is converted to."""
        for value in self.sources.get(op):
            with printer.in_parens():
                printer.print_ssa_value(value)
                printer.print_string(" : i32")


def _typed_operand(parser: Parser) -> tuple[UnresolvedOperand, Attribute]:
    operand = parser.parse_unresolved_operand()
    parser.parse_punctuation(":")
    return operand, parser.parse_type()


@irdl_custom_directive
class FourEntries(DynamicIndexList):
    """A list `[0, 0, %a, 0]`, of which there must be four."""

    dynamic_position: VariadicOperandVariable
    static_position: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read it."""
        start = parser.pos
        super().parse(parser, state)
        static = state.properties[self.static_position.name]
        assert isinstance(static, DenseArrayBase)
        if len(static) != MEMCPY_DIMS:
            what = self.static_position.name.removeprefix("static_")
            hint = "; the form with three strides was dropped, add the innermost stride 1" if what == "strides" else ""
            parser.raise_error(f"expected {MEMCPY_DIMS} {what}, outermost first, got {len(static)}{hint}", start)


def _parse_initial_value(parser: Parser, tensor: TensorType) -> Attribute:
    """Read `dense<...>`, whose type the memref gives; a trailing `: tensor<...>` is allowed."""
    start = parser.pos
    if parser.parse_optional_keyword("dense") is None:
        value = parser.parse_attribute()
        if not isinstance(value, DenseIntOrFPElementsAttr):
            parser.raise_error("an initial value is dense<...>", start)
        return value
    if not is_dense(tensor):
        parser.raise_error(f"there are no constants of type {tensor.element_type}", start)
    value = parser.parse_dense_int_or_fp_elements_attr(tensor)
    if parser.parse_optional_punctuation(":"):
        start = parser.pos
        if parser.parse_type() != tensor:
            parser.raise_error(f"the initial value's type must be {tensor}", start)
    return value


@irdl_custom_directive
class TypeAndValue(CustomDirective):
    """`memref<...> = dense<...>` of a buffer or a global, which may be `= uninitialized`."""

    type: FormatDirective
    value: AttributeVariable

    def parse(self, parser: Parser, state: ParsingState) -> None:
        """Read both; the value may be missing."""
        start = parser.pos
        kind, is_buffer = parser.parse_type(), isinstance(self.type, TypeDirective)
        if not isinstance(kind, MemRefType):
            parser.raise_error(f"a {'buffer' if is_buffer else 'global'} is a memref with a shape, not {kind}", start)
        if isinstance(self.type, TypeDirective):
            self.type.set(state, [kind])
        elif isinstance(self.type, AttributeVariable):
            self.type.set(state, kind)
        if not parser.parse_optional_punctuation("="):
            return
        unset = not is_buffer and parser.parse_optional_keyword("uninitialized")
        tensor = TensorType(kind.element_type, kind.get_shape())
        self.value.set(state, UnitAttr() if unset else _parse_initial_value(parser, tensor))

    def print(self, printer: Printer, state: PrintingState, op: IRDLOperation) -> None:
        """Write both."""
        self.type.print(printer, state, op)
        value = self.value.get(op)
        if isinstance(value, DenseIntOrFPElementsAttr):
            printer.print_string(" = ")
            value.print_without_type(printer)
        elif value is not None:
            printer.print_string(" = uninitialized")


OPERAND_DIRECTIVES = (IntegerOrValue, AmountAndBlocking, BdAndRepeat, PatchSources, FourEntries, TypeAndValue)
