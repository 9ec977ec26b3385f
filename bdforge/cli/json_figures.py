"""What `bdforge reproduce --json` prints: published tables and figures, and ours beside them."""

from collections.abc import Iterable

from pydantic import Field

from bdforge.cli.json_object import JsonObject
from bdforge.perf.reproduce import Figure, PaperEntry


class ReproducedFigure(JsonObject):
    """One quantity of one row; the CSV of `--out` has the same columns."""

    entry: str = Field(description="the table or figure")
    row: str = Field(description="what its row is of")
    quantity: str = Field(description="what was measured")
    unit: str = Field(description="of all numbers but differences")
    published: str | None = Field(None, description="a number, or a range such as 46..49; null where it is not at hand")
    cpu: str | None = Field(None, description="what the source measured on a CPU, as `published`")
    igpu: str | None = Field(None, description="what it measured on an iGPU")
    modelled: float | None = Field(None, description="ours by a model with constants of others")
    counted: float | None = Field(None, description="ours by an exact count")
    emulated: float | None = Field(None, description="ours by a run of the emulated array, with `--full`")
    modelled_difference: float | None = Field(None, description="ours over the published one - 1, 0 within a range")
    counted_difference: float | None = Field(None, description="as `modelled_difference`")
    emulated_difference: float | None = Field(None, description="as `modelled_difference`")
    note: str = Field("", description="why there is none of ours, or what was assumed")

    @classmethod
    def of(cls, figure: Figure) -> "ReproducedFigure":
        """Of a figure; what it does not have is null."""
        return cls(**{name: value for name, value in figure.fields().items() if value not in (None, "")})


class ReproducedEntry(JsonObject):
    """A table, figure or section of a publication."""

    name: str = Field(description="as the command takes it")
    paper: str = Field(description="the publication")
    where: str = Field(description="the place in it")
    about: str = Field(description="what it tells")
    note: str = Field(description="what is assumed, or missing")
    fitted: bool = Field(description="whether parameters of the models were fitted to its rows, among others")
    rows: int = Field(description="how many it has")
    figures: list[ReproducedFigure] | None = Field(None, description="of each row; null where it is only listed")

    @classmethod
    def of(cls, entry: PaperEntry, figures: Iterable[Figure] | None = None) -> "ReproducedEntry":
        """Of an entry, and what was found of it."""
        found = None if figures is None else [ReproducedFigure.of(figure) for figure in figures]
        return cls(
            name=entry.name, paper=entry.paper, where=entry.where, about=entry.about, note=entry.note,
            fitted=entry.fitted, rows=len(entry.rows), figures=found,
        )  # fmt: skip


class ReproducedPapers(JsonObject):
    """`bdforge reproduce`: those named or `--all`, with figures; without, all that there are."""

    entries: list[ReproducedEntry] = Field(description="in the order in which they were named")


OUTPUTS: tuple[type[JsonObject], ...] = (ReproducedPapers, ReproducedEntry, ReproducedFigure)
"""Objects in the order of docs/json.md."""
