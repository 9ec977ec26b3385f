"""Figures row by row: ours of each kind, and what was published where its number is known."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from bdforge.perf.plots.figure import MARKS, TEXT, VERMILION, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_ROW_INCHES = 0.24


def values(ours: Mapping[str, Mapping[str, float]], published: Mapping[str, float], unit: str, title: str) -> "Figure":
    """`ours` by kind, and what was `published`, each by its row; all from 0 on."""
    rows = list(dict.fromkeys(row for found in ours.values() for row in found))
    figure, (axes,) = new_figure(8, 1.7 + _ROW_INCHES * len(rows))
    for kind, found in ours.items():
        (marker, color), at = MARKS[kind], [rows.index(row) for row in found]
        axes.hlines(at, 0, list(found.values()), color=color, linewidth=1.2, alpha=0.4, zorder=2)
        axes.scatter(list(found.values()), at, marker=marker, color=color, s=30, label=kind, zorder=3)
    if published:
        axes.scatter(
            list(published.values()), [rows.index(row) for row in published], marker="D", facecolors="none",
            edgecolors=VERMILION, s=44, linewidths=1.4, label="published", zorder=4,
        )  # fmt: skip
    axes.set_yticks(range(len(rows)), rows, fontsize=8)
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, None))
    axes.grid(axis="x", color="#e4e4e4", linewidth=0.6, zorder=0)
    axes.set_xlabel(unit)
    axes.set_title(title, color=TEXT, fontsize=11)
    figure.legend(loc="outside lower center", ncols=len(ours) + 1, frameon=False, fontsize=9)
    return figure
