"""The picture of an entry, by the plots that there are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.plots.figure import PlotError
from bdforge.perf.plots.parity_plot import parity
from bdforge.perf.plots.roofline import Point, intensity, roofline
from bdforge.perf.plots.sweep_plot import kmt_sweep
from bdforge.perf.plots.value_plot import values
from bdforge.perf.reproduce.entries import PaperEntry
from bdforge.perf.reproduce.figures import KINDS, Figure
from bdforge.perf.reproduce.size_figures import SIZES
from bdforge.perf.rows import Row, row_from

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawn


def picture(entry: PaperEntry, figures: Sequence[Figure]) -> "Drawn":
    """As the entry says; PlotError where no figure of ours is there to be drawn."""
    if entry.picture == "k_mt":
        rows = _rows(entry)
        found = {row.case.k_mt: estimate(row.case) for row in sorted(rows, key=lambda row: row.case.k_mt)}
        return kmt_sweep(list(found.values()), [(row.case.k_mt, row.tops) for row in rows if row.tops])
    if entry.picture == "values":
        return _values(entry, figures)
    if entry.picture == "roofline":
        return _roofline_of_sizes(entry) if entry.producer == "sizes" else _roofline(entry, figures)
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
    return [*([Point("published", "", at, figure.published.low)] if figure.published else []), *found]


def _roofline_of_sizes(entry: PaperEntry) -> "Drawn":
    """Each design's sizes once, under the peak of the first."""
    found = {made.name: made for made in map(SIZES.subject, entry.rows)}
    points = [
        Point("modelled", name, one.intensity, one.found.tops) for name, made in found.items() for one in made.swept
    ]
    case = next(iter(found.values())).swept[0].found.case
    return roofline(case.device, case.a, case.b, points)


def _values(entry: PaperEntry, figures: Sequence[Figure]) -> "Drawn":
    """All of the unit that most figures have, row by row; of a range the upper end."""
    unit = _most(entry, figures)[0].unit
    chosen = [figure for figure in figures if figure.unit == unit]
    ours = {kind: {each.row: each.ours[kind] for each in chosen if kind in each.ours} for kind in KINDS}
    published = {each.row: each.published.high for each in chosen if each.published}
    title = f"{entry.where} of {entry.paper}"
    return values({kind: found for kind, found in ours.items() if found}, published, unit, title)


def _most(entry: PaperEntry, figures: Sequence[Figure]) -> list[Figure]:
    """Those of the quantity that most figures with one of ours are of."""
    names = [figure.quantity for figure in figures if figure.ours]
    if not names:
        raise PlotError(f"{entry.name}: no figure of ours is there to be drawn")
    quantity = max(dict.fromkeys(names), key=names.count)
    return [figure for figure in figures if figure.quantity == quantity]


def _parity(entry: PaperEntry, figures: Sequence[Figure]) -> "Drawn":
    """Of the quantity that most figures are of; a range counts by its nearest end."""
    chosen = _most(entry, [figure for figure in figures if figure.published])
    pairs = {
        kind: [
            (figure.published.nearest(figure.ours[kind]), figure.ours[kind])
            for figure in chosen if kind in figure.ours and figure.published
        ]
        for kind in KINDS
    }  # fmt: skip
    return parity(
        {kind: found for kind, found in pairs.items() if found}, chosen[0].what, f"{entry.where} of {entry.paper}"
    )
