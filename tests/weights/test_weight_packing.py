"""Packing against the layout formula, element by element."""

import tracemalloc
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.weights import WeightError, pack, pad, unpack
from support.weight_files import ternary

PEAK_BYTES_MAX = 300_000_000


@st.composite
def tilings(draw):
    s, t = draw(st.integers(1, 5)), draw(st.sampled_from([1, 2, 3, 4, 8, 12, 16]))
    k, n = s * draw(st.integers(1, 3)), 4 * t * draw(st.integers(1, 3))
    return {"k": k, "n": n, "s": s, "t": t}, k * draw(st.integers(1, 3)), n * draw(st.integers(1, 3))


def packed_by_the_formula(w, k, n, s, t):
    rows, columns = w.shape
    packed = np.zeros((columns // n, rows // k, n // (4 * t), k // s, s, t), np.uint8)
    for index in np.ndindex(packed.shape):
        jt, kt, q, kb, s_, t_ = index
        for f in range(4):
            code = int(w[kt * k + kb * s + s_, jt * n + q * 4 * t + f * t + t_]) + 1
            packed[index] |= code << (2 * f)
    return packed


@settings(deadline=None, derandomize=True, max_examples=40)
@given(tilings(), st.integers(0, 999))
def test_every_code_stands_where_the_formula_says(tiling, seed):
    sizes, rows, columns = tiling
    w = ternary(seed, rows, columns)
    packed = pack(w, **sizes)
    assert packed.dtype == np.uint8
    assert packed.flags.c_contiguous
    np.testing.assert_array_equal(packed, packed_by_the_formula(w, **sizes), strict=True)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(tilings(), st.integers(0, 999))
def test_unpacking_undoes_packing(tiling, seed):
    sizes, rows, columns = tiling
    w = ternary(seed, rows, columns)
    np.testing.assert_array_equal(unpack(pack(w, **sizes), **sizes), w, strict=True)


def test_eight_by_eight_micro_tiles_are_the_default():
    w = ternary(1, 48, 128)
    np.testing.assert_array_equal(pack(w, k=24, n=64), packed_by_the_formula(w, 24, 64, 8, 8), strict=True)


def test_one_weight_moves_one_field():
    w = np.zeros((16, 64), np.int8)
    w[9, 32 + 2 * 8 + 5] = 1
    packed = pack(w, k=16, n=64)
    assert packed[0, 0, 1, 1, 1, 5] == 0b01_10_01_01
    assert (packed == 0b01_01_01_01).sum() == packed.size - 1


@pytest.mark.parametrize("view", [np.asfortranarray, lambda w: np.repeat(w, 2, axis=1)[:, ::2]])
def test_memory_order_of_the_weights_does_not_matter(view):
    w = ternary(2, 16, 64)
    np.testing.assert_array_equal(pack(view(w), k=8, n=32), pack(w, k=8, n=32))


def test_packing_leaves_its_input_alone():
    w = ternary(3, 16, 64)
    before = w.copy()
    packed = pack(w, k=8, n=32)
    packed_before = packed.copy()
    unpack(packed, k=8, n=32)
    np.testing.assert_array_equal(w, before)
    np.testing.assert_array_equal(packed, packed_before)


def test_the_largest_layer_packs_in_little_memory(record_property):
    w = ternary(4, 2560, 13824)
    tracemalloc.start()
    packed = pack(w, k=128, n=64)
    _, peak_bytes = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    record_property("pack_peak_bytes", peak_bytes)
    assert packed.nbytes == w.size // 4
    assert w.size // 4 < peak_bytes < PEAK_BYTES_MAX


@pytest.mark.parametrize(
    ("w", "reason"),
    [
        (np.zeros((8, 32), np.int32), "weights are int32, expected int8"),
        (np.zeros((8, 32), np.uint8), "weights are uint8, expected int8"),
        (np.zeros(256, np.int8), "1 dimensions, expected 2"),
        (np.zeros((0, 32), np.int8), "0 x 32, expected at least 1 x 1"),
    ],
)
def test_other_arrays_than_int8_matrices_are_refused(w, reason):
    with pytest.raises(WeightError, match=reason):
        pack(w, k=8, n=32)


@pytest.mark.parametrize("value", [-128, -2, 2, 127])
def test_the_first_value_that_is_not_ternary_is_named(value):
    w = ternary(5, 16, 64)
    w[3, 50] = w[4, 1] = value
    with pytest.raises(WeightError, match=rf"row 3, column 50 is {value}, expected -1, 0 or 1"):
        pack(w, k=8, n=32)


def test_every_size_that_is_no_multiple_is_named():
    with pytest.raises(WeightError) as caught:
        pack(np.zeros((20, 70), np.int8), k=8, n=32)
    assert str(caught.value) == (
        "pack: K = 20 is no multiple of k = 8, pad it to 24; N = 70 is no multiple of n = 32, pad it to 96"
    )
    with pytest.raises(WeightError) as caught:
        pack(np.zeros((20, 72), np.int8), k=20, n=72)
    assert str(caught.value) == "pack: k = 20 is no multiple of s = 8; n = 72 is no multiple of 4 * t = 32"


@pytest.mark.parametrize("size", [0, -8, 8.0, None])
def test_tile_sizes_are_positive_integers(size):
    with pytest.raises(WeightError, match=r"k is .*, expected a positive integer; s is .*, expected"):
        pack(np.zeros((8, 32), np.int8), k=size, n=32, s=size)


def test_code_3_is_refused_with_its_row_and_column():
    sizes = {"k": 8, "n": 32, "s": 4, "t": 4}
    w = ternary(6, 16, 64)
    for row, column in product((0, 7, 15), (0, 21, 63)):
        packed = pack(w, **sizes)
        jt, kt, q, kb = column // 32, row // 8, column % 32 // 16, row % 8 // 4
        packed[jt, kt, q, kb, row % 4, column % 4] |= 3 << (2 * (column % 16 // 4))
        with pytest.raises(WeightError, match=rf"code 3 at row {row}, column {column} "):
            unpack(packed, **sizes)


@pytest.mark.parametrize(
    ("packed", "reason"),
    [
        (np.zeros((1, 1, 1, 1, 8, 8), np.int8), "int8, expected uint8"),
        (np.zeros(64, np.uint8), r"shape \(64,\), expected \(N//n, K//k, 1, 1, 8, 8\)"),
        (np.zeros((1, 1, 1, 2, 8, 8), np.uint8), r"expected \(N//n, K//k, 1, 1, 8, 8\)"),
        (np.zeros((0, 1, 1, 1, 8, 8), np.uint8), r"shape \(0, 1"),
    ],
)
def test_unpacking_refuses_arrays_of_another_tiling(packed, reason):
    with pytest.raises(WeightError, match=reason):
        unpack(packed, k=8, n=32)


def test_padding_adds_zero_weights_below_and_to_the_right():
    w = ternary(7, 5, 7)
    padded = pad(w, 8, 32)
    np.testing.assert_array_equal(padded[:5, :7], w)
    assert padded.dtype == np.int8
    assert np.count_nonzero(padded) == np.count_nonzero(w)
    last = unpack(pack(padded, k=8, n=32), k=8, n=32)[5:, 7:]
    assert not last.any()


def test_padding_to_the_same_size_changes_nothing():
    w = ternary(8, 5, 7)
    assert pad(w, 5, 7) is w


def test_padding_never_cuts():
    with pytest.raises(WeightError) as caught:
        pad(ternary(9, 5, 7), 4, 6)
    assert str(caught.value) == "pad: K = 4 is less than the rows, 5; N = 6 is less than the columns, 7"
