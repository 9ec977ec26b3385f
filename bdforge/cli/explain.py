"""`bdforge explain`: what an image of any origin holds and does."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array.explain.explanation_tables import explanation_parts
from bdforge.array.explain.image_explanation import as_values, explain
from bdforge.array.explain.image_picture import image_use
from bdforge.array.explain.zeros_run import STEPS
from bdforge.array.show.image import ShowError, save
from bdforge.array.txn.insts import read_words
from bdforge.cli.options import AsJson, Budget, Force, Insts, new_drawing
from bdforge.cli.progress import emulating
from bdforge.common.files import read_bytes
from bdforge.common.screen import put, say, screen

app = typer.Typer()


@app.command(name="explain")
def explain_command(
    image: Annotated[Path, typer.Argument(help="An image of any origin: xclbin, PDI, CDO, full ELF; or a core's ELF.")],
    insts: Insts = None,
    budget: Budget = STEPS,
    as_json: AsJson = False,
    picture: Annotated[Path | None, new_drawing(ShowError, "--picture")] = None,
    force: Force = False,
) -> None:
    """Tell what an image holds: tiles, programs with loops and MACs, buffers, routes; with --insts how its run ends.

    That is tried on the emulated array, on zeros, within --budget; 0 leaves it out.
    """
    words = None if insts is None else read_words(insts)
    with emulating(image.name, screen(stderr=True)):
        found = explain(read_bytes(image), words, budget)
    if picture is not None:
        save(image_use(found), picture, image.name)
        say(f"wrote {picture}", err=as_json)
    if as_json:
        say(json.dumps(as_values(found), indent=1))
    else:
        put(screen(), *explanation_parts(found, image.name))
