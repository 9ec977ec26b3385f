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


def test_reorders_are_written_as_the_design_states_them():
    assert micro_tiles(64, 128, 8, 16, 128) == ((8, 8, 8, 16), (8 * 128, 16, 128, 1))
    assert c_lines("row", 64, 32, 8, 4) == ((8, 8, 8, 4), (8 * 32, 4, 8 * 4, 1))


@pytest.mark.parametrize("name", ["int8", "bf16"])
def test_a_slice_is_cut_out_of_a_deeper_slab(name: str):
    slab = np.arange(8 * 48).reshape(8, 48)
    extents = slab_slice(TYPES[name], True, 16, 48, 8, 8, 4)
    same(walked(slab, extents, 32), tiled(slab[:, 32:48], 4, 8))


def test_a_slice_of_block_floats_moves_whole_blocks():
    """Blocks of 8 x 8 values are 72 bytes; a micro-tile of 8 x 16 is two of them."""
    slab = np.arange(2 * 4 * 72).reshape(2, 4 * 72)  # 16 x 32 values
    extents = slab_slice(TYPES["bfp16"], True, 16, 32, 16, 16, 8)
    same(walked(slab, extents, 2 * 72), slab[:, 2 * 72 :].ravel())


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


def test_many_candidates_are_walked_at_once():
    k = np.array([8, 16, 24])
    sizes, strides = slab_slice(TYPES["int8"], True, k, 2 * k, 8, 8, 4)
    for i, depth in enumerate(k):
        one = slab_slice(TYPES["int8"], True, int(depth), 2 * int(depth), 8, 8, 4)
        assert tuple(int(np.broadcast_to(v, 3)[i]) for v in (*sizes, *strides)) == (*one[0], *one[1])
