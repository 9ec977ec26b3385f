"""Operands in the order of the cores, and narrowing, in numpy: the kernels' contracts, not their code."""

import numpy as np

MICRO = {
    ("aie2p", "i8"): (8, 8, 8),
    ("aie2p", "i4"): (8, 8, 8),
    ("aie2p", "i2"): (8, 8, 8),
    ("aie2", "i8"): (4, 8, 8),
    ("aie2", "i4"): (4, 16, 8),
    ("aie2", "i2"): (4, 8, 8),
}
"""r, s, t by generation and type of B."""


def blocks(matrix, rows, columns):
    """The matrix as [row block][column block][rows][columns]."""
    m, n = matrix.shape
    return matrix.reshape(m // rows, rows, n // columns, columns).transpose(0, 2, 1, 3)


def micro_tiled(matrix, rows, columns, transposed=False):
    """A or C."""
    tiles = blocks(matrix, rows, columns)
    return (tiles.transpose(0, 1, 3, 2) if transposed else tiles).ravel()


def from_micro_tiles(tiles, m, n, rows, columns, transposed=False):
    """The matrix of which `micro_tiled` makes `tiles`."""
    inside = (columns, rows) if transposed else (rows, columns)
    shaped = tiles.reshape(m // rows, n // columns, *inside)
    return (shaped.transpose(0, 3, 1, 2) if transposed else shaped.transpose(0, 2, 1, 3)).reshape(m, n)


def packed_b(matrix, s, t, transposed=False):
    """B: column block outer, depth inner."""
    tiles = blocks(matrix, s, t).transpose(1, 0, 2, 3)
    return (tiles.transpose(0, 1, 3, 2) if transposed else tiles).ravel()


def int4_bytes(values):
    """Two elements to a byte, the first in the low nibble."""
    nibbles = (values & 15).reshape(-1, 2)
    return nibbles[:, 0] | nibbles[:, 1] << 4


def weight_bytes(matrix, kind, s, t, transposed=False):
    """B of i8, i4 or i2 in memory. Of i2, codes w + 1, a byte has those of four column blocks, the first lowest."""
    if kind == "i2":
        codes = packed_b(matrix + 1, s, t).reshape(-1, 4, matrix.shape[0] * t)
        return (codes << np.array([[0], [2], [4], [6]])).sum(axis=1).astype(np.uint8).ravel()
    order = packed_b(matrix, s, t, transposed)
    return (int4_bytes(order) if kind == "i4" else order).astype(np.uint8)


def field_scale(n):
    """By which sums of ternary weights are scaled, by column."""
    return 4 ** (np.arange(n) // 8 % 4)


def narrowed(sums, shift, dtype):
    """sums / 2^shift to the nearest, ties to even, then clamped. Exact: |sums| stays below 2^53."""
    info = np.iinfo(dtype)
    return np.clip(np.rint(sums / 2**shift), info.min, info.max).astype(np.int64)
