"""`python -m tools.site [-o FOLDER]`: build the site of the docs; `./go site` does."""

from pathlib import Path
from typing import Annotated

import typer

from tools.site.build import SITE, build


def main(out: Annotated[Path, typer.Option("--out", "-o", help="Folder of all versions.")] = SITE) -> None:
    """Build this version of the site; any warning is an error."""
    if status := build(out.resolve()):
        raise typer.Exit(status)
    typer.echo(f"open {out / 'index.html'}")


typer.run(main)
