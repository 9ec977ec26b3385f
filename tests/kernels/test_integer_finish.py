"""What finish kernels make of a C tile, in place, against numpy."""

from fractions import Fraction
from typing import get_args

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned_copy, tile_options

from bdforge.operators.specs import Rounding
from support.differences import same
from support.family_oracle import ROUND
from support.micro_tiles import MICRO, field_scale, from_micro_tiles, micro_tiled, narrowed

DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32}
LAST_BYTES = 64
LOWEST = -(2**31)

# generation, type of the result, (m, k, n), macros
CASES = [
    ("aie2p", "i8", (24, 8, 40), ("SHIFT=7",)),
    ("aie2p", "i8", (8, 8, 32), ("SHIFT=2", "FIELD_SCALED", "RELU", "BIAS")),
    ("aie2p", "i8", (16, 8, 24), ("C_TRANSPOSED", "BIAS")),
    ("aie2p", "i16", (24, 8, 8), ("SHIFT=0", "RELU")),
    ("aie2p", "i16", (24, 8, 64), ("SHIFT=5", "FIELD_SCALED", "C_IN_PARTS", "DIM_RHO=3")),
    ("aie2p", "i16", (16, 8, 96), ("SHIFT=3", "FIELD_SCALED", "C_TRANSPOSED", "BIAS")),
    ("aie2p", "i32", (8, 8, 40), ("BIAS", "RELU", "C_TRANSPOSED")),
    ("aie2p", "i32", (24, 8, 64), ("FIELD_SCALED", "BIAS", "SHIFT=4")),
    ("aie2p", "i32", (8, 8, 8), ()),
    ("aie2", "i8", (12, 8, 24), ("SHIFT=9", "BIAS", "RELU")),
    ("aie2", "i16", (4, 8, 96), ("SHIFT=3", "FIELD_SCALED", "BIAS")),
    ("aie2", "i32", (12, 8, 32), ("SHIFT=2", "FIELD_SCALED", "BIAS", "C_TRANSPOSED")),
]

# generation, (m, k, n), macros
SCALED_CASES = [
    ("aie2p", (24, 8, 40), ()),
    ("aie2p", (16, 8, 64), ("FIELD_SCALED", "BIAS", "RELU", "C_IN_PARTS", "DIM_RHO=2")),
    ("aie2p", (8, 8, 24), ("C_TRANSPOSED", "BIAS")),
    ("aie2", (12, 8, 32), ("FIELD_SCALED", "BIAS", "C_TRANSPOSED")),
]
UNSCALED = [
    (*case, macros)
    for case in (("aie2p", (24, 8, 32)), ("aie2", (12, 8, 64)))
    for macros in ((), ("-DRELU", "-DSHIFT=3"))
]
AS_THEY_ARE = [
    ("aie2p", (24, 8, 40), ()),
    ("aie2p", (16, 8, 64), ("FIELD_SCALED", "RELU", "C_TRANSPOSED")),
    ("aie2", (12, 8, 32), ("FIELD_SCALED",)),
]
WRAPPING = ("aie2p", "i32", (8, 8, 32), ("FIELD_SCALED", "BIAS", "SHIFT=3"))
SCALES_OF_ONE = ("aie2p", (8, 8, 32), ("FIELD_SCALED",))
ARRAY_ROWS = 4


def build_of(generation, out, tile, macros):
    """A kernel with its reference."""
    options = (f"-DMICRO_R={MICRO[generation, 'i8'][0]}", *(f"-D{x}" for x in macros))
    return Build(generation, (f"finish_i32_{out}", "reference"), tile, options)


def scaled_of(generation, tile, macros):
    options = ("-DSCALE", f"-DARRAY_ROWS={ARRAY_ROWS}", *(f"-D{x}" for x in macros))
    return Build(generation, ("finish_i32_bf16",), tile, options)


def as_they_are_of(generation, tile, macros):
    return Build(generation, ("finish_i32_bf16",), tile, tuple(f"-D{x}" for x in macros))


