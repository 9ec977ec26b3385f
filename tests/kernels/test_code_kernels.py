"""int8 codes of rows, back again, and casts: against numpy, for random, hostile and all numbers."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from bdforge.devices import device_named
from bdforge.operators import plan, spec_from
from codegen.test_assembled_kernels import call
from support.differences import same

BF16 = ml_dtypes.bfloat16
WIDTH = 640
CASTS = {"cast_i8_bf16": (np.int8, BF16), "cast_bf16_f32": (BF16, np.float32), "cast_f32_bf16": (np.float32, BF16)}
NAMES = ("quantise_bf16", "quantise_f32", "dequantise_i8", "dequantise_i32", *CASTS)
BUILDS = [Build(g, NAMES, (8, 8, 8), (f"-DTILE_ELEMENTS={WIDTH}",)) for g in ("aie2p", "aie2")]
FLOATS = [
    Build(g, ("dequantise_i32",), (8, 8, 8), (f"-DTILE_ELEMENTS={WIDTH}", "-DY_F32=1")) for g in ("aie2p", "aie2")
]


def rows() -> list[np.ndarray]:
    rng = np.random.default_rng(5)
    spike, halves = np.zeros(WIDTH), np.arange(WIDTH) % 128 + 0.5
    spike[-1], halves[0] = -3, 127
    normal = [rng.normal(scale=scale, size=WIDTH) for scale in (1, 1, 1, 1e-9, 1e30, 1e-29)]
    tiny = rng.normal(scale=2.0**-110, size=WIDTH)
    largest = [
        np.where(np.arange(WIDTH) == 7, mantissa, rng.uniform(-1, 1, WIDTH) * 128) for mantissa in range(128, 256)
    ]
    signs = rng.choice([-1.0, 1.0, 0.0, -0.0], WIDTH)
    return [*normal, spike, np.zeros(WIDTH), -np.zeros(WIDTH), halves, signs, tiny, *largest]


@pytest.mark.daily("aie2p")
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.generation)
def test_codes_are_exact_but_near_halves(kernel_library, build):
    library = kernel_library(build)
    for row in rows():
        x, y, s = row.astype(BF16), aligned(WIDTH + 64, np.int8), aligned(16, np.float32)
        y[WIDTH:] = 7
        library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
        library.call("quantise_bf16", aligned_copy(x, BF16), y, s)
        wide = x.astype(float)
        largest = abs(wide).max() if abs(wide).max() >= 2.0**-100 else 0.0
        assert s[0] == np.float32(largest / 127)
        exact = wide * 127 / largest if largest else np.zeros(WIDTH)
        near = abs(abs(exact) % 1 - 0.5) <= 127 * 2.0**-20
        wrong = y[:WIDTH] != np.rint(exact)
        assert not (wrong & ~near).any()
        assert (abs(y[:WIDTH] - exact) <= 0.5 + 127 * 2.0**-20).all()
        assert (y[WIDTH:] == 7).all()


@pytest.mark.daily("aie2p")
@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.generation)
def test_codes_of_floats_are_exact_but_near_halves(kernel_library, build):
    library, rng = kernel_library(build), np.random.default_rng(3)
    for row in rows()[:40]:
        x, y, s = (row * rng.uniform(1, 1.01)).astype(np.float32), aligned(WIDTH, np.int8), aligned(16, np.float32)
        library.call("set_modes", 1, 3)
        library.call("quantise_f32", aligned_copy(x, np.float32), y, s)
        largest = abs(x.astype(float)).max()
        exact = x * 127 / largest if largest >= 2.0**-100 else np.zeros(WIDTH)
        near = abs(abs(exact) % 1 - 0.5) <= 127 * 2.0**-20
        assert not ((y != np.rint(exact)) & ~near).any()
        assert (abs(y - exact) <= 0.5 + 127 * 2.0**-20).all()
        assert abs(s[0] - (largest / 127 if largest >= 2.0**-100 else 0)) <= 2.0**-22 * s[0]


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.generation)
def test_codes_times_scales(kernel_library, build):
    library, x = kernel_library(build), np.resize(np.arange(-128, 128), WIDTH).astype(np.int8)
    for scale in (
        1.0,
        0.0,
        1 / 3,
        2.0**-99 * 1.999,
        2.0**99,
        0.007874016,
        *np.random.default_rng(1).normal(size=30),
        2.0**-101,
        -1e-40,
    ):
        s, y = aligned(16, np.float32), aligned(WIDTH, BF16)
        s[0] = scale
        library.call("set_modes", 1, 3)
        library.call("dequantise_i8", aligned_copy(x, np.int8), s, y)
        exact = x.astype(float) * float(s[0])
        assert (abs(y.astype(float) - exact) <= (2.0**-8 + 2.0**-13) * abs(exact) + 2.0**-93).all()


SCALES = (1.0, 0.0, -0.0, -1 / 3, 2.0**-60, 2.0**60, 0.0078125, 3.1e-5)
"""Of rows."""


def sums_and_columns() -> tuple[np.ndarray, np.ndarray]:
    """int32 of every size, those around which floats are wider, and scales of columns, some of them zero."""
    rng = np.random.default_rng(7)
    edges = [sign * ((1 << bit) + off) for bit in range(32) for off in (-1, 0, 1) for sign in (1, -1)]
    ties = [(1 << 25) + 2, (1 << 25) + 6, -(1 << 30) - 96, 0xFFFF, 0x10000, 0x18000, 0x7F8000, -0x8000]
    any_size = rng.integers(-(2**31), 2**31, WIDTH) >> rng.integers(0, 32, WIDTH)
    x = np.clip(np.concatenate([edges, ties, any_size])[:WIDTH], -(2**31), 2**31 - 1).astype(np.int32)
    c = rng.normal(size=WIDTH) * 2.0 ** rng.integers(-20, 20, WIDTH)
    c[::17], c[1::19], c[2::23] = 1, 0, -0.0
    return rng.permutation(x), c.astype(np.float32)


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.generation)
def test_sums_times_scales_of_rows_and_columns(kernel_library, build):
    library, (x, c) = kernel_library(build), sums_and_columns()
    for scale in SCALES:
        s, y = aligned(16, np.float32), aligned(WIDTH, BF16)
        s[0] = scale
        library.call("set_modes", 1, 3)
        library.call("dequantise_i32", aligned_copy(x, np.int32), s, aligned_copy(c, np.float32), y)
        exact = x.astype(float) * float(s[0]) * c.astype(float)
        found = y.astype(float) * np.sign(exact)
        least, most = ((abs(exact) * (1 + off)).astype(BF16).astype(float) for off in (-(2.0**-20), 2.0**-20))
        assert ((least <= found) & (found <= most)).all()
        assert not np.signbit(y[exact == 0]).any()


@pytest.mark.daily("aie2")
@pytest.mark.parametrize("build", FLOATS, ids=lambda build: build.generation)
def test_sums_times_scales_as_floats(kernel_library, build):
    library, (x, c) = kernel_library(build), sums_and_columns()
    for scale in SCALES:
        s, y = np.full(16, scale, np.float32), aligned(WIDTH, np.float32)
        library.call("set_modes", 1, 3)
        library.call(
            "dequantise_i32", aligned_copy(x, np.int32), aligned_copy(s, np.float32), aligned_copy(c, c.dtype), y
        )
        exact = x.astype(float) * float(s[0]) * c.astype(float)
        assert (abs(y - exact) <= 2.0**-20 * abs(exact)).all()
        assert not np.signbit(y[exact == 0]).any()
        if build.generation == "aie2p":
            same_bits(library, "dequantise_i32", [x, s, c], np.zeros(WIDTH, np.float32), defines=("Y_F32=1",))


@pytest.mark.parametrize("build", BUILDS, ids=lambda build: build.generation)
@pytest.mark.parametrize("name", CASTS)
def test_casts_are_numpys(kernel_library, build, name):
    library, (before, after) = kernel_library(build), CASTS[name]
    every = np.arange(1 << 16, dtype=np.uint16).view(BF16)
    every = every[~np.isnan(every.astype(np.float32))]
    numbers = every.astype(np.float32)
    with np.errstate(over="ignore"):
        between = numbers * np.float32(1 + 2.0**-8)
    values = {np.int8: np.arange(-128, 128), BF16: every, np.float32: np.concatenate([numbers, between])}[before]
    for first in range(0, len(values), WIDTH):
        x, y = np.resize(values[first : first + WIDTH], WIDTH).astype(before), aligned(WIDTH, after)
        library.call("set_modes", 1, 3)
        library.call(name, aligned_copy(x, before), y)
        same(y.view(f"u{y.itemsize}"), x.astype(after).view(f"u{y.itemsize}"))


def same_bits(library, name: str, given: list[np.ndarray], *made: np.ndarray, defines: tuple[str, ...] = ()) -> None:
    """Of a call with operands of whole vectors; of a scale's vector machine code writes the first number alone."""
    wanted = [aligned(y.size, y.dtype) for y in made]
    library.call(name, *(aligned_copy(x, x.dtype) for x in given), *wanted)
    call(assembled(name, "aie2p", (f"TILE_ELEMENTS={WIDTH}", *defines)), "aie2p", [*given, *made])
    for found, exact in zip(made, wanted, strict=True):
        count = found.size if found.size == WIDTH else 1
        same(found[:count].view(f"u{found.itemsize}"), exact[:count].view(f"u{found.itemsize}"))


