"""Elements to 32-bit words, against a stream written out bit by bit."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pattern_strategies import WIDTHS, patterns, word_patterns, words_of

from bd_patterns import Pattern, PatternError, to_granules

quick = settings(deadline=None, derandomize=True, max_examples=150)


@quick
@given(st.sampled_from(WIDTHS), st.data())
def test_granules_carry_the_same_bits_in_the_same_order(element_bits: int, data: st.DataObject):
    pattern = data.draw(word_patterns(element_bits))
    words = words_of(list(pattern.offsets()), element_bits)
    try:
        granules = to_granules(pattern, element_bits)
    except PatternError:
        assert element_bits in (24, 48)  # the others are drawn whole
    else:
        assert list(granules.offsets()) == words


@quick
@given(patterns(max_rank=3), st.sampled_from(WIDTHS))
def test_a_coalesced_pattern_is_refused_exactly_when_words_break(pattern: Pattern, element_bits: int):
    coalesced = pattern.coalesced()
    words = words_of(list(coalesced.offsets()), element_bits)
    if words is None:
        with pytest.raises(PatternError, match="pattern"):
            to_granules(coalesced, element_bits)
    else:
        assert list(to_granules(coalesced, element_bits).offsets()) == words


@pytest.mark.parametrize(
    ("pattern", "element_bits", "granules"),
    [
        (Pattern((4, 64), (2560, 1), 64), 8, Pattern((4, 16), (640, 1), 16)),
        (Pattern((4, 64), (128, 1)), 2, Pattern((4, 4), (8, 1))),
        (Pattern((4, 64), (128, 1)), 4, Pattern((4, 8), (16, 1))),
        (Pattern((1, 4), (3, 1)), 8, Pattern((1, 1), (0, 1))),
        (Pattern((4, 3), (5, 2)), 32, Pattern((4, 3), (5, 2))),
        (Pattern((4, 3), (5, 1)), 64, Pattern((4, 6), (10, 1))),
        (Pattern((4, 3), (5, 2)), 64, Pattern((4, 3, 2), (10, 4, 1))),
    ],
)
def test_sizes_and_strides_are_scaled(pattern: Pattern, element_bits: int, granules: Pattern):
    assert to_granules(pattern, element_bits) == granules


def test_every_broken_word_is_reported():
    with pytest.raises(PatternError) as caught:
        to_granules(Pattern((2, 3, 6), (31, 8, 2), 1), 8)
    for fault in (
        "offset 1 x 8 bit = 8 bit",
        "stride 31 x 8 bit = 248 bit is no multiple of 32 bit in dimension 0",
        "stride 2 in innermost dimension 2 of 8-bit elements must be 1",
        "size 6 x 8 bit = 48 bit",
    ):
        assert fault in str(caught.value)
    assert "dimension 1;" not in str(caught.value)


def test_a_short_inner_run_names_the_coalesced_pattern_that_fits():
    with pytest.raises(PatternError, match=r"coalesced as \(8\):\(1\)\+0 it fits"):
        to_granules(Pattern((4, 2), (2, 1)), 8)


def test_a_width_below_one_bit_is_refused():
    with pytest.raises(PatternError, match="element width 0 bit"):
        to_granules(Pattern((4,), (1,)), 0)
