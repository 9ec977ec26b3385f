"""Float arithmetic of core programs against numpy, whose operations round to the type too."""

import math
from fractions import Fraction

import numpy as np
import pytest
from xdsl.dialects.builtin import BFloat16Type

from bdforge.array.emulator import CoreError
from bdforge.array.emulator.cores.interpreted.number_formats import bits_of_bf16, modes, round_array, round_bf16
from support.core_bodies import MLIR_TYPES, Bf16, bf16, run_core, widened
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


def every(
    lines: dict[str, str], kind: str, result: np.ndarray, before: str = "", **inputs: np.ndarray
) -> dict[str, np.ndarray]:
    """The value that each of `lines` computes from %x and %y (or only %x), for every element of the inputs."""
    count = len(result)
    out = "bf16" if isinstance(result, Bf16) else MLIR_TYPES[result.dtype]
    loads = "\n".join(f"%{n} = memref.load %{n}s[%i] : memref<{count}x{kind}>" for n in inputs)
    stores = "\n".join(
        f"%z_{n} = {line}\nmemref.store %z_{n}, %out_{n}[%i] : memref<{count}x{out}>" for n, line in lines.items()
    )
    body = f"""
      %count = arith.constant {count} : index
      scf.for %i = %c0 to %count step %c1 {{
        {loads}
        {before}
        {stores}
      }}"""
    got = run_core(body, {**{f"{n}s": a for n, a in inputs.items()}, **{f"out_{n}": result for n in lines}})
    return {n: got[f"out_{n}"] for n in lines}


def each(lines: str, kind: str, result: np.ndarray, **inputs: np.ndarray) -> np.ndarray:
    """%z of `lines`, which see %x and %y (or only %x), for every element of the inputs."""
    count = len(result)
    out = "bf16" if isinstance(result, Bf16) else MLIR_TYPES[result.dtype]
    loads = "\n".join(f"%{n} = memref.load %{n}s[%i] : memref<{count}x{kind}>" for n in inputs)
    body = f"""
      %count = arith.constant {count} : index
      scf.for %i = %c0 to %count step %c1 {{
        {loads}
        {lines}
        memref.store %z, %zs[%i] : memref<{count}x{out}>
      }}"""
    return run_core(body, {**{f"{n}s": a for n, a in inputs.items()}, "zs": result})["zs"]


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


@pytest.mark.parametrize("kind", TYPES)
def test_float_operations_round_to_their_type(kind):
    x, y = pairs(kind)
    lines = {name: f"arith.{name} %x, %y : {kind}" for name in NUMPY}
    got = every(lines, kind, encoded(np.zeros(len(x)), kind), x=x, y=y)
    for name, function in NUMPY.items():
        with np.errstate(all="ignore"):
            expected = function(decoded(x, kind), decoded(y, kind))
        if kind == "bf16":
            expected = widened(bf16(expected))
        same(decoded(got[name], kind), expected, name)


PREDICATES = {
    "false": lambda x, y: False,
    "oeq": lambda x, y: x == y,
    "ogt": lambda x, y: x > y,
    "oge": lambda x, y: x >= y,
    "olt": lambda x, y: x < y,
    "ole": lambda x, y: x <= y,
    "one": lambda x, y: x < y or x > y,
    "ord": lambda x, y: not (math.isnan(x) or math.isnan(y)),
    "ueq": lambda x, y: x == y or math.isnan(x) or math.isnan(y),
    "ugt": lambda x, y: x > y or math.isnan(x) or math.isnan(y),
    "uge": lambda x, y: x >= y or math.isnan(x) or math.isnan(y),
    "ult": lambda x, y: x < y or math.isnan(x) or math.isnan(y),
    "ule": lambda x, y: x <= y or math.isnan(x) or math.isnan(y),
    "une": lambda x, y: x != y,
    "uno": lambda x, y: math.isnan(x) or math.isnan(y),
    "true": lambda x, y: True,
}


def test_comparisons_tell_ordered_from_unordered():
    x, y = pairs("f32")
    before = "\n".join(f"%b_{name} = arith.cmpf {name}, %x, %y : f32" for name in PREDICATES)
    lines = {name: f"arith.extui %b_{name} : i1 to i32" for name in PREDICATES}
    got = every(lines, "f32", np.zeros(len(x), np.int32), before, x=x, y=y)
    for name, function in PREDICATES.items():
        expected = [int(function(float(a), float(b))) for a, b in zip(x, y, strict=True)]
        assert got[name].tolist() == expected, name


CASTS = [("f64", "f32"), ("f64", "bf16"), ("f64", "f16"), ("f32", "bf16"), ("f32", "f16")]