CONVERSIONS = (
    "quantise", "quantise_f32", "dequantise", "dequantise_int32", "scale_int32", "int8_to_bf16", "bf16_to_f32",
    "f32_to_bf16",
)  # fmt: skip


@pytest.mark.daily("int8_to_bf16", "bf16_to_f32", "quantise")
@pytest.mark.parametrize("function", CONVERSIONS)
def test_a_row_of_machine_code_takes_the_cycles_that_its_function_claims(function):
    spec = spec_from({"kind": "convert", "function": function, "width": WIDTH}, "row")
    kernels = plan(spec, device_named("strix_halo")).kernels
    for name, claimed in kernels.cycles.items():
        assert claimed == assembled(name, "aie2p", kernels.defines).cycles


@pytest.mark.slow
def test_machine_code_gives_the_bits_of_the_compiled_kernels(kernel_library):
    library = kernel_library(BUILDS[0])
    for row in rows():
        same_bits(library, "quantise_bf16", [row.astype(BF16)], np.zeros(WIDTH, np.int8), np.zeros(16, np.float32))
    for row in rows()[:16]:
        x = (row * np.linspace(1, 1.01, WIDTH)).astype(np.float32)
        same_bits(library, "quantise_f32", [x], np.zeros(WIDTH, np.int8), np.zeros(16, np.float32))
    codes = np.resize(np.arange(-128, 128), WIDTH).astype(np.int8)
    for scale in (0.0, 1 / 3, -1.75, -0.0, 2.0**-99, 2.0**99, 1e-40):
        given = [codes, np.full(16, scale, np.float32)]
        same_bits(library, "dequantise_i8", given, np.zeros(WIDTH, BF16))
    x, c = sums_and_columns()
    for scale in SCALES:
        same_bits(library, "dequantise_i32", [x, np.full(16, scale, np.float32), c], np.zeros(WIDTH, BF16))
    same_bits(library, "cast_i8_bf16", [codes], np.zeros(WIDTH, BF16))
    x = rows()[0]
    same_bits(library, "cast_bf16_f32", [x.astype(BF16)], np.zeros(WIDTH, np.float32))
    same_bits(library, "cast_f32_bf16", [x.astype(np.float32)], np.zeros(WIDTH, BF16))
