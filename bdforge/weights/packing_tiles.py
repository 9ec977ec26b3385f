"""B in the order in which the cores eat it, by tiles and micro-tiles, for any type of element and for int4."""

import numpy as np

from bdforge.weights.codes import first
from bdforge.weights.errors import WeightError
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


LOWEST, HIGHEST = -8, 7  # two's complement in 4 bit


def pack_int4(w: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """Pack `w`, int8 of shape (K, N) with values -8 to 7, for cores with k x n tiles of B and s x t micro-tiles.

    Returns uint8 of shape (N//n, K//k, n//t, k//s, s, t//2), C-contiguous. Byte [jt, kt, q, kb, s', h] holds in its low
    nibble w[kt*k + kb*s + s', jt*n + q*t + 2*h] and in its high nibble the column after it, both in two's complement.

    Raises `WeightError` for another dtype or rank, for an odd t, for sizes that are not multiples (every reason at
    once) and for a value outside -8 to 7 (row, column and value of the first).
    """
    refuse("pack_int4", _int4_problems(k, n, s, t) or matrix_problems(w))
    _refuse_values(w)
    tiles = pack_tiles(w, k=k, n=n, s=s, t=t).view(np.uint8)
    return (tiles[..., 0::2] & 15) | (tiles[..., 1::2] << 4)


def unpack_int4(packed: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """The weights, int8 of shape (K, N), of which `pack_int4` with the same k, n, s, t makes `packed`.

    Raises `WeightError` for another dtype or shape.
    """
    problems = _int4_problems(k, n, s, t)
    refuse("unpack_int4", problems or packed_problems(packed, (n // t, k // s, s, t // 2)))
    tiles = np.empty((*packed.shape[:-1], t), np.int8)
    tiles[..., 0::2] = (packed << 4).view(np.int8) >> 4
    tiles[..., 1::2] = packed.view(np.int8) >> 4
    return unpack_tiles(tiles, k=k, n=n, s=s, t=t)


def _int4_problems(k: int, n: int, s: int, t: int) -> list[str]:
    problems = tile_problems(k, n, s, t)
    return problems or ([f"t = {t} is odd, two columns share a byte"] if t % 2 else [])


def _refuse_values(w: np.ndarray) -> None:
    if w.min() >= LOWEST and w.max() <= HIGHEST:
        return
    row, column = first((w < LOWEST) | (w > HIGHEST))
    raise WeightError(f"pack_int4: the weight at row {row}, column {column} is {w[row, column]}, expected -8 to 7")