@pytest.mark.parametrize(("wide", "narrow"), CASTS)
def test_casts_between_floats_round_once(wide, narrow):
    rng = np.random.default_rng(1)
    values = [*EDGES, *(rng.standard_normal(40) * 10.0 ** rng.integers(-9, 9, 40)), 1 + 2**-8 + 2**-40, 1 + 2**-8]
    x = encoded(values, wide)
    got = each(f"%z = arith.truncf %x : {wide} to {narrow}", wide, encoded(np.zeros(len(x)), narrow), x=x)
    with np.errstate(over="ignore"):
        expected = np.array([_nearest_bf16(float(v)) for v in x]) if narrow == "bf16" else x.astype(DTYPES[narrow])
    same(decoded(got, narrow).astype(np.float64), expected.astype(np.float64))
    narrowed = got.view(type(encoded([0], narrow)))
    back = each(f"%z = arith.extf %x : {narrow} to {wide}", narrow, encoded(np.zeros(len(x)), wide), x=narrowed)
    same(back.astype(np.float64), expected.astype(np.float64))


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


@pytest.mark.parametrize("kind", TYPES)
def test_integers_become_the_nearest_float(kind):
    values = np.array([0, 1, -1, 2**24 + 1, 2**53 + 1, -(2**63), 2**63 - 1, 2**40 + 2**15 + 1, 65520, 257], np.int64)
    below_doubles = [2**60 + 2**36, 2**60 + 2**52]  # ties of f32 and bf16, and 1 more or less, which a double loses
    values = np.concatenate(
        [values, [sign * (tie + rest) for tie in below_doubles for rest in (-1, 0, 1) for sign in (1, -1)]]
    )
    lines = {"signed": f"arith.sitofp %x : i64 to {kind}", "unsigned": f"arith.uitofp %x : i64 to {kind}"}
    floats = every(lines, "i64", encoded(np.zeros(len(values)), kind), x=values)
    for got, numbers in ((floats["signed"], values), (floats["unsigned"], values.view(np.uint64))):
        if kind == "bf16":
            expected = np.array([_nearest_bf16_of(int(n)) for n in numbers])
        else:
            with np.errstate(over="ignore"):
                expected = numbers.astype(DTYPES[kind])
        same(decoded(got, kind).astype(np.float64), expected.astype(np.float64))


def _nearest_bf16_of(number: int) -> float:
    surplus = max(abs(number).bit_length() - 8, 0)
    quotient, rest = divmod(abs(number), 1 << surplus)
    up = 2 * rest > 1 << surplus or (2 * rest == 1 << surplus and quotient & 1)
    return math.copysign(float((quotient + bool(up)) << surplus), number)


def test_floats_are_cut_towards_zero():
    x = np.array([0.9, -0.9, 2.5, -2.5, 2147483520, -2147483648], np.float32)
    got = each("%z = arith.fptosi %x : f32 to i32", "f32", np.zeros(6, np.int32), x=x)
    assert list(got) == [0, 0, 2, -2, 2147483520, -2147483648]
    got = each("%z = arith.fptoui %x : f32 to i32", "f32", np.zeros(2, np.int32), x=np.array([4e9, 0.5], np.float32))
    assert list(got.view(np.uint32)) == [4000000000, 0]


@pytest.mark.parametrize("value", [3e9, math.nan, math.inf])
def test_a_float_that_no_integer_holds_is_an_error(value):
    with pytest.raises(CoreError, match=r"does not fit i32"):
        each("%z = arith.fptosi %x : f32 to i32", "f32", np.zeros(1, np.int32), x=np.array([value], np.float32))


def test_bitcasts_keep_the_bits():
    x = np.array([1.5, -0.0, math.inf, 1e-40], np.float32)
    got = each("%z = arith.bitcast %x : f32 to i32", "f32", np.zeros(4, np.int32), x=x)
    same(got, x.view(np.int32))
    back = each("%z = arith.bitcast %x : i32 to f32", "i32", np.zeros(4, np.float32), x=got.copy())
    same(back.view(np.int32), x.view(np.int32))
    half = each("%z = arith.bitcast %x : i16 to bf16", "i16", bf16(np.zeros(2)), x=np.array([0x3F80, -1], np.int16))
    assert list(half) == [0x3F80, 0xFFFF]


def test_negation_and_constants_keep_their_signs():
    lines = """%n = arith.constant 0xFF800000 : f32
        %t = arith.constant 0.1 : f32
        %m = arith.negf %x : f32
        %s = arith.addf %m, %t : f32
        %z = arith.maximumf %s, %n : f32"""
    x = np.array([0.0, 1.0, math.inf], np.float32)
    same(each(lines, "f32", np.zeros(3, np.float32), x=x), np.float32(0.1) - x)


FUNCTIONS = {
    "absf": np.abs, "atan": np.arctan, "cbrt": np.cbrt, "ceil": np.ceil, "cos": np.cos, "exp": np.exp, "exp2": np.exp2,
    "expm1": np.expm1, "floor": np.floor, "log": np.log, "log10": np.log10, "log1p": np.log1p, "log2": np.log2,
    "roundeven": np.rint, "sin": np.sin, "sqrt": np.sqrt, "tanh": np.tanh, "trunc": np.trunc, "tan": np.tan,
    "rsqrt": lambda x: 1 / np.sqrt(x), "round": lambda x: np.copysign(np.floor(np.abs(x) + 0.5), x),
    "erf": np.vectorize(math.erf), "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh,
    "atanh": np.arctanh, "cosh": np.cosh, "sinh": np.sinh,
}  # fmt: skip


