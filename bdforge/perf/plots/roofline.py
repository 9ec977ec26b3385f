"""The roofline of a device, with modelled, emulated and published points kept apart."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import atan2, degrees, log10
from string import ascii_lowercase
from typing import TYPE_CHECKING, Any, Literal

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.types import PEAK_MACS
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import INTERVAL, estimate
from bdforge.perf.plots.figure import BLUE, GREEN, GREY, TEXT, VERMILION, PlotError, new_figure
from bdforge.perf.rows import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_AXES_SHARE = 0.85  # of the figure's height
_LABEL_POINTS = 11  # between letters
_LETTERS_MOST = 12  # points that get one each; more are told by group, that the picture stays one
_GROUPS_MOST = 10
_CROWD = 60  # points of a kind, from which on they are small, let others through and show no range
_HEIGHT_INCHES = 5.6

Kind = Literal["modelled", "emulated", "published"]
_MARKS: dict[Kind, tuple[str, str, str]] = {
    "published": ("D", "none", VERMILION), "modelled": ("o", BLUE, BLUE), "emulated": ("^", GREEN, GREEN),
}  # fmt: skip
"""Marker, face and edge of each kind of point."""
_LABELS: dict[Kind, str] = {
    "published": "published, any types on this kind of array", "modelled": "modelled", "emulated": "emulated",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Point:
    """A GEMM on the roofline: operations per byte of DRAM traffic, and TOPS."""

    kind: Kind
    name: str
    intensity: float
    tops: float


def intensity(case: GemmCase) -> float:
    """Useful operations per DRAM byte of a case, its padding and re-reads included in the bytes."""
    return 2 * case.macs / sum(moved.size_bytes for moved in case.dram_traffic())


def modelled_point(case: GemmCase, name: str, **how: Any) -> Point:
    """A case as `estimate` models it."""
    return Point("modelled", name, intensity(case), estimate(case, **how).tops)


def published_points(rows: Iterable[Row], device: str) -> list[Point]:
    """Measurements of whole GEMMs that others published for devices with the same array and clock as `device`."""
    array = device_named(device).mlir
    return [
        Point("published", row.source, intensity(row.case), row.tops)
        for row in rows
        if row.tops and not row.core_only and row.case.array.mlir == array and not guessed(row)
    ]


def guessed(row: Row) -> bool:
    """Whether a row's tile or problem was filled in, so that its intensity is not known."""
    return any(note.split("=")[0] in ("M", "K", "N", "tile") for note in row.case.assumed)


def roofs(device: str, a: str, b: str) -> tuple[float, float]:
    """TOPS of all cores at their peak, and GB/s of DRAM; PlotError for types without a peak."""
    array, timing = device_named(device), timing_of(device)
    peak_macs = PEAK_MACS[array.generation.name].get((a, b))
    if peak_macs is None:
        known = ", ".join(f"{a},{b}" for a, b in PEAK_MACS[array.generation.name])
        raise PlotError(f"no peak is known for {a} x {b} on {device}; there is {known}")
    return 2 * peak_macs * array.columns * array.core_rows * timing.array_hz / 1e12, timing.dram_read_gb_s


def roofline(device: str, a: str, b: str, points: Sequence[Point]) -> "Figure":
    """Peak of the cores and bandwidth of DRAM, and the points below them; PlotError for types without a peak."""
    peak, gb_s = roofs(device, a, b)
    ridge = peak * 1e3 / gb_s
    spread = [ridge, *(point.intensity for point in points)]
    low, high = min(spread) / 3, max(spread) * 3
    figure, (axes,) = new_figure(9, _HEIGHT_INCHES)
    axes.plot([low, ridge, high], [low * gb_s / 1e3, peak, peak], color=TEXT, linewidth=1.6, zorder=1)
    axes.plot([ridge, ridge], [0, peak], color=GREY, linewidth=0.8, linestyle=":", zorder=1)
    axes.set(xscale="log", yscale="log", xlim=(low, high))
    bottom = min([peak / 30, *(point.tops / 2 for point in points)])
    axes.set_ylim(bottom, peak * 1.9)
    _name_roofs(axes, high, bottom, peak, ridge)
    _draw(axes, points)
    key = _name_points(axes, points, _HEIGHT_INCHES)
    plain_ticks(axes)
    axes.set_xlabel("operations per byte of DRAM traffic (1/B)")
    axes.set_ylabel("TOPS (10¹² operations/s)")
    axes.set_title(f"Roofline of {device}: {a} x {b} at {timing_of(device).array_hz / 1e9:g} GHz", color=TEXT)
    if points:
        _legend(axes, key)
    _turn_along_roof(figure, axes, gb_s)
    return figure


