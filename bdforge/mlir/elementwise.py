"""Operations of the arith dialect that xDSL reads for scalars only: here their operands may be vectors too."""

from collections.abc import Sequence

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


def _bits(type_: Attribute) -> int:
    return type_.width.data if isinstance(type_, IntegerType) else 0


def _index(type_: Attribute) -> bool:
    return isinstance(type_, IndexType)


def _float(type_: Attribute) -> bool:
    return isinstance(type_, AnyFloat)


class ElementwiseCastOp(IRDLOperation):
    """Base of casts between scalars, or between vectors of one shape."""

    input = operand_def(AnyAttr())
    result = result_def(AnyAttr())
    assembly_format = "$input attr-dict `:` type($input) `to` type($result)"

    def fits(self, source: Attribute, target: Attribute) -> bool:
        """Whether elements of these types may be cast."""
        raise NotImplementedError

    def verify_(self) -> None:
        """Same shapes, and elements that the cast is for."""
        source, target = self.input.type, self.result.type
        if _shape(source) != _shape(target) or not self.fits(_element(source), _element(target)):
            raise VerifyException(f"there is no such cast from {source} to {target}")


class _ExtendOp(ElementwiseCastOp):
    def fits(self, source: Attribute, target: Attribute) -> bool:
        """From a narrower to a wider integer."""
        return _integer(source) and _integer(target) and _bits(source) < _bits(target)


class _ToFloatOp(ElementwiseCastOp):
    def fits(self, source: Attribute, target: Attribute) -> bool:
        """From an integer to a float."""
        return _integer(source) and _float(target)


class _ToIntegerOp(ElementwiseCastOp):
    def fits(self, source: Attribute, target: Attribute) -> bool:
        """From a float to an integer."""
        return _float(source) and _integer(target)


class _IndexOp(ElementwiseCastOp):
    def fits(self, source: Attribute, target: Attribute) -> bool:
        """Between index and an integer."""
        return (_integer(source) and _index(target)) or (_index(source) and _integer(target))


@irdl_op_definition
class ExtSIOp(_ExtendOp):
    """A wider integer with the same signed value."""

    name = "arith.extsi"


@irdl_op_definition
class ExtUIOp(_ExtendOp):
    """A wider integer with the same unsigned value."""

    name = "arith.extui"


@irdl_op_definition
class TruncIOp(ElementwiseCastOp):
    """The lower bits."""

    name = "arith.trunci"

    def fits(self, source: Attribute, target: Attribute) -> bool:
        """From a wider to a narrower integer."""
        return _integer(source) and _integer(target) and _bits(source) > _bits(target)


@irdl_op_definition
class SIToFPOp(_ToFloatOp):
    """The float nearest to a signed integer."""

    name = "arith.sitofp"


@irdl_op_definition
class UIToFPOp(_ToFloatOp):
    """The float nearest to an unsigned integer."""

    name = "arith.uitofp"


@irdl_op_definition
class FPToSIOp(_ToIntegerOp):
    """A float cut to a signed integer."""

    name = "arith.fptosi"


@irdl_op_definition
class FPToUIOp(_ToIntegerOp):
    """A float cut to an unsigned integer."""

    name = "arith.fptoui"


@irdl_op_definition
class IndexCastOp(_IndexOp):
    """Signed integer to index, or back."""

    name = "arith.index_cast"


@irdl_op_definition
class IndexCastUiOp(_IndexOp):
    """Unsigned integer to index, or back."""

    name = "arith.index_castui"


class ComparisonOp(IRDLOperation):
    """Base of comparisons: i1, or a vector of them."""

    predicate = prop_def(IntegerAttr)
    lhs = operand_def(AnyAttr())
    rhs = operand_def(AnyAttr())
    result = result_def(AnyAttr())

    @classmethod
    def words(cls) -> Sequence[str]:
        """Predicates in the order of their codes."""
        raise NotImplementedError

    @classmethod
    def fits(cls, element: Attribute) -> bool:
        """Whether elements of this type can be compared."""
        raise NotImplementedError

    def verify_(self) -> None:
        """Equal types that can be compared, and a known predicate."""
        kind = self.lhs.type
        if self.rhs.type != kind or not self.fits(_element(kind)):
            raise VerifyException(f"values of types {kind} and {self.rhs.type} cannot be compared")
        if self.result.type != _bools(kind):
            raise VerifyException(f"comparing {kind} gives {_bools(kind)}, not {self.result.type}")
        if not 0 <= self.predicate.value.data < len(self.words()):
            raise VerifyException(f"there is no predicate {self.predicate.value.data}")

    @classmethod
    def parse(cls, parser: Parser) -> "ComparisonOp":
        """Read `predicate, %a, %b fastmath<...> {...} : type`."""
        start = parser.pos
        word = parser.parse_identifier()
        if word not in cls.words():
            parser.raise_error(f"no predicate is called {word}; there is {', '.join(cls.words())}", start)
        parser.parse_punctuation(",")
        operands = [parser.parse_unresolved_operand()]
        parser.parse_punctuation(",")
        operands.append(parser.parse_unresolved_operand())
        properties: dict[str, Attribute] = {"predicate": IntegerAttr(cls.words().index(word), i64)}
        if cls is CmpfOp and parser.parse_optional_keyword("fastmath"):
            properties["fastmath"] = FastMathFlagsAttr(FastMathFlagsAttr.parse_parameter(parser))
        attributes = parser.parse_optional_attr_dict()
        parser.parse_punctuation(":")
        kind = parser.parse_type()
        values = parser.resolve_operands(operands, [kind, kind], parser.pos)
        return cls(operands=values, properties=properties, attributes=attributes, result_types=[_bools(kind)])

    def print(self, printer: Printer) -> None:
        """Write the custom form."""
        printer.print_string(f" {self.words()[self.predicate.value.data]}, ")
        printer.print_list(self.operands, printer.print_ssa_value)
        if isinstance(self, CmpfOp) and self.fastmath != _NO_FAST_MATH:
            printer.print_string(" fastmath")
            self.fastmath.print_parameter(printer)
        printer.print_op_attributes(self.attributes)
        printer.print_string(" : ")
        printer.print_attribute(self.lhs.type)


@irdl_op_definition
class CmpiOp(ComparisonOp):
    """Compare integers."""

    name = "arith.cmpi"

    @classmethod
    def words(cls) -> Sequence[str]:
        """Predicates in the order of their codes."""
        return CMPI_COMPARISON_OPERATIONS

    @classmethod
    def fits(cls, element: Attribute) -> bool:
        """Integers and index."""
        return _integer(element) or _index(element)


@irdl_op_definition
class CmpfOp(ComparisonOp):
    """Compare floats."""

    name = "arith.cmpf"
    fastmath = prop_def(FastMathFlagsAttr, default_value=_NO_FAST_MATH)

    @classmethod
    def words(cls) -> Sequence[str]:
        """Predicates in the order of their codes."""
        return CMPF_COMPARISON_OPERATIONS

    @classmethod
    def fits(cls, element: Attribute) -> bool:
        """Floats."""
        return _float(element)


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
    ExtSIOp, ExtUIOp, TruncIOp, SIToFPOp, UIToFPOp, FPToSIOp, FPToUIOp, IndexCastOp, IndexCastUiOp,
    CmpiOp, CmpfOp, SelectOp,
)  # fmt: skip
"""What stands in for xDSL's operations of the same names."""
