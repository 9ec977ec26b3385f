"""Float arithmetic of core programs against numpy, whose operations round to the type too."""

import math
import operator
from collections.abc import Callable, Mapping
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import BFloat16Type, IntegerType

from bdforge.array.emulator import CoreError
from bdforge.array.emulator.cores.interpreted.float_ops import _to
from bdforge.array.emulator.cores.interpreted.number_formats import bits_of_bf16, modes, round_array, round_bf16
from support.core_bodies import Bf16, bf16, computed, widened
from support.differences import same

EDGES = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-3, 1e30, -1e30, 65504.0, 6e-8, math.inf, -math.inf, math.nan, 1 / 3, 1e-40, 2.0]
TYPES = ["f16", "bf16", "f32", "f64"]
DTYPES = {"f16": np.float16, "f32": np.float32, "f64": np.float64}


def encoded(values, kind: str) -> np.ndarray:
    with np.errstate(over="ignore"):
        return bf16(values) if kind == "bf16" else np.asarray(values, np.float64).astype(DTYPES[kind])


def decoded(array: np.ndarray, kind: str) -> np.ndarray:
    return widened(array) if kind == "bf16" else array


def pairs(kind: str) -> tuple[np.ndarray, np.ndarray]:
    return encoded([x for x in EDGES for _ in EDGES], kind), encoded([y for _ in EDGES for y in EDGES], kind)


VECTOR = pytest.mark.parametrize("vector", [False, True], ids=["scalar", "vector"])


def zeros(count: int, kind: str) -> np.ndarray:
    return encoded(np.zeros(count), kind)


NUMPY = {
    "addf": np.add,
    "subf": np.subtract,
    "mulf": np.multiply,
    "divf": np.divide,
    "maximumf": np.maximum,
    "minimumf": np.minimum,
    "maxnumf": np.fmax,
    "minnumf": np.fmin,
}


@VECTOR
@pytest.mark.parametrize("kind", TYPES)
def test_float_operations_round_to_their_type(kind, vector):
    x, y = pairs(kind)
    results = dict.fromkeys(NUMPY, zeros(len(x), kind))
    got = computed(
        lambda of: [f"%{name} = arith.{name} %x, %y : {of(kind)}" for name in NUMPY], {"x": x, "y": y}, results, vector
    )
    for name, function in NUMPY.items():
        with np.errstate(all="ignore"):
            expected = function(decoded(x, kind), decoded(y, kind))
        same(decoded(got[name], kind), widened(bf16(expected)) if kind == "bf16" else expected, name)


@VECTOR
@pytest.mark.parametrize("kind", TYPES)
def test_zeros_have_an_order(kind: str, vector: bool):
    """arith.maximumf and minimumf take -0 as less than +0, whichever comes first."""
    x, y = (encoded(values * 2, kind) for values in ([0.0, 0.0, -0.0, -0.0], [0.0, -0.0, 0.0, -0.0]))
    names = ("maximumf", "minimumf")
    results = {name: encoded(np.ones(8), kind) for name in names}
    got = computed(
        lambda of: [f"%{name} = arith.{name} %x, %y : {of(kind)}" for name in names], {"x": x, "y": y}, results, vector
    )
    of_x, of_y, most, least = (np.signbit(decoded(values, kind)) for values in (x, y, *(got[n] for n in names)))
    same(most, of_x & of_y)
    same(least, of_x | of_y)
    assert not decoded(got["maximumf"], kind).any()


ORDERED = {
    "eq": operator.eq, "gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le, "ne": operator.ne,
}  # fmt: skip
PREDICATES: dict[str, Callable[[float, float], bool]] = {
    "false": lambda x, y: False, "true": lambda x, y: True, "ord": lambda x, y: x == x and y == y,
    "uno": lambda x, y: x != x or y != y,
    **{f"o{name}": lambda x, y, of=of: x == x and y == y and of(x, y) for name, of in ORDERED.items()},
    **{f"u{name}": lambda x, y, of=of: x != x or y != y or of(x, y) for name, of in ORDERED.items()},
}  # fmt: skip


