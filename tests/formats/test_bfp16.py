"""Block floats against an exact, slow reference in fractions."""

from fractions import Fraction
from math import frexp

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bdforge.devices.formats import BLOCK, BLOCK_BYTES, FormatError, decode, encode, rounded
from support.differences import same

QUICK = settings(deadline=None, derandomize=True, max_examples=100)
singles = st.floats(width=32, allow_nan=False, allow_infinity=False)
blocks_of_floats = st.one_of(
    st.lists(singles, min_size=8, max_size=8),
    st.lists(st.floats(-4, 4, width=32), min_size=8, max_size=8),
    st.lists(st.sampled_from([127.25, 127.5, 127.75, 255.0, -127.5, -127.75, -128.0, 0.5, 1.5, -0.0]), min_size=8,
             max_size=8),
)  # fmt: skip


def exact(value):
    """A float32 as a fraction, subnormals as 0."""
    return Fraction(float(value)) if abs(float(value)) >= 2.0**-126 else Fraction(0)


def exponent_of(value):
    """The biased exponent of a float32."""
    return frexp(value)[1] + 126 if value else 0


def slow_block(values):
    """One block by the definition."""
    shared = max(exponent_of(v) for v in values)
    while True:
        mantissas = [round(v / Fraction(2) ** (shared - 133)) for v in values]  # Fraction rounds ties to even
        if max(mantissas) <= 127:
            break
        if shared == 254:
            break
        shared += 1
    lowest = -128 if shared < 254 else -127
    return [shared, *(min(127, max(lowest, m)) % 256 for m in mantissas)]


@QUICK
@given(blocks_of_floats)
def test_encoding_matches_the_definition_in_fractions(values):
    values = np.array(values, np.float32)
    assert list(encode(values)[0]) == slow_block([exact(v) for v in values])


@QUICK
@given(st.binary(min_size=BLOCK_BYTES, max_size=BLOCK_BYTES))
def test_decoding_matches_the_definition_in_fractions(block):
    values = decode(np.frombuffer(block, np.uint8)[None])
    for value, byte in zip(values, block[1:], strict=True):
        mantissa = byte - 256 * (byte > 127)
        true = mantissa * Fraction(2) ** (block[0] - 133)
        assert np.isinf(value) if abs(true) >= 2**128 else Fraction(float(value)) == true


@QUICK
@given(blocks_of_floats)
def test_what_was_rounded_once_stays_but_beside_a_mantissa_of_minus_128(values):
    blocks = encode(np.array(values, np.float32))
    once = decode(blocks)
    if 128 not in blocks[..., 1:] and np.isfinite(once).all():
        same(rounded(once), once)


@QUICK
@given(blocks_of_floats)
def test_error_stays_below_the_largest_over_127_and_a_half(values):
    values = np.array(values, np.float32)
    largest = max(abs(Fraction(float(v))) for v in values)
    for value, result in zip(values, rounded(values), strict=True):
        error = abs(Fraction(float(result)) - Fraction(float(value)))
        assert error <= largest * 2 / 255 + Fraction(2) ** -126


def test_small_integers_are_exact():
    values = np.arange(-127, 128, dtype=np.float32)
    same(rounded(values), values)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16])
def test_narrower_floats_convert_as_their_values(dtype):
    values = np.random.default_rng(1).normal(size=(3, 16)).astype(dtype)
    same(encode(values), encode(values.astype(np.float32)))


def test_blocks_lie_along_the_chosen_axis_and_the_last_is_filled_with_zeros():
    values = np.random.default_rng(2).normal(size=(11, 5)).astype(np.float32)
    padded = np.pad(values, [(0, 5), (0, 0)])
    same(rounded(values, axis=0), decode(encode(padded.T)).T[:11])


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (np.zeros(8, np.float64), "values are float64, expected float32, float16 or bfloat16"),
        (np.zeros(12, np.float32), r"shape \(12,\), the last must be a positive multiple of 8"),
        (np.zeros((0, 8), np.float32), r"shape \(0, 8\), the last must be a positive multiple of 8"),
        (np.float32(1), r"shape \(\), the last must be"),
        (np.array([[0] * 8, [0, 0, np.inf] + [0] * 5], np.float32), r"the value at \(1, 2\) is inf"),
        (np.array([np.nan] + [0] * 7, np.float32), r"the value at \(0,\) is nan"),
    ],
)
def test_what_has_no_block_form_is_refused(values, sentence):
    with pytest.raises(FormatError, match=sentence):
        encode(values)


@pytest.mark.parametrize(
    ("blocks", "sentence"),
    [
        (np.zeros((1, 9), np.int8), "blocks are int8, expected uint8"),
        (np.zeros(9, np.uint8), r"shape \(9,\), expected \(..., blocks, 9\)"),
        (np.zeros((0, 9), np.uint8), r"shape \(0, 9\), expected \(..., blocks, 9\)"),
        (np.zeros((2, BLOCK), np.uint8), r"shape \(2, 8\), expected \(..., blocks, 9\)"),
    ],
)
def test_what_is_no_block_is_refused(blocks, sentence):
    with pytest.raises(FormatError, match=sentence):
        decode(blocks)


LEAST, LARGEST = 2.0**-126, float(np.finfo(np.float32).max)
EDGES = {
    "the least normal": (LEAST, 1, 64),
    "the largest subnormal": (LEAST - 2.0**-149, 0, 0),
    "the least negative normal": (-LEAST, 1, -64),
    "the next exponent": (2 * LEAST, 2, 64),
    "the last before a carry": (1.98828125, 127, 127),  # 127.25
    "a tie that carries": (1.9921875, 128, 64),  # 127.5 goes to the even 128
    "a tie that goes to even below": (1.9765625, 127, 126),  # 126.5
    "a negative one without a carry": (-1.9921875, 127, -128),
    "the last before the largest exponent": (-1.99609375 * 2.0**126, 253, -128),  # -127.75
    "a carry up to the largest exponent": (1.9921875 * 2.0**126, 254, 64),
    "the largest": (LARGEST, 254, 127),
    "the largest negative": (-LARGEST, 254, -127),
    "a power at the largest exponent": (2.0**127, 254, 64),
}
"""A value, its exponent and its mantissa in steps of 2^(E - 133)."""


@pytest.mark.parametrize("name", EDGES)
def test_a_block_of_one_value_at_an_edge_has_this_exponent_and_mantissa(name: str):
    value, exponent, mantissa = EDGES[name]
    (block,) = encode(np.full(BLOCK, value, np.float32))
    assert (int(block[0]), block[1:].view(np.int8).tolist()) == (exponent, [mantissa] * BLOCK)


def test_a_subnormal_beside_the_least_normal_is_zero_and_one_of_half_is_kept_in_a_larger_block():
    values = np.array([LEAST, LEAST - 2.0**-149, 2 * LEAST, -LEAST, 0, 4 * LEAST, 0, 0], np.float32)
    (block,) = encode(values)
    assert (int(block[0]), block[1:].view(np.int8).tolist()) == (3, [16, 0, 32, -16, 0, 64, 0, 0])
