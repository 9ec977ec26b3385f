"""`bdforge compose`: built designs put together, so that one command runs them one after the other."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array.emulator.timed.controller_time import operation_ns
from bdforge.common.files import FileError
from bdforge.common.messages import clip_path
from bdforge.common.screen import new_table, put, say, screen
from bdforge.design.manifest import COMPOSITION
from bdforge.devices.timing import Timing, timing_of
from bdforge.devices.txn_format.operations import BlockWrite, Operation
from bdforge.runtime.built_design import BuiltDesign
from bdforge.runtime.composition import Composition, compose, load_composition

app = typer.Typer()


@app.command(name="compose")
def compose_command(
    file: Annotated[Path, typer.Argument(help="The composition: TOML with its steps.")],
    built: Annotated[Path, typer.Option(help="Folder of the built designs, each in a folder of its name.")] = Path(
        "build/strix_halo"
    ),
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for what is built, by default beside the designs.")
    ] = None,
) -> None:
    """Build a composition of built designs: one command that runs them all, with changes of the array between them."""
    name = file.stem
    folder = out or built / name
    _check_folder(folder)
    made = compose(load_composition(file), name, lambda design: BuiltDesign.load(built / design))
    made.write(folder)
    _print(made)
    say(f"wrote {clip_path(folder)}; run it: bdforge run {clip_path(folder)}")


def _check_folder(folder: Path) -> None:
    """Only a composition is built anew; FileError for a folder with something else."""
    if folder.is_file():
        raise FileError(f"{clip_path(folder)}: is a file; choose a folder with --out")
    if not folder.is_dir() or not any(folder.iterdir()):
        return
    held = BuiltDesign.load(folder).manifest if (folder / "manifest.json").is_file() else None
    if held is None or held.kind != COMPOSITION:
        what = "files of others" if held is None else f"{held.design} ({held.kind})"
        raise FileError(f"{clip_path(folder)}: holds {what}, no composition; choose another folder with --out")


def _print(made: Composition) -> None:
    """The steps, and what each change of the configuration takes."""
    timing = timing_of(made.first.manifest.device)
    table = new_table(
        f"{made.name}: {len(made.form.steps)} steps", "=step", "design", ">change", ">KB", ">us, modelled"
    )
    for step, number in zip(made.form.steps, made.numbers, strict=True):
        table.add_row(step.name or step.design, step.design, *_change(made, number, timing))
    if made.last is not None:
        table.add_row("", "back to the first", *_change(made, made.last, timing))
    put(screen(), table)


def _change(made: Composition, number: int | None, timing: Timing) -> Sequence[str]:
    if number is None:
        return "-", "-", "-"
    change = made.changes[number]
    return f"{len(change)} operations", f"{made.change_bytes(number) / 1024:.0f}", f"{_us(change, timing):.0f}"


def _us(change: Sequence[Operation], timing: Timing) -> float:
    words = (len(op.words) if isinstance(op, BlockWrite) else 1 for op in change)
    return sum(operation_ns(timing, type(op).__name__, count) for op, count in zip(change, words, strict=True)) / 1e3
