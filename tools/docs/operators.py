"""docs/operators/: pages of operators, made from a text each, plans, both models of time and others' measurements.

`run_all` times the problems of `operators.csv` on the emulated array (a minute) and writes what it finds there.
"""

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING

from bdforge.array.mlir import parse
from bdforge.array.show.array_use import devices_of, use_of
from bdforge.array.show.draw import figure_of
from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import Plan, Problem, load_spec, operator_of, plan, render
from bdforge.perf.bounds.operator_bound import CostEstimate, cost_estimate
from bdforge.perf.timed import timed
from tools.docs.markdown import table

if TYPE_CHECKING:
    from matplotlib.figure import Figure

HERE = Path(__file__).parent
TABLE = HERE / "operators.csv"
DESIGNS = HERE.parents[1] / "designs"
PRODUCT, MEASURED = "strix_halo", "strix"
"""Of the pages' times, and of what others measured."""
_MARK = "<!-- estimate -->\n"


@dataclass(frozen=True, slots=True)
class Row:
    """A problem of a design: milliseconds that others measured ("" where nobody did), and in emulated time."""

    kind: str
    design: str
    problem: str
    published_ms: str
    emulated_ms: str

    def planned(self, product: str = PRODUCT) -> tuple[Plan, Problem]:
        """The design's plan, and the problem."""
        made = plan(load_spec(DESIGNS / f"{self.design}.toml"), device_named(product))
        return made, operator_of(made.spec).problem([int(size) for size in self.problem.split("x")])


def read_table() -> list[Row]:
    """The rows as they were written."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [Row(**row) for row in csv.DictReader(file)]


def timed_again(row: Row) -> Row:
    """A row with its emulated time, in milliseconds."""
    return replace(row, emulated_ms=f"{timed(*row.planned(), 'ideal').seconds * 1e3:.3f}")


def run_all() -> Iterator[str]:
    """Time every row, telling of each, and write the table."""
    rows = []
    for row in map(timed_again, read_table()):
        yield f"{row.design}, {row.problem}: {row.emulated_ms} ms"
        rows.append(row)
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def page(kind: str) -> str:
    """An operator's page: its text, with the table of its times."""
    before, behind = (HERE / f"{kind}_text.md").read_text(encoding="utf-8").split(_MARK)
    head = (
        "design",
        "problem",
        "MB of DRAM",
        "bound",
        "modelled, ms",
        "range",
        "emulated, ms",
        "others on Strix, ms",
        "modelled there, ms",
    )
    return before + table(head, (_cells(row) for row in read_table() if row.kind == kind)) + behind


def _cells(row: Row) -> tuple[str, ...]:
    found, there = (_modelled(row, product) for product in (PRODUCT, MEASURED))
    megabytes = (found.cost.read_bytes + found.cost.write_bytes) / 1e6
    low, high = (time / 1e3 for time in found.time_range_us)
    return (
        f"`{row.design}`", row.problem, f"{megabytes:.1f}", found.bound, f"{found.time_us / 1e3:.2f}",
        f"{low:.2f} to {high:.2f}", f"{float(row.emulated_ms):.2f}", row.published_ms,
        f"{there.time_us / 1e3:.2f}",
    )  # fmt: skip


def _modelled(row: Row, product: str) -> CostEstimate:
    planned, problem = row.planned(product)
    return cost_estimate(planned, problem, timing_of(planned.device))


def picture(design: str) -> "Figure":
    """How a design's data moves."""
    made = plan(load_spec(DESIGNS / f"{design}.toml"), device_named(PRODUCT))
    (device,) = devices_of(parse(render(made, []), f"{design}.mlir"))
    return figure_of(use_of(device), design)
