"""The GEMM reorders against numpy's reshape and transpose."""

import numpy as np
import pytest

from bd_patterns import Pattern, PatternError
from bd_patterns.granules import granule_faults
from bdforge.operators.gemm.reorders import (
    a_micro_tiles,
    b_column_blocks,
    b_column_major_micro_tiles,
    b_micro_tiles,
    c_columns,
    c_rows,
)

SIZES = [(8, 24, 4, 8), (16, 8, 8, 8), (12, 20, 3, 4), (4, 8, 4, 8)]


def micro_tiles(matrix: np.ndarray, r: int, s: int) -> np.ndarray:
    rows, columns = matrix.shape
    return matrix.reshape(rows // r, r, columns // s, s).transpose(0, 2, 1, 3).ravel()


@pytest.mark.parametrize(("m", "k", "r", "s"), SIZES)
def test_a_becomes_micro_tiles(m: int, k: int, r: int, s: int):
    a = np.random.default_rng(1).integers(-128, 128, (m, k))
    assert (a.ravel()[a_micro_tiles(m, k, r, s).order()] == micro_tiles(a, r, s)).all()


def test_a_is_written_as_the_design_states_it():
    assert a_micro_tiles(64, 128, 8, 16) == Pattern((8, 8, 8, 16), (8 * 128, 16, 128, 1))
    assert b_micro_tiles(128, 64, 16, 8) == Pattern((8, 8, 16, 8), (16 * 64, 8, 64, 1))
    assert c_rows(64, 32, 8, 4) == Pattern((8, 8, 8, 4), (8 * 32, 4, 8 * 4, 1))


def test_a_tile_is_cut_out_of_a_wider_slab():
    slab = np.arange(8 * 48).reshape(8, 48)
    pattern = a_micro_tiles(8, 16, 4, 8, k_mt=48, column=32)
    assert (slab.ravel()[pattern.order()] == micro_tiles(slab[:, 32:48], 4, 8)).all()


def test_a_tile_outside_its_slab_is_refused():
    with pytest.raises(PatternError, match="columns 40 to 55 lie outside a row of 48 elements"):
        a_micro_tiles(8, 16, 4, 8, k_mt=48, column=40)


@pytest.mark.parametrize(("k", "n", "s", "t"), SIZES)
def test_row_major_b_becomes_micro_tiles(k: int, n: int, s: int, t: int):
    b = np.random.default_rng(2).integers(-128, 128, (k, n))
    assert (b.ravel()[b_micro_tiles(k, n, s, t).order()] == micro_tiles(b, s, t)).all()


def test_a_b_tile_is_cut_out_of_wider_rows():
    b = np.arange(8 * 48).reshape(8, 48)
    assert (
        b.ravel()[b_micro_tiles(8, 16, 4, 8, row_stride=48, column=16).order()] == micro_tiles(b[:, 16:32], 4, 8)
    ).all()


def elementwise(k: int, n: int, s: int, t: int) -> Pattern:
    """Column-major B (memory n x k) in the order of `b_micro_tiles`, one element of a column at a time."""
    return Pattern((k // s, n // t, s, t), (s, t * k, 1, k))


@pytest.mark.parametrize(("k", "n", "s", "t"), SIZES)
def test_column_major_b_becomes_the_same_or_transposed_micro_tiles(k: int, n: int, s: int, t: int):
    b = np.random.default_rng(3).integers(-128, 128, (k, n))
    memory = b.T.ravel()
    assert (memory[elementwise(k, n, s, t).order()] == micro_tiles(b, s, t)).all()
    tiles = micro_tiles(b, s, t).reshape(-1, s, t)
    assert (memory[b_column_major_micro_tiles(k, n, s, t).order()] == tiles.transpose(0, 2, 1).ravel()).all()


@pytest.mark.parametrize("element_bits", [8, 16])
def test_only_transposed_micro_tiles_of_column_major_b_travel_as_words(element_bits: int):
    faults = granule_faults(elementwise(16, 8, 8, 4), element_bits)
    assert any("stride 16 in innermost dimension 3" in fault for fault in faults)
    assert granule_faults(b_column_major_micro_tiles(16, 8, 8, 4), element_bits) == []
    assert granule_faults(elementwise(16, 8, 8, 4), 32) == []


@pytest.mark.parametrize(("m", "n", "r", "t"), SIZES)
def test_c_returns_from_micro_tiles_to_rows(m: int, n: int, r: int, t: int):
    c = np.random.default_rng(4).integers(-1000, 1000, (m, n))
    assert (micro_tiles(c, r, t)[c_rows(m, n, r, t).order()] == c.ravel()).all()
    assert c_rows(m, n, r, t).coalesced() == a_micro_tiles(m, n, r, t).inverse().coalesced()


def test_four_stacked_tiles_of_c_return_as_one():
    tiles = np.arange(4 * 8 * 16).reshape(32, 16)
    stacked = np.concatenate([micro_tiles(tiles[i : i + 8], 4, 8) for i in range(0, 32, 8)])
    assert (stacked[c_rows(32, 16, 4, 8).order()] == tiles.ravel()).all()


@pytest.mark.parametrize("reorder", [a_micro_tiles, b_micro_tiles, b_column_major_micro_tiles, c_rows])
def test_sizes_that_do_not_divide_are_all_named(reorder):
    with pytest.raises(PatternError, match=r"= 10 is no multiple of . = 4; . = 9 is no multiple of . = 8"):
        reorder(10, 9, 4, 8)


@pytest.mark.parametrize(("k", "n", "s", "t"), SIZES)
def test_row_major_b_becomes_column_blocks(k: int, n: int, s: int, t: int):
    slab = np.random.default_rng(5).integers(-128, 128, (3 * k, n))
    blocks = slab[k : 2 * k].reshape(k // s, s, n // t, t).transpose(2, 0, 1, 3)
    assert (slab.ravel()[b_column_blocks(k, n, s, t, row=k).order()] == blocks.ravel()).all()


@pytest.mark.parametrize(("m", "n", "r", "t"), SIZES)
def test_transposed_micro_tiles_of_c_become_columns(m: int, n: int, r: int, t: int):
    c = np.random.default_rng(6).integers(-128, 128, (m, n))
    tiles = c.reshape(m // r, r, n // t, t).transpose(0, 2, 3, 1)
    assert (tiles.ravel()[c_columns(m, n, r, t).order()] == c.T.ravel()).all()