@VECTOR
def test_comparisons_tell_ordered_from_unordered(vector):
    x, y = pairs("f32")
    lines = [(f"%b_{n} = arith.cmpf {n}, %x, %y", f"%{n} = arith.extui %b_{n}") for n in PREDICATES]
    got = computed(
        lambda of: (f"{a} : {of('f32')}\n{b} : {of('i1')} to {of('i32')}" for a, b in lines), {"x": x, "y": y},
        dict.fromkeys(PREDICATES, np.zeros(len(x), np.int32)), vector,
    )  # fmt: skip
    for name, function in PREDICATES.items():
        expected = [int(function(float(a), float(b))) for a, b in zip(x, y, strict=True)]
        assert got[name].tolist() == expected, name


CASTS = [("f64", "f32"), ("f64", "bf16"), ("f64", "f16"), ("f32", "bf16"), ("f32", "f16")]


@VECTOR
@pytest.mark.parametrize(("wide", "narrow"), CASTS)
def test_casts_between_floats_round_once(wide, narrow, vector):
    rng = np.random.default_rng(1)
    values = [*EDGES, *(rng.standard_normal(38) * 10.0 ** rng.integers(-9, 9, 38)), 1 + 2**-8 + 2**-40, 1 + 2**-8]
    x = encoded(values, wide)
    results = {"z": zeros(len(x), narrow), "back": zeros(len(x), wide)}
    got = computed(
        lambda of: (
            f"%z = arith.truncf %x : {of(wide)} to {of(narrow)}", f"%back = arith.extf %z : {of(narrow)} to {of(wide)}"
        ), {"x": x}, results, vector,
    )  # fmt: skip
    with np.errstate(over="ignore"):
        expected = np.array([_nearest_bf16(float(v)) for v in x]) if narrow == "bf16" else x.astype(DTYPES[narrow])
    same(decoded(got["z"], narrow).astype(np.float64), expected.astype(np.float64))
    same(got["back"].astype(np.float64), expected.astype(np.float64))


def _nearest_bf16(value: float) -> float:
    """By exhaustive comparison with the two neighbours, in exact fractions."""
    if not math.isfinite(value) or value == 0:
        return value
    below = int(np.float32(value).view(np.uint32)) >> 16
    near = [float(widened(np.array([b], np.uint16))[0]) for b in (below - 1, below, below + 1) if 0 <= b < 1 << 16]
    near = [n for n in near if math.isfinite(n) and (n > 0) == (value > 0)] or [0.0]
    distance = [abs(Fraction(n) - Fraction(value)) for n in near]
    best = [n for n, d in zip(near, distance, strict=True) if d == min(distance)]
    return best[0] if len(best) == 1 else next(n for n in best if not int(bf16([n])[0]) & 1)


@VECTOR
@pytest.mark.parametrize("kind", TYPES)
def test_integers_become_the_nearest_float(kind, vector):
    values = np.array([0, 1, -1, 2**24 + 1, 2**53 + 1, -(2**63), 2**63 - 1, 2**40 + 2**15 + 1, 65520, 257], np.int64)
    below_doubles = [2**60 + 2**36, 2**60 + 2**52]  # ties of f32 and bf16, and 1 more or less, which a double loses
    values = np.concatenate(
        [values, [sign * (tie + rest) for tie in below_doubles for rest in (-1, 0, 1) for sign in (1, -1)]]
    )
    numbers_of = {"sitofp": values, "uitofp": values.view(np.uint64)}
    floats = computed(
        lambda of: (f"%{name} = arith.{name} %x : {of('i64')} to {of(kind)}" for name in numbers_of), {"x": values},
        {name: zeros(len(values), kind) for name in numbers_of}, vector,
    )  # fmt: skip
    for name, numbers in numbers_of.items():
        if kind == "bf16":
            expected = np.array([_nearest_bf16_of(int(n)) for n in numbers])
        else:
            with np.errstate(over="ignore"):
                expected = numbers.astype(DTYPES[kind])
        same(decoded(floats[name], kind).astype(np.float64), expected.astype(np.float64))


