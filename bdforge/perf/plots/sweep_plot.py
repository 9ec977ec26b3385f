"""The k_mt sweep: what the depth of a memtile's slab does to DRAM runs and to speed."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.plots.figure import BLUE, GREEN, GREY, ORANGE, PURPLE, SKY, TEXT, VERMILION, new_figure
from bdforge.perf.tune.space import most_slices
from bdforge.perf.tune.time_model import Basis, kernel_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

BOUND_COLORS = {
    "compute": VERMILION, "L1 stream": ORANGE, "shim channel": PURPLE, "DRAM bandwidth": BLUE, "DRAM run length": SKY,
    "controller": GREEN, "dispatch": GREY, "padding": "#000000", "BD reconfiguration": "#8c564b",
    "shim requests": "#a6761d",
}  # fmt: skip


_B_LAYOUTS = {"row": "row-major", "column": "column-major", "packed": "packed"}


def depths(case: GemmCase) -> list[int]:
    """Multiples of k up to K for which a memtile's channel has BDs."""
    return [case.k * slices for slices in range(1, most_slices(case.array) + 1) if case.k * (slices - 1) < case.K]


def sweep(case: GemmCase, basis: Basis = "fitted") -> list[Estimate]:
    """Estimates of a case for every depth."""
    cases = [replace(case, k_mt=k_mt) for k_mt in depths(case)]
    return [estimate(c, kernel=None if c.core_macs_per_cycle else kernel_of(c, basis)) for c in cases]


def kmt_sweep(found: Sequence[Estimate], published: Sequence[tuple[int, float]] = ()) -> "Figure":
    """TOPS over k_mt, coloured by the bound that binds; `published` are (k_mt, TOPS) that others measured."""
    figure, (axes,) = new_figure(9, 5)
    case = found[0].case
    xs, ys = [f.case.k_mt for f in found], [f.tops for f in found]
    axes.plot(xs, ys, color="#c4c4c4", linewidth=1.4, zorder=1)
    for bound in dict.fromkeys(f.bound for f in found):
        chosen = [f for f in found if f.bound == bound]
        axes.scatter(
            [f.case.k_mt for f in chosen], [f.tops for f in chosen], color=BOUND_COLORS[bound], s=48, zorder=3,
            label=f"modelled, bound: {bound}",
        )  # fmt: skip
    if published:
        axes.scatter(
            *zip(*published, strict=True), marker="D", facecolors="none", edgecolors=TEXT, s=56, linewidths=1.4,
            label="published", zorder=4,
        )  # fmt: skip
    axes.set_ylim(0, 1.12 * max([*ys, *(tops for _, tops in published)]))
    axes.set_xlim(0, 1.05 * max(xs))
    every = max(1, len(xs) // 12)
    axes.set_xticks(xs, [str(x) if i % every == 0 else "" for i, x in enumerate(xs)])
    a_bytes = case.element_bytes[0]
    axes.set_xlabel(f"k_mt (elements of A, {a_bytes:g} B each): the contiguous run in DRAM")
    axes.set_ylabel("TOPS (10¹² operations/s)")
    axes.set_title(
        f"Slab depth: {case.M}x{case.K}x{case.N}, {case.a} x {case.b} → {case.c}, {_B_LAYOUTS[case.b_layout]} B,\n"
        f"tile {case.m}x{case.k}x{case.n} on {case.device}",
        color=TEXT, fontsize=11,
    )  # fmt: skip
    axes.grid(axis="y", color="#e4e4e4", linewidth=0.6, zorder=0)
    axes.legend(loc="lower right", frameon=True, framealpha=0.95, edgecolor="none", fontsize=9)
    return figure
