"""Float arithmetic and functions. Every result is rounded to its type, to nearest with ties to even; bf16 by the mode
that a core starts in (`core_values.modes`).

Sums, products, quotients and square roots are rounded once. Functions of the math dialect are computed in double
precision and then rounded; the array's own library may differ in the last bit.
"""

import math
from collections.abc import Callable
from fractions import Fraction
from functools import partial

import numpy as np
from xdsl.dialects.builtin import BFloat16Type, Float64Type
from xdsl.ir import Attribute, Operation

from bdforge.emulator.cores.mlir.emit import emits, is_vector, literals, unsupported
from bdforge.emulator.cores.mlir.integers import call_function
from bdforge.emulator.cores.mlir.translation import Translation
from bdforge.emulator.cores.mlir.values import (
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
from bdforge.emulator.errors import CoreError
from bdforge.mlir import elementwise

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


def maximum(a: float, b: float) -> float:
    """The larger; NaN if either is, +0 above -0."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return max(a, b, key=_signed_zero)


def minimum(a: float, b: float) -> float:
    """The smaller; NaN if either is, -0 below +0."""
    if math.isnan(a) or math.isnan(b):
        return math.nan
    return min(a, b, key=_signed_zero)


def _signed_zero(value: float) -> tuple[float, float]:
    return value, math.copysign(1, value)


def _maxima(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`maximum` of lanes; numpy leaves open which of two zeros it takes."""
    return np.where(a == b, np.where(np.signbit(a), b, a), np.maximum(a, b))


def _minima(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """`minimum` of lanes."""
    return np.where(a == b, np.where(np.signbit(a), a, b), np.minimum(a, b))


def larger_number(a: float, b: float) -> float:
    """The larger; the other one if one is NaN."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return maximum(a, b)


def smaller_number(a: float, b: float) -> float:
    """The smaller; the other one if one is NaN."""
    if math.isnan(a) or math.isnan(b):
        return b if math.isnan(a) else a
    return minimum(a, b)


_SIMPLE = {"addf": ("+", np.add), "subf": ("-", np.subtract), "mulf": ("*", np.multiply)}
_CALLED: dict[str, tuple[Callable[[float, float], float], Callable[..., np.ndarray]]] = {
    "divf": (_divide, np.divide), "maximumf": (maximum, _maxima), "minimumf": (minimum, _minima),
    "maxnumf": (larger_number, np.fmax), "minnumf": (smaller_number, np.fmin),
}  # fmt: skip


@emits(*(f"arith.{name}" for name in (*_SIMPLE, *_CALLED)))
def binary(t: Translation, op: Operation) -> None:
    name, type_ = op.name.removeprefix("arith."), element_of(op.results[0].type)
    a, b = literals(t, op.operands)
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
    source, result = op.operands[0], op.results[0]
    function = t.object("F", _FromInteger(element_of(source.type), element_of(result.type), op.name == "arith.sitofp"))
    t.assign(op, f"{function}{'.array' if is_vector(result) else ''}({t.value(source)})")


class _FromInteger:
    def __init__(self, source: Attribute, target: Attribute, signed: bool):
        self.mask, self.sign = (1 << width(source)) - 1, 1 << (width(source) - 1)
        self.target, self.signed = target, signed

    def __call__(self, value: int) -> float:
        bits = int(value) & self.mask
        number = bits - (self.mask + 1) if self.signed and bits & self.sign else bits
        return float_of_int(number, self.target)

    def array(self, values: np.ndarray) -> np.ndarray:
        found = [self(value) for value in values.flat]
        return np.array(found, np.float64).astype(dtype_of_vector(self.target)).reshape(values.shape)


@emits("arith.fptosi", "arith.fptoui")
def to_integer(t: Translation, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    function = t.object("F", _ToInteger(element_of(result.type), op.name == "arith.fptosi"))
    t.assign(op, f"{function}{'.array' if is_vector(result) else ''}({t.value(source)}, {t.where(op)})")


class _ToInteger:
    def __init__(self, target: Attribute, signed: bool):
        bits = width(target)
        self.bits, self.target = bits, target
        self.low, self.high = (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) if signed else (0, (1 << bits) - 1)
        self.kept_low, self.kept_high = range_of(target)

    def __call__(self, value: float, where: Callable[[], str]) -> int:
        number = math.trunc(value) if math.isfinite(value) else None
        if number is None or not self.low <= number <= self.high:
            raise CoreError(f"{value} does not fit {self.target} ({self.low} to {self.high}){where()}")
        return ((number - self.kept_low) & (self.kept_high - self.kept_low)) + self.kept_low

    def array(self, values: np.ndarray, where: Callable[[], str]) -> np.ndarray:
        found = [self(float(value), where) for value in values.flat]
        return np.array(found, dtype_of_vector(self.target)).reshape(values.shape)


@emits("arith.bitcast")
def bitcast(t: Translation, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    t.assign(op, f"{t.object('F', _Bitcast(source.type, result.type))}({t.value(source)})")


class _Bitcast:
    def __init__(self, source: Attribute, target: Attribute):
        self.source, self.target = source, target

    def __call__(self, value):
        if isinstance(value, np.ndarray):
            return of_bytes(bytes_of(value, self.source), self.target)
        return of_bits(bits_of(value, self.source), self.target)


def fused_multiply_add(a: np.ndarray, b: np.ndarray, c: np.ndarray, element: Attribute) -> np.ndarray:
    """a * b + c with one rounding.

    Of narrower types the product is exact in double precision, and the sum is rounded to odd there, so that
    rounding it again to the type is as good as one rounding (Boldo and Melquiond, 2008).
    """
    if isinstance(element, Float64Type):
        return np.vectorize(_fused_double, otypes=[np.float64])(a, b, c)
    a, b, c = (np.asarray(v, np.float64) for v in (a, b, c))
    product = a * b
    total = product + c
    part = total - product
    rest = (product - (total - part)) + (c - part)
    even = (total.view(np.int64) & 1) == 0
    step = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    odd = np.where(np.isfinite(total) & (rest != 0) & even, step, total)
    return round_array(odd, element)


def _fused_double(a: float, b: float, c: float) -> float:
    if not all(map(math.isfinite, (a, b, c))):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c  # the sign of zero
    try:
        return float(exact)
    except OverflowError:
        return math.copysign(math.inf, exact)


def emit_fused(t: Translation, op: Operation) -> None:
    """Multiply and add with one rounding, of scalars or vectors."""
    type_ = element_of(op.results[0].type)
    function = t.object("F", _quietly(partial(fused_multiply_add, element=type_)))
    expression = f"{function}({', '.join(literals(t, op.operands))})"
    t.assign(op, expression if is_vector(op.results[0]) else f"float({expression})")


emits("math.fma")(emit_fused)


def _round_half_away(values: np.ndarray) -> np.ndarray:
    whole = np.trunc(values)
    return np.where(np.abs(values - whole) >= 0.5, whole + np.copysign(1, values), whole)


_erf = np.vectorize(math.erf, otypes=[np.float64])
_FUNCTIONS: dict[str, Callable[..., np.ndarray]] = {
    "absf": np.abs, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atan": np.arctan, "atan2": np.arctan2, "atanh": np.arctanh, "cbrt": np.cbrt, "ceil": np.ceil,
    "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh, "erf": _erf, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "floor": np.floor, "fpowi": np.power, "log": np.log, "log10": np.log10, "log1p": np.log1p,
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
    t.assign(op, f"{call}({', '.join(literals(t, op.operands))}){'' if is_vector(op.results[0]) else '.item()'}")


def _evaluate(wanted: Callable[..., np.ndarray], type_: Attribute, *arguments) -> np.ndarray:
    wide = wanted(*(np.asarray(a, np.float64) for a in arguments))
    return round_array(np.asarray(wide), type_)


def _leading_zeros(bits: int, a: int, where: Callable[[], str]) -> int:
    return bits - a.bit_length()


def _trailing_zeros(bits: int, a: int, where: Callable[[], str]) -> int:
    return (a & -a).bit_length() - 1 if a else bits


def _ones(bits: int, a: int, where: Callable[[], str]) -> int:
    return a.bit_count()


_COUNTS = {"ctlz": _leading_zeros, "cttz": _trailing_zeros, "ctpop": _ones}


@emits(*(f"math.{name}" for name in _COUNTS))
def count(t: Translation, op: Operation) -> None:
    wanted = _COUNTS[op.name.removeprefix("math.")]
    call_function(t, op, partial(wanted, width(op.results[0].type)), reads_unsigned=True)


@emits("math.absi")
def absolute(t: Translation, op: Operation) -> None:
    call_function(t, op, lambda a, where: abs(a), reads_unsigned=False)


@emits("math.ipowi")
def power(t: Translation, op: Operation) -> None:
    modulus = 1 << width(op.results[0].type)
    call_function(t, op, partial(_power, modulus), reads_unsigned=False)


def _power(modulus: int, a: int, b: int, where: Callable[[], str]) -> int:
    if b >= 0:
        return pow(a, b, modulus)
    if a == 0:
        raise CoreError(f"0 to the power {b} has no defined result{where()}")
    return a ** (-b & 1) if abs(a) == 1 else 0
