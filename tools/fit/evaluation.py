"""Modelled against measured: errors by row and source, sources left out of the fit, and what the models are held to.

Errors are modelled / measured TOPS - 1. `accuracy` prints them as a document.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from bdforge.common.files import csv_text
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.goals import Goal
from bdforge.perf.rows import Row, measured_rows, read_rows
from tools.fit.kernel_rates import sources
from tools.fit.parameters import FITTED_SOURCES, Parameters, fit_parameters, modelled, usable

DERIVED = Path(__file__).with_name("derived_gemm.csv")
"""Times that follow from published bandwidths, with what had to be assumed."""
NO_OVERLAP_LOSS = 0.28  # Taka et al. section 5.3.3


@dataclass(frozen=True, slots=True)
class Result:
    """One row with its estimate."""

    row: Row
    found: Estimate

    @property
    def error(self) -> float:
        """Modelled over measured TOPS, minus 1."""
        return self.found.tops / (self.row.tops or 1) - 1


@cache
def all_rows() -> tuple[Row, ...]:
    """Published and derived rows with a measured time, a problem and a tile."""
    return tuple(
        row for row in (*measured_rows(), *read_rows(DERIVED.read_text(encoding="utf-8"), DERIVED.name)) if usable(row)
    )


def results(source: str) -> list[Result]:
    """Estimates as `bdforge estimate` makes them for the rows of one source."""
    return [Result(row, estimate(row.case)) for row in all_rows() if row.source == source]


def left_out_results(source: str, out: Iterable[str]) -> list[Result]:
    """Estimates of one source's rows by parameters and kernels fitted without the sources `out`."""
    gone = tuple(out)
    parameters = fitted_parameters(gone)
    return [Result(row, modelled(row.case, parameters, gone)) for row in all_rows() if row.source == source]


@cache
def fitted_parameters(out: tuple[str, ...] = ()) -> Parameters:
    """The fit over all rows of `FITTED_SOURCES` but those of the sources `out`."""
    return fit_parameters(all_rows(), out)


def mean_error(found: Sequence[Result]) -> float:
    """Mean of the absolute errors."""
    return sum(abs(result.error) for result in found) / len(found)


def median_error(found: Sequence[Result]) -> float:
    """Median of the absolute errors."""
    return median(abs(result.error) for result in found)


def bias(found: Sequence[Result]) -> float:
    """Mean of the errors with their signs."""
    return sum(result.error for result in found) / len(found)


def worst_error(found: Sequence[Result]) -> float:
    """Largest absolute error."""
    return max(abs(result.error) for result in found)


def paper(source: str) -> str:
    """The publication that a source is a table of."""
    return source.split("-")[0]


def same_paper(source: str) -> tuple[str, ...]:
    """All sources of the same publication, kernel rates included."""
    known = {*FITTED_SOURCES, *sources()}
    return tuple(sorted(name for name in known if paper(name) == paper(source)))


def publication_left_out(source: str) -> list[Result]:
    """Estimates of a source's rows by parameters and kernels fitted without its whole publication."""
    return left_out_results(source, same_paper(source))


@cache
def unseen() -> tuple[Result, ...]:
    """Every row that can be judged, as one meets it whose publication the models have never seen."""
    return tuple(result for source in FITTED_SOURCES for result in publication_left_out(source))


HALF_ARRAYS = (1, 4)  # columns of npu2


def half_arrays() -> list[Result]:
    """Rows on parts of npu2's columns."""
    found = [result for source in FITTED_SOURCES for result in results(source)]
    return [r for r in found if r.row.case.array.columns == 8 and r.row.case.columns in HALF_ARRAYS]


def held(found: Iterable[Result]) -> dict[str, float]:
    """Share of the results of each publication that lie in the range which estimates are printed with."""
    inside: dict[str, list[bool]] = {}
    for result in found:
        low, high = result.found.time_range_us
        inside.setdefault(paper(result.row.source), []).append(low <= (result.row.time_us or 1) <= high)
    return {name: sum(marks) / len(marks) for name, marks in inside.items()}


def goals() -> list[Goal]:
    """What the models are held to, and what they reach."""
    tables = [*results("taka-table2"), *results("taka-table3")]
    pair, biases = results("taka-5.2.2-fig6a"), [abs(bias(results(source))) for source in FITTED_SOURCES]
    fitted = [result for source in FITTED_SOURCES for result in results(source)]
    outside, loss = 1 - min(held(unseen()).values()), abs(no_overlap_loss() / NO_OVERLAP_LOSS - 1)
    return [
        Goal("publication left out: mean error", 0.10, mean_error(unseen()), len(unseen())),
        Goal("publication left out: worst error", 0.30, worst_error(unseen()), len(unseen())),
        Goal("publication left out: median error", 0.08, median_error(unseen()), len(unseen())),
        Goal(
            "mean error on parts of the array (1 and 4 of 8 columns)", 0.15, mean_error(half_arrays()),
            len(half_arrays()),
        ),
        Goal("largest bias of a source", 0.10, max(biases), len(fitted)),
        Goal("publication left out: its rows outside of the printed range", 0.20, outside, len(unseen())),
        Goal("mean error, all fitted rows", 0.08, mean_error(fitted), len(fitted)),
        Goal("mean error, `taka-table2` and `taka-table3`", 0.08, mean_error(tables), len(tables)),
        Goal("worst error of the k_mt pair (1.27 and 3.12 TOPS)", 0.15, worst_error(pair), len(pair)),
        Goal("ratio of the pair", 0.15, abs(_ratio(pair) - 1), len(pair)),
        Goal("loss without BD overlap (28 %), relative", 0.30, loss, 1),
    ]  # fmt: skip


def goals_csv() -> str:
    """The table that the product reads."""
    rows = ((goal.text, goal.limit, f"{goal.reached:.6g}", goal.rows) for goal in goals())
    return csv_text([("goal", "limit", "reached", "rows"), *rows])


def _ratio(pair: Sequence[Result]) -> float:
    """Modelled over measured ratio of a short and a long k_mt."""
    short, long = pair
    return (long.found.tops / short.found.tops) / ((long.row.tops or 1) / (short.row.tops or 1))


def no_overlap_loss() -> float:
    """Modelled share of TOPS lost when BDs are written only between rounds."""
    (row,) = [row for row in measured_rows() if row.source == "taka-5.3.3-noBDoverlap"]
    return 1 - estimate(row.case).tops / estimate(replace(row.case, bd_overlap=True)).tops
