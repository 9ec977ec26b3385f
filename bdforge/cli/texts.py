"""`bdforge render`, `convert`, `show` and `route`: a design's MLIR, made, rewritten, shown and routed."""

import json
from pathlib import Path
from typing import Annotated

import typer

from bdforge import show
from bdforge.cli.files import Force, Out, print_or_write
from bdforge.cli.options import Dialect, InFlight, Module, ProductName, Shapes, Wait, problems_of
from bdforge.design.template import is_template, load_template_spec, render_template
from bdforge.devices import device_named
from bdforge.files import read_text
from bdforge.mlir import Era, convert, era_of, parse, print_module
from bdforge.operators import load_spec, manifest, operator_of, plan, render
from bdforge.routing.write import write_routes
from bdforge.screen import say, screen
from bdforge.sequences import SequenceOptions

app = typer.Typer()


@app.command(name="render")
def render_command(
    design: Annotated[Path, typer.Argument(help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")],
    device: ProductName = "strix_halo",
    shape: Shapes = None,
    with_manifest: Annotated[bool, typer.Option("--manifest", help="Print the manifest instead of the MLIR.")] = False,
    wait: Wait = None,
    in_flight: InFlight = None,
    dialect: Dialect = Era.MARCH,
    out: Out = None,
    force: Force = False,
) -> None:
    """Print a design's MLIR (or its manifest)."""
    if is_template(design):
        if shape or with_manifest or wait or in_flight is not None:
            raise typer.BadParameter(
                "--shape, --manifest, --wait and --in-flight go with operators, not with templates"
            )
        text = render_template(load_template_spec(design), design.parent.parent / "templates")
        return print_or_write(convert(text, dialect, str(design)), out, force)
    spec = load_spec(design)
    planned = plan(spec, device_named(device))
    if options := SequenceOptions.given(wait, in_flight):
        planned = planned.waiting(options)
    chosen = problems_of(operator_of(spec), shape) or spec.problems
    text = json.dumps(manifest(planned, chosen), indent=2) if with_manifest else render(planned, chosen, dialect)
    return print_or_write(text, out, force)


@app.command(name="convert")
def convert_command(
    design: Annotated[Path, typer.Argument(help="MLIR text of either form.")],
    dialect: Dialect,
    out: Out = None,
    force: Force = False,
) -> None:
    """Print a design's MLIR in the form of the dialect that another mlir-aie reads; comments stay."""
    print_or_write(convert(read_text(design), dialect, str(design)), out, force)


@app.command(name="show")
def show_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device, or an image: xclbin, PDI, CDO, ELF.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Picture of the array: a new .png or .svg file.")
    ] = None,
    module: Module = None,
    force: Force = False,
) -> None:
    """Print a design's tiles, memory and switches, and draw its array; or what an image holds."""
    say(show.command(design, out, module, force, screen().width), nl=False)


@app.command(name="route")
def route_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")],
    out: Out = None,
    force: Force = False,
) -> None:
    """Route a design's flows and print it in physical form: with the settings of its stream switches."""
    module = parse(read_text(design), str(design))
    write_routes(module)
    print_or_write(convert(print_module(module), era_of(module) or Era.MARCH), out, force)
