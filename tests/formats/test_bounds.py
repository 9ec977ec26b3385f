"""Bounds of products: kept by sums in float32 with every rounding in its place, and not without need."""

import ml_dtypes
import numpy as np
import pytest

from bdforge.devices.formats import error_bound, rounded
from support.differences import same

M, K, N = 5, 96, 11


def operands(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(M, K)), rng.normal(size=(K, N)) * 10.0 ** rng.integers(-3, 4, (1, N))
    return a.astype(ml_dtypes.bfloat16), b.astype(ml_dtypes.bfloat16)


def computed(a, b, k, accumulator):
    """Sums in float32, one rounding per value of K, stored as `accumulator` after each step."""
    c = np.zeros((M, N), np.float32)
    for start in range(0, K, k):
        for depth in range(start, start + k):
            c = c + a[:, depth : depth + 1].astype(np.float32) * b[depth].astype(np.float32)
        if accumulator == "bf16":
            c = c.astype(ml_dtypes.bfloat16).astype(np.float32)
        if accumulator == "bfp16":
            c = rounded(c)
    return c


@pytest.mark.parametrize("accumulator", ["f32", "bf16", "bfp16"])
@pytest.mark.parametrize("k", [8, 24, 96])
def test_sums_keep_the_bound(accumulator, k):
    for seed in range(5):
        a, b = operands(seed)
        bound = error_bound(a, b, k=k, accumulator=accumulator, blocks=False)
        same(computed(a, b, k, accumulator), a.astype(float) @ b.astype(float), f"seed {seed}", tile=(1, 8), atol=bound)


def test_each_narrow_step_costs_and_float32_hardly():
    a, b = operands(1)
    sizes = [error_bound(a, b, k=k, accumulator="bf16").mean() for k in (8, 48, 96)]
    assert sizes[0] > sizes[1] > sizes[2] > 100 * error_bound(a, b, k=96).mean()


def test_blocks_are_taken_as_the_product_sees_them():
    a, b = operands(2)
    same(error_bound(a, b, k=8), error_bound(rounded(a), rounded(b, 0), k=8))
    assert not np.array_equal(error_bound(a, b, k=8), error_bound(a, b, k=8, blocks=False))


@pytest.mark.parametrize(
    ("depth", "k", "blocks", "sums", "calls"),
    [(9, 9, True, 2, 1), (9, 8, True, 2, 2), (9, 9, False, 9, 1), (9, 16, True, 2, 1), (8, 8, True, 1, 1)],
)
def test_the_bound_of_ones_is_worked_out_by_hand(depth: int, k: int, blocks: bool, sums: int, calls: int):
    """Every sum of a block or value, and every call that takes C up again, may round by 2^-23 of all magnitudes."""
    ones = np.ones(depth, np.float32)
    roundings = error_bound(ones[None], ones[:, None], k=k, blocks=blocks)[0, 0] / depth * 2**23
    assert roundings == sums + calls, f"K = {depth} by {k} has {sums} sums and {calls} calls, not {roundings} in all"


DOUBLING = 2.0 ** np.arange(11) * np.where(np.arange(11) % 3, 1, -1)  # by column, every third negative
LARGEST_OF_BLOCK = np.array([7] * 8 + [10] * 3)  # the last columns are a block of three


@pytest.mark.parametrize(("k", "calls"), [(8, 2), (9, 2), (16, 1)])
def test_bounds_of_narrow_accumulators_are_worked_out_by_hand(k: int, calls: int):
    """Sixteen products of one magnitude: a call rounds all of what it sums, which earlier calls have let grow."""
    a = np.where(np.arange(16) % 2, 1, -1).astype(np.float32).reshape(1, 16)
    b = np.tile(DOUBLING, (16, 1)).astype(np.float32)
    sums = 16 * 2.0 ** np.arange(11)
    float32 = (16 + calls) / 2**23
    bf16 = sums * (float32 + calls / 256 * (1 + float32 + 1 / 256) ** calls)
    blocks = sums * float32 + sums[LARGEST_OF_BLOCK] * calls * (2 / 255) * (1 + float32 + 2 / 255) ** calls
    for accumulator, bound in (("bf16", bf16), ("bfp16", blocks)):
        found = error_bound(a, b, k=k, accumulator=accumulator, blocks=False)  # type: ignore[arg-type]
        same(found, [bound], rtol=1e-12)
