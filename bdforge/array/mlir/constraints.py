"""Checks of an operation's properties, in words."""

from functools import cache

from xdsl.dialects.builtin import IntegerAttr, IntegerType, UnitAttr, i1, i8, i32, i64
from xdsl.ir import Attribute, Operation
from xdsl.irdl import AttrConstraint, OptionalDef, VerificationContext
from xdsl.utils.exceptions import VerifyException

from bdforge.array.mlir.operation import UNSIGNED8, UNSIGNED32, UNSIGNED64, AieOperation

_INTEGERS = (i1, i8, i32, i64, UNSIGNED8, UNSIGNED32, UNSIGNED64)


def value_problem(kind: type[Operation], name: str, value: Attribute) -> str | None:
    """What is wrong with a value given to a property of an aie or aiex operation, or None."""
    if not issubclass(kind, AieOperation) or name not in _expectations(kind):
        return None
    _, integer, constraint = _expectations(kind)[name]
    if integer is not None:
        fits = isinstance(value, IntegerAttr) and value.type == integer
        return None if fits else f"'{kind.name}': {_integer_problem(name, value, integer)}"
    problem = _constraint_problem(constraint, value)
    return None if problem is None else f"'{kind.name}': '{name}' cannot be {value}: {problem}"


def settle_braces(op: Operation) -> str | None:
    """Let what braces give an aie or aiex operation be its properties; what is given by position too, or None.

    Formats of xDSL take only those properties from the braces that have no position.
    """
    if not op.attributes or not isinstance(op, AieOperation):
        return None
    definitions = op.get_irdl_definition().properties
    for name in [name for name in op.attributes if name in definitions]:
        if op.properties.get(name) != definitions[name].default_value:
            return f"'{name}' is given twice: by position and in braces"
        op.properties[name] = op.attributes.pop(name)
    return None


def missing_problem(op: Operation) -> str | None:
    """Which property an aie or aiex operation lacks, or None."""
    if not isinstance(op, AieOperation):
        return None
    for name, (required, integer, _) in _expectations(type(op)).items():
        if required and name not in op.properties and not (name in op.NUMBERS and op.given_numbers):
            return f"'{op.name}' needs '{name}'" + (f", as in {_example(name, integer)}" if integer else "")
    return None


@cache
def _expectations(kind: type[AieOperation]) -> dict[str, tuple[bool, IntegerType | None, AttrConstraint]]:
    return {
        name: (not isinstance(definition, OptionalDef), _integer_of(definition.constr), definition.constr)
        for name, definition in kind.get_irdl_definition().properties.items()
    }


def _integer_of(constraint: AttrConstraint) -> IntegerType | None:
    """The integer type that a constraint asks for, or None if it asks for something else."""
    fitting = [t for t in _INTEGERS if _constraint_problem(constraint, IntegerAttr(0, t)) is None]
    return fitting[0] if len(fitting) == 1 else None


def _constraint_problem(constraint: AttrConstraint, value: Attribute) -> str | None:
    try:
        constraint.verify(value, VerificationContext())
    except VerifyException as error:
        return str(error).split("\n")[0]
    return None


def _example(name: str, integer: IntegerType) -> str:
    return f"'{name} = true'" if integer == i1 else f"'{name} = 1{'' if integer == i64 else f' : {integer}'}'"


def _integer_problem(name: str, value: Attribute, integer: IntegerType) -> str:
    if isinstance(value, UnitAttr):
        return f"'{name}' needs a value: write {_example(name, integer)}"
    if integer == i1:
        return f"'{name}' must be true or false, not {value}"
    if isinstance(value, IntegerAttr):
        text = str(value.value.data)
        return f"'{name}' must be of type {integer}: write '{name} = {text}{'' if integer == i64 else f' : {integer}'}'"
    return f"'{name}' must be an integer of type {integer}, not {value}"
