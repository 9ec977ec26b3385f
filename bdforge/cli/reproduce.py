"""`bdforge reproduce`: published tables and figures, and what this project makes of them."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from bdforge.cli.json_figures import ReproducedEntry, ReproducedPapers
from bdforge.cli.options import AsJson, Force, Jobs, Scheduler, completing, new_path, workers_of, write
from bdforge.cli.plot import draw, new_plot
from bdforge.cli.progress import doing
from bdforge.common.screen import new_table, put, screen
from bdforge.perf.reproduce import Figure, PaperEntry, entries, entry_named, figures_by_entry, figures_csv, summary
from bdforge.perf.reproduce.entry_picture import picture as entry_picture
from bdforge.perf.reproduce.figures import KINDS, PROCESSORS

app = typer.Typer()


def _named(incomplete: str) -> list[str]:
    return completing(entry.name for entry in entries())(incomplete)


@app.command(name="reproduce")
def reproduce_command(
    names: Annotated[
        list[str] | None,
        typer.Argument(
            help="Published tables or figures; all that there are are listed without.", autocompletion=_named
        ),
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="All of them: a line of errors for each.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Run designs on the emulated array too, which takes minutes for each.")
    ] = False,
    as_json: AsJson = False,
    out: Annotated[Path | None, new_path("New CSV file: a line for each figure.", "--out", "-o")] = None,
    picture: Annotated[Path | None, new_plot("--picture")] = None,
    force: Force = False,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
) -> None:
    """Print a published table or figure beside what is modelled, counted or emulated here, and how far off that is.

    Nothing is tuned for it: what is missed is printed.
    """
    if every and names:
        raise typer.BadParameter("--all and names of tables go each without the other")
    chosen = list(entries()) if every else [entry_named(name) for name in names or []]
    if picture is not None and len(chosen) != 1:
        raise typer.BadParameter("a picture is of one table or figure; name it", param_hint="--picture")
    if as_json and (out or picture):
        raise typer.BadParameter("--json goes without --out and --picture", param_hint="--json")
    if not chosen:
        _list(as_json)
        return
    workers = workers_of(jobs, scheduler)
    with doing(workers, "rows") as (ended,):
        found = figures_by_entry(chosen, full=full, workers=workers, ended=ended)
    if as_json:
        ReproducedPapers(entries=[ReproducedEntry.of(entry, found[entry.name]) for entry in chosen]).print()
    else:
        _print(chosen, found, short=every)
    if out is not None:
        lines = [figure for entry in chosen for figure in found[entry.name]]
        write(out, figures_csv(lines), force, f": {len(lines)} figures")
    if picture is not None:
        draw(lambda: entry_picture(chosen[0], found[chosen[0].name]), picture)


def _list(as_json: bool) -> None:
    if as_json:
        ReproducedPapers(entries=[ReproducedEntry.of(entry) for entry in entries()]).print()
        return
    table = new_table(f"{len(entries())} published tables and figures", "name", "of", "where", "what", ">rows")
    for entry in entries():
        table.add_row(entry.name, entry.paper, entry.where, entry.about, str(len(entry.rows)))
    put(screen(), table, "bdforge reproduce NAME sets one beside ours, --all every one")


def _print(chosen: Sequence[PaperEntry], found: dict[str, list[Figure]], short: bool) -> None:
    if short:
        put(screen(), _overview(chosen, found))
    else:
        for entry in chosen:
            put(screen(), _table(entry, found[entry.name]), *_remarks(entry, found[entry.name]))
    if len(chosen) > 1:
        whole = [figure for figures in found.values() for figure in figures]
        put(screen(), *(f"together, {each}" for each in summary(whole)))


def _overview(chosen: Sequence[PaperEntry], found: dict[str, list[Figure]]) -> Table:
    table = new_table(
        "Errors of ours", "name", "where", ">figures", *(f">{kind}: mean, median, worst" for kind in KINDS)
    )
    for entry in chosen:
        figures = found[entry.name]
        errors = {each.kind: each for each in summary(figures)}
        cells = (
            f"{each.mean:.1%}, {each.median:.1%}, {each.worst:.1%}" if (each := errors.get(kind)) else ""
            for kind in KINDS
        )
        table.add_row(entry.name, entry.where, str(len(figures)), *cells)
    return table


def _table(entry: PaperEntry, figures: Sequence[Figure]) -> Table:
    kinds = [kind for kind in KINDS if any(kind in figure.ours for figure in figures)]
    others = [name for name in PROCESSORS if any(name in figure.elsewhere for figure in figures)]
    heads = [f">on a{'n' * (name == 'igpu')} {PROCESSORS[name]}" for name in others]
    heads += [f">{name}" for kind in kinds for name in (kind, "difference")]
    table = new_table(
        f"{entry.name}: {entry.where} of {entry.paper}, {entry.about}", "row", "quantity", ">published", *heads
    )
    for figure in figures:
        cells = [str(figure.elsewhere.get(name, "-")) for name in others]
        cells += [cell for kind in kinds for cell in _cells(figure, kind)]
        table.add_row(figure.row, figure.what, str(figure.published or "-"), *cells)
    return table


def _cells(figure: Figure, kind: Any) -> tuple[str, str]:
    if kind not in figure.ours:
        return "-", ""
    difference = figure.difference(kind)
    return f"{figure.ours[kind]:.4g}", "" if difference is None else f"{difference:+.1%}"


def _remarks(entry: PaperEntry, figures: Sequence[Figure]) -> list[str]:
    missing = [figure for figure in figures if not figure.ours]
    notes = dict.fromkeys(f"{figure.row}: {figure.note}" for figure in figures if figure.note)
    return [
        *(f"  {note}" for note in notes),
        *([f"{len(missing)} of {len(figures)} figures cannot be expressed here"] if missing else []),
        *(["parameters of the models were fitted to these rows, among others"] if entry.fitted else []),
        *([entry.note] if entry.note else []),
        *map(str, summary(figures)),
        "",
    ]
