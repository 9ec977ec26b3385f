"""Operands in the order in which cores eat them, packed on the host.

Block floats (bfp16ebs8) come in tiles of 8 x 8 values, 72 bytes: 8 blocks of 9 bytes. Blocks lie along K, so a tile
holds 8 rows of A, or 8 columns of B. DMAs cannot reorder 9-byte blocks, hence the host makes these orders:
  A (M x K) and C (M x N): [M/8][K/8][72]; a C, with its blocks along N, can be the A of a next product
  B (K x N): [N/n][K/k][n/8][k/8][72] for cores with k x n tiles
bfloat16 B (K x N): [N/n][K/k][n/t][k/s][s][t].
"""

from numbers import Integral

import ml_dtypes
import numpy as np

from bdforge.formats.bfp16 import BLOCK, BLOCK_BYTES, decode, encode, refuse

TILE_BYTES = BLOCK * BLOCK_BYTES
"""Bytes of 8 x 8 block-float values."""

_BF16 = np.dtype(ml_dtypes.bfloat16)


def pack_bfp16(a: np.ndarray) -> np.ndarray:
    """A, floats of shape (M, K), as block floats along K: uint8 (M//8, K//8, 72), C-contiguous.

    Raises `FormatError` for sizes that are no multiples of 8, and for what `encode` refuses.
    """
    refuse("pack_bfp16", _matrix_problems(a, ("M", BLOCK), ("K", BLOCK)))
    rows, columns = a.shape
    blocks = encode(a).reshape(rows // BLOCK, BLOCK, columns // BLOCK, BLOCK_BYTES)
    return blocks.transpose(0, 2, 1, 3).copy(order="C").reshape(rows // BLOCK, columns // BLOCK, TILE_BYTES)


def unpack_bfp16(tiles: np.ndarray) -> np.ndarray:
    """The float32 matrix (M, K) of tiles uint8 (M//8, K//8, 72) in the order of `pack_bfp16`. Raises `FormatError`."""
    refuse("unpack_bfp16", _tile_problems(tiles, 3, "(M//8, K//8, 72)"))
    rows, columns, _ = tiles.shape
    blocks = tiles.reshape(rows, columns, BLOCK, BLOCK_BYTES).transpose(0, 2, 1, 3)
    return decode(blocks).reshape(rows * BLOCK, columns * BLOCK)


def pack_bfp16_b(b: np.ndarray, *, k: int, n: int) -> np.ndarray:
    """B, floats of shape (K, N), as block floats along K for cores with k x n tiles.

    Returns uint8 (N//n, K//k, n//8, k//8, 72), C-contiguous: inside a tile of 72 bytes column after column.
    Raises `FormatError` for sizes that do not fit, every reason at once, and for what `encode` refuses.
    """
    action = "pack_bfp16_b"
    refuse(action, _size_problems((("k", k, BLOCK), ("n", n, BLOCK))))
    refuse(action, _matrix_problems(b, ("K", k), ("N", n)))
    tiles = pack_bfp16(b.T)
    return _column_tiles(tiles, n // BLOCK, k // BLOCK)


def unpack_bfp16_b(packed: np.ndarray) -> np.ndarray:
    """The float32 matrix (K, N) of which `pack_bfp16_b` makes `packed`. Raises `FormatError`."""
    refuse("unpack_bfp16_b", _tile_problems(packed, 5, "(N//n, K//k, n//8, k//8, 72)"))
    columns, depths, column_tiles, depth_tiles, _ = packed.shape
    tiles = packed.transpose(0, 2, 1, 3, 4).reshape(columns * column_tiles, depths * depth_tiles, TILE_BYTES)
    return unpack_bfp16(tiles).T


def pack_bf16_b(b: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """B, bfloat16 of shape (K, N), for cores with k x n tiles and s x t micro-tiles.

    Returns bfloat16 (N//n, K//k, n//t, k//s, s, t), C-contiguous. Raises `FormatError` for another dtype and for sizes
    that do not fit, every reason at once.
    """
    action = "pack_bf16_b"
    refuse(action, _size_problems((("k", k, s), ("n", n, t))))
    refuse(action, _dtype_problems(b) + _matrix_problems(b, ("K", k), ("N", n)))
    depth, columns = b.shape
    shaped = b.reshape(depth // k, k // s, s, columns // n, n // t, t)
    return shaped.transpose(3, 0, 4, 1, 2, 5).copy(order="C")


def unpack_bf16_b(packed: np.ndarray) -> np.ndarray:
    """The bfloat16 matrix (K, N) of which `pack_bf16_b` makes `packed`. Raises `FormatError`."""
    problems = _dtype_problems(packed)
    if packed.ndim != 6 or not packed.size:
        problems.append(f"packed B has shape {packed.shape}, expected (N//n, K//k, n//t, k//s, s, t)")
    refuse("unpack_bf16_b", problems)
    columns, depths, column_blocks, depth_blocks, s, t = packed.shape
    rows_first = packed.transpose(1, 3, 4, 0, 2, 5)
    return rows_first.reshape(depths * depth_blocks * s, columns * column_blocks * t)


def _column_tiles(tiles: np.ndarray, of_n: int, of_k: int) -> np.ndarray:
    columns, depths, _ = tiles.shape
    shaped = tiles.reshape(columns // of_n, of_n, depths // of_k, of_k, TILE_BYTES)
    return shaped.transpose(0, 2, 1, 3, 4).copy(order="C")


def _size_problems(sizes: tuple[tuple[str, int, int], ...]) -> list[str]:
    problems = []
    for name, size, multiple in sizes:
        if not isinstance(size, Integral) or size < 1:
            problems.append(f"{name} is {size!r}, expected a positive integer")
        elif size % multiple:
            problems.append(f"{name} = {size} is no multiple of {multiple}, the side of a micro-tile")
    return problems


def _matrix_problems(matrix: np.ndarray, *sides: tuple[str, int]) -> list[str]:
    if matrix.ndim != 2 or not matrix.size:
        return [f"the matrix has shape {matrix.shape}, expected ({' x '.join(name for name, _ in sides)})"]
    return [
        f"{name} = {size} is no multiple of {multiple}, pad it to {-(-size // multiple) * multiple}"
        for (name, multiple), size in zip(sides, matrix.shape, strict=True)
        if size % multiple
    ]


def _dtype_problems(matrix: np.ndarray) -> list[str]:
    if matrix.dtype == _BF16:
        return []
    return [f"values are {matrix.dtype}, expected bfloat16; use .astype(ml_dtypes.bfloat16)"]


def _tile_problems(tiles: np.ndarray, ndim: int, expected: str) -> list[str]:
    problems = []
    if tiles.dtype != np.uint8:
        problems.append(f"tiles are {tiles.dtype}, expected uint8")
    if tiles.ndim != ndim or tiles.shape[-1] != TILE_BYTES or not tiles.size:
        problems.append(f"tiles have shape {tiles.shape}, expected {expected}")
    return problems
