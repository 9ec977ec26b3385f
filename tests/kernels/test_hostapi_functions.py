"""Reductions, scalar products and the core's own functions of the stand-in, in kernels as others write them."""

import ctypes

import ml_dtypes
import numpy as np
import pytest

from tests.kernels.kernel_library import HERE, aligned, aligned_copy, compile_without_warning

pytestmark = pytest.mark.slow

BF16 = np.dtype(ml_dtypes.bfloat16)


@pytest.fixture(scope="module")
def probe(tmp_path_factory):
    path = tmp_path_factory.mktemp("functions") / "probe.so"
    compile_without_warning("-O1", "-shared", "-o", path, HERE / "functions_probe.cc")
    library = ctypes.CDLL(str(path))
    library.sums.restype = library.least.restype = ctypes.c_float
    return library


def called(function, n, values):
    x, y = aligned_copy(values, BF16), aligned(n, BF16)
    function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data), n)
    return x.astype(np.float64), y.astype(np.float64)


def drawn(seed, n, scale):
    return np.random.default_rng(seed).normal(size=n) * scale


@pytest.mark.parametrize("scale", [1e-3, 1, 30])
def test_a_row_is_normed(probe, scale):
    x, y = called(probe.norm, 96, drawn(1, 96, scale))
    np.testing.assert_allclose(y, x / np.sqrt((x**2).mean() + 1e-5), rtol=2.0**-7)


@pytest.mark.parametrize("values", [drawn(2, 96, 4), np.zeros(96), [*np.zeros(95), 80]])
def test_a_row_of_probabilities(probe, values):
    x, y = called(probe.softmax, 96, values)
    e = 2 ** (1.4453125 * (x - x.max()).astype(BF16).astype(np.float64))  # log2(e) as the kernel has it
    np.testing.assert_allclose(y, e / e.sum(), rtol=2.0**-6)
    assert abs(y.sum() - 1) < 2.0**-6


def test_silu_by_tanh(probe):
    x, y = called(probe.silu, 64, drawn(3, 64, 3))
    np.testing.assert_allclose(y, x / (1 + np.exp(-x)), rtol=2.0**-7, atol=np.abs(x).max() * 2.0**-8)


def test_sums_by_coefficients_squares_and_scalars(probe):
    rng = np.random.default_rng(4)
    x, c = (aligned_copy(rng.integers(-300, 300, n), np.int16) for n in (48, 16))
    y = aligned(16, np.int32)
    probe.filter(*(ctypes.c_void_p(v.ctypes.data) for v in (x, c, y)))
    a, b, d = x.astype(np.int64).reshape(3, 16)
    np.testing.assert_array_equal(y, c[3] * a + c[4] * b + c[5] * d - 7 * a - 5 * b + d * d)


def test_floats_are_reduced_in_halves_and_rooted(probe):
    x = aligned_copy(drawn(5, 16, 10) ** 2 + 0.01, np.float32)
    sums = x.copy()
    while len(sums) > 1:
        sums = sums[: len(sums) // 2] + sums[len(sums) // 2 :]
    given, y = ctypes.c_void_p(x.ctypes.data), aligned(48, np.float32)
    assert (probe.sums(given), probe.least(given)) == (sums[0], x.min())
    probe.roots(given, ctypes.c_void_p(y.ctypes.data))
    wide = x.astype(np.float64)
    np.testing.assert_allclose(y.reshape(3, 16), [np.sqrt(wide), 1 / np.sqrt(wide), 1 / wide], rtol=2.0**-23)