def _nearest_bf16_of(number: int) -> float:
    surplus = max(abs(number).bit_length() - 8, 0)
    quotient, rest = divmod(abs(number), 1 << surplus)
    up = 2 * rest > 1 << surplus or (2 * rest == 1 << surplus and quotient & 1)
    return math.copysign(float((quotient + bool(up)) << surplus), number)


def cut(values: list[float], name: str, vector: bool) -> np.ndarray:
    """Words that floats become by `arith.fptosi` or `fptoui`."""
    x = np.array(values, np.float32)
    return computed(
        lambda of: [f"%z = arith.{name} %x : {of('f32')} to {of('i32')}"], {"x": x}, {"z": x.view(np.int32)}, vector
    )["z"]


@VECTOR
def test_floats_are_cut_towards_zero(vector):
    assert list(cut([0.9, -0.9, 2.5, -2.5, 2147483520, -2147483648], "fptosi", vector)) == [
        0, 0, 2, -2, 2147483520, -2147483648,
    ]  # fmt: skip
    assert list(cut([4e9, 0.5], "fptoui", vector).view(np.uint32)) == [4000000000, 0]
    for value in (3e9, math.nan, math.inf):
        with pytest.raises(CoreError, match=r"does not fit i32"):
            cut([value, value], "fptosi", vector)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("bits", [1, 8, 16, 32, 64])
def test_floats_become_integers_up_to_the_ends_of_their_type(bits: int, signed: bool):
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    cast = _to(IntegerType(bits), signed)
    last = float(high) if bits < 64 else math.nextafter(float(high + 1), 0)
    for value in (float(low), last, *((low - 0.99, high + 0.99) if bits < 32 else ())):
        found = cast(value, str)
        assert (found - int(value)) % (1 << bits) == 0, f"{value} as {'' if signed else 'u'}i{bits} is {found}"
    for value in (float(low) - max(1.0, math.ulp(float(low))), float(high + 1), math.nan, math.inf, -math.inf):
        with pytest.raises(CoreError, match=f"{value} does not fit i{bits} ".replace("+", r"\+")):
            cast(value, str)


@VECTOR
@pytest.mark.parametrize(("kind", "bits"), [("f32", "i32"), ("bf16", "i16")])
def test_bitcasts_keep_the_bits(kind, bits, vector):
    x = encoded([1.5, -0.0, math.inf, 1e-40], kind)
    words = x.view(np.int32 if bits == "i32" else np.int16).view(np.ndarray)
    cast = "vector.bitcast" if vector else "arith.bitcast"
    got = computed(
        lambda of: (f"%w = {cast} %x : {of(kind)} to {of(bits)}", f"%y = {cast} %w : {of(bits)} to {of(kind)}"),
        {"x": x}, {"w": np.zeros_like(words), "y": zeros(4, kind)}, vector,
    )  # fmt: skip
    same(got["w"], words)
    same(got["y"].view(words.dtype), words)


@VECTOR
def test_negation_and_constants_keep_their_signs(vector):
    whole = ("dense<0xFF800000>", "dense<0.1>") if vector else ("0xFF800000", "0.1")
    x = np.array([0.0, 1.0, math.inf], np.float32)
    got = computed(
        lambda of: (
            f"%n = arith.constant {whole[0]} : {of('f32')}", f"%t = arith.constant {whole[1]} : {of('f32')}",
            f"%m = arith.negf %x : {of('f32')}", f"%s = arith.addf %m, %t : {of('f32')}",
            f"%z = arith.maximumf %s, %n : {of('f32')}",
        ), {"x": x}, {"z": np.zeros(3, np.float32)}, vector,
    )  # fmt: skip
    same(got["z"], np.float32(0.1) - x)


