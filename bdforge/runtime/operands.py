"""Host buffers of a GEMM: B packed, A and C staged where a tile is larger than they are."""

import numpy as np

from bdforge.plan import GemmSequence, Plan
from bdforge.plan.staging import packed_sizes, tiling
from bdforge.weights import pack, pad


def packed_weights(plan: Plan, weights: np.ndarray) -> np.ndarray:
    """B as every sequence of `plan` reads it: uint8 (n-tiles, K/k, bytes...), as `bdforge.weights.pack` makes it.

    `weights`: int8 (K, N) of -1, 0, 1. The last slab of K and the last n-tile move back until they end with the matrix;
    rows of the last slab that the one before it holds have weight 0, so that nothing counts twice. WeightError for
    other types or values.
    """
    tiles, kernel = tiling(plan), plan.kernel
    K, N = packed_sizes(tiles, *weights.shape) if weights.ndim == 2 else (1, 1)
    grown = pad(weights, K, N)
    rows = moved_back(K, tiles.k_mt)
    whole = len(rows) - tiles.k_mt
    arranged = grown[np.ix_(rows, moved_back(N, tiles.n))] if K % tiles.k_mt or N % tiles.n else grown
    if covered := len(rows) - K:
        arranged[whole : whole + covered] = 0
    return pack(arranged, k=tiles.k, n=tiles.n, s=kernel.s, t=kernel.t)


def moved_back(size: int, tile: int) -> np.ndarray:
    """The positions 0 to size - 1 in tiles; the last tile moves back until it ends at `size`."""
    starts = np.minimum(np.arange(0, size, tile), size - tile)
    return (starts[:, None] + np.arange(tile)).ravel()


def staged_a(planned: GemmSequence, a: np.ndarray) -> np.ndarray:
    """What the array reads as A: `a` itself, or a copy in the upper left corner of a buffer of zeros."""
    if planned.staging.a is None:
        return a
    buffer = np.zeros((planned.staging.a.rows, planned.staging.a.columns), a.dtype)
    buffer[: a.shape[0], : a.shape[1]] = a
    return buffer


def c_buffer(planned: GemmSequence, dtype: np.dtype | type = np.int32) -> np.ndarray:
    """What the array writes as C: zeros of (M, N), or of the staged shape, whose upper left corner is C."""
    staged, problem = planned.staging.c, planned.problem
    return np.zeros((problem.M, problem.N) if staged is None else (staged.rows, staged.columns), dtype)
