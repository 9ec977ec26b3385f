"""`bdforge render`, `convert`, `show`, `route`, `lower`: a design's MLIR, made, rewritten, shown, routed, lowered."""

import json
import os
from pathlib import Path
from typing import Annotated

import typer

from bdforge.array import show
from bdforge.array.core_bodies.core_program import device_programs
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.verification import check_device
from bdforge.array.images.image_build import SUFFIXES, image, program_of
from bdforge.array.images.read import is_image
from bdforge.array.lower import StaticConfiguration, configuration
from bdforge.array.mlir import Era, convert, era_of, print_module
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.routing.write import write_routes
from bdforge.array.show.image import chosen_device
from bdforge.array.show.page import Page, page
from bdforge.cli.design_texts import DesignFile, SpecProduct, is_made, module_of, named_text, rendered
from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.json_design import ShownDesign
from bdforge.cli.machine_code import Define
from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    AsJson,
    Force,
    Html,
    InFlight,
    Module,
    Out,
    Permissive,
    ProductName,
    Shapes,
    Wait,
    new_path,
    number,
    print_or_write,
    print_warnings,
    write,
)
from bdforge.cli.plan import planned
from bdforge.cli.progress import working
from bdforge.common.binary import ImageError
from bdforge.common.files import TEXT_BYTES_MAX, read_bytes
from bdforge.common.messages import listed
from bdforge.common.screen import say, screen
from bdforge.core.codegen.kernels import assembled
from bdforge.core.codegen.objects import linkable
from bdforge.devices import DEVICES
from bdforge.devices.txn_format.describe import listing
from bdforge.operators import manifest
from bdforge.runtime.toolchain.assembled import programmed

app = typer.Typer()
Dialect = Annotated[Era, typer.Option(help="Form of the text: march up to mlir-aie 1.3.4, 1.4 from then on.")]


@app.command(name="render")
def render_command(
    design: Annotated[
        Path,
        typer.Argument(help="Design spec, or document (- on standard input)."),
    ],
    device: ProductName = DEFAULT_PRODUCT,
    shape: Shapes = None,
    with_manifest: Annotated[bool, typer.Option("--manifest", help="Print the manifest instead of the MLIR.")] = False,
    wait: Wait = None,
    in_flight: InFlight = None,
    dialect: Dialect = Era.MARCH,
    out: Out = None,
    force: Force = False,
) -> None:
    """Print a design's MLIR (or its manifest)."""
    if with_manifest:
        made, chosen = planned(design, device, shape, wait, in_flight)
        return print_or_write(json.dumps(manifest(made, chosen), indent=2), out, force)
    with working(design):
        text = rendered(design, device, shape, wait, in_flight)
        form = text if dialect is Era.MARCH else convert(text, dialect, design.stem)  # templates write March's
    return print_or_write(form, out, force)


