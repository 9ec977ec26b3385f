"""Element-wise kernels against numpy: every pair of int8, and bfloat16 in float64 with a rounding of its own."""

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, KernelError, aligned, aligned_copy

from support.differences import same
from support.family_oracle import ROUND

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
VECTOR_BYTES = {"aie2p": 64, "aie2": 32}
FUNCTIONS = {
    "add": lambda a, b, rounded: rounded(a + b),
    "mul": lambda a, b, rounded: rounded(a * b),
    "relu2_gate": lambda a, b, rounded: rounded(rounded(np.where(np.signbit(a), 0, a) ** 2) * b),
}
LEFT_BY_ANOTHER_KERNEL = 1, 3  # rounding up, symmetric saturation
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1 + 2**-7, -3.390625, 2.0**-126, -(2.0**127), 3.3895314e38, np.inf, -np.inf, np.nan]
TILE = (8, 8, 8)  # of no meaning here
EVERY = 1 << 16  # pairs of int8


def call(library, symbol, a, b, dtype):
    """y of a call, after modes were left otherwise; what lies behind y must stay."""
    y = aligned(len(a) + 64, dtype)
    y.view(np.uint8)[:] = 7
    library.call("set_modes", *LEFT_BY_ANOTHER_KERNEL)
    library.call(symbol, aligned_copy(a, dtype), aligned_copy(b, dtype), y)
    same(y[len(a) :].view(np.uint8), 7)
    return y[: len(a)]


# generation, function, shift, rounding
INT8_CASES = [
    ("aie2p", "add", 1, "floor"),
    ("aie2p", "mul", 7, "conv_even"),
    ("aie2p", "relu2_gate", 14, "conv_even"),
    ("aie2", "add", 0, "conv_even"),
    ("aie2", "relu2_gate", 9, "symmetric_inf"),
]


BF16_CASES = [("aie2p", "add"), ("aie2p", "mul"), ("aie2p", "relu2_gate"), ("aie2", "relu2_gate")]
PAIRS_OF_BF16 = 4096  # special ones, close ones, any


def build_of(generation, symbol, elements, function, *options):
    return Build(generation, (symbol,), TILE, (f"-DFUNCTION={function}", f"-DTILE_ELEMENTS={elements}", *options))


def int8_of(generation, function, shift, rounding):
    options = [f"-DSHIFT={shift}"] if shift else []  # 0 and conv_even are the defaults
    options += [f"-DROUNDING={rounding}"] if rounding != "conv_even" else []
    return build_of(generation, "elementwise_i8", EVERY, function, *options)


def bf16_of(generation, function):
    return build_of(generation, "elementwise_bf16", PAIRS_OF_BF16, function)


NEAR = {  # on float64, and the terms of its argument that are rounded where e is small
    "silu": lambda a: (a, np.zeros_like(a)),
    "gelu": lambda a: (np.sqrt(8 / np.pi) * (a + 0.044715 * a**3), np.minimum(1, abs(a) / 8)),
}
NEAR_CASES = [(generation, name) for generation in VECTOR_BYTES for name in NEAR]
FINITE = 255 << 8  # bfloat16 numbers


def near_of(generation, function):
    return build_of(generation, "elementwise_bf16", FINITE, function, "-DOPERANDS=1")


BUILDS = (
    [near_of(*case) for case in NEAR_CASES]
    + [int8_of(*case) for case in INT8_CASES]
    + [bf16_of(*case) for case in BF16_CASES]
)


@pytest.mark.parametrize("case", INT8_CASES, ids=lambda case: "-".join(map(str, case)))
def test_every_pair_of_int8_is_rounded_and_saturated(kernel_library, case):
    _, function, shift, rounding = case
    library = kernel_library(int8_of(*case))
    every = np.arange(-128, 128)
    a, b = np.repeat(every, 256), np.tile(every, 256)
    exact = FUNCTIONS[function](a, b, lambda x: x)
    known = {int(value): ROUND[rounding](Fraction(int(value), 1 << shift)) for value in np.unique(exact)}
    expected = np.clip([known[int(value)] for value in exact], -128, 127)
    same(call(library, "elementwise_i8", a, b, np.int8), expected)


