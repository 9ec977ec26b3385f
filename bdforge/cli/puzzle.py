"""`bdforge puzzle`: designs to mend, in files of the user's, checked by the verifier, the emulated array and numpy."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from bd_patterns import PatternError
from bdforge.array.emulator.against_reference import random_arrays, wrong_element
from bdforge.array.emulator.verification import verify_design
from bdforge.cli.build import contents, write_new
from bdforge.cli.design_texts import is_made, named_text
from bdforge.cli.ending import FAILED
from bdforge.common.files import read_text, read_toml
from bdforge.common.messages import Fault, listed
from bdforge.common.screen import say
from bdforge.common.tree import tree
from bdforge.runtime import load_kernels

app = typer.Typer()

SOLVED, OPEN = "solved", "open"
_BEGIN = "bdforge puzzle --start FOLDER"
_BUDGET = 100_000  # steps of a run, a hundred times what the largest takes: seconds until an endless loop is told


@dataclass(frozen=True)
class Puzzle:
    """A starting point that came with bdforge; its first lines, comments, say number, title and task."""

    start: Path

    def __str__(self) -> str:
        return self.start.stem

    @property
    def file(self) -> str:
        """The file's name, in whatever folder."""
        return self.start.name

    @property
    def number(self) -> int:
        return int(self.start.stem.partition("_")[0])

    @cached_property
    def said(self) -> list[str]:
        """Title and task, line by line."""
        lines = read_text(self.start).splitlines()
        comments = [re.sub(r"^(#|//) ?", "", line) for line in lines if line.startswith(("#", "//"))]
        return [comments[0].partition(". ")[2], *comments[1:]]

    @property
    def hint(self) -> str:
        return read_toml(self.start.with_name("hints.toml"))[str(self.number)]

    def fault(self, design: Path) -> str | None:
        """What the verifier, the emulated array or numpy say against a design; None where it solves the puzzle.

        Every host buffer but the last holds random numbers; memory that nobody wrote may not be read.
        """
        try:
            return self._found(design)
        except (Fault, PatternError) as error:
            return " ".join([str(error), *getattr(error, "__notes__", ())])

    def _found(self, design: Path) -> str | None:
        text, name = named_text(design)
        if faults := verify_design(text, name).faults:
            return listed(faults, "\n")
        reference = self._functions("references")[str(self).partition("_")[2]]
        arrays, kernels = random_arrays(text, name), self._functions("kernels")
        return wrong_element(text, name, arrays, reference, kernels, budget=_BUDGET)

    def _functions(self, module: str) -> Mapping[str, Callable[..., np.ndarray]]:
        return load_kernels(self.start.with_name(f"{module}.py"))


def puzzles() -> list[Puzzle]:
    """All of them, in order."""
    return [Puzzle(path) for path in sorted(_home().glob("[0-9]*"))]


def _home() -> Path:
    return tree() / "examples" / "puzzles"


def _chosen(number: int | None) -> int | None:
    if number is not None and not 1 <= number <= (most := len(puzzles())):
        raise typer.BadParameter(f"there are puzzles 1 to {most}, not {number}")
    return number


@app.command(name="puzzle")
def puzzle_command(
    number: Annotated[int | None, typer.Argument(help="Which one; all, if left out.", callback=_chosen)] = None,
    start: Annotated[Path | None, typer.Option(help="Copy the puzzles into this folder, to be solved there.")] = None,
    hint: Annotated[bool, typer.Option("--hint", help="Tell how to begin, too.")] = False,
) -> None:
    """Learn by mending designs: list the puzzles of this folder, or show one with what is wrong with it now."""
    if start is not None:
        write_new(start, contents(_home()))
        say(f"now: cd {start}; bdforge puzzle 1")
    elif number is None:
        _list()
    else:
        _show(puzzles()[number - 1], hint)


def _folder() -> Path:
    """This folder, or that of the starting points where it holds no puzzles."""
    return Path() if any(Path(puzzle.file).exists() for puzzle in puzzles()) else _home()


def _list() -> None:
    """Each in a line as soon as it is checked, in a folder that has them; else their titles."""
    folder, states = _folder(), list[str]()
    begun = folder != _home()
    for puzzle in puzzles():
        states.append(SOLVED if begun and puzzle.fault(folder / puzzle.file) is None else OPEN)
        say(f"{puzzle.number:2}  {states[-1]:6}  {puzzle.said[0]:28}  {puzzle.file}")
    following = f"; next: bdforge puzzle {states.index(OPEN) + 1}" if OPEN in states else ""
    say(f"{states.count(SOLVED)} of {len(states)} solved{following}" if begun else f"to begin: {_BEGIN}")


def _show(puzzle: Puzzle, hint: bool) -> None:
    """Task, fault and what helps; the exit code is 1 while the puzzle is open."""
    folder, (title, *task) = _folder(), puzzle.said
    fault, file = puzzle.fault(folder / puzzle.file), puzzle.file
    state = SOLVED if fault is None else f"{OPEN}: {fault.replace(f'{_home()}{os.sep}', '')}"
    say("\n".join([f"{puzzle.number}. {title}: {file}", "", *task, "", state]))
    if fault is None:
        return
    say(f"\nhint:    {puzzle.hint}" if hint else f"\nhint:    bdforge puzzle {puzzle.number} --hint")
    if folder == _home():  # where nobody edits
        say(f"begin:   {_BEGIN}")
        raise typer.Exit(FAILED)
    say(f"picture: bdforge show {file} --html {puzzle}.html")
    if is_made(Path(file)):
        say(f"MLIR:    bdforge render {file}")
    raise typer.Exit(FAILED)