def unscaled_of(generation, tile, macros):
    return Build(generation, ("unscale_i32", "reference"), tile, (f"-DMICRO_R={MICRO[generation, 'i2'][0]}", *macros))


def rounded_of(mode):
    return Build("aie2p", ("finish_i32_i8",), (8, 8, 8), ("-DSHIFT=3", f"-DROUNDING={mode}"))


BUILDS = [build_of(*case) for case in [*CASES, WRAPPING]] + [rounded_of(mode) for mode in get_args(Rounding)]
BUILDS += [as_they_are_of(*case) for case in AS_THEY_ARE]
BUILDS += [unscaled_of(*case) for case in UNSCALED] + [scaled_of(*case) for case in [*SCALED_CASES, SCALES_OF_ONE]]


def sums(rng, m, n, shift, bits):
    """Sums around every interesting quotient: small with ties, the edges of the result, far beyond."""
    edge = 2 ** (bits - 1 + shift)
    near = rng.integers(-300, 300, (m, n)) + rng.choice([-edge, 0, 0, edge], (m, n))
    return np.where(rng.random((m, n)) < 0.1, rng.choice([-(2**24), 2**24 - 1], (m, n)), near).clip(-(2**24), 2**24 - 1)


def parts_of(macros):
    """In how many parts a kernel passes over C."""
    rho = next((int(macro[8:]) for macro in macros if macro.startswith("DIM_RHO=")), 1)
    return rho if "C_IN_PARTS" in macros else 1


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join(map(str, case)))
def test_finish_matches_numpy_and_touches_nothing_else(kernel_library, case):
    generation, out, (m, _, n), macros = case
    r, _, t = MICRO[generation, "i8"]
    turned, fields, relu, biased = (name in macros for name in ("C_TRANSPOSED", "FIELD_SCALED", "RELU", "BIAS"))
    shift = next((int(macro[6:]) for macro in macros if macro.startswith("SHIFT=")), 0)
    rng, dtype = np.random.default_rng(6), DTYPES[out]
    c = sums(rng, m, n, shift, np.iinfo(dtype).bits if out != "i32" else 20)
    bias = rng.integers(-1000, 1000, n) if biased else np.zeros(n, int)
    scale = field_scale(n) if fields else np.ones(n, int)

    kernel = f"finish_i32_{out}"
    library = kernel_library(build_of(*case))
    expected = micro_tiled(np.maximum(narrowed(c + bias, shift, dtype), 0 if relu else LOWEST), r, t, turned)
    passes = parts_of(macros)
    for name in (kernel, f"{kernel}_ref") if passes == 1 else (kernel,):
        buffer = aligned_copy(np.concatenate([micro_tiled(c * scale, r, t, turned), np.full(LAST_BYTES, 7)]), np.int32)
        for part in reversed(range(passes)):  # each part of the rows by itself, from its beginning
            before = buffer.copy()
            library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
            numbers = [aligned_copy(bias, np.int32)] if biased else []
            library.call(name, *numbers, buffer, *([part] if passes > 1 else []))
            rows = slice(part * m * n // passes, (part + 1) * m * n // passes)
            same(buffer[rows].view(dtype)[: m * n // passes], expected[rows], f"{name}, part {part}")
            same(np.delete(buffer, rows), np.delete(before, rows), f"{name} beside part {part}")


@pytest.mark.parametrize("mode", get_args(Rounding))
def test_a_result_is_rounded_in_every_mode_of_a_spec(kernel_library, mode):
    """Every remainder of both signs, ties included, and the ends of the result."""
    m, n = 8, 8
    c = np.arange(-m * n // 2, m * n // 2).reshape(m, n)
    c[0, :4] = [-(2**20), 2**20, -128 * 8 - 4, 127 * 8 + 4]
    exact = [[ROUND[mode](Fraction(int(value), 8)) for value in row] for row in c]
    library = kernel_library(rounded_of(mode))
    buffer = aligned_copy(np.concatenate([micro_tiled(c, 8, 8), np.full(LAST_BYTES, 7)]), np.int32)
    library.call("finish_i32_i8", buffer)
    same(buffer.view(np.int8)[: m * n], micro_tiled(np.clip(exact, -128, 127), 8, 8))


def test_a_scaled_bias_is_clamped_and_its_sum_wraps(kernel_library):
    library, (m, _, n) = kernel_library(build_of(*WRAPPING)), WRAPPING[2]
    bias = np.full(n, 2**30) - np.arange(n)
    c = np.random.default_rng(10).integers(-5, 5, (m, n)) * field_scale(n)
    added = np.minimum(bias * field_scale(n), 2**31 - 1)
    sums = (c + added).astype(np.int32).astype(np.int64)
    assert (sums < 0).any()  # some wrap
    expected = np.rint(sums / (8 * field_scale(n)))
    for name in ("finish_i32_i32", "finish_i32_i32_ref"):
        buffer = aligned_copy(micro_tiled(c, 8, 8), np.int32)
        library.call(name, aligned_copy(bias, np.int32), buffer)
        same(buffer, micro_tiled(expected, 8, 8), name)


@pytest.mark.parametrize(("generation", "tile", "macros"), UNSCALED)
def test_unscale_divides_by_the_scale_of_fields_and_rectifies(kernel_library, generation, tile, macros):
    m, _, n = tile
    r, _, t = MICRO[generation, "i2"]
    c = np.random.default_rng(7).integers(-(2**24), 2**24, (m, n))
    library = kernel_library(unscaled_of(generation, tile, macros))
    for scaled in (c * field_scale(n), c):  # what products make, and sums of any bits
        for name in ("unscale_i32", "unscale_i32_ref") if not macros else ("unscale_i32",):
            buffer = aligned_copy(micro_tiled(scaled, r, t), np.int32)
            library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
            library.call(name, buffer)
            same(buffer, micro_tiled(np.maximum(scaled // field_scale(n), 0 if macros else LOWEST), r, t), name)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(
    ("name", "options", "sentence"),
    [
        ("unscale_i32", [*tile_options(8, 8, 32), "-DBIAS"], "use finish_i32_i32 with FIELD_SCALED"),
        ("unscale_i32", tile_options(8, 8, 24), "n must be a multiple of 4 t"),
        ("finish_i32_i8", tile_options(12, 8, 8), "the C tile must be whole micro-tiles"),
        ("finish_i32_i8", [*tile_options(8, 8, 8), "-DROUNDING=upwards"], "upwards"),
        ("finish_i32_i8", [*tile_options(8, 8, 8), "-DSHIFT=32"], "SHIFT must be 0 to 31"),
        ("finish_i32_i8", [*tile_options(8, 8, 24), "-DFIELD_SCALED"], "n must be a multiple of 4 t"),
        ("finish_i32_bf16", [*tile_options(8, 8, 8), "-DARRAY_ROWS=4"], "define SCALE or BIAS too, or leave it out"),
        ("finish_i32_bf16", [*tile_options(8, 8, 8), "-DBIAS"], "define the rows of the array with -DARRAY_ROWS=rows"),
    ],
)
def test_what_finish_kernels_cannot_do_does_not_compile(refusal, name, options, sentence):
    assert sentence in refusal("aie2p", name, *options)


def test_the_last_shift_compiles(refusal):
    assert refusal("aie2p", "finish_i32_i32", *tile_options(8, 8, 8), "-DSHIFT=31") == ""


@pytest.mark.parametrize("case", SCALED_CASES, ids=lambda case: "-".join(map(str, case)))
def test_scaled_results_stay_within_the_stated_error(kernel_library, case):
    generation, (m, _, n), macros = case
    r, _, t = MICRO[generation, "i8"]
    turned, fields, relu, biased = (name in macros for name in ("C_TRANSPOSED", "FIELD_SCALED", "RELU", "BIAS"))
    rng = np.random.default_rng(8)
    c = np.where(rng.random((m, n)) < 0.1, rng.integers(-(2**24), 2**24, (m, n)), rng.integers(-9999, 9999, (m, n)))
    row_scales = rng.uniform(-0.1, 0.1, ARRAY_ROWS * m).astype(np.float32)
    column_scales = rng.uniform(1e-4, 3, n).astype(np.float32)
    bias = rng.uniform(-50, 50, n if biased else 0).astype(np.float32)
    epilogue = aligned_copy(np.concatenate([row_scales, column_scales, bias]), np.float32)

    library = kernel_library(scaled_of(*case))
    scale = field_scale(n) if fields else np.ones(n, int)
    for core_row in (0, 3):
        buffer = aligned_copy(np.concatenate([micro_tiled(c * scale, r, t, turned), np.full(LAST_BYTES, 7)]), np.int32)
        passes, found = parts_of(macros), []
        for part in range(passes):
            library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
            library.call("finish_i32_bf16", epilogue, buffer, core_row, *([part] if passes > 1 else []))
            rows = slice(part * m * n // passes, (part + 1) * m * n // passes)
            found.append(buffer[rows].view(np.uint16)[: m * n // passes])

        product = c * row_scales[core_row * m :][:m, None].astype(float) * column_scales
        exact = product + (bias if biased else 0.0)
        exact = np.maximum(exact, 0) if relu else exact
        bits = np.concatenate(found).astype(np.uint32) << 16
        results = from_micro_tiles(bits.view(np.float32), m, n, r, t, turned)
        magnitude = np.abs(product) + (np.abs(bias) if biased else 0.0)
        assert (np.abs(results - exact) <= 2.0**-8 * np.abs(exact) + 2.0**-21 * magnitude).all()
        same(buffer[m * n :], 7)


@pytest.mark.parametrize("case", AS_THEY_ARE, ids=lambda case: "-".join(map(str, case)))
def test_sums_as_they_are_become_the_nearest_bfloat16(kernel_library, case):
    """Below 2^24; above, that of float32."""
    generation, (m, _, n), macros = case
    r, _, t = MICRO[generation, "i8"]
    fields, turned = "FIELD_SCALED" in macros, "C_TRANSPOSED" in macros
    rng, scale = np.random.default_rng(10), field_scale(n) if fields else np.ones(n, int)
    c = rng.integers(-(2**24), 2**24, (m, n)) >> rng.integers(0, 24, (m, n))
    c[::4, :6] = [0, 257, 259, -257, 2**24 + 1, -(2**24) - 3]
    buffer = aligned_copy(micro_tiled(c * scale, r, t, turned), np.int32)
    library = kernel_library(as_they_are_of(*case))
    library.call("set_modes", 1, 3)  # ceil, symmetric: left by another kernel
    library.call("finish_i32_bf16", buffer)
    expected = (np.maximum(c, 0) if "RELU" in macros else c).astype(np.float32).astype(ml_dtypes.bfloat16)
    same(buffer.view(np.uint16)[: m * n], micro_tiled(expected.view(np.uint16), r, t, turned).ravel())


def test_scales_of_one_give_small_sums_back(kernel_library):
    library, (m, _, n) = kernel_library(scaled_of(*SCALES_OF_ONE)), SCALES_OF_ONE[1]
    c = np.random.default_rng(9).integers(-256, 257, (m, n))  # 8 bits of a significand
    buffer = aligned_copy(micro_tiled(c * field_scale(n), 8, 8), np.int32)
    library.call("finish_i32_bf16", aligned_copy(np.ones(ARRAY_ROWS * m + n), np.float32), buffer, 1)
    bits = buffer.view(np.uint16)[: m * n].astype(np.uint32) << 16
    same(bits.view(np.float32), micro_tiled(c, 8, 8))
