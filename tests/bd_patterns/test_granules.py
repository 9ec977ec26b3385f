"""Elements in 32-bit words, against a stream written out bit by bit."""

from hypothesis import given, settings
from hypothesis import strategies as st
from pattern_strategies import WIDTHS, patterns, word_patterns, words_of

from bd_patterns import Pattern
from bd_patterns.granules import granule_faults

quick = settings(deadline=None, derandomize=True, max_examples=60)


@quick
@given(st.sampled_from(WIDTHS), st.data())
def test_patterns_drawn_whole_have_no_fault(element_bits: int, data: st.DataObject):
    pattern = data.draw(word_patterns(element_bits))
    assert granule_faults(pattern, element_bits) == [] or element_bits in (24, 48)
    assert words_of(list(pattern.offsets()), element_bits) is not None or element_bits in (24, 48)


@quick
@given(patterns(max_rank=3), st.sampled_from(WIDTHS))
def test_a_coalesced_pattern_is_refused_exactly_when_words_break(pattern: Pattern, element_bits: int):
    coalesced = pattern.coalesced()
    words = words_of(list(coalesced.offsets()), element_bits)
    assert bool(granule_faults(coalesced, element_bits)) == (words is None)


def test_every_broken_word_is_reported():
    found = "; ".join(granule_faults(Pattern((2, 3, 6), (31, 8, 2), 1), 8))
    for fault in (
        "offset 1 x 8 bit = 8 bit",
        "stride 31 x 8 bit = 248 bit is no multiple of 32 bit in dimension 0",
        "stride 2 in innermost dimension 2 of 8-bit elements must be 1",
        "size 6 x 8 bit = 48 bit",
    ):
        assert fault in found
    assert "dimension 1;" not in found


def test_a_dimension_of_one_element_takes_no_step():
    assert granule_faults(Pattern((1, 4), (31, 1)), 8) == []
    assert "stride 31 x 8 bit" in "".join(granule_faults(Pattern((2, 4), (31, 1)), 8))
