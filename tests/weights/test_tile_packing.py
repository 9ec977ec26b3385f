"""Whole and 4-bit elements in the cores' order, against the layout formula element by element."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.weights import WeightError, pack_int4, pack_tiles, unpack_int4, unpack_tiles


@st.composite
def tilings(draw, even_t=False):
    s = draw(st.integers(1, 5))
    t = draw(st.sampled_from([2, 4, 8, 6] if even_t else [1, 3, 4, 8]))
    k, n = s * draw(st.integers(1, 3)), t * draw(st.integers(1, 3))
    return {"k": k, "n": n, "s": s, "t": t}, k * draw(st.integers(1, 3)), n * draw(st.integers(1, 3))


def tiles_by_the_formula(b, k, n, s, t):
    K, N = b.shape
    tiles = np.zeros((N // n, K // k, n // t, k // s, s, t), b.dtype)
    for index in np.ndindex(tiles.shape):
        jt, kt, q, kb, s_, t_ = index
        tiles[index] = b[kt * k + kb * s + s_, jt * n + q * t + t_]
    return tiles


def weights(seed, K, N, low, high, dtype=np.int8):
    return np.random.default_rng(seed).integers(low, high + 1, (K, N)).astype(dtype)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(tilings(), st.integers(0, 999), st.sampled_from([np.int8, np.int16, np.float32]))
def test_every_element_stands_where_the_formula_says(tiling, seed, dtype):
    sizes, K, N = tiling
    b = weights(seed, K, N, -128, 127, dtype)
    tiles = pack_tiles(b, **sizes)
    assert tiles.flags.c_contiguous
    np.testing.assert_array_equal(tiles, tiles_by_the_formula(b, **sizes), strict=True)
    np.testing.assert_array_equal(unpack_tiles(tiles, **sizes), b, strict=True)


@settings(deadline=None, derandomize=True, max_examples=40)
@given(tilings(even_t=True), st.integers(0, 999))
def test_every_nibble_stands_where_the_formula_says(tiling, seed):
    sizes, K, N = tiling
    w = weights(seed, K, N, -8, 7)
    packed = pack_int4(w, **sizes)
    nibbles = tiles_by_the_formula(w, **sizes).view(np.uint8) % 16
    expected = nibbles[..., 0::2] + 16 * nibbles[..., 1::2]
    assert packed.flags.c_contiguous
    np.testing.assert_array_equal(packed, expected, strict=True)
    np.testing.assert_array_equal(unpack_int4(packed, **sizes), w, strict=True)


def test_the_first_of_two_columns_lies_in_the_low_nibble():
    w = np.zeros((8, 8), np.int8)
    w[1, 2:4] = 5, -2
    assert pack_int4(w, k=8, n=8)[0, 0, 0, 0, 1].tolist() == [0, 0xE5, 0, 0]


@pytest.mark.parametrize("pack", [pack_tiles, pack_int4])
@pytest.mark.parametrize(
    ("w", "sizes", "sentence"),
    [
        (np.zeros((16, 16), np.int8), {"k": 12, "n": 8}, "k = 12 is no multiple of s = 8"),
        (np.zeros((16, 16), np.int8), {"k": 8, "n": 12}, "n = 12 is no multiple of t = 8"),
        (np.zeros((16, 16), np.int8), {"k": 0, "n": 8}, "k is 0, expected a positive integer"),
        (np.zeros((12, 20), np.int8), {"k": 8, "n": 8}, "K = 12 is no .* pad it to 16; N = 20 is no .* pad it to 24"),
        (np.zeros(16, np.int8), {"k": 8, "n": 8}, "weights have 1 dimensions"),
        (np.zeros((0, 8), np.int8), {"k": 8, "n": 8}, "weights are 0 x 8"),
    ],
)
def test_what_does_not_fit_is_refused_with_every_reason(pack, w, sizes, sentence):
    with pytest.raises(WeightError, match=sentence):
        pack(w, **sizes)


@pytest.mark.parametrize("value", [-9, 8])
def test_values_beyond_4_bit_are_refused_by_place(value):
    w = np.zeros((16, 8), np.int8)
    w[9, 3] = value
    with pytest.raises(WeightError, match=f"row 9, column 3 is {value}, expected -8 to 7"):
        pack_int4(w, k=8, n=8)


def test_int4_needs_int8_and_pairs_of_columns():
    with pytest.raises(WeightError, match="weights are int32, expected int8"):
        pack_int4(np.zeros((8, 8), np.int32), k=8, n=8)
    with pytest.raises(WeightError, match="t = 3 is odd"):
        pack_int4(np.zeros((8, 3), np.int8), k=8, n=3, t=3)


def test_unpacking_refuses_another_shape():
    with pytest.raises(WeightError, match=r"shape \(1, 1, 1, 1, 8, 8\), expected \(N//n, K//k, 1, 1, 8, 4\)"):
        unpack_int4(np.zeros((1, 1, 1, 1, 8, 8), np.uint8), k=8, n=8)
    with pytest.raises(WeightError, match="packed weights are int8, expected uint8"):
        unpack_int4(np.zeros((1, 1, 1, 1, 8, 4), np.int8), k=8, n=8)
    with pytest.raises(WeightError, match=r"expected \(N//n, K//k, 2, 1, 8, 8\)"):
        unpack_tiles(np.zeros((1, 1, 1, 1, 8, 8)), k=8, n=16)
