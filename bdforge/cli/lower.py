"""`bdforge lower`: a design's static configuration as register writes, or as an image of them."""

import os
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.checks import Permissive, tell
from bdforge.cli.files import Force, write
from bdforge.cli.options import Module
from bdforge.emulator.strictness import Strictness
from bdforge.files import new_file, read_text
from bdforge.images.build import SUFFIXES, image, program_of
from bdforge.images.errors import ImageError
from bdforge.lower import configuration
from bdforge.lower.listing import listing
from bdforge.mlir import parse
from bdforge.screen import say, screen
from bdforge.show.image import chosen_device

app = typer.Typer()
_EPOCH = "SOURCE_DATE_EPOCH"


@app.command(name="lower")
def lower_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="New image to write: .cdo, .pdi or .xclbin.")] = None,
    module: Module = None,
    columns: Annotated[int | None, typer.Option(min=1, help="Columns of an xclbin's partition.")] = None,
    without_code: Annotated[
        bool, typer.Option("--without-code", help="Write an image though cores have no machine code.")
    ] = False,
    permissive: Permissive = None,
    force: Force = False,
) -> None:
    """Print the register writes of a design's static configuration, or write them as an image."""
    if out is not None:
        if out.suffix not in SUFFIXES:
            raise ImageError(f"{out}: images are written as {', '.join(SUFFIXES)}; choose such a name")
        new_file(out, force)
    strictness = Strictness.without(permissive or [])
    device = chosen_device(parse(read_text(design), str(design)), module)
    found = configuration(device, program_of, strictness)
    tell(strictness.warnings)
    if out is None:
        for line in listing(found.operations, screen().width):
            say(line)
        return
    content = image(found, out.suffix, columns=columns, seconds=_seconds(), bare=without_code)
    write(out, content, force)
    say(f"wrote {out}: {len(found.operations)} register writes, {len(content)} bytes")


def _seconds() -> int:
    """Time stamp of images: what reproducible builds agree on, or 0, so that one design gives the same bytes always."""
    text = os.environ.get(_EPOCH, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
