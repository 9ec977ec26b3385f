"""The GEMM reorders against numpy's reshape and transpose."""

import numpy as np
import pytest

from bd_patterns import Pattern
from bdforge.devices.types import TYPES
from bdforge.operators.gemm.reorders import c_lines, column_blocks, micro_tiles, slab_slice
from support.differences import same

SIZES = [(8, 24, 4, 8), (16, 8, 8, 8), (12, 20, 3, 4), (4, 8, 4, 8)]


def tiled(matrix: np.ndarray, r: int, s: int) -> np.ndarray:
    rows, columns = matrix.shape
    return matrix.reshape(rows // r, r, columns // s, s).transpose(0, 2, 1, 3).ravel()


def walked(memory: np.ndarray, extents, offset: int = 0) -> np.ndarray:
    sizes, strides = extents
    return memory.ravel()[Pattern(sizes, strides, offset).order()]


@pytest.mark.parametrize(("m", "k", "r", "s"), SIZES)
def test_lines_become_micro_tiles(m: int, k: int, r: int, s: int):
    a = np.random.default_rng(1).integers(-128, 128, (m, k))
    same(walked(a, micro_tiles(m, k, r, s, k)), tiled(a, r, s))


@pytest.mark.parametrize(("k", "n", "s", "t"), SIZES)
def test_column_major_operands_become_column_blocks(k: int, n: int, s: int, t: int):
    slab = np.random.default_rng(5).integers(-128, 128, (3 * k, n))
    blocks = slab[k : 2 * k].reshape(k // s, s, n // t, t).transpose(2, 0, 1, 3)
    same(walked(slab, column_blocks(k, n, s, t), k * n), blocks.ravel())
    assert slab_slice(TYPES["int8"], False, k, 3 * k, n, s, t) == column_blocks(k, n, s, t)


@pytest.mark.parametrize(("m", "n", "r", "t"), SIZES)
def test_c_returns_from_micro_tiles_to_rows(m: int, n: int, r: int, t: int):
    c = np.random.default_rng(4).integers(-1000, 1000, (m, n))
    same(walked(tiled(c, r, t), c_lines("row", m, n, r, t)), c.ravel())
    back = Pattern(*micro_tiles(m, n, r, t, n)).inverse()
    assert Pattern(*c_lines("row", m, n, r, t)).coalesced() == back.coalesced()


@pytest.mark.parametrize(("m", "n", "r", "t"), SIZES)
def test_transposed_micro_tiles_of_c_become_columns(m: int, n: int, r: int, t: int):
    c = np.random.default_rng(6).integers(-128, 128, (m, n))
    tiles = c.reshape(m // r, r, n // t, t).transpose(0, 2, 3, 1)
    same(walked(tiles, c_lines("column", m, n, r, t)), c.T.ravel())