FUNCTIONS = {
    "absf": np.abs, "atan": np.arctan, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "roundeven": np.rint, "sin": np.sin, "sqrt": np.sqrt, "tanh": np.tanh, "trunc": np.trunc, "tan": np.tan,
    "rsqrt": lambda x: 1 / np.sqrt(x), "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "erf": np.vectorize(math.erf), "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atanh": np.arctanh, "cosh": np.cosh, "sinh": np.sinh,
}  # fmt: skip


def functions(wanted: Mapping[str, Callable], vector: bool, **inputs: np.ndarray) -> None:
    """Check functions of the math dialect against numpy's of doubles."""
    operands, count = ", ".join(f"%{name}" for name in inputs), len(next(iter(inputs.values())))
    got = computed(
        lambda of: (f"%{name} = math.{name} {operands} : {of('f32')}" for name in wanted), inputs,
        dict.fromkeys(wanted, np.zeros(count, np.float32)), vector,
    )  # fmt: skip
    for name, function in wanted.items():
        with np.errstate(all="ignore"):
            expected = function(*(array.astype(np.float64) for array in inputs.values())).astype(np.float32)
        same(got[name], expected, name)


@VECTOR
def test_functions_are_rounded_to_float32(vector):
    x = np.array([0.0, 0.5, 1.5, 2.5, -2.5, -0.25, 100.0, 1e-20, 7.75, math.inf], np.float32)
    functions(FUNCTIONS, vector, x=x)
    x, y = np.array([2.0, -3.0, 0.5], np.float32), np.array([0.5, 2.0, -1.0], np.float32)
    functions({"powf": np.power, "atan2": np.arctan2, "copysign": np.copysign}, vector, x=x, y=y)


def fused(kind: str, vector: bool, *operands: np.ndarray) -> np.ndarray:
    """x * y + w."""
    name = "vector.fma" if vector else "math.fma"
    inputs: dict[str, np.ndarray] = dict(zip("xyw", operands, strict=True))
    result = {"z": zeros(len(operands[0]), kind)}
    return computed(lambda of: [f"%z = {name} %x, %y, %w : {of(kind)}"], inputs, result, vector)["z"]


@VECTOR
@pytest.mark.parametrize("kind", TYPES[:3])
def test_a_fused_product_and_sum_is_rounded_once(kind, vector):
    rng = np.random.default_rng(2)
    x = encoded(rng.standard_normal(50), kind)
    y = encoded(rng.standard_normal(50), kind)
    wide = decoded(x, kind).astype(np.float64) * decoded(y, kind)
    w = encoded(-wide * (1 + rng.integers(-1, 2, 50) * 2.0**-10), kind)  # nearly cancels, so a rounded product shows
    parts = zip(*(decoded(v, kind).tolist() for v in (x, y, w)), strict=True)
    exact = [Fraction(a) * Fraction(b) + Fraction(c) for a, b, c in parts]
    expected = [_nearest_bf16(float(e)) for e in exact] if kind == "bf16" else encoded([float(e) for e in exact], kind)
    got = fused(kind, vector, x, y, w)
    same(decoded(got, kind).astype(np.float64), np.array(expected, np.float64))


@pytest.mark.parametrize(
    ("added", "steps"),
    [(-(2.0**-60), 1), (2.0**-60, 2), (-(2.0**-52) + 2.0**-60, 1), (2.0**-52 - 2.0**-60, 2), (0.0, 2)],
)
def test_a_fused_sum_next_to_a_tie_is_not_rounded_twice(added: float, steps: int):
    """1549 * 10831 * 2^-24 lies 1.5 steps of f32 above 1; what is added decides, below a double's last bit."""
    x, y = 1549.0, 10831 * 2.0**-24
    assert Fraction(x) * Fraction(y) == 1 + Fraction(3, 1 << 24)
    got = fused("f32", False, *(np.array(values, np.float32) for values in ([x, -x], [y, y], [added, -added])))
    assert got.tolist() == [1 + steps * 2.0**-23, -1 - steps * 2.0**-23]