def test_functions_are_rounded_to_float32():
    x = np.array([0.0, 0.5, 1.5, 2.5, -2.5, -0.25, 100.0, 1e-20, 7.75, math.inf], np.float32)
    got = every({name: f"math.{name} %x : f32" for name in FUNCTIONS}, "f32", np.zeros(len(x), np.float32), x=x)
    for name, function in FUNCTIONS.items():
        with np.errstate(all="ignore"):
            expected = function(x.astype(np.float64)).astype(np.float32)
        same(got[name], expected, name)


def test_functions_of_two_numbers():
    x, y = np.array([2.0, -3.0, 0.5], np.float32), np.array([0.5, 2.0, -1.0], np.float32)
    functions = {"powf": np.power, "atan2": np.arctan2, "copysign": np.copysign}
    lines = {name: f"math.{name} %x, %y : f32" for name in functions}
    got = every(lines, "f32", np.zeros(3, np.float32), x=x, y=y)
    for name, function in functions.items():
        expected = function(x.astype(np.float64), y.astype(np.float64)).astype(np.float32)
        same(got[name], expected, name)


@pytest.mark.parametrize("kind", TYPES[:3])
def test_a_fused_product_and_sum_is_rounded_once(kind):
    rng = np.random.default_rng(2)
    x = encoded(rng.standard_normal(50), kind)
    y = encoded(rng.standard_normal(50), kind)
    wide = decoded(x, kind).astype(np.float64) * decoded(y, kind)
    w = encoded(-wide * (1 + rng.integers(-1, 2, 50) * 2.0**-10), kind)  # nearly cancels, so a rounded product shows
    got = each(f"%z = math.fma %x, %y, %w : {kind}", kind, encoded(np.zeros(50), kind), x=x, y=y, w=w)
    parts = zip(*(decoded(v, kind).tolist() for v in (x, y, w)), strict=True)
    exact = [Fraction(a) * Fraction(b) + Fraction(c) for a, b, c in parts]
    expected = [_nearest_bf16(float(e)) for e in exact] if kind == "bf16" else encoded([float(e) for e in exact], kind)
    same(decoded(got, kind).astype(np.float64), np.array(expected, np.float64))


@pytest.mark.parametrize(
    ("added", "steps"),
    [(-(2.0**-60), 1), (2.0**-60, 2), (-(2.0**-52) + 2.0**-60, 1), (2.0**-52 - 2.0**-60, 2), (0.0, 2)],
)
def test_a_fused_sum_next_to_a_tie_is_not_rounded_twice(added: float, steps: int):
    """1549 * 10831 * 2^-24 lies 1.5 steps of f32 above 1; what is added decides, below a double's last bit."""
    x, y = 1549.0, 10831 * 2.0**-24
    assert Fraction(x) * Fraction(y) == 1 + Fraction(3, 1 << 24)
    inputs = {"x": np.array([x, -x], np.float32), "y": np.full(2, y, np.float32)}
    inputs["w"] = np.array([added, -added], np.float32)
    got = each("%z = math.fma %x, %y, %w : f32", "f32", np.zeros(2, np.float32), **inputs)
    assert got.tolist() == [1 + steps * 2.0**-23, -1 - steps * 2.0**-23]


START = np.array([0x3F80, 0x3F81, 0xBF80, 0xBF81, 0x8000, 0x7F80, 0x7F7F, 0xFF7F], np.uint16)
OTHER = np.array([0x3B00, 0xBB01, 0x3B00, 0xBB01, 0x8000, 0xFF80, 0x7F7F, 0xFF7F], np.uint16)
FLOORED = [0x3F80, 0x3F80, 0xBF80, 0xBF82, 0x0000, 0x7F81, 0x7F7F, 0xFF80]


@pytest.mark.parametrize("vector", [False, True])
def test_bf16_results_are_rounded_down_as_a_core_starts(vector):
    """Sums that lie between two bf16, -0 + -0, inf - inf, and both overflows; off, they are IEEE's."""
    kind = "memref<8xbf16>"
    scalar = f"""scf.for %i = %c0 to %c8 step %c1 {{
        %a = memref.load %x[%i] : {kind}
        %b = memref.load %y[%i] : {kind}
        %s = arith.addf %a, %b : bf16
        memref.store %s, %z[%i] : {kind}
      }}"""
    whole = f"""%a = vector.load %x[%c0] : {kind}, vector<8xbf16>
      %b = vector.load %y[%c0] : {kind}, vector<8xbf16>
      %s = arith.addf %a, %b : vector<8xbf16>
      vector.store %s, %z[%c0] : {kind}, vector<8xbf16>"""
    buffers = {"x": START.view(Bf16), "y": OTHER.view(Bf16), "z": np.zeros(8, np.uint16).view(Bf16)}
    body = whole if vector else scalar
    assert run_core(body, buffers, permissive=())["z"].view(np.uint16).tolist() == FLOORED
    found = run_core(body, buffers)["z"].view(np.uint16).tolist()
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
