"""What the operations of the aie and aiex dialects share."""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, ClassVar, Self, TypeVar

from xdsl.dialects.arith import ConstantOp
from xdsl.dialects.builtin import I8, I32, I64, IntegerAttr, IntegerType, Signedness, StringAttr, SymbolRefAttr, i32
from xdsl.ir import Data, Operation, SSAValue
from xdsl.irdl import EqAttrConstraint, IRDLOperation, ParsePropInAttrDict, VerificationContext, var_operand_def
from xdsl.utils.exceptions import VerifyException

from bdforge.array.mlir.attributes import number
from bdforge.array.mlir.directives import DIRECTIVES
from bdforge.array.mlir.locations import value_name
from bdforge.array.mlir.operand_directives import OPERAND_DIRECTIVES

Int8, Int32, Int64 = IntegerAttr[I8], IntegerAttr[I32], IntegerAttr[I64]
UNSIGNED32 = IntegerType(32, Signedness.UNSIGNED)
UNSIGNED64 = IntegerType(64, Signedness.UNSIGNED)
UNSIGNED8 = IntegerType(8, Signedness.UNSIGNED)
UInt32 = IntegerAttr.constr(EqAttrConstraint(UNSIGNED32))
UInt64 = IntegerAttr.constr(EqAttrConstraint(UNSIGNED64))
UInt8 = IntegerAttr.constr(EqAttrConstraint(UNSIGNED8))
Bool = IntegerAttr.constr(EqAttrConstraint(IntegerType(1)))


OperationT = TypeVar("OperationT", bound=Operation)


class AieOperation(IRDLOperation):
    """An operation whose properties read as plain Python values.

    NUMBERS are properties that a text of mlir-aie 1.4 gives as operands instead, in this order, behind the others.
    MODERN_NAMES are properties that only texts from then on have, and older tools leave out without a word.
    """

    irdl_options = (ParsePropInAttrDict(),)
    custom_directives = (*DIRECTIVES, *OPERAND_DIRECTIVES)
    NUMBERS: ClassVar[tuple[str, ...]] = ()
    MODERN_NAMES: ClassVar[tuple[str, ...]] = ()

    @property
    def is_modern(self) -> bool | None:
        """Whether it is in the form of mlir-aie 1.4; None where both forms are the same.

        After `fold` it is True only of what the older form cannot say.
        """
        if self.given_numbers or any(name in self.properties for name in self.MODERN_NAMES):
            return True
        return False if self.NUMBERS else None

    @property
    def given_numbers(self) -> Sequence[SSAValue]:
        """Operands that stand for NUMBERS."""
        return [value for value in self.operands if isinstance(value.type, IntegerType)] if self.NUMBERS else ()

    def fold(self) -> None:
        """Turn operands that stand for numbers into properties.

        RuntimeNumber for one that is no constant; ValueError when there are too many, too few or both forms.
        """
        numbers = self.given_numbers
        if not numbers:
            return
        if len(numbers) != len(self.NUMBERS):
            raise ValueError(f"takes {len(self.NUMBERS)} numbers ({', '.join(self.NUMBERS)}), not {len(numbers)}")
        for name, value in zip(self.NUMBERS, numbers, strict=True):
            if name in self.properties:
                raise ValueError(f"'{name}' is given twice: as an operand and as an attribute")
            self.properties[name] = self.constant_property(name, value)
        self.operands = [value for value in self.operands if value not in numbers]

    def unfolded(self, value: Callable[[int], SSAValue]) -> Self:
        """A copy in the form of 1.4, to which `value` gives the operands that stand for its numbers."""
        copy = self.clone()
        if not self.given_numbers:
            copy.operands = [*self.operands, *(value(self.number(name, 1)) for name in self.NUMBERS)]
            for name in self.NUMBERS:
                copy.properties.pop(name, None)
        return copy

    def constant_property(self, name: str, value: SSAValue) -> IntegerAttr:
        """The attribute of an integer property that a constant gives; RuntimeNumber where it is none."""
        constant = constant_of(value)
        if constant is None:
            raise RuntimeNumber(name, value)
        return IntegerAttr(constant % (1 << 32), UNSIGNED32) if _is_unsigned(type(self), name) else number(constant)

    def number(self, name: str, default: Any = None) -> Any:
        """An integer property, or `default` where the text leaves it out."""
        attribute = self.properties.get(name)
        return attribute.value.data if isinstance(attribute, IntegerAttr) else default

    def flag(self, name: str, default: bool = False) -> bool:
        """A boolean property, or `default`."""
        return bool(self.number(name, default))

    def held(self, name: str) -> Any:
        """What an attribute that is data holds, or None."""
        attribute = self.properties.get(name)
        return attribute.data if isinstance(attribute, Data) else None

    def text(self, name: str) -> str | None:
        """A string or flat symbol property, or None."""
        attribute = self.properties.get(name)
        if isinstance(attribute, SymbolRefAttr):
            return attribute.root_reference.data
        return attribute.data if isinstance(attribute, StringAttr) else None


@cache
def _is_unsigned(kind: type[AieOperation], name: str) -> bool:
    """Whether a property is of type ui32, which 1.4 gives as i32 of the same bits."""
    try:
        kind.get_irdl_definition().properties[name].constr.verify(IntegerAttr(0, UNSIGNED32), VerificationContext())
    except VerifyException:
        return False
    return True


class RuntimeNumber(ValueError):
    """A number that only running the design would tell."""

    def __init__(self, name: str, value: SSAValue):
        shown = f"%{known}" if (known := value_name(value)) else "a value"
        super().__init__(f"'{name}' is {shown}, which is no constant")
        self.value = value


def constant_of(value: SSAValue) -> int | None:
    """The integer that an arith.constant gives, or None."""
    owner = value.owner
    if isinstance(owner, ConstantOp) and isinstance(owner.value, IntegerAttr):
        return owner.value.value.data
    return None


def enclosing(op: Operation, kind: type[OperationT]) -> OperationT | None:
    """The nearest operation around `op` that is a `kind`, or None."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, kind):
        parent = parent.parent_op()
    return parent


class NumbersOp(AieOperation):
    """Base of operations whose numbers all stand in braces up to mlir-aie 1.3.4, and in parentheses from 1.4 on."""

    numbers = var_operand_def(i32)
    assembly_format = "(`(` $numbers^ `)`)? attr-dict (`:` type($numbers)^)?"
