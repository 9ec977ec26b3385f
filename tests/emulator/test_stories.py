"""The stories of docs/debugging.md: what it shows is what comes out."""

from functools import cache

import numpy as np
import pytest

from bdforge.array.emulator.verification import verify_design
from support.differences import same
from support.stories import DESIGN, PAGE, operands, run, stories

TEXT = DESIGN.read_text(encoding="utf-8")


@cache
def told_stories() -> tuple[tuple[str, str], ...]:
    return tuple(stories(PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize("options", [{}, {"poison": True}, {"schedule": "random", "seed": 5}])
def test_the_design_that_the_page_breaks_is_right(options):
    a, b = operands()
    c, printed = run(TEXT, **options)
    same(c, np.einsum("kij,knjl->nil", a, b))
    assert printed == ""
    assert verify_design(TEXT).faults == ()


def test_the_page_shows_real_outputs():
    assert len(told_stories()) == 3
    for shown, real in told_stories():
        assert shown == real, "run python tests/support/stories.py"


@pytest.mark.parametrize(
    ("number", "told"),
    [
        (
            0,
            "in a packet of id 3 from memtile (0, 1) MM2S 0, which has sent 3 of id 2 (",
        ),
        (1, "core (0, 3) S2MM 1 waits for 64 words in a packet of id 3"),
        (2, "4 words were left in the input of core (0, 3) S2MM 0"),
    ],
)
def test_each_story_names_its_cause(number, told):
    assert told in told_stories()[number][1]
