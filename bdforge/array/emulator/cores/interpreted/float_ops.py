"""Float arithmetic and functions. Every result is rounded to its type, to nearest with ties to even; bf16 by the mode
that a core starts in (`core_values.modes`).

Sums, products, quotients and square roots are rounded once. Functions of the math dialect are computed in double
precision and then rounded; the array's own library may differ in the last bit.
"""

import math
from collections.abc import Callable
from functools import partial

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float64Type, VectorType
from xdsl.ir import Attribute, Operation

from bdforge.array.emulator.cores.interpreted.emit import emits, is_vector, unsupported
from bdforge.array.emulator.cores.interpreted.integer_ops import by_lane
from bdforge.array.emulator.cores.interpreted.number_formats import (
    bits_of,
    bytes_of,
    dtype_of_vector,
    element_of,
    float_of_int,
    is_float,
    of_bits,
    of_bytes,
    range_of,
    round_array,
    rounder,
    width,
)
from bdforge.array.emulator.cores.interpreted.translation import Translation
from bdforge.array.emulator.errors import CoreError
from bdforge.array.mlir import elementwise_ops as elementwise

_quietly = np.errstate(all="ignore")


def vector_function(function: Callable[..., np.ndarray], element: Attribute) -> Callable[..., np.ndarray]:
    """An exactly rounded numpy operation for vectors of `element`; bf16 by way of doubles, which changes no result."""
    if not isinstance(element, BFloat16Type):
        return _quietly(function)
    return _quietly(lambda *arrays: round_array(function(*(a.astype(np.float64) for a in arrays)), element))


def _scalar(t: Translation, type_: Attribute, expression: str) -> str:
    if isinstance(type_, Float64Type):
        return expression
    return f"{t.helper(rounder(type_))}({expression})"


def _divide(a: float, b: float) -> float:
    if b:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _extreme(choose: Callable[..., float], numbers: bool, a: float, b: float) -> float:
    """The larger or smaller, +0 above -0. If one is NaN, the other one where `numbers` are wanted, else NaN."""
    if math.isnan(a) or math.isnan(b):
        return (b if math.isnan(a) else a) if numbers else math.nan
    return choose(a, b, key=lambda value: (value, math.copysign(1, value)))


