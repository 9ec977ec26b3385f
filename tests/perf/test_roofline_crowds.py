"""The roofline from one point to a thousand: letters for few, groups for many, and never a legend of hundreds."""

from typing import Any

import pytest

from bdforge.perf.plots.roofline import Point, _groups, roofline


@pytest.mark.daily(every=2)
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


@pytest.mark.parametrize(
    ("count", "told", "last"),
    [
        (40, 10, "and 31 more"),
        (11, 10, "and 2 more"),
        (10, 10, "design9: 2, 9 to 19 TOPS"),
        (1, 1, "design0: 2, 0 to 1 TOPS"),
    ],
)
def test_groups_are_counted_beyond_ten(count: int, told: int, last: str):
    found = _groups([Point("modelled", f"design{i % count} 64x64x64", 10, i) for i in range(2 * count)])
    assert (len(found), found[-1]) == (told, last)


@pytest.mark.parametrize(("count", "bars", "area", "alpha"), [(60, 60, 44, 1.0), (61, 0, 12, 0.4)])
def test_modelled_points_show_their_range_until_they_are_a_crowd(count, bars, area, alpha):
    pytest.importorskip("matplotlib", reason="matplotlib is not installed; pip install 'bdforge[plot]'")
    points = [Point("modelled", "", 10 + i, 8.4 + i) for i in range(count)]
    others = [Point("emulated", "", 500, 1), Point("published", "", 600, 1)]
    axes: Any = roofline("strix_halo", "int8", "int8", [*others, *points]).axes[0]
    drawn = {line.get_xdata()[0]: list(line.get_ydata()) for line in axes.lines if line.get_zorder() == 2}
    assert len(drawn) == bars
    if bars:  # what four in five measurements take of the modelled time, 0.84 to 1.19, as TOPS
        assert drawn[10] == pytest.approx([8.4 / 1.19, 8.4 / 0.84])
        assert drawn[11] == pytest.approx([9.4 / 1.19, 9.4 / 0.84])
    (marks,) = (one for one in axes.collections if one.get_label() == f"modelled ({count})")
    assert (marks.get_sizes()[0], marks.get_alpha()) == (area, alpha)
    assert [(one.get_label(), one.get_sizes()[0]) for one in axes.collections if one is not marks] == [
        ("published, any types on this kind of array (1)", 44), ("emulated (1)", 44),
    ]  # fmt: skip