@app.command(name="convert")
def convert_command(
    design: DesignFile,
    dialect: Dialect,
    shape: Shapes = None,
    device: SpecProduct = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """Print a design's MLIR in the form of the dialect that another mlir-aie reads; comments stay."""
    with working(design):
        text, name = named_text(design, device, shape)
        form = convert(text, dialect, name)
    print_or_write(form, out, force)


@app.command(name="show")
def show_command(
    design: Annotated[Path, typer.Argument(help="A design as for `verify`, or an image: xclbin, PDI, CDO, ELF.")],
    out: Annotated[Path | None, new_path("Picture of the array: a new .png or .svg file.", "--out", "-o")] = None,
    module: Module = None,
    shape: Shapes = None,
    device: SpecProduct = None,
    html: Html = None,
    force: Force = False,
    as_json: AsJson = False,
) -> None:
    """Print a design's tiles, memory and switches, and draw its array; or what an image holds. Or write its page."""
    if as_json:
        if out is not None or html is not None:
            raise typer.BadParameter("it goes without --out and --html", param_hint="--json")
        with working(design):
            found = _shown(design, device, shape, module)
        return found.print()
    if html is not None:
        if out is not None:
            raise typer.BadParameter("--html writes a page, --out a picture: give one of them", param_hint="--html")
        with working(design):
            made = page(*named_text(design, device, shape), module)
        return _write_page(html, made, force)
    with working(design):
        text = named_text(design, device, shape) if is_made(design) else None
        told = show.command(design, out, module, force, screen().width, text)
    return say(told, nl=False)


def _shown(design: Path, device: str | None, shape: list[str] | None, name: str | None) -> ShownDesign:
    if not is_made(design) and is_image(read_bytes(design, show.ShowError, TEXT_BYTES_MAX)):
        raise typer.BadParameter(f"{design} is an image; `bdforge explain --json` tells of it", param_hint="--json")
    module = module_of(design, device, shape)
    if name is not None:
        chosen_device(module, name)
    return ShownDesign.of(str(design), module, name)


def _write_page(path: Path, made: Page, force: bool) -> None:
    """The page of a design; of one with faults, too, which are told and end the command."""
    write(path, made.html, force)
    print_warnings(made.warnings)
    if made.faults:
        say(listed((f"bdforge: {fault}" for fault in made.faults), "\n"), err=True)
        raise typer.Exit(BAD_INPUT)


@app.command(name="route")
def route_command(
    design: DesignFile,
    shape: Shapes = None,
    device: SpecProduct = None,
    out: Out = None,
    force: Force = False,
) -> None:
    """Route a design's flows and print it in physical form: with the settings of its stream switches."""
    with working(design):
        module = module_of(design, device, shape)
        write_routes(module)
        text = convert(print_module(module), era_of(module) or Era.MARCH)
    print_or_write(text, out, force)


_MOST_TOLD = 4
_COLUMNS_MAX = max(device.columns for device in DEVICES.values())
_EPOCH = "SOURCE_DATE_EPOCH"


@app.command(name="lower")
def lower_command(
    design: DesignFile,
    out: Annotated[Path | None, new_path("New image to write: .cdo, .pdi or .xclbin.", "--out", "-o")] = None,
    module: Module = None,
    device: SpecProduct = None,
    columns: Annotated[int | None, number("Columns of an xclbin's partition.", least=1, most=_COLUMNS_MAX)] = None,
    without_code: Annotated[
        bool, typer.Option("--without-code", help="Write an image though cores have no machine code.")
    ] = False,
    link: Annotated[
        list[Path] | None,
        typer.Option("--link", help="Functions that cores call: assembly or an object; makes programs of bodies."),
    ] = None,
    define: Define = None,
    permissive: Permissive = None,
    force: Force = False,
) -> None:
    """Print the register writes of a design's static configuration, or write them as an image."""
    if out is not None and out.suffix not in SUFFIXES:
        raise ImageError(f"{out}: images are written as {', '.join(SUFFIXES)}; choose such a name")
    strictness = Strictness.without(permissive or [])
    with working(design):
        chosen = chosen_device(module_of(design, device), module)
        if link or define:
            found = _programmed(chosen, link or [], define or [], strictness)
        else:
            found = configuration(chosen, program_of, strictness)
        check_device(chosen, permissive or [])
    print_warnings(strictness.warnings)
    if out is None:
        for line in listing(found.operations, screen().width):
            say(line)
        return
    content = image(found, out.suffix, columns=columns, seconds=_seconds(), bare=without_code)
    write(out, content, force, f": {len(found.operations)} register writes, {len(content)} bytes")


def _programmed(device: DeviceOp, link: list[Path], define: list[str], strictness: Strictness) -> StaticConfiguration:
    """The writes of a device with programs of its cores' bodies, and a word about cores that get none."""
    generation = device.device.generation.name.lower()
    given = {name: kernel for path in link for name, kernel in linkable(path, generation).items()}
    made = device_programs(device, lambda name: given.get(name) or assembled(name, generation, define))
    for tile, reason in list(made.without.items())[:_MOST_TOLD]:
        say(f"bdforge: core {tile} has no machine code: {reason}", err=True)
    return programmed(device, made, strictness)


def _seconds() -> int:
    """Time stamp of images: what reproducible builds agree on, or 0, so that one design gives the same bytes always."""
    text = os.environ.get(_EPOCH, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else 0