START = np.array([0x3F80, 0x3F81, 0xBF80, 0xBF81, 0x8000, 0x7F80, 0x7F7F, 0xFF7F], np.uint16)
OTHER = np.array([0x3B00, 0xBB01, 0x3B00, 0xBB01, 0x8000, 0xFF80, 0x7F7F, 0xFF7F], np.uint16)
FLOORED = [0x3F80, 0x3F80, 0xBF80, 0xBF82, 0x0000, 0x7F81, 0x7F7F, 0xFF80]


@VECTOR
def test_bf16_results_are_rounded_down_as_a_core_starts(vector):
    """Sums that lie between two bf16, -0 + -0, inf - inf, and both overflows; off, they are IEEE's."""
    inputs = {"x": START.view(Bf16), "y": OTHER.view(Bf16)}

    def sums(**options) -> list[int]:
        line, result = "%z = arith.addf %x, %y", {"z": zeros(8, "bf16")}
        return computed(lambda of: [f"{line} : {of('bf16')}"], inputs, result, vector, **options)["z"].tolist()

    assert sums(permissive=()) == FLOORED
    found = sums()
    with np.errstate(all="ignore"):
        ieee = bf16(widened(START) + widened(OTHER)).tolist()
    assert [*found[:5], *found[6:]] == [*ieee[:5], *ieee[6:]]
    assert found[5] in (0x7FC0, 0xFFC0)


MOST, LEAST = 2.0**128 - 2.0**120, 2.0**-133
ENDS = {  # a value: rounded towards minus infinity, and to the nearest with ties to even
    2.0**128: (MOST, math.inf), -(2.0**128): (-math.inf, -math.inf), 2.0**200: (MOST, math.inf),
    2.0**128 - 2.0**119: (MOST, math.inf), 2.0**128 - 2.0**119 - 2.0**80: (MOST, MOST), MOST: (MOST, MOST),
    -MOST: (-MOST, -MOST), -MOST - 2.0**100: (-math.inf, -MOST), -(2.0**128) + 2.0**119: (-math.inf, -math.inf),
    LEAST: (LEAST, LEAST), LEAST / 2: (0.0, 0.0), -LEAST / 2: (-LEAST, -0.0), 1.5 * LEAST: (LEAST, 2 * LEAST),
    -1.5 * LEAST: (-2 * LEAST, -2 * LEAST), 0.75 * LEAST: (0.0, LEAST), 1 + 2.0**-8: (1.0, 1.0),
    -1 - 2.0**-8: (-1 - 2.0**-7, -1.0), 1 + 3 * 2.0**-8: (1 + 2.0**-7, 1 + 2.0**-6), -0.0: (-0.0, -0.0),
    math.inf: (math.inf, math.inf), -math.inf: (-math.inf, -math.inf),
}  # fmt: skip


@pytest.mark.parametrize("start", [True, False])
def test_scalars_and_lanes_are_rounded_alike_at_the_ends_of_bf16(start: bool):
    with modes(start=start), np.errstate(all="ignore"):
        scalars = [round_bf16(value) for value in ENDS]
        lanes = round_array(np.array(list(ENDS)), BFloat16Type()).tolist()
        lane = round_array(np.array([math.nan]), BFloat16Type())
        nans = bits_of_bf16(round_bf16(math.nan)), int(lane.view(np.uint32)[0])
    wanted = [found[0 if start else 1] for found in ENDS.values()]
    for found in (scalars, lanes):
        same(dict(zip(ENDS, map(repr, found), strict=True)), dict(zip(ENDS, map(repr, wanted), strict=True)))
    assert nans == ((0x7F81, 0x7F81 << 16) if start else (0x7FC0, 0x7FC0 << 16))
