"""docs/numerics.md: how far results of each operator may be off, why, and how far they were off on the emulated array.

`run_all` builds the designs of `numerics.csv` and runs each on every kind of data, with kernels compiled for this
machine (some minutes), and writes what it finds there.
"""

import csv
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from bdforge.common.tree import scons, tree
from bdforge.operators import DATA, Plan, input_data, operator_of, plan_of
from bdforge.runtime import BuiltDesign, Closeness, first_mismatch, run
from tools.docs.markdown import table

TABLE = Path(__file__).with_name("numerics.csv")
PRODUCT = "strix_halo"
_TEXT = Path(__file__).with_name("numerics_text.md")
_MARK = "<!-- errors -->\n"


@dataclass(frozen=True, slots=True)
class Row:
    """An output of a design's problem on a kind of data: its largest share of the bound, and its mean error."""

    design: str
    problem: str
    data: str
    output: str
    bound: float
    mean: float


def read_table() -> list[Row]:
    """The rows as they were written."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Row(row["design"], row["problem"], row["data"], row["output"], float(row["bound"]), float(row["mean"]))
            for row in csv.DictReader(file)
        ]


def measured(built: BuiltDesign, plan: Plan, problem: str, data: str) -> Iterator[Row]:
    """A run's outputs that have a bound; AssertionError for one that is beyond it."""
    sizes = operator_of(plan.spec).problem([int(size) for size in problem.split("x")])
    inputs = input_data(data, plan.random(sizes, 1))
    found = run(built, inputs).outputs
    for name, want in plan.expected(inputs).items():
        wrong = first_mismatch(found[name], want.values, want.bound, name)
        assert wrong is None, f"{built.name}, {problem}, {data}: {wrong}"
        if want.bound is not None:
            near = Closeness.of(found[name], want.values, want.bound)
            yield Row(built.name, problem, data, name, float(f"{near.bound:.2g}"), float(f"{near.mean:.2g}"))


def run_all() -> Iterator[str]:
    """Run every design of the table on all data, telling of each, and write the table."""
    chosen = dict.fromkeys((row.design, row.problem) for row in read_table())
    code, _ = scons(f"device={PRODUCT}", f"design={','.join(name for name, _ in chosen)}", "host")
    if code:
        raise SystemExit(code)
    rows: list[Row] = []
    for name, problem in chosen:
        folder = tree() / "build" / PRODUCT / name
        built = BuiltDesign.load(folder)
        plan = plan_of(built.manifest, folder)
        for data in DATA:
            rows += measured(built, plan, problem, data)
        yield f"{name}, {problem}"
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [f.name for f in fields(Row)], lineterminator="\n")
        writer.writeheader()
        writer.writerows(asdict(row) for row in rows)


def page() -> str:
    """The text, with a line of errors for each design's output."""
    before, behind = _TEXT.read_text(encoding="utf-8").split(_MARK)
    head = ("design", "problem", "output", "normal: of the bound", "mean error", "worst of the others", "of the bound")
    return before + table(head, _lines()) + behind


def _lines() -> Iterator[tuple[str, ...]]:
    found: dict[tuple[str, str, str], dict[str, Row]] = {}
    for row in read_table():
        found.setdefault((row.design, row.problem, row.output), {})[row.data] = row
    for (design, problem, output), by_data in found.items():
        normal = by_data.pop("normal")
        worst = max(by_data.values(), key=lambda row: row.bound)
        shown = (f"{normal.bound:.0%}", f"{normal.mean:.2%}", worst.data, f"{worst.bound:.0%}")
        yield (f"`{design}`", problem, output, *shown)
