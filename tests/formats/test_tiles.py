"""Orders of packed operands against loops written from their definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.devices.formats import FormatError, encode, pack_bfp16, rounded, unpack_bfp16
from support.differences import same

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
            same(tiles[row // 8, block, row % 8 * 9 :][:9], expected)


@QUICK
@given(few, few)
def test_unpacking_undoes_packing(rows, columns):
    a = normal((8 * rows, 8 * columns))
    same(unpack_bfp16(pack_bfp16(a)), rounded(a))


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: pack_bfp16(normal((12, 20))), "M = 12 is no multiple of 8, pad it to 16; K = 20 .* pad it to 24"),
        (lambda: pack_bfp16(normal(8)), r"shape \(8,\), expected \(M x K\)"),
        (lambda: pack_bfp16(normal((8, 8)).astype(np.float64)), "values are float64"),
        (lambda: pack_bfp16(normal((0, 8))), r"shape \(0, 8\), expected \(M x K\)"),
        (lambda: unpack_bfp16(np.zeros((1, 1, 72), np.int8)), "tiles are int8, expected uint8"),
        (lambda: unpack_bfp16(np.zeros((0, 1, 72), np.uint8)), r"shape \(0, 1, 72\), expected"),
        (lambda: unpack_bfp16(np.zeros((1, 1, 71), np.uint8)), r"shape \(1, 1, 71\)"),
        (lambda: unpack_bfp16(np.zeros((1, 72), np.uint8)), r"shape \(1, 72\), expected \(M//8, K//8, 72\)"),
    ],
)
def test_sizes_and_types_that_do_not_fit_are_refused(call, sentence):
    with pytest.raises(FormatError, match=sentence):
        call()