def nearest_bf16(exact):
    """float64 to bfloat16 by its own rule: eight significant bits, ties to even, infinity from 2^128 - 2^119 on."""
    _, exponent = np.frexp(exact)
    unit = np.ldexp(1.0, exponent - 8)
    with np.errstate(invalid="ignore", over="ignore"):
        rounded = np.where(np.isfinite(exact), np.rint(exact / unit) * unit, exact)
    return np.where(np.isfinite(rounded) & (abs(rounded) >= 2.0**128), np.copysign(np.inf, rounded), rounded)


@pytest.mark.parametrize(("generation", "function"), BF16_CASES)
def test_bfloat16_is_rounded_once_for_each_operation(kernel_library, generation, function):
    rng = np.random.default_rng(7)
    bits = rng.integers(0, 1 << 16, (2, PAIRS_OF_BF16 - len(SPECIAL) ** 2 - 1024), np.uint16).view(BF16)
    close = rng.normal(size=(2, 1024)).astype(BF16)
    special = np.array(np.meshgrid(SPECIAL, SPECIAL)).reshape(2, -1).astype(BF16)
    a, b = np.concatenate([bits, close, special], axis=1)
    library = kernel_library(bf16_of(generation, function))
    found = call(library, "elementwise_bf16", a, b, BF16)

    subnormal = np.zeros(len(a), bool)  # where they occur results are open: the device flushes them

    def rounded(exact):
        nonlocal subnormal
        subnormal |= (abs(exact) < 2.0**-126) & (exact != 0)
        return nearest_bf16(exact)

    with np.errstate(invalid="ignore", over="ignore"):
        for operand in (a, b):
            rounded(operand.astype(float))
        expected = FUNCTIONS[function](a.astype(float), b.astype(float), rounded)
    assert np.isnan(expected).any()
    assert subnormal.mean() < 0.3
    same(found.astype(float)[~subnormal], expected[~subnormal])
    signed = ~subnormal & ~np.isnan(expected)
    same(np.signbit(found)[signed], np.signbit(expected)[signed])


@pytest.mark.parametrize(("generation", "function"), NEAR_CASES)
def test_near_functions_keep_to_their_bound_on_every_number(kernel_library, generation, function):
    every = np.arange(1 << 16, dtype=np.uint32).astype(np.uint16).view(BF16)
    a = every[np.isfinite(every.astype(np.float32))]
    library, y = kernel_library(near_of(generation, function)), aligned(FINITE, BF16)
    library.call("set_modes", *LEFT_BY_ANOTHER_KERNEL)
    library.call("elementwise_bf16", aligned_copy(a, BF16), y)
    wide, found = a.astype(float), y.astype(float)
    with np.errstate(over="ignore"):
        z, more = NEAR[function](wide)
        exact = wide / (1 + np.exp(-z))
    bound = abs(exact) * (2**-7 + 2**-11 + more * 2**-8) + abs(wide) * 2.0**-120 + 2.0**-126
    assert (abs(found - exact) <= bound).all()
    assert abs(found - exact)[abs(wide) < 8].mean() < 2**-10


@pytest.mark.parametrize("generation", VECTOR_BYTES)
def test_a_tile_that_is_no_whole_vectors_is_refused(refusal, generation):
    vector = VECTOR_BYTES[generation]
    for symbol, elements in (
        ("elementwise_i8", vector // 2),
        ("elementwise_bf16", vector // 4),
        ("elementwise_bf16", 0),
    ):
        told = refusal(generation, symbol, "-DFUNCTION=add", f"-DTILE_ELEMENTS={elements}")
        assert "the tile must be whole vectors" in told


@pytest.mark.parametrize("shift", [-1, 31, 32])
def test_shifts_are_0_to_31(refusal, shift):
    told = refusal("aie2p", "elementwise_i8", "-DFUNCTION=mul", "-DTILE_ELEMENTS=64", f"-DSHIFT={shift}")
    assert ("SHIFT is 0 to 31" in told) == (shift != 31), told


def test_a_misaligned_operand_is_refused(kernel_library):
    library = kernel_library(int8_of(*INT8_CASES[0]))
    skewed, plain = aligned(EVERY, np.int8, skew_bytes=4), aligned(EVERY, np.int8)
    with pytest.raises(KernelError, match="4 bytes past a 64-byte boundary"):
        library.call("elementwise_i8", skewed, plain, plain)


def test_what_is_computed_must_be_said(refusal):
    for symbol in ("elementwise_i8", "elementwise_bf16"):
        assert "-DFUNCTION=add (or mul, relu2_gate)" in refusal("aie2p", symbol)
