"""The roofline from one point to a thousand: letters for few, groups for many, and never a legend of hundreds."""

import pytest

from bdforge.perf.plots.roofline import Point, roofline


@pytest.mark.parametrize(("count", "letters"), [(1, True), (12, True), (13, False), (420, False), (1000, False)])
def test_few_points_get_letters_and_many_a_group(count, letters):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    points = [Point("modelled", f"d{i % 3} {i}x64x64", 10 + i, 1 + i / 100) for i in range(count)]
    axes = roofline("strix_halo", "int8", "int8", points).axes[0]
    marks = [text for text in axes.texts if len(text.get_text()) == 1]
    legend = axes.get_legend()
    assert legend is not None
    told = [text.get_text() for text in legend.get_texts()]
    assert len(marks) == (count if letters else 0)
    assert told[0] == f"modelled ({count})"
    if not letters:
        assert len(told) == 1 + 3
        assert told[1].startswith(f"d0: {(count + 2) // 3}, 1 to ")
    assert len(axes.lines) < 70


def test_groups_are_counted_beyond_ten():
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    points = [Point("modelled", f"design{i} 64x64x64", 10 + i, 1 + i / 100) for i in range(40)]
    legend = roofline("strix_halo", "int8", "int8", points).axes[0].get_legend()
    assert legend is not None
    told = [text.get_text() for text in legend.get_texts()]
    assert len(told) == 1 + 10
    assert told[-1] == "and 31 more"
