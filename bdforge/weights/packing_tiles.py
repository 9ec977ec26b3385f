"""B in the order in which the cores eat it, tile by tile and micro-tile by micro-tile, for any type of element."""

import numpy as np

from bdforge.weights.packing_problems import matrix_problems, multiple_problems, packed_problems, refuse, tile_problems


def pack_tiles(b: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """Reorder `b` of shape (K, N), any dtype, for cores with k x n tiles of B and s x t micro-tiles.

    Returns the same elements as (N//n, K//k, n//t, k//s, s, t), C-contiguous: element [jt, kt, q, kb, s', t'] is
    b[kt*k + kb*s + s', jt*n + q*t + t'].

    Raises `WeightError` for another rank and for sizes that are not multiples (every reason at once).
    """
    refuse("pack_tiles", tile_problems(k, n, s, t) or matrix_problems(b, None) or multiple_problems(b, k, n))
    rows, columns = b.shape
    split = b.reshape(rows // k, k // s, s, columns // n, n // t, t)
    return np.ascontiguousarray(split.transpose(3, 0, 4, 1, 2, 5))


def unpack_tiles(tiles: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """The matrix (K, N) of which `pack_tiles` with the same k, n, s, t makes `tiles`.

    Raises `WeightError` for another shape.
    """
    refuse("unpack_tiles", tile_problems(k, n, s, t) or packed_problems(tiles, (n // t, k // s, s, t), None))
    return tiles.transpose(1, 3, 4, 0, 2, 5).reshape(tiles.shape[1] * k, tiles.shape[0] * n)
