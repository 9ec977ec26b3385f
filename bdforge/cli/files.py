"""What commands write: new files, or the screen."""

from pathlib import Path
from typing import Annotated

import typer

from bdforge.files import new_file, write_whole
from bdforge.screen import say

Out = Annotated[Path | None, typer.Option("--out", "-o", help="New file to write; without it, the screen.")]
OutFile = Annotated[Path, typer.Option("--out", "-o", help="New file to write.")]
Force = Annotated[bool, typer.Option("--force", help="Replace files that are there.")]


def write(path: Path, content: str | bytes, force: bool = False) -> None:
    """Write a new file whole or not at all; FileError where one is that `force` does not give up."""
    write_whole(new_file(path, force), content)


def print_or_write(text: str, out: Path | None, force: bool, what: str = "") -> None:
    """Text to the screen, or to the file `out` with a line that says so; `what` is in it."""
    if out is None:
        say(text, nl=False)
        return
    write(out, text, force)
    say(f"wrote {out}{what}")