def _turn_along_roof(figure, axes, gb_s: float) -> None:
    """Name the sloping roof along its slope, which only the drawn axes know."""
    figure.draw_without_rendering()
    low, bottom = axes.get_xlim()[0], axes.get_ylim()[0]
    start = max(low, bottom * 1e3 / gb_s) * 1.25
    (x0, y0), (x1, y1) = (axes.transData.transform((x, x * gb_s / 1e3)) for x in (start, 2 * start))
    axes.annotate(
        f"DRAM: {gb_s:.1f} GB/s", (start, start * gb_s / 1e3), xytext=(-2, 6), textcoords="offset points",
        rotation=degrees(atan2(y1 - y0, x1 - x0)), rotation_mode="anchor", color=TEXT, fontsize=9,
    )  # fmt: skip


def _name_roofs(axes, high: float, bottom: float, peak: float, ridge: float) -> None:
    axes.text(high / 1.06, peak * 1.06, f"cores: {peak:.1f} TOPS", ha="right", va="bottom", color=TEXT, fontsize=9)
    axes.text(ridge * 1.03, bottom * 1.08, f"{ridge:.0f} operations/B", color=GREY, fontsize=8, va="bottom")


def _draw(axes, points: Sequence[Point]) -> None:
    for kind, (marker, face, edge) in _MARKS.items():
        chosen = [point for point in points if point.kind == kind]
        if chosen:
            axes.scatter(
                [p.intensity for p in chosen], [p.tops for p in chosen], marker=marker, facecolors=face,
                edgecolors=edge, s=12 if len(chosen) > _CROWD else 44, alpha=0.4 if len(chosen) > _CROWD else 1.0,
                linewidths=1.4, label=f"{_LABELS[kind]} ({len(chosen)})", zorder=3,
            )  # fmt: skip
    modelled = [point for point in points if point.kind == "modelled"]
    for point in modelled if len(modelled) <= _CROWD else []:
        ends = [point.tops / INTERVAL[1], point.tops / INTERVAL[0]]
        axes.plot([point.intensity] * 2, ends, color=GREY, linewidth=1.0, zorder=2)


def _name_points(axes, points: Sequence[Point], height_inches: float) -> list[str]:
    """Letters beside the named points, pushed apart, and what they stand for; the groups where they are many."""
    if len(_named(points)) > _LETTERS_MOST:
        return _groups(_named(points))
    low, high = axes.get_ylim()
    points_per_decade = _AXES_SHARE * height_inches * 72 / log10(high / low)
    below, key = -1e9, []  # height of the letter below, in typographic points
    for letter, point in zip(ascii_lowercase, sorted(_named(points), key=lambda p: p.tops), strict=False):
        own = log10(point.tops / low) * points_per_decade
        below = max(own, below + _LABEL_POINTS)
        axes.annotate(
            letter, (point.intensity, point.tops), xytext=(8, below - own - 3), textcoords="offset points",
            fontsize=9, fontweight="bold", color=TEXT, zorder=4,
        )  # fmt: skip
        key.append(f"{letter}: {point.name}")
    return key


def _groups(points: Sequence[Point]) -> list[str]:
    """Points by the first word of their names, a design's, with how many they are and their range."""
    found: dict[str, list[float]] = {}
    for point in points:
        found.setdefault(point.name.partition(" ")[0], []).append(point.tops)
    told = [f"{name}: {len(tops)}, {min(tops):.3g} to {max(tops):.3g} TOPS" for name, tops in found.items()]
    return (
        told if len(told) <= _GROUPS_MOST else [*told[: _GROUPS_MOST - 1], f"and {len(told) - _GROUPS_MOST + 1} more"]
    )


def _named(points: Sequence[Point]) -> list[Point]:
    return [point for point in points if point.kind != "published" and point.name]


def _legend(axes, key: Sequence[str]) -> None:
    """Kinds of points and what letters stand for, above the roof, where no point can be."""
    from matplotlib.lines import Line2D

    handles = [*axes.get_legend_handles_labels()[0], *(Line2D([], [], linestyle="none", label=text) for text in key)]
    axes.legend(handles=handles, loc="upper left", frameon=True, framealpha=0.95, edgecolor="none", fontsize=8.5)


def plain_ticks(axes) -> None:
    """Ticks of logarithmic axes as people write numbers, with a grid."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (axis for axis in (axes.xaxis, axes.yaxis) if axis.get_scale() == "log"):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())
    axes.grid(which="major", color="#e4e4e4", linewidth=0.6, zorder=0)