def _extremes(ufunc: np.ufunc, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`_extreme` of lanes; numpy leaves open which of two zeros it takes."""
    return np.where(a == b, np.where(np.signbit(a) == (ufunc is np.minimum), a, b), ufunc(a, b))


EXTREMES: dict[str, tuple[Callable[[float, float], float], Callable[..., np.ndarray]]] = {
    "maximumf": (partial(_extreme, max, False), partial(_extremes, np.maximum)),
    "minimumf": (partial(_extreme, min, False), partial(_extremes, np.minimum)),
    "maxnumf": (partial(_extreme, max, True), np.fmax), "minnumf": (partial(_extreme, min, True), np.fmin),
}  # fmt: skip
_SIMPLE = {"addf": ("+", np.add), "subf": ("-", np.subtract), "mulf": ("*", np.multiply)}
_CALLED = {"divf": (_divide, np.divide), **EXTREMES}


@emits(*(f"arith.{name}" for name in (*_SIMPLE, *_CALLED)))
def binary(t: Translation, op: Operation) -> None:
    name, type_ = op.name.removeprefix("arith."), element_of(op.results[0].type)
    a, b = t.values(op.operands)
    if name == "addf" and isinstance(type_, BFloat16Type) and not t.core.array.strictness.permits("start-modes"):
        a = f"({a} + 0.0)"  # -0 and -0 give +0 there
    if is_vector(op.results[0]):
        function = (_SIMPLE.get(name) or _CALLED[name])[1]
        t.assign(op, f"{t.object('F', vector_function(function, type_))}({a}, {b})")
    elif name in _SIMPLE:
        t.assign(op, _scalar(t, type_, f"{a} {_SIMPLE[name][0]} {b}"))
    else:
        t.assign(op, _scalar(t, type_, f"{t.helper(_CALLED[name][0])}({a}, {b})"))


@emits("arith.negf")
def negate(t: Translation, op: Operation) -> None:
    t.assign(op, f"-{t.value(op.operands[0])}")


_ORDERED = "({a} == {a}) & ({b} == {b})"
# predicates by code: an expression, and whether it is negated (so that NaN makes the comparison true)
_COMPARISONS = (
    ("({a} != {a}) & ({a} == {a})", False), ("{a} == {b}", False), ("{a} > {b}", False), ("{a} >= {b}", False),
    ("{a} < {b}", False), ("{a} <= {b}", False), ("({a} < {b}) | ({a} > {b})", False), (_ORDERED, False),
    ("({a} < {b}) | ({a} > {b})", True), ("{a} <= {b}", True), ("{a} < {b}", True), ("{a} >= {b}", True),
    ("{a} > {b}", True), ("{a} == {b}", True), (_ORDERED, True), ("({a} != {a}) & ({a} == {a})", True),
)  # fmt: skip


@emits("arith.cmpf")
def compare(t: Translation, op: elementwise.CmpfOp) -> None:
    expression, negated = _COMPARISONS[op.predicate.value.data]
    text = expression.format(a=t.value(op.lhs), b=t.value(op.rhs))
    if is_vector(op.lhs):
        t.assign(op, f"~({text})" if negated else text)
    else:
        t.assign(op, f"int(not ({text}))" if negated else f"int({text})")


@emits("arith.extf", "arith.truncf")
def resize(t: Translation, op: Operation) -> None:
    if "roundingmode" in op.properties or "roundingmode" in op.attributes:
        raise unsupported(op, "rounding modes other than to nearest, ties to even, are not supported")
    value, type_ = t.value(op.operands[0]), element_of(op.results[0].type)
    if is_vector(op.results[0]):
        t.assign(op, f"{t.object('F', _quietly(partial(round_array, element=type_)))}({value})")
    else:
        t.assign(op, value if op.name == "arith.extf" else _scalar(t, type_, value))


@emits("arith.sitofp", "arith.uitofp")
def from_integer(t: Translation, op: Operation) -> None:
    bits, target = width(op.operands[0].type), element_of(op.results[0].type)
    _convert(t, op, partial(_float_of, bits, op.name == "arith.sitofp", target))


def _convert(t: Translation, op: Operation, function: Callable) -> None:
    """The result is `function` of the operand, or of each lane of it, and of the place."""
    result = op.results[0]
    if is_vector(result):
        function = by_lane(function, dtype_of_vector(element_of(result.type)))
    t.assign(op, f"{t.object('F', function)}({t.value(op.operands[0])}, {t.where(op)})")


def _float_of(bits: int, signed: bool, target: Attribute, value: int, _: Callable[[], str]) -> float:
    number = int(value) & ((1 << bits) - 1)
    return float_of_int(number - (1 << bits) if signed and number >> (bits - 1) else number, target)


@emits("arith.fptosi", "arith.fptoui")
def to_integer(t: Translation, op: Operation) -> None:
    _convert(t, op, _to(element_of(op.results[0].type), op.name == "arith.fptosi"))


def _to(target: Attribute, signed: bool) -> Callable[[float, Callable[[], str]], int]:
    """What casts floats to integers of a type; CoreError for those that do not fit."""
    bits = width(target)
    low, high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
    kept_low, kept_high = range_of(target)

    def cast(value: float, where: Callable[[], str]) -> int:
        number = math.trunc(value) if math.isfinite(value) else None
        if number is None or not low <= number <= high:
            raise CoreError(f"{value} does not fit {target} ({low} to {high}){where()}")
        return ((number - kept_low) & (kept_high - kept_low)) + kept_low

    return cast


@emits("arith.bitcast", "vector.bitcast")
def bitcast(t: Translation, op: Operation) -> None:
    function = partial(_same_bits, op.operands[0].type, op.results[0].type)
    t.assign(op, f"{t.object('F', function)}({t.value(op.operands[0])})")


def _same_bits(source: Attribute, target: Attribute, value):
    if isinstance(source, VectorType):
        return of_bytes(bytes_of(value, source), target)
    return of_bits(bits_of(value, source), target)


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, element: Attribute) -> np.ndarray:
    """a * b + c with one rounding.

    Of narrower types the product is exact in double precision, and the sum is rounded to odd there, so that
    rounding it again to the type is as good as one rounding (Boldo and Melquiond, 2008).
    """
    a, b, c = (np.asarray(v, np.float64) for v in (a, b, c))
    product = a * b
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part)
    even = (total.view(np.int64) & 1) == 0
    step = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    odd = np.where(np.isfinite(total) & (rest != 0) & even, step, total)
    return round_array(odd, element)


@emits("math.fma", "vector.fma")
def fused(t: Translation, op: Operation) -> None:
    """Multiply and add with one rounding, of scalars or vectors."""
    type_ = element_of(op.results[0].type)
    if isinstance(type_, Float64Type):
        raise unsupported(op, "of f64 it is not supported: the exact product needs more than a double")
    function = t.object("F", _quietly(partial(fused_multiply_add, element=type_)))
    expression = f"{function}({', '.join(t.values(op.operands))})"
    t.assign(op, expression if is_vector(op.results[0]) else f"float({expression})")


def _round_half_away(values: np.ndarray) -> np.ndarray:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1, values), whole)


_erf = np.vectorize(math.erf, otypes=[np.float64])
_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "absf": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "erf": _erf, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p,
    "log2": np.log2, "powf": np.power, "round": _round_half_away, "roundeven": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x), "sin": np.sin, "sinh": np.sinh, "sqrt": np.sqrt, "tan": np.tan,
    "tanh": np.tanh, "trunc": np.trunc,
}  # fmt: skip


@emits(*(f"math.{name}" for name in _FUNCTIONS))
def function(t: Translation, op: Operation) -> None:
    type_ = element_of(op.results[0].type)
    if not is_float(type_):
        raise unsupported(op, f"values of type {type_} are not supported")
    wanted = _FUNCTIONS[op.name.removeprefix("math.")]
    call = t.object("F", _quietly(partial(_evaluate, wanted, type_)))
    t.assign(op, f"{call}({', '.join(t.values(op.operands))}){'' if is_vector(op.results[0]) else '.item()'}")


def _evaluate(wanted: Callable[..., np.ndarray], type_: Attribute, *arguments) -> np.ndarray:
    wide = wanted(*(np.asarray(a, np.float64) for a in arguments))
    return round_array(np.asarray(wide), type_)
