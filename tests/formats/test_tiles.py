"""Orders of packed operands against loops written from their definition."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.formats import (
    FormatError,
    encode,
    pack_bf16_b,
    pack_bfp16,
    pack_bfp16_b,
    rounded,
    unpack_bf16_b,
    unpack_bfp16,
    unpack_bfp16_b,
)

QUICK = settings(deadline=None, derandomize=True, max_examples=25)
few = st.integers(1, 3)


def normal(shape, dtype=np.float32):
    return np.random.default_rng(3).normal(size=shape).astype(dtype)


def test_tiles_of_a_hold_eight_rows_in_order():
    a = normal((24, 40))
    tiles = pack_bfp16(a)
    assert tiles.shape == (3, 5, 72)
    for row in range(24):
        for block in range(5):
            expected = encode(a[row, 8 * block : 8 * block + 8])[0]
            assert np.array_equal(tiles[row // 8, block, row % 8 * 9 :][:9], expected)


def test_tiles_of_b_hold_eight_columns_in_order():
    (k, n), b = (16, 24), normal((32, 48))
    tiles = pack_bfp16_b(b, k=k, n=n)
    assert tiles.shape == (2, 2, 3, 2, 72)
    for column in range(48):
        for block in range(4):
            expected = encode(b[8 * block : 8 * block + 8, column])[0]
            tile = tiles[column // n, 8 * block // k, column % n // 8, block % (k // 8)]
            assert np.array_equal(tile[column % 8 * 9 :][:9], expected)


def test_bf16_b_is_ordered_as_its_definition_says():
    k, n, s, t = 16, 12, 8, 4
    b = np.arange(32 * 24).reshape(32, 24).astype(ml_dtypes.bfloat16)
    packed = pack_bf16_b(b, k=k, n=n, s=s, t=t)
    assert packed.shape == (2, 2, 3, 2, 8, 4)
    for row in range(32):
        for column in range(24):
            place = column // n, row // k, column % n // t, row % k // s, row % s, column % t
            assert packed[place] == b[row, column]


@QUICK
@given(few, few, few, few)
def test_unpacking_undoes_packing(depths, columns, depth_tiles, column_tiles):
    k, n = 8 * depth_tiles, 8 * column_tiles
    b = normal((depths * k, columns * n))
    assert np.array_equal(unpack_bfp16(pack_bfp16(b)), rounded(b))
    assert np.array_equal(unpack_bfp16_b(pack_bfp16_b(b, k=k, n=n)), rounded(b, 0))
    narrow = b.astype(ml_dtypes.bfloat16)
    assert np.array_equal(unpack_bf16_b(pack_bf16_b(narrow, k=k, n=n)), narrow)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: pack_bfp16(normal((12, 20))), "M = 12 is no multiple of 8, pad it to 16; K = 20 .* pad it to 24"),
        (lambda: pack_bfp16(normal(8)), r"shape \(8,\), expected \(M x K\)"),
        (lambda: pack_bfp16(normal((8, 8)).astype(np.float64)), "values are float64"),
        (lambda: pack_bfp16_b(normal((8, 8)), k=12, n=0), "k = 12 is no multiple of 8.*; n is 0, expected a positive"),
        (lambda: pack_bfp16_b(normal((24, 8)), k=16, n=8), "K = 24 is no multiple of 16, pad it to 32"),
        (lambda: pack_bf16_b(normal((8, 8)), k=8, n=8), "values are float32, expected bfloat16"),
        (lambda: pack_bf16_b(normal((12, 12)), k=12, n=12), "k = 12 is no multiple of 8.*; n = 12 is no multiple of 8"),
        (lambda: pack_bfp16_b(normal((0, 8)), k=8, n=8), r"shape \(0, 8\), expected \(K x N\)"),
        (lambda: unpack_bfp16(np.zeros((1, 1, 71), np.uint8)), r"shape \(1, 1, 71\)"),
        (lambda: unpack_bfp16(np.zeros((1, 72), np.uint8)), r"shape \(1, 72\), expected \(M//8, K//8, 72\)"),
        (lambda: unpack_bfp16_b(np.zeros((1, 1, 1, 1, 72), np.int8)), "tiles are int8, expected uint8"),
        (lambda: unpack_bf16_b(np.zeros((8, 8), ml_dtypes.bfloat16)), r"shape \(8, 8\), expected \(N//n, K//k"),
    ],
)
def test_sizes_and_types_that_do_not_fit_are_refused(call, sentence):
    with pytest.raises(FormatError, match=sentence):
        call()


def test_tiles_may_be_as_small_as_one_value():
    b = normal((2, 3)).astype(ml_dtypes.bfloat16)
    packed = pack_bf16_b(b, k=1, n=1, s=1, t=1)
    assert packed.shape == (3, 2, 1, 1, 1, 1)
    np.testing.assert_array_equal(packed.reshape(3, 2), b.T)
    np.testing.assert_array_equal(unpack_bf16_b(packed), b)
