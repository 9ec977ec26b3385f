"""Modelled against measured: errors by row and source, sources left out of the fit, and what the models are held to.

Errors are modelled / measured TOPS - 1. `accuracy` prints them as a document.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from statistics import median

from bdforge.common.files import csv_text
from bdforge.perf.accuracy import predicted_rows, publication, usable
from bdforge.perf.bounds.estimate import INTERVAL, Estimate, estimate
from bdforge.perf.goals import Goal
from bdforge.perf.operator_rows import OperatorRow, measured_operators
from bdforge.perf.rows import Row, measured_rows, read_rows
from tools.fit.kernel_rates import sources
from tools.fit.operators import every_second_operator
from tools.fit.parameters import Parameters, fit_parameters, modelled

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
    """Rows that parameters are fitted to, derived ones among them, with a measured time, a problem and a tile."""
    derived = read_rows(DERIVED.read_text(encoding="utf-8"), DERIVED.name)
    gemms = (row for row in measured_operators() if isinstance(row, Row))
    return tuple(filter(usable, (*measured_rows(), *derived, *gemms)))


FITTED_SOURCES = tuple(dict.fromkeys(row.source for row in all_rows()))
"""Sources whose rows are fitted. The others are left out and only predicted."""


def results(source: str) -> list[Result]:
    """Estimates as `bdforge estimate` makes them for the rows of one source."""
    return [Result(row, estimate(row.case)) for row in all_rows() if row.source == source]


@cache
def predicted() -> tuple[Result, ...]:
    """Estimates of the rows that nothing is fitted to."""
    return tuple(Result(row, estimate(row.case)) for row in predicted_rows())


def left_out_results(source: str, out: Iterable[str]) -> list[Result]:
    """Estimates of one source's rows by parameters and kernels fitted without the sources `out`."""
    gone = tuple(out)
    parameters = fitted_parameters(gone)
    return [Result(row, modelled(row.case, parameters, gone)) for row in all_rows() if row.source == source]


@cache
def fitted_parameters(out: tuple[str, ...] = ()) -> Parameters:
    """The fit over all rows of `FITTED_SOURCES` but those of the sources `out`."""
    return fit_parameters(all_rows(), out)


@cache
def every_second() -> tuple[Result, ...]:
    """Each row by a fit to the other half of its source's rows: what one meets who asks for a twin of known ones."""
    rows = [row for source in FITTED_SOURCES for row in all_rows() if row.source == source]
    halves = rows[::2], rows[1::2]
    return tuple(
        Result(row, modelled(row.case, parameters))
        for half, parameters in zip(halves, map(fit_parameters, reversed(halves)), strict=True)
        for row in half
    )


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


def same_paper(source: str) -> tuple[str, ...]:
    """All sources of the same publication, kernel rates included."""
    known = {*FITTED_SOURCES, *sources()}
    return tuple(sorted(name for name in known if publication(name) == publication(source)))


def publication_left_out(source: str) -> list[Result]:
    """Estimates of a source's rows by parameters and kernels fitted without its whole publication."""
    return left_out_results(source, same_paper(source))


OWN_COMPILERS = ("iron", "mlir-air")
"""Publications whose kernels' compiler no other has: without them nothing is known of it."""


@cache
def unseen() -> tuple[Result, ...]:
    """Every row that can be judged, as one meets it whose publication the models have never seen."""
    return tuple(result for source in FITTED_SOURCES for result in publication_left_out(source))


def of_known_compilers(found: Iterable[Result]) -> list[Result]:
    """Those of publications that aren't alone with their compiler."""
    return [result for result in found if publication(result.row.source) not in OWN_COMPILERS]


HALF_ARRAYS = (1, 4)  # columns of npu2


def half_arrays() -> list[Result]:
    """Rows on parts of npu2's columns."""
    found = [result for source in FITTED_SOURCES for result in results(source)]
    return [r for r in found if r.row.case.array.columns == 8 and r.row.case.columns in HALF_ARRAYS]


