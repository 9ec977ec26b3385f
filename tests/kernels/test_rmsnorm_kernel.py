"""RMS norms of rows against numpy in float64: random rows, rows of one spike, of zeros, huge and tiny ones."""

import ml_dtypes
import numpy as np
import pytest
from kernel_library import Build, aligned, aligned_copy

from bdforge.core.codegen.kernels import assembled
from codegen.test_assembled_kernels import call
from support.differences import same

pytestmark = pytest.mark.slow

BF16 = ml_dtypes.bfloat16
CASES = [("aie2p", 32), ("aie2p", 2560), ("aie2", 48), ("aie2p", 4096), ("aie2p", 6912)]
EPSILON = 1e-6


def build_of(generation: str, width: int) -> Build:
    return Build(generation, ("rmsnorm_bf16",), (8, 8, 8), (f"-DTILE_ELEMENTS={width}", f"-DEPSILON={EPSILON}F"))


BUILDS = [build_of(*case) for case in CASES]


def rows(width: int) -> list[np.ndarray]:
    rng = np.random.default_rng(width)
    spike = np.zeros(width)
    spike[width // 2] = -300
    normal = [rng.normal(scale=scale, size=width) for scale in (1, 1, 1.4, 2, 1e-3, 1e-9, 1e9, 1e15)]
    return [*normal, spike, np.zeros(width), np.full(width, 1.0), np.full(width, 1 - 2.0**-8), np.arange(width)]


@pytest.mark.parametrize(("generation", "width"), CASES)
def test_rows_keep_to_their_bound(kernel_library, generation, width):
    library, rng = kernel_library(build_of(generation, width)), np.random.default_rng(1)
    w = rng.normal(size=width).astype(BF16)
    w[:2] = 0, -1
    for row in rows(width):
        x, y = row.astype(BF16), aligned(width + 32, BF16)
        y[width:] = 7
        library.call("set_modes", 1, 3)  # rounding up, symmetric saturation
        library.call("rmsnorm_bf16", aligned_copy(x, BF16), aligned_copy(w, BF16), y)
        wide = x.astype(float)
        exact = wide * w.astype(float) / np.sqrt((wide**2).mean() + EPSILON)
        assert (abs(y[:width].astype(float) - exact) <= (2**-7 + 2**-12) * abs(exact) + 2.0**-125).all()
        assert (y[width:].astype(float) == 7).all()


@pytest.mark.parametrize("width", [32, 2560])
def test_machine_code_gives_the_bits_of_the_compiled_kernel(kernel_library, width):
    library, rng = kernel_library(build_of("aie2p", width)), np.random.default_rng(3)
    kernel = assembled("rmsnorm_bf16", "aie2p", (f"TILE_ELEMENTS={width}", f"EPSILON={EPSILON}F"))
    w = rng.normal(size=width).astype(BF16)
    w[0] = 0
    for row in rows(width):
        x, wanted, found = row.astype(BF16), aligned(width, BF16), np.zeros(width, BF16)
        library.call("rmsnorm_bf16", aligned_copy(x, BF16), aligned_copy(w, BF16), wanted)
        call(kernel, "aie2p", [x, w, found])
        same(found.view(np.uint16), wanted.view(np.uint16))


def test_every_mean_has_its_root(kernel_library):
    """Mantissas over four binades: rows of one value, whose norm is w alone."""
    library, w = kernel_library(build_of("aie2p", 32)), np.full(32, 1).astype(BF16)
    for value in np.exp2(np.linspace(-3, 1, 700)):
        x = np.full(32, value).astype(BF16)
        x[::2] = (x[::2].astype(float) * 1.25).astype(BF16)
        y, wide = aligned(32, BF16), x.astype(float)
        library.call("rmsnorm_bf16", aligned_copy(x, BF16), aligned_copy(w, BF16), y)
        exact = wide / np.sqrt((wide**2).mean() + EPSILON)
        assert (abs(y.astype(float) / exact - 1) <= 2**-7 + 2**-12).all()
