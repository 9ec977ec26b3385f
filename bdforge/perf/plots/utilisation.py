"""Utilisation by tile: what every tile of the array did in a timed run."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bdforge.array.emulator.timed import PartyTime, TimingReport
from bdforge.perf.plots.figure import TEXT, PlotError, empty_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_KINDS = ("shim", "memtile")


def tile_shares(report: TimingReport) -> dict[tuple[int, int], tuple[str, str, float]]:
    """By (column, row): the kind of tile, what counts there, and its busy share from 0 to 1.

    Cores count the cycles of their kernels and programs, shims and memtiles those of their busiest channel.
    """
    if report.cycles <= 0:
        raise PlotError("the run took no time, so nothing was used; run a problem")
    shares: dict[tuple[int, int], tuple[str, str, float]] = {}
    for channel in report.channels:
        if channel.tile_kind in _KINDS:
            share = channel.busy_cycles / report.cycles
            known = shares.get(channel.place)
            if known is None or share > known[2]:
                shares[channel.place] = channel.tile_kind, channel.name, share
    for core in report.cores:
        shares[core.place] = "core", core.name, _busy_cycles(core) / report.cycles
    return shares


def _busy_cycles(core: PartyTime) -> float:
    """Cycles in kernels, without calls and the core's own program."""
    return sum(cycles for name, cycles in core.busy.items() if name not in ("kernel calls", "core program"))


def utilisation(report: TimingReport, title: str) -> "Figure":
    """Heat map of the array, cores above, shims below."""
    shares = tile_shares(report)
    if not shares:
        raise PlotError("no tile of the array took part in the run; there is nothing to draw")
    columns, rows = (range(max(place[axis] for place in shares) + 1) for axis in (0, 1))
    figure = empty_figure(1.6 + 0.95 * len(columns), 1.9 + 0.8 * len(rows))
    axes = figure.add_subplot()
    grid = [[shares[c, r][2] if (c, r) in shares else float("nan") for c in columns] for r in rows]
    image = axes.imshow(grid, cmap="viridis", vmin=0, vmax=1, origin="lower", aspect="auto")
    axes.set_facecolor("#eeeeee")
    for (column, row), (_, _, share) in shares.items():
        color = "black" if share > 0.6 else "white"
        axes.text(column, row, f"{share:.0%}", ha="center", va="center", fontsize=9, color=color)
    axes.set_xticks([c - 0.5 for c in columns[1:]], minor=True)
    axes.set_yticks([r - 0.5 for r in rows[1:]], minor=True)
    axes.grid(which="minor", color="white", linewidth=1.5)
    axes.set_xticks(columns, [str(c) for c in columns])
    axes.set_yticks(rows, [f"{row}: {_kind(shares, row)}" for row in rows])
    axes.set_xlabel("column of the array", fontsize=9)
    axes.set_ylabel("row", fontsize=9)
    axes.tick_params(labelsize=9, colors=TEXT, length=0, which="both")
    bar = figure.colorbar(image, ax=axes, pad=0.02)
    bar.set_label("share of the run's cycles\n(cores: in kernels; others: busiest channel)", fontsize=9)
    bar.ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_title(f"{title}\n{_summary(report)}", fontsize=10, color=TEXT)
    return figure


def _kind(shares: dict[tuple[int, int], tuple[str, str, float]], row: int) -> str:
    kinds: Sequence[str] = [kind for (_, r), (kind, _, _) in shares.items() if r == row]
    return kinds[0] if kinds else "unused"


def _summary(report: TimingReport) -> str:
    tops = "" if report.array_tops is None else f", {report.array_tops:.2f} TOPS without dispatch"
    return f"emulated: {report.cycles:,.0f} cycles{tops}"
