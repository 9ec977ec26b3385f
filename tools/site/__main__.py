"""`python -m tools.site [-o FOLDER]`: build the site of the docs with its playground; `./go site` does."""

from pathlib import Path
from typing import Annotated

import typer

from tools.site.build import SITE, build
from tools.site.playground.assemble import NoPlaygroundError, assemble


def main(out: Annotated[Path, typer.Option("--out", "-o", help="Folder of all versions.")] = SITE) -> None:
    """Build this version of the site; any warning is an error. Without npm it has no playground, which is said."""
    out = out.resolve()
    try:
        assemble(out / "playground")
    except NoPlaygroundError as error:
        typer.echo(f"the site is built without its playground: {error}", err=True)
    if status := build(out):
        raise typer.Exit(status)
    typer.echo(f"open {out / 'index.html'}")


typer.run(main)
