"""A sweep by layout of B: what problems of all sizes reach, and what one layout wins over another."""

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from bdforge.devices.types import Order
from bdforge.perf.bounds.estimate import Estimate
from bdforge.perf.plots.figure import BLUE, ORANGE, TEXT, VERMILION, new_figure
from bdforge.perf.plots.roofline import plain_ticks, roofs
from bdforge.perf.size_sweep import Swept, ratios

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLES: dict[str, tuple[str, str, int, str]] = {
    "row": (BLUE, "o", 60, "row-major B"), "column": (VERMILION, "^", 40, "column-major B"),
    "packed": (ORANGE, "s", 10, "packed B"),
}  # fmt: skip
"""Colour, marker, area and name of each layout: where points fall together, the larger ones still show."""
_CROWD = 60  # points from which on they are small and let others through


def layouts_picture(swept: Sequence[Swept], title: str) -> "Figure":
    """TOPS over operations with every layout, and beside it those over TOPS with the first one.

    PlotError for types without a peak.
    """
    layouts: list[Order] = list(dict.fromkeys(one.layout for one in swept))
    figure, (left, *others) = new_figure(11 if len(layouts) > 1 else 7, 5, min(2, len(layouts)))
    for layout in layouts:
        found = [one.found for one in swept if one.layout == layout]
        name = f"{_STYLES[layout][3]}, modelled ({len(found)})"
        _scatter(left, layout, [_billions(one) for one in found], [one.tops for one in found], name)
    case = swept[0].found.case
    peak, _ = roofs(case.device, case.a, case.b)
    left.axhline(peak, color=TEXT, linewidth=1.4, zorder=1)
    left.set(xscale="log", yscale="log", ylim=(min(one.found.tops for one in swept) / 2, peak * 1.5))
    left.annotate(f"cores: {peak:.1f} TOPS", (0.02, peak), xycoords=("axes fraction", "data"), xytext=(0, 5),
                  textcoords="offset points", color=TEXT, fontsize=9)  # fmt: skip
    left.set_ylabel("TOPS (10¹² operations/s)")
    for right in others:
        _compare(right, swept, layouts)
    for axes in (left, *others):
        plain_ticks(axes)
        axes.set_xlabel("10⁹ operations (2·M·K·N)")
        axes.legend(loc="lower right", frameon=True, framealpha=0.95, edgecolor="none", fontsize=9)
    figure.suptitle(title, color=TEXT, fontsize=11)
    return figure


def _billions(found: Estimate) -> float:
    return 2 * found.case.macs / 1e9


def _scatter(axes: Any, layout: str, xs: Sequence[float], ys: Sequence[float], name: str) -> None:
    color, marker, area, _ = _STYLES[layout]
    share, alpha = (0.3, 0.5) if len(xs) > _CROWD else (1, 0.9)
    order = 3 - area / 100  # the smallest above
    axes.scatter(
        xs, ys, marker=marker, color=color, s=area * share, alpha=alpha, linewidths=0, zorder=order, label=name
    )


def _compare(axes: Any, swept: Sequence[Swept], layouts: Sequence[Order]) -> None:
    first = [_billions(one.found) for one in swept if one.layout == layouts[0]]
    for layout in layouts[1:]:
        found = ratios(swept, layouts[0], layout)
        _scatter(axes, layout, first, found, f"{_STYLES[layout][3]}: {median(found):.2f} in the middle")
    axes.axhline(1, color=TEXT, linewidth=1.4, zorder=1)
    axes.set_xscale("log")
    axes.margins(y=0.1)
    axes.set_ylabel(f"TOPS over those of {_STYLES[layouts[0]][3]}")
