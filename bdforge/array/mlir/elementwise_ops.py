"""Operations of the arith dialect that xDSL reads for scalars only: here their operands may be vectors too."""

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, cast

from xdsl.dialects.arith import CMPF_COMPARISON_OPERATIONS, CMPI_COMPARISON_OPERATIONS, FastMathFlagsAttr
from xdsl.dialects.builtin import AnyFloat, IndexType, IntegerAttr, IntegerType, VectorType, i1, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AnyAttr, IRDLOperation, irdl_op_definition, operand_def, prop_def, result_def
from xdsl.parser import Parser
from xdsl.printer import Printer
from xdsl.utils.exceptions import VerifyException

_NO_FAST_MATH = FastMathFlagsAttr("none")


def _element(type_: Attribute) -> Attribute:
    return type_.element_type if isinstance(type_, VectorType) else type_


def _shape(type_: Attribute) -> tuple[int, ...] | None:
    return type_.get_shape() if isinstance(type_, VectorType) else None


def _bools(type_: Attribute) -> Attribute:
    """The type of comparing two values of a type."""
    return VectorType(i1, type_.get_shape()) if isinstance(type_, VectorType) else i1


def _integer(type_: Attribute) -> bool:
    return isinstance(type_, IntegerType)


def _index(type_: Attribute) -> bool:
    return isinstance(type_, IndexType)


def _float(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat)


def _widens(source: Attribute, target: Attribute) -> bool:
    if not isinstance(source, IntegerType) or not isinstance(target, IntegerType):
        return False
    return source.width.data < target.width.data


class ElementwiseCastOp(IRDLOperation):
    """Base of casts between scalars, or between vectors of one shape, of elements that `fits` takes."""

    input = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    @staticmethod
    def fits(source: Attribute, target: Attribute) -> bool:
        """Whether elements of these types may be cast."""
        raise NotImplementedError

    def verify_(self) -> None:
        """Same shapes, and elements that the cast is for."""
        source, target = self.input.type, self.result.type
        if _shape(source) != _shape(target) or not self.fits(_element(source), _element(target)):
            raise VerifyException(f"there is no such cast from {source} to {target}")


_CASTS: Mapping[str, Callable[[Attribute, Attribute], bool]] = {
    **dict.fromkeys(("extsi", "extui"), _widens),
    "trunci": lambda source, target: _widens(target, source),
    **dict.fromkeys(("sitofp", "uitofp"), lambda source, target: _integer(source) and _float(target)),
    **dict.fromkeys(("fptosi", "fptoui"), lambda source, target: _float(source) and _integer(target)),
    **dict.fromkeys(
        ("index_cast", "index_castui"),
        lambda source, target: (_integer(source) and _index(target)) or (_index(source) and _integer(target)),
    ),
}
"""Casts of the dialect, with the elements that each takes and gives."""


def _cast(name: str, fits: Callable[[Attribute, Attribute], bool]) -> type[ElementwiseCastOp]:
    inside = {"name": f"arith.{name}", "fits": staticmethod(fits), "__doc__": ElementwiseCastOp.__doc__}
    return irdl_op_definition(type("CastOp", (ElementwiseCastOp,), inside))


class ComparisonOp(IRDLOperation):
    """Base of comparisons: i1, or a vector of them. WORDS are predicates in the order of their codes."""

    WORDS: ClassVar[Sequence[str]]
    FITS: ClassVar[Callable[[Attribute], bool]]
    """Whether elements of a type can be compared."""
    predicate = prop_def(IntegerAttr)
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    def verify_(self) -> None:
        """Equal types that can be compared, and a known predicate."""
        kind = self.lhs.type
        if self.rhs.type != kind or not type(self).FITS(_element(kind)):
            raise VerifyException(f"values of types {kind} and {self.rhs.type} cannot be compared")
        if self.result.type != _bools(kind):
            raise VerifyException(f"comparing {kind} gives {_bools(kind)}, not {self.result.type}")
        if not 0 <= self.predicate.value.data < len(self.WORDS):
            raise VerifyException(f"there is no predicate {self.predicate.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> "ComparisonOp":
        """Read `predicate, %a, %b fastmath<...> {...} : type`."""
        start = parser.pos
        word = parser.parse_identifier()
        if word not in cls.WORDS:
            parser.raise_error(f"no predicate is called {word}; there is {', '.join(cls.WORDS)}", start)
        parser.parse_punctuation(",")
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        properties: dict[str, Attribute] = {"predicate": IntegerAttr(cls.WORDS.index(word), i64)}
        if cls is CmpfOp and parser.parse_optional_keyword("fastmath"):
            properties["fastmath"] = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        values = parser.resolve_operands(operands, [kind, kind], parser.pos)
        return cls(operands=values, properties=properties, attributes=attributes, result_types=[_bools(kind)])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        printer.print_string(f" {self.WORDS[self.predicate.value.data]}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if isinstance(self, CmpfOp) and (flags := cast(FastMathFlagsAttr, self.fastmath)) != _NO_FAST_MATH:
            printer.print_string(" fastmath")
            flags.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpiOp(ComparisonOp):
    """Compare integers."""

    name = "arith.cmpi"
    WORDS: ClassVar[Sequence[str]] = CMPI_COMPARISON_OPERATIONS
    FITS: ClassVar[Callable[[Attribute], bool]] = staticmethod(lambda element: _integer(element) or _index(element))


@irdl_op_definition
class CmpfOp(ComparisonOp):
    """Compare floats."""

    name = "arith.cmpf"
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FAST_MATH)
    WORDS: ClassVar[Sequence[str]] = CMPF_COMPARISON_OPERATIONS
    FITS: ClassVar[Callable[[Attribute], bool]] = staticmethod(_float)


@irdl_op_definition
class SelectOp(IRDLOperation):
    """One of two values by an i1, or lane by lane by a vector of them."""

    name = "arith.select"
    cond = operand_def(AnyAttr())
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    def verify_(self) -> None:
        """Equal types, and a condition for all or for each lane."""
        kind = self.result.type
        if self.lhs.type != kind or self.rhs.type != kind:
            raise VerifyException(f"selects {kind} from {self.lhs.type} and {self.rhs.type}")
        if self.cond.type not in (i1, _bools(kind)):
            raise VerifyException(f"a condition of type {self.cond.type} does not select {kind}")

    @classmethod
    def parse(cls, parser: Parser) -> "SelectOp":
        """Read `%cond, %a, %b {...} : (type of the condition, if not i1,) type`."""
        operands = [parser.parse_unresolved_operand()]
        for _ in range(2):
            parser.parse_punctuation(",")
            operands.append(parser.parse_unresolved_operand())
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        condition, kind = i1, parser.parse_type()
        if parser.parse_optional_punctuation(","):
            condition, kind = kind, parser.parse_type()
        values = parser.resolve_operands(operands, [condition, kind, kind], parser.pos)
        return cls(operands=values, attributes=attributes, result_types=[kind])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        printer.print_string(" ")
        printer.print_list(self.operands, printer.print_ssa_value)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        if self.cond.type != i1:
            printer.print_attribute(self.cond.type)
            printer.print_string(", ")
        printer.print_attribute(self.result.type)


OPERATIONS: Sequence[type[Operation]] = (
    *(_cast(name, fits) for name, fits in _CASTS.items()),
    CmpiOp,
    CmpfOp,
    SelectOp,
)
"""What stands in for xDSL's operations of the same names."""
