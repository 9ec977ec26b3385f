"""Pictures of performance and of access orders, as PNG or SVG.

Functions return matplotlib figures and take what they draw; `save` writes one. matplotlib is the optional extra `plot`:
this module imports without it, and PlotError says so when a picture is asked for.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bdforge.common.pictures import drawing, save_figure
from bdforge.perf.errors import PerfError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DPI = 150
# Colours that people with any colour vision tell apart (Okabe and Ito).
BLUE, VERMILION, GREEN, PURPLE, ORANGE, SKY = "#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9"
GREY, TEXT = "#8a8a8a", "#333333"
MARKS = {
    "modelled": ("o", BLUE), "counted": ("s", ORANGE), "emulated": ("^", GREEN), "fitted": ("o", BLUE),
    "not fitted": ("s", ORANGE),
}  # fmt: skip
"""Marker and colour by what a figure is."""


class PlotError(PerfError):
    """A picture that cannot be drawn or written."""


def new_figure(width_inches: float, height_inches: float, count: int = 1) -> "tuple[Figure, list[Any]]":
    """An empty figure with so many axes side by side; PlotError without matplotlib."""
    figure = empty_figure(width_inches, height_inches)
    found = [figure.add_subplot(1, count, i + 1) for i in range(count)]
    for axes in found:
        for side in ("top", "right"):
            axes.spines[side].set_visible(False)
        axes.tick_params(colors=TEXT)
    return figure, found


def empty_figure(width_inches: float, height_inches: float) -> "Figure":
    """A figure without axes; PlotError without matplotlib."""
    with drawing(PlotError):
        from matplotlib.figure import Figure
    return Figure(figsize=(width_inches, height_inches), layout="constrained")


def save(draw: "Callable[[], Figure]", path: Path) -> None:
    """Write what `draw` returns, whole or not at all, as the suffix says; the same bytes every time."""
    save_figure(draw(), path, PlotError, dpi=DPI)