def held_rows(found: Iterable[Result]) -> list[bool]:
    """Of each result whether its row lies in the range which estimates are printed with."""
    ranges = ((result.found.time_range_us, result.row.time_us or 1) for result in found)
    return [low <= time <= high for (low, high), time in ranges]


def goals() -> list[Goal]:
    """What the models are held to, and what they reach."""
    tables = [*results("taka-table2"), *results("taka-table3")]
    pair, biases = results("taka-5.2.2-fig6a"), [abs(bias(results(source))) for source in FITTED_SOURCES]
    fitted = [result for source in FITTED_SOURCES for result in results(source)]
    known, loss = of_known_compilers(unseen()), abs(no_overlap_loss() / NO_OVERLAP_LOSS - 1)
    return [
        *_mean_median_held("every second row left out", every_second(), 0.09, 0.06),
        *_mean_median_held("rows that nothing is fitted to", predicted(), 0.09, 0.06),
        *_mean_median_held("publication left out, of known compilers", known, 0.10, 0.06),
        Goal("publication left out, of a compiler that only it has: mean error", 0.35,
             mean_error([r for r in unseen() if r not in known]), len(unseen()) - len(known)),
        *_of_operators(every_second_operator()),
        Goal("mean error on parts of the array (1 and 4 of 8 columns)", 0.15, mean_error(half_arrays()),
             len(half_arrays())),
        Goal("largest bias of a source", 0.10, max(biases), len(fitted)),
        Goal("mean error, all fitted rows", 0.08, mean_error(fitted), len(fitted)),
        Goal("mean error, `taka-table2` and `taka-table3`", 0.08, mean_error(tables), len(tables)),
        Goal("worst error of the k_mt pair (1.27 and 3.12 TOPS)", 0.15, worst_error(pair), len(pair)),
        Goal("ratio of the pair", 0.15, abs(_ratio(pair) - 1), len(pair)),
        Goal("loss without BD overlap (28 %), relative", 0.30, loss, 1),
    ]  # fmt: skip


def _of_operators(found: Sequence[tuple[OperatorRow, float]]) -> Iterable[Goal]:
    what, errors = "other operators, every second run left out", [abs(error) for _, error in found]
    outside = [not INTERVAL[0] <= 1 + error <= INTERVAL[1] for _, error in found]
    yield Goal(f"{what}: mean error", 0.15, sum(errors) / len(errors), len(errors))
    yield Goal(f"{what}: median error", 0.10, median(errors), len(errors))
    yield Goal(f"{what}: runs outside of the printed range", 0.20, sum(outside) / len(errors), len(errors))


def _mean_median_held(what: str, found: Sequence[Result], mean: float, middle: float) -> Iterable[Goal]:
    outside = 1 - sum(held_rows(found)) / len(found)
    yield Goal(f"{what}: mean error", mean, mean_error(found), len(found))
    yield Goal(f"{what}: median error", middle, median_error(found), len(found))
    yield Goal(f"{what}: rows outside of the printed range", 0.20, outside, len(found))


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
    (row,) = [row for row in predicted_rows() if row.source == "taka-5.3.3-noBDoverlap"]
    return 1 - estimate(row.case).tops / estimate(replace(row.case, bd_overlap=True)).tops


def compiled_csv() -> str:
    """The forms of compilers that the product reads."""
    rows = Counter((row.case.compiler, _types(row)) for row in all_rows())
    lines: list[tuple] = [
        ("compiler", "generation", "a", "b", "c", "macs_per_cycle", "cycles_per_c", "cycles_per_result",
         "cycles_per_slab", "rows"),
    ]  # fmt: skip
    for (compiler, key), form in fitted_parameters().compiled.items():
        ends = "" if form.cycles_per_result is None else f"{form.cycles_per_result:.4g}"
        figures = (f"{form.macs_per_cycle:.5g}", f"{form.cycles_per_c:.4g}", ends, f"{form.cycles_per_slab:.5g}")
        count = sum(rows[made, kind] for made, kind in rows if made == compiler and kind == key[:3])
        lines.append((compiler, *key, *figures, count))
    return csv_text(lines)


def _types(row: Row) -> tuple[str, str, str]:
    return row.case.array.generation.name, row.case.a, row.case.b
