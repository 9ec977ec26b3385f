"""Ours over published figures, each kind of ours apart: what lies on the line agrees."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from bdforge.perf.plots.figure import MARKS, TEXT, new_figure
from bdforge.perf.plots.roofline import plain_ticks

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def parity(
    pairs: Mapping[str, Sequence[tuple[float, float]]], unit: str, title: str,
    band: tuple[float, float] | None = None,
) -> "Figure":  # fmt: skip
    """`pairs` are (published, ours) by kind, all positive; `band` the shares of ours that published ones may be."""
    figure, (axes,) = new_figure(6.5, 6)
    ends = [value for found in pairs.values() for pair in found for value in pair]
    low, high = min(ends) / 1.3, max(ends) * 1.3
    axes.plot([low, high], [low, high], color=TEXT, linewidth=1.2, zorder=1)
    if band:
        axes.fill_between([low, high], [low / band[1], high / band[1]], [low / band[0], high / band[0]], color=TEXT,
                          alpha=0.12, linewidth=0, label=f"within {band[0]:g} to {band[1]:g} of ours")  # fmt: skip
    for kind, found in pairs.items():
        marker, color = MARKS[kind]
        axes.scatter(
            *zip(*found, strict=True), marker=marker, facecolors="none", edgecolors=color, s=44, linewidths=1.4,
            label=f"{kind} ({len(found)})", zorder=3,
        )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(low, high), ylim=(low, high))
    plain_ticks(axes)
    axes.set_xlabel(f"published, {unit}")
    axes.set_ylabel(f"ours, {unit}")
    axes.set_title(title, color=TEXT, fontsize=11)
    axes.legend(loc="upper left", frameon=True, framealpha=0.95, edgecolor="none", fontsize=9)
    return figure
