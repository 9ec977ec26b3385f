"""What the puzzles' cores call, in numpy: `bdforge emulate 06_rtp.toml --kernels kernels.py --html run.html`."""

import numpy as np

B = 8
"""Rows and columns of a micro-tile: matrices in a core lie micro-tile after micro-tile, as MAC units take them."""


def add_one(a: np.ndarray, b: np.ndarray) -> None:
    b[:] = a + 1


def scale(a: np.ndarray, b: np.ndarray, factor: int) -> None:
    b[:] = a * factor


def multiply(x: np.ndarray, w: np.ndarray, b: np.ndarray) -> None:
    b[:] = x * w


def zero(c: np.ndarray) -> None:
    c[:] = 0


def matmul(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c += a b, of 16 x 16: a and c row by row of micro-tiles, b column by column of them."""
    tiles = [x.reshape(2, 2, B, B).astype(np.int64) for x in (a, b, c)]
    c[:] = (tiles[2] + np.einsum("ikab,jkbc->ijac", *tiles[:2])).reshape(c.shape)
