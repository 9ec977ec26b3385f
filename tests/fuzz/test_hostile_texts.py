"""Random texts, and words of designs in any order: the parser takes or refuses them."""

import contextlib

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bdforge.array.mlir import MlirError, parse
from fuzz.corpus import samples
from fuzz.hostile_texts import DEVICE
from fuzz.mutations import tokens_of


def parses_or_is_refused(text: str) -> None:
    with contextlib.suppress(MlirError):
        parse(text)


def words() -> st.SearchStrategy[str]:
    return st.sampled_from(sorted({t for s in samples()[:5] for t in tokens_of(s) if not t.isspace()}))


@settings(deadline=None, derandomize=True, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.deferred(words), max_size=40).map(" ".join))
def test_words_of_designs_in_any_order_never_break_the_parser(text):
    parses_or_is_refused(text)
    parses_or_is_refused(DEVICE.format(text))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.text(max_size=60))
def test_any_text_never_breaks_the_parser(text):
    parses_or_is_refused(text)
    parses_or_is_refused(DEVICE.format(text))


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.data())
def test_random_text_in_a_design_never_breaks_the_parser(data):
    sample = data.draw(st.sampled_from(samples()[:3]))
    start = data.draw(st.integers(0, len(sample)))
    end = data.draw(st.integers(start, min(len(sample), start + 10)))
    parses_or_is_refused(sample[:start] + data.draw(st.text(max_size=12)) + sample[end:])
