"""A published figure beside ours, and how far off ours are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf
from statistics import fmean, median
from typing import Any, Literal, get_args

from bdforge.common.files import csv_text
from bdforge.perf.errors import PerfError

Kind = Literal["modelled", "counted", "emulated"]
"""Where a figure of ours comes from: a model with constants of others, an exact count, or a run of the array."""
KINDS: tuple[Kind, ...] = get_args(Kind)
PROCESSORS = {"cpu": "CPU", "igpu": "iGPU"}
"""Where a source measured the same work, too, by the name of the column, and as it is shown."""
COLUMNS = (
    "entry",
    "row",
    "quantity",
    "unit",
    "published",
    *PROCESSORS,
    *KINDS,
    *(f"{kind}_difference" for kind in KINDS),
    "note",
)
_SPAN = ".."


@dataclass(frozen=True, slots=True)
class Published:
    """A figure as published: a number, or the range that the source gives; one end may be open."""

    low: float
    high: float

    @classmethod
    def of(cls, text: str) -> "Published":
        """From `35.5`, `46..49`, `..10` (at most) or `22..` (at least); PerfError for anything else."""
        low, span, high = text.partition(_SPAN)
        try:
            found = cls(float(low) if low else 0.0, float(high) if high else inf) if span else cls(*[float(text)] * 2)
        except ValueError:
            raise PerfError(f"published figure {text!r} is no number and no range such as 46..49") from None
        if not found.low <= found.high or found.high <= 0 or (found.low == 0 and found.high == inf):
            raise PerfError(f"published figure {text!r} is no positive range")
        return found

    def __str__(self) -> str:
        low, high = (f"{end:g}" if 0 < end < inf else "" for end in (self.low, self.high))
        return low if low == high else f"{low}{_SPAN}{high}"

    def nearest(self, ours: float) -> float:
        """The figure of the range that is nearest to ours: ours within it, else one of its ends."""
        return min(max(ours, self.low), self.high)

    def difference(self, ours: float) -> float:
        """Ours over the published figure - 1, 0 within a range."""
        nearest = self.nearest(ours)
        return ours / nearest - 1 if nearest else 0.0


@dataclass(frozen=True, slots=True)
class Figure:
    """One quantity of one row as published, None where its number is not at hand, and `ours` by kind; `note` says why
    there is none, or what was assumed. `elsewhere` has what the source measured on other processors, by `PROCESSORS`.
    """

    entry: str
    row: str
    quantity: str
    unit: str
    published: Published | None
    ours: Mapping[Kind, float] = field(default_factory=dict)
    note: str = ""
    elsewhere: Mapping[str, Published] = field(default_factory=dict)

    @property
    def what(self) -> str:
        """The quantity with its unit, which says it alone where it is named after it."""
        return self.unit if self.quantity.replace("_", "/") == self.unit.lower() else f"{self.quantity}, {self.unit}"

    def difference(self, kind: Kind) -> float | None:
        """Relative difference of ours of a kind; None where there is none, or nothing was published."""
        return self.published.difference(self.ours[kind]) if self.published and kind in self.ours else None

    def fields(self) -> dict[str, Any]:
        """By `COLUMNS`; None where there is no figure."""
        published = (self.published, *map(self.elsewhere.get, PROCESSORS))
        plain = (self.entry, self.row, self.quantity, self.unit, *(str(each or "") for each in published))
        ours = (self.ours.get(kind) for kind in KINDS)
        return dict(zip(COLUMNS, (*plain, *ours, *map(self.difference, KINDS), self.note), strict=True))


@dataclass(frozen=True, slots=True)
class Summary:
    """Absolute differences of a kind over figures: how many there are, their mean, median and worst."""

    kind: Kind
    count: int
    mean: float
    median: float
    worst: float

    def __str__(self) -> str:
        return (
            f"{self.kind}: mean error {self.mean:.1%}, median {self.median:.1%}, worst {self.worst:.1%} of {self.count}"
        )


def summary(figures: Sequence[Figure]) -> list[Summary]:
    """One for each kind that any of the figures has."""
    found: list[Summary] = []
    for kind in KINDS:
        errors = [abs(error) for figure in figures if (error := figure.difference(kind)) is not None]
        if errors:
            found.append(Summary(kind, len(errors), fmean(errors), median(errors), max(errors)))
    return found


def figures_csv(figures: Iterable[Figure]) -> str:
    """A line for each, with the columns `COLUMNS`."""
    lines = ((_cell(value) for value in figure.fields().values()) for figure in figures)
    return csv_text([COLUMNS, *map(tuple, lines)])


def _cell(value: Any) -> str:
    return "" if value is None else value if isinstance(value, str) else f"{value:.6g}"
