"""How far the models are from published measurements: `python -m bdforge.perf.accuracy` prints it.

Errors are modelled / measured speed - 1, so + is too fast. The models' few parameters are fitted to the rows of
`measured_gemm.csv` and `measured_operators.csv`, none to those of `published_gemm.csv`. What is reached where rows or
whole publications are left out of the fit needs fits: `goals` has their figures, docs/accuracy.md tells them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import fmean, median

from bdforge.common.screen import new_table, put, screen
from bdforge.devices.types import TYPES
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.goals import goals
from bdforge.perf.operator_rows import OperatorRow, measured_operators
from bdforge.perf.rows import DATA, Row, measured_rows, read_rows

PUBLISHED = DATA / "published_gemm.csv"
NOT_JUDGED = {"mliraie-bfp-readme": "the same runs as two rows of `wang-table2`"}
"""Sources of the table that nothing is fitted to which are left out, and why."""


@dataclass(frozen=True, slots=True)
class Judged:
    """A published run beside its estimate: what it is, whose, whether parameters are fitted to it; microseconds."""

    operator: str
    source: str
    fitted: bool
    measured_us: float
    modelled_us: float
    range_us: tuple[float, float]

    @property
    def error(self) -> float:
        """Modelled over measured speed, minus 1."""
        return self.measured_us / self.modelled_us - 1

    @property
    def held(self) -> bool:
        """Whether the measured time lies in the range that the estimate is printed with."""
        return self.range_us[0] <= self.measured_us <= self.range_us[1]


def usable(row: Row) -> bool:
    """Whether a row has a measured time, a problem and a tile, and no doubt of its source about it."""
    sized = all(row.fields.get(name) for name in ("M", "K", "N", "m_ct", "n_ct"))
    return bool(row.tops) and not row.core_only and sized and "SUSPECT" not in row.fields.get("notes", "")


@cache
def predicted_rows() -> tuple[Row, ...]:
    """Rows of GEMMs that nothing is fitted to."""
    rows = read_rows(PUBLISHED.read_text(encoding="utf-8"), PUBLISHED.name)
    return tuple(row for row in rows if usable(row) and row.source not in NOT_JUDGED)


@cache
def judged() -> tuple[Judged, ...]:
    """Every published run that can be judged, as `bdforge estimate` models it."""
    gemms = [(row, True) for row in measured_rows() if usable(row)] + [(row, False) for row in predicted_rows()]
    others = [(row, True) for row in measured_operators() if row.time_us]
    return tuple(_judged(row, fitted) for row, fitted in (*gemms, *others))


def _judged(row: Row | OperatorRow, fitted: bool) -> Judged:
    measured_us = row.time_us or 1.0
    if isinstance(row, OperatorRow):
        case, name = row.case, row.fields["operator"]
        return Judged(name, publication(row.source), fitted, measured_us, case.time_us(), case.time_range_us)
    found, types = estimate(row.case), dict.fromkeys(TYPES[type_].code for type_ in (row.case.a, row.case.b))
    name = f"{' x '.join(types)} GEMM"
    return Judged(name, publication(row.source), fitted, measured_us, found.time_us, found.time_range_us)


def publication(source: str) -> str:
    """The publication that a source is a table of."""
    return source.split("@")[0].removeprefix("Xilinx/") if "@" in source else source.split("-")[0]


HEAD = ("=operator", "=source", ">runs", ">bias", ">mean", ">median", ">worst", ">in range")


def table_lines(found: Sequence[Judged] | None = None) -> Iterator[tuple[str, ...]]:
    """A line for each operator and source, and for all of them, under `HEAD`."""
    found = judged() if found is None else found
    groups: dict[tuple[str, str], list[Judged]] = {}
    for each in found:
        source = each.source if each.fitted else f"{each.source}, not fitted"
        groups.setdefault((each.operator, source), []).append(each)
    for key in sorted(groups):
        yield *key, *_figures(groups[key])
    for text, fitted in (("fitted", True), ("not fitted", False)):
        yield "all", text, *_figures([each for each in found if each.fitted is fitted])


def _figures(found: Sequence[Judged]) -> tuple[str, ...]:
    errors = [each.error for each in found]
    sizes = [abs(error) for error in errors]
    measures, held = (fmean(sizes), median(sizes), max(sizes)), fmean(each.held for each in found)
    return str(len(errors)), f"{fmean(errors):+.1%}", *(f"{each:.1%}" for each in measures), f"{held:.0%}"


def main() -> None:
    """Print the table, and what is reached with rows and publications left out."""
    table = new_table(None, *HEAD)
    for line in table_lines():
        table.add_row(*line)
    lines = (f"{goal.text}: {goal.reached:.1%} of at most {goal.limit:.0%}, {goal.rows} rows" for goal in goals())
    put(screen(), table, "\n".join(lines))


if __name__ == "__main__":
    main()
