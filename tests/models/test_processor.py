"""Products on the CPU: each kernel, and numpy, against integers; several callers at once; their times."""

import logging
import os
from concurrent.futures import ThreadPoolExecutor

import ml_dtypes
import numpy as np
import pytest

from bdforge.models import processor as module
from bdforge.models.errors import ModelError
from bdforge.models.processor import Native, Numpy, natives, processor
from bdforge.models.weights.ggml_blocks import Q8_0, QuantisedRows
from support.differences import same

KERNELS: list[Numpy] = [*natives(), Numpy()]
EACH = pytest.mark.parametrize("kernel", KERNELS, ids=[kernel.name.partition(" ")[0] for kernel in KERNELS])
SIZES = [(1, 1, 1), (3, 255, 5), (4, 256, 4), (5, 257, 3), (2, 640, 130), (9, 1100, 7), (0, 16, 2), (33, 2560, 24)]
"""M, K, N: on both sides of blocks of 4 columns, 4 rows and 256 weights."""


def operands(M: int, K: int, N: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, (M, K), np.int8), rng.integers(-1, 2, (K, N), np.int8)


@EACH
@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("narrow", [False, True], ids=["f32", "bf16"])
def test_products_are_exact_integers_times_their_scales(kernel: Numpy, sizes: tuple[int, int, int], narrow: bool):
    M, K, N = sizes
    codes, weights = operands(*sizes)
    rows, columns = (
        np.random.default_rng(2).uniform(0.1, 9, M + N).astype(np.float32)[:M],
        np.float32(0.3) + np.arange(N, dtype=np.float32),
    )
    wanted = (codes.astype(np.int64) @ weights).astype(np.float32) * rows[:, None] * columns
    got = kernel.scaled(kernel.pack(weights), K, codes, rows, columns, narrow=narrow)
    assert got.dtype == np.float32
    same(got, wanted.astype(ml_dtypes.bfloat16).astype(np.float32) if narrow else wanted, "products", strict=True)


@EACH
@pytest.mark.parametrize(("code", "weight"), [(-128, 1), (-128, -1), (127, 1), (127, -1)])
def test_the_largest_sums_fit(kernel: Numpy, code: int, weight: int):
    """16 bits hold what is summed in them, and float32 what numpy sums."""
    K = 13_824
    codes, weights = np.full((5, K), code, np.int8), np.full((K, 6), weight, np.int8)
    got = kernel.scaled(kernel.pack(weights), K, codes, np.ones(5), np.ones(6), narrow=False)
    assert np.unique(got).tolist() == [code * weight * K]


def test_numpy_sums_in_float64_where_float32_is_too_short():
    K = (1 << 17) + 1
    codes, weights = np.full((1, K), -128, np.int8), np.full((K, 1), -1, np.int8)
    codes[0, 0] = 1
    got = Numpy().scaled(Numpy().pack(weights), K, codes, np.ones(1), np.ones(1), narrow=False)
    assert got.item() == np.float32((K - 1) * 128 - 1)


@EACH
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.float64])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (2, 31, 5), (1, 64, 100), (17, 40, 9)], ids=str)
def test_tables_of_floats_are_multiplied(kernel: Numpy, dtype, sizes: tuple[int, int, int]):
    M, K, N = sizes
    rng = np.random.default_rng(3)
    x, table = rng.standard_normal((M, K), np.float32), rng.standard_normal((N, K), np.float32).astype(dtype)
    same(kernel.floats(x, table), x.astype(np.float64) @ table.astype(np.float64).T, rtol=1e-5, atol=1e-5)
    odd = np.repeat(table, 2, axis=1)[:, ::2]  # not one row behind the other
    same(kernel.floats(x, odd), x.astype(np.float64) @ table.astype(np.float64).T, rtol=1e-5, atol=1e-5)


@EACH
@pytest.mark.parametrize("sizes", [(1, 32, 1), (2, 96, 33), (17, 64, 9)], ids=str)
def test_tables_of_q8_0_are_multiplied(kernel: Numpy, sizes: tuple[int, int, int]):
    M, K, N = sizes
    rng = np.random.default_rng(4)
    blocks = np.zeros((N, K // 32), Q8_0)
    blocks["scale"], blocks["codes"] = rng.uniform(-1, 1, (N, K // 32)), rng.integers(-128, 128, (N, K // 32, 32))
    table = blocks["codes"].astype(np.float64) * blocks["scale"][..., None].astype(np.float64)
    x = rng.standard_normal((M, K), np.float32)
    got = kernel.floats(x, QuantisedRows(blocks))
    same(got, x.astype(np.float64) @ table.reshape(N, K).T, rtol=1e-5, atol=1e-3)


@EACH
def test_every_float16_is_read(kernel: Numpy):
    """Subnormal numbers, both zeros and infinities, one at a time."""
    values = np.arange(1 << 16, dtype=np.uint16).view(np.float16)
    values = values[~np.isnan(values)]
    same(kernel.floats(np.ones((1, 1), np.float32), values[:, None])[0], values.astype(np.float32), "float16")


def test_threads_and_forks_share_the_kernels():
    """Six callers at once; and a process that is forked while its parent's threads live has its own."""
    kernel = KERNELS[0]
    codes, weights = operands(8, 640, 640)
    packed, wanted = kernel.pack(weights), (codes.astype(np.int64) @ weights).astype(np.float32)

    def product(turn: int) -> np.ndarray:
        return kernel.scaled(packed, 640, np.roll(codes, turn, 0), np.ones(8), np.ones(640), narrow=False)

    with ThreadPoolExecutor(6) as pool:
        for turn, got in enumerate(pool.map(product, range(60))):
            same(got, np.roll(wanted, turn, 0), "of a thread")
    child = os.fork()
    if not child:
        os._exit(0 if np.array_equal(product(1), np.roll(wanted, 1, 0)) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_times_are_those_of_few_rows_or_of_many(monkeypatch):
    """Of weights that come from memory, or of products; whichever is longer, behind what any call takes."""
    kernel = Numpy()
    monkeypatch.setattr(Numpy, "_us", lambda self, M, K, N: 5.0 if N == 1 else 1e-3 * K * N * max(2, M / 4))
    assert kernel.rates == pytest.approx((5, 2e-3, 1e-3 / 4))
    assert kernel.us(1, 100, 200) == pytest.approx(45)
    assert kernel.us(16, 100, 200) == pytest.approx(5 + 4 * 20)


def test_a_time_is_the_least_of_a_few(monkeypatch):
    ticks = iter([0, 9, 10, 13, 20, 28, 30, 36, 40, 45])
    monkeypatch.setattr(module.time, "perf_counter", lambda: next(ticks) / 1e6)
    assert Numpy()._us(2, 8, 3) == pytest.approx(3)


@pytest.mark.parametrize(
    ("fault", "said"), [(None, "there is no C++ compiler g++"), (ModelError("odd"), "slowly: odd")]
)
def test_without_a_compiler_numpy_is_told_once(monkeypatch, caplog, fault: ModelError | None, said: str):
    def none() -> list[Native]:
        if fault is not None:
            raise fault
        return []

    monkeypatch.setattr(module, "natives", none)
    processor.cache_clear()
    try:
        with caplog.at_level(logging.WARNING):
            assert {type(processor()) for _ in range(2)} == {Numpy}
    finally:
        processor.cache_clear()
    (told,) = caplog.messages
    assert "by numpy" in told
    assert said in told
