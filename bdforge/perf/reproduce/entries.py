"""The table of published tables and figures that `bdforge reproduce` knows: data, read once and checked.

`data/papers.toml` names each publication and what of it is compared. Rows of GEMMs stand in `measured_gemm.csv` (the
models' few parameters are fitted to them) and `published_gemm.csv` (nothing is), runs of compiled operators in
`measured_operators.csv`, prompts of whole models in `published_prompts.csv`, those of everything else in
`published_figures.csv`, which gives each figure the arguments of its producer. What is drawn in a figure whose numbers
are nowhere printed has no published number there: it is ours alone, and the entry's note says so.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from bdforge.common.files import read_csv, read_toml
from bdforge.common.messages import clip
from bdforge.perf.errors import PerfError
from bdforge.perf.operator_rows import MEASURED_OPERATORS
from bdforge.perf.prompts import PROMPTS_FILE
from bdforge.perf.rows import DATA, MEASURED

TABLE = DATA / "papers.toml"
FIGURES = DATA / "published_figures.csv"
GEMMS = (MEASURED, DATA / "published_gemm.csv")

Fields = Mapping[str, str]
"""A row of published figures by column: what it is of, and figures under the names of quantities."""


@dataclass(frozen=True, slots=True)
class PaperEntry:
    """A table, figure or section of a publication: `quantities` of `rows`, ours by a `producer`.

    `fitted`: whether parameters of the models were fitted to these rows, among others. `note` says what is assumed, or
    missing. `picture` names the plot of it: "parity" ours over published, "values" both row by row, "k_mt" speed over
    the depth of slabs, "roofline" speed over operations per byte.
    """

    name: str
    paper: str
    where: str
    about: str
    producer: str
    quantities: tuple[str, ...]
    rows: tuple[Fields, ...]
    fitted: bool = False
    note: str = ""
    picture: str = "parity"

    @property
    def published(self) -> bool:
        """Whether any number of it is at hand; else it is drawn only."""
        return any(row.get(name) for row in self.rows for name in self.quantities)


@cache
def entries() -> tuple[PaperEntry, ...]:
    """All entries, in the order of the table."""
    content = read_toml(TABLE, PerfError)
    return tuple(_entry(dict(given), content["papers"]) for given in content["entries"])


def entry_named(name: str) -> PaperEntry:
    """The entry of a name; PerfError lists them."""
    for entry in entries():
        if entry.name == name:
            return entry
    known = ", ".join(entry.name for entry in entries())
    raise PerfError(f"{clip(name)!r} is no published table or figure; there are {known}")


def _entry(given: dict, papers: Mapping[str, str]) -> PaperEntry:
    sources, operators, name = given.pop("sources", ()), given.pop("operators", ()), given["name"]
    wanted = given.pop("only", {})
    rows = (row for row in _gemm_rows() if row["source"] in sources)
    gemms = [row for row in rows if all(row[key] in values for key, values in wanted.items())]
    runs = [row for row in read_csv(MEASURED_OPERATORS) if row["operator"] in operators]
    prompts = [row for row in read_csv(PROMPTS_FILE) if row["entry"] == name]
    figures = [row for row in _figure_rows() if row["entry"] == name]
    quantities = (*given.pop("quantities", ()), *(row["quantity"] for row in figures))
    given["paper"] = papers[given["paper"]]
    return PaperEntry(**given, rows=(*gemms, *runs, *prompts, *figures), quantities=tuple(dict.fromkeys(quantities)))


@cache
def _gemm_rows() -> tuple[Fields, ...]:
    return tuple(row for path in GEMMS for row in read_csv(path))


@cache
def _figure_rows() -> tuple[Fields, ...]:
    """Rows of other figures: the arguments as columns, the figure under its quantity's name."""
    rows = []
    for row in read_csv(FIGURES):
        arguments = dict(pair.split("=", 1) for pair in row["arguments"].split())
        rows.append(row | arguments | {row["quantity"]: row["published"]})
    return tuple(rows)
