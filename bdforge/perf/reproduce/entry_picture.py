"""The picture of an entry, by the plots that there are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.plots.figure import PlotError
from bdforge.perf.plots.parity_plot import parity
from bdforge.perf.plots.roofline import Point, intensity, roofline
from bdforge.perf.plots.sweep_plot import kmt_sweep, sweep
from bdforge.perf.reproduce.entries import PaperEntry
from bdforge.perf.reproduce.figures import KINDS, Figure
from bdforge.perf.rows import Row, row_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


def picture(entry: PaperEntry, figures: Sequence[Figure]) -> "Drawn":
    """As the entry says; PlotError where no figure of ours is there to be drawn."""
    if entry.picture == "k_mt":
        rows = _rows(entry)
        return kmt_sweep(sweep(rows[0].case), [(row.case.k_mt, row.tops) for row in rows if row.tops])
    if entry.picture == "roofline":
        return _roofline(entry, figures)
    return _parity(entry, figures)


def _rows(entry: PaperEntry) -> list[Row]:
    return [row_from(fields) for fields in entry.rows]


def _roofline(entry: PaperEntry, figures: Sequence[Figure]) -> "Drawn":
    """Of the first row's product and types; rows of another array are left out."""
    rows = [row for row in _rows(entry) if row.tops]
    tops = [figure for figure in figures if figure.quantity == "tops"]
    case, points = rows[0].case, []
    for row, figure in zip(rows, tops, strict=True):
        if row.case.array.mlir == case.array.mlir:
            points += _points(row.case, figure)
    return roofline(case.device, case.a, case.b, points)


def _points(case: GemmCase, figure: Figure) -> list[Point]:
    at, name = intensity(case), f"{case.m}x{case.k}x{case.n} {case.a} {case.b} {case.c}"
    ours = {"modelled": name, "emulated": ""}
    found = [Point(kind, ours[kind], at, tops) for kind, tops in figure.ours.items() if kind in ours]
    return [Point("published", "", at, figure.published.low), *found]


def _parity(entry: PaperEntry, figures: Sequence[Figure]) -> "Drawn":
    """Of the quantity that most figures are of; a range counts by its nearest end."""
    names = [figure.quantity for figure in figures if figure.ours]
    if not names:
        raise PlotError(f"{entry.name}: no figure of ours is there to be drawn")
    quantity = max(dict.fromkeys(names), key=names.count)
    chosen = [figure for figure in figures if figure.quantity == quantity]
    pairs = {
        kind: [
            (figure.published.nearest(figure.ours[kind]), figure.ours[kind]) for figure in chosen if kind in figure.ours
        ]
        for kind in KINDS
    }
    return parity(
        {kind: found for kind, found in pairs.items() if found}, chosen[0].what, f"{entry.where} of {entry.paper}"
    )
