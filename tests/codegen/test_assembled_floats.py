"""AIE2's products of bfloat16 in machine code: equal to numpy where sums are exact, else within the stated bound."""

import random
from math import nan

import numpy as np
import pytest
from test_assembled_kernels import call

from bdforge.core.codegen.kernels import assembled
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.translated import Translated
from bdforge.core.isa.errors import OpenError
from bdforge.devices.formats.bounds import error_bound
from support import micro_tiles as tiles
from support.differences import same

R, S, T = 4, 8, 4
OVERHEAD = 23  # cycles of a call besides the kernel: three pointers, the jump, DONE and what drains


def to_bits(values: np.ndarray) -> np.ndarray:
    """The upper halves of float32 numbers."""
    return (np.asarray(values, np.float32).view(np.uint32) >> 16).astype(np.uint16)


def to_floats(words: np.ndarray) -> np.ndarray:
    """bfloat16 words as numbers."""
    return (words.astype(np.uint32) << 16).view(np.float32)


def product(kind, a, b, before, defines=(), part=0, rho=1, executor: type = Translated):
    """C of a call on A (m/rho x k), B and C before (m x n), as float32, the call's cycles and the kernel's."""
    (m, n), k = before.shape, b.shape[0]
    turned = {operand: f"{operand}_TRANSPOSED" in defines for operand in "ABC"}
    c = tiles.micro_tiled(np.asarray(before, np.float32), R, T, turned["C"])
    given = [
        to_bits(tiles.micro_tiled(a, R, S, turned["A"])), to_bits(tiles.packed_b(b, S, T, turned["B"])),
        c.copy() if kind == "f32" else to_bits(c),
    ]  # fmt: skip
    options = (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}", f"DIM_RHO={rho}", *defines)
    kernel = assembled(f"mm_bf16_bf16_{kind}", "aie2", options)
    cycles = call(kernel, "aie2", given, part, executor=executor)
    found = given[2] if kind == "f32" else to_floats(given[2])
    return tiles.from_micro_tiles(found, m, n, R, T, turned["C"]), cycles, kernel.cycles


def integers(rng: np.random.Generator, m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, B and C of so small integers that bfloat16 holds all sums of products."""
    a, b = rng.integers(-3, 4, (m, k)), rng.integers(-1, 2, (k, n)) * (rng.random((k, n)) < 0.5)
    return a.astype(np.float32), b.astype(np.float32), rng.integers(-64, 65, (m, n)).astype(np.float32)


def check_integers(kind, tile, seed, defines=(), part=0, rho=1):
    """A call of integers against numpy, with other parts of C as they were."""
    m, k, n = tile
    a, b, before = integers(np.random.default_rng(seed), m, k, n)
    expected, rows = before.copy(), slice(part * m // rho, (part + 1) * m // rho)
    expected[rows] += a[rows] @ b
    if kind == "bf16":
        assert np.abs(expected).max() <= 256
    found, _, _ = product(kind, a[rows], b, before, defines, part, rho)
    same(found, expected, (kind, tile, defines))


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize(
    ("tile", "defines"),
    [
        ((8, 24, 16), ()),
        ((12, 8, 20), ("A_TRANSPOSED",)),
        ((4, 16, 4), ("B_TRANSPOSED",)),
        ((20, 16, 12), ("A_TRANSPOSED", "B_TRANSPOSED")),
        ((16, 32, 24), ("C_TRANSPOSED",)),
        ((8, 16, 28), ("A_TRANSPOSED", "B_TRANSPOSED", "C_TRANSPOSED")),
    ],
)
def test_sums_that_are_exact_in_any_order_equal_numpy(kind, tile, defines):
    check_integers(kind, tile, 3, defines)


@pytest.mark.parametrize("part", [0, 2])
def test_a_part_of_the_rows_leaves_the_others_alone(part):
    check_integers("f32", (24, 16, 16), 5, (), part, 3)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(40))
def test_any_tile_and_layout_equals_numpy(seed):
    rng = random.Random(seed)
    rho, kind = rng.choice((1, 1, 2)), rng.choice(("f32", "bf16"))
    tile = rho * R * rng.randint(1, 12), S * rng.randint(1, 12), T * rng.randint(1, 24)
    defines = [f"{operand}_TRANSPOSED" for operand in "ABC" if rng.random() < 0.3]
    check_integers(kind, tile, seed, defines, rng.randrange(rho), rho)


@pytest.mark.parametrize("kind", ["f32", "bf16"])
@pytest.mark.parametrize("spread", [0, 20])
def test_results_stay_within_the_stated_bound(kind, spread):
    m, k, n = 16, 72, 24
    rng = np.random.default_rng(spread)
    a, b = (
        to_floats(to_bits(rng.standard_normal(shape) * 2.0 ** rng.integers(-spread, spread + 1, shape)))
        for shape in ((m, k), (k, n))
    )
    a[0], b[:, 0] = 0, -0.0
    exact, bound = a.astype(np.float64) @ b, error_bound(a, b, k=k, accumulator=kind, blocks=False)
    found, _, _ = product(kind, a, b, np.zeros((m, n)))
    error = np.abs(found - exact)
    assert (error <= bound).all()
    assert error.max() > 0
    same(found[0], 0)


@pytest.mark.parametrize(
    ("kind", "tile"), [("f32", (64, 64, 64)), ("bf16", (96, 56, 96)), ("f32", (64, 64, 32)), ("bf16", (64, 104, 64))]
)
def test_kernels_of_published_tiles_multiply_at_their_rate(kind, tile):
    m, k, n = tile
    kernel = assembled(f"mm_bf16_bf16_{kind}", "aie2", (f"DIM_M={m}", f"DIM_K={k}", f"DIM_N={n}"))
    assert kernel.cycles is not None
    assert m * k * n / kernel.cycles >= 117


def test_cycles_are_those_that_the_kernel_states_with_both_executors():
    a, b, before = integers(np.random.default_rng(4), 16, 24, 16)
    runs = [product("f32", a, b, before, executor=executor) for executor in (Translated, Interpreter)]
    assert [cycles - stated for _, cycles, stated in runs] == [OVERHEAD, OVERHEAD]
    same(runs[0][0], runs[1][0])


def test_sums_of_float32_become_the_nearest_bfloat16():
    sums = np.random.default_rng(6).standard_normal(12 * 28).astype(np.float32)
    sums[:4] = [1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, 0]  # ties
    memory = sums.copy()
    call(assembled("finish_f32_bf16", "aie2", ("DIM_M=12", "DIM_N=28")), "aie2", [memory])
    found = to_floats(memory.view(np.uint16)[: sums.size]).astype(np.float64)
    _, exponents = np.frexp(sums.astype(np.float64))
    steps = np.exp2(exponents - 8.0)
    same(found, np.rint(sums / steps) * steps)


def test_a_nan_stops_the_core():
    a, b, before = integers(np.random.default_rng(4), 4, 8, 4)
    a[2, 3] = nan
    with pytest.raises(OpenError, match="what becomes of a NaN is open"):
        product("f32", a, b, before)
