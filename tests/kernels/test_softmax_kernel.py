"""Softmax of rows against numpy in float64: random rows, equal numbers, spikes, late large ones, masks, huge ranges."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from codegen.test_assembled_kernels import call
from support.differences import same

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
CASES = [("aie2p", 32, "1.0F"), ("aie2p", 256, "0.08838835F"), ("aie2", 48, "0.7F"), ("aie2p", 7168, "3.0F")]
MACHINE_CASES = CASES[:2]


def options(width: int, factor: str) -> tuple[str, ...]:
    return f"TILE_ELEMENTS={width}", f"FACTOR={factor}"


def build_of(generation: str, width: int, factor: str) -> Build:
    return Build(generation, ("softmax_bf16",), (8, 8, 8), tuple(f"-D{option}" for option in options(width, factor)))


BUILDS = [build_of(*case) for case in CASES]


def rows(width: int) -> list[np.ndarray]:
    rng = np.random.default_rng(width)
    spike, late, masked = np.zeros(width), rng.normal(size=width), rng.normal(scale=3, size=width)
    spike[width // 2], late[-1] = 300, 1e4
    masked[rng.random(width) < 0.5] = -np.inf
    masked[1::7] = -3e38
    zeros = rng.choice([0.0, -0.0], width)
    normal = [rng.normal(scale=scale, size=width) for scale in (1, 3, 30, 1e-3, 1e-9, 1e4, 1e30)]
    equal = [np.full(width, value) for value in (0.0, -0.0, 5.0, -1e30, 3e38, -np.inf)]
    return [*normal, *equal, zeros, -abs(zeros), spike, -spike, late, masked, np.arange(width) / 8, -abs(normal[1])]


def expected(x: np.ndarray, factor: float) -> tuple[np.ndarray, np.ndarray]:
    """Values, and how far results may be off; numbers below -2^100 count as it."""
    x = np.maximum(x, -(2.0**100))
    below = factor * (x.max() - x)
    e = np.exp(-below)
    y = e / e.sum()
    return y, (2.0**-7 + 2.0**-12 + 2.0**-14 * np.minimum(below, 64)) * y + 2.0**-63


@pytest.mark.parametrize(("generation", "width", "factor"), CASES)
def test_rows_keep_to_their_bound(kernel_library, generation, width, factor):
    library = kernel_library(build_of(generation, width, factor))
    for row in rows(width):
        x, y = row.astype(BF16), aligned(width + 32, BF16)
        y[width:] = 7
        library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
        library.call("softmax_bf16", aligned_copy(x, BF16), y)
        exact, off = expected(x.astype(float), float(factor[:-1]))
        found = y[:width].astype(float)
        assert (abs(found - exact) <= off).all()
        assert abs(found.sum() - 1) < 2.0**-8
        assert (y[width:].astype(float) == 7).all()


@pytest.mark.parametrize(("generation", "width", "factor"), MACHINE_CASES)
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, generation, width, factor):
    library = kernel_library(build_of(generation, width, factor))
    kernel = assembled("softmax_bf16", generation, options(width, factor))
    for row in rows(width):
        x, wanted, found = row.astype(BF16), aligned(width, BF16), np.zeros(width, BF16)
        library.call("softmax_bf16", aligned_copy(x, BF16), wanted)
        call(kernel, generation, [x, found])
        same(found.view(np.uint16), wanted.view(np.uint16))
