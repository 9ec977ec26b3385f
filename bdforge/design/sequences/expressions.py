"""Integer expressions of problem sizes and loop counters, as sequence programs hold them.

Values are integers of 64 bits. Comparisons give 0 or 1. `//` and `%` round down, their divisors must be positive.
`divisor(n, most)` is the largest divisor of n that is no greater than `most`, 0 where n or `most` is below 1;
`most` may be at most DIVISOR_MAX.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import reduce
from operator import index
from typing import Union

from bdforge.common.messages import InputError, clip

LEAST, LARGEST = -(1 << 63), (1 << 63) - 1
DIVISOR_MAX = 1 << 12
"""The largest divisor that is looked for, and what that costs of a run's budget."""

Operand = Union["Expr", int]


class ProgramError(InputError):
    """A sequence program that cannot run: malformed, beyond its budget, or with values that nothing can hold."""


class ExpressionError(ValueError):
    """A division by zero or below, a search for a divisor that is too long, or a value of more than 64 bits."""


def _floordiv(a: int, b: int) -> int:
    return a // _positive(b)


def _ceildiv(a: int, b: int) -> int:
    return -(-a // _positive(b))


def _mod(a: int, b: int) -> int:
    return a % _positive(b)


def _positive(divisor: int) -> int:
    if divisor < 1:
        raise ExpressionError(f"a divisor is {divisor}; it must be at least 1")
    return divisor


def _divisor(n: int, most: int) -> int:
    if most > DIVISOR_MAX:
        raise ExpressionError(f"a divisor up to {most} is looked for; at most {DIVISOR_MAX} can be")
    return next((d for d in range(min(n, most), 0, -1) if n % d == 0), 0)


Operation = Callable[..., int]

OPERATIONS: Mapping[str, tuple[int, Operation]] = {
    "add": (2, lambda a, b: a + b),
    "sub": (2, lambda a, b: a - b),
    "mul": (2, lambda a, b: a * b),
    "floordiv": (2, _floordiv),
    "ceildiv": (2, _ceildiv),
    "mod": (2, _mod),
    "min": (2, min),
    "max": (2, max),
    "lt": (2, lambda a, b: int(a < b)),
    "le": (2, lambda a, b: int(a <= b)),
    "eq": (2, lambda a, b: int(a == b)),
    "select": (3, lambda condition, a, b: a if condition else b),
    "divisor": (2, _divisor),
}
"""Number of operands and meaning of every operation."""


def apply(operation: str, *operands: int) -> int:
    """The value of an operation; ExpressionError for a divisor below 1 and for values of more than 64 bits."""
    value = OPERATIONS[operation][1](*operands)
    if not LEAST <= value <= LARGEST:
        raise ExpressionError(f"{operation} of {', '.join(map(str, operands))} needs more than 64 bits")
    return value


def _operator(operation: str, *, swapped: bool = False) -> "Callable[[Expr, Operand], Expr]":
    """An operator of Python's between expressions."""
    return lambda one, other: operate(operation, *((other, one) if swapped else (one, other)))


@dataclass(frozen=True, slots=True)
class Expr:
    """A constant ("constant", value), a parameter ("parameter", name), a counter ("index", loop) or an operation.

    Operators of Python build larger ones; what is constant is computed at once.
    """

    operation: str
    operands: tuple
    _hash: int = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.operation, self.operands)))

    def __hash__(self) -> int:
        return self._hash  # computed once: expressions share their parts, over and over

    __add__, __radd__ = _operator("add"), _operator("add", swapped=True)
    __sub__, __rsub__ = _operator("sub"), _operator("sub", swapped=True)
    __mul__, __rmul__ = _operator("mul"), _operator("mul", swapped=True)
    __floordiv__, __mod__ = _operator("floordiv"), _operator("mod")
    __lt__, __gt__ = _operator("lt"), _operator("lt", swapped=True)
    __le__, __ge__ = _operator("le"), _operator("le", swapped=True)

    def equals(self, other: Operand) -> "Expr":
        """1 where both are the same. (`==` compares expressions, not their values.)"""
        return operate("eq", self, other)

    def __invert__(self) -> "Expr":
        return operate("sub", 1, self)

    def __bool__(self) -> bool:
        raise TypeError(
            "an expression has no truth before it is run; use select or Builder.when, least, largest, all_of, any_of"
        )

    @property
    def constant(self) -> int | None:
        """The value of a constant."""
        return self.operands[0] if self.operation == "constant" else None


def expression(value: Operand) -> Expr:
    """`value` as an expression; ProgramError for what is no integer."""
    if isinstance(value, Expr):
        return value
    try:
        return Expr("constant", (index(value),))
    except TypeError:
        raise ProgramError(f"{clip(repr(value))} is no integer; sequence programs compute with integers") from None


def operate(operation: str, *operands: Operand) -> Expr:
    """An operation, or its value where that is known."""
    given = tuple(map(expression, operands))
    values = [operand.constant for operand in given]
    if all(value is not None for value in values):
        return expression(apply(operation, *values))  # type: ignore[arg-type]
    kept = _neutral(operation, given, values)
    return Expr(operation, given) if kept is None else kept


def _neutral(operation: str, given: tuple[Expr, ...], values: list[int | None]) -> Expr | None:
    """The operand that an operation leaves as it is, such as a of a * 1."""
    match operation, values[0], values[-1]:
        case ("add" | "sub", _, 0) | ("mul" | "floordiv" | "ceildiv", _, 1):
            return given[0]
        case ("add", 0, _) | ("mul", 1, _):
            return given[1]
        case ("mul", 0, _) | ("mul", _, 0) | ("mod", _, 1):
            return expression(0)
        case "select", int(condition), _:
            return given[1 if condition else 2]
        case _:
            return given[1] if operation == "select" and given[1] == given[2] else None


def evaluate(value: Operand, parameters: Mapping[str, int]) -> int:
    """The value of an expression without counters; ExpressionError as `apply`."""
    known: dict[Expr, int] = {}

    def of(found: Expr) -> int:
        if found not in known:
            operands = found.operands
            match found.operation:
                case "constant":
                    known[found] = operands[0]
                case "parameter":
                    known[found] = parameters[operands[0]]
                case operation:
                    known[found] = apply(operation, *map(of, operands))
        return known[found]

    return of(expression(value))


def ceildiv(a: Operand, b: Operand) -> Expr:
    """a / b, rounded up."""
    return operate("ceildiv", a, b)


def least(first: Operand, *others: Operand) -> Expr:
    """The smallest."""
    return reduce(lambda a, b: operate("min", a, b), others, expression(first))


def largest(first: Operand, *others: Operand) -> Expr:
    """The largest."""
    return reduce(lambda a, b: operate("max", a, b), others, expression(first))


def select(condition: Operand, then: Operand, otherwise: Operand) -> Expr:
    """`then` where the condition is not 0. Both are computed."""
    return operate("select", condition, then, otherwise)


def divisor(n: Operand, most: Operand) -> Expr:
    """The largest divisor of n up to `most`."""
    return operate("divisor", n, most)


def all_of(*conditions: Operand) -> Expr:
    """1 where all conditions (0 or 1) hold."""
    return reduce(lambda a, b: operate("mul", a, b), conditions, expression(1))


def any_of(*conditions: Operand) -> Expr:
    """1 where at least one condition (0 or 1) holds."""
    open_ = [condition for condition in map(expression, conditions) if condition.constant != 0]
    return reduce(lambda a, b: operate("max", a, b), open_) if open_ else expression(0)
