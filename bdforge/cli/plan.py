"""`bdforge plan`: a spec's whole design as a document. It needs no MLIR, whose dialects take long to import."""

from collections.abc import Sequence
from dataclasses import replace
from os.path import isdir  # not of Path: a name may be too long
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    Force,
    InFlight,
    Out,
    ProductName,
    Shapes,
    SpecFile,
    Wait,
    print_or_write,
    problems_of,
)
from bdforge.common.messages import clip_path
from bdforge.common.screen import say
from bdforge.design.document import design_of, document
from bdforge.design.document.schema import json_schema
from bdforge.design.manifest import COMPOSITION
from bdforge.design.sequences import SequenceOptions
from bdforge.devices import device_named
from bdforge.operators import Plan, Problem, SpecError, design_for, document_at, load_spec, operator_of, plan, plan_of

app = typer.Typer()


def _print_schema(wanted: bool) -> None:
    if wanted:
        say(json_schema(), nl=False)
        raise typer.Exit


@app.command(name="plan")
def plan_command(
    design: SpecFile,
    device: ProductName = DEFAULT_PRODUCT,
    shape: Shapes = None,
    wait: Wait = None,
    in_flight: InFlight = None,
    schema: Annotated[
        bool,
        typer.Option(
            "--schema", is_eager=True, callback=_print_schema, help="Print the JSON Schema of documents, for editors."
        ),
    ] = False,
    out: Out = None,
    force: Force = False,
) -> None:
    """Print the whole design of a spec as a document: every buffer, BD and flow, and the sequence of any size.

    With --shape its tasks for those sizes instead; `render` makes MLIR of it.
    """
    as_written = not (shape or wait or in_flight is not None)
    if as_written and not isdir(design) and (content := document_at(design)) is not None:
        return print_or_write(document(design_of(content, str(design))), out, force)
    made, chosen = planned(design, device, shape, wait, in_flight)
    found = made.whole
    if shape:
        found = replace(found, program=None, problems=(), sequences=design_for(made, chosen).sequences)
    return print_or_write(document(found), out, force)


def planned(
    design: Path, device: str, shape: list[str] | None, wait: str | None, in_flight: int | None
) -> tuple[Plan, Sequence[Problem]]:
    """The plan of a spec, or of what a built design's folder holds, that waits as asked, and the chosen problems or
    those that are built in."""
    if isdir(design):
        found, own = _built(design, device)
    else:
        found = plan(load_spec(design), device_named(device))
        own = found.problems
    if options := SequenceOptions.given(wait, in_flight):
        found = found.waiting(options)
    return found, problems_of(operator_of(found.spec), shape) or own


def _built(folder: Path, device: str) -> tuple[Plan, Sequence[Problem]]:
    """The plan and the problems of a built design, for the product that it was built for; InputErrors for a folder with
    none, or with a composition."""
    from bdforge.runtime import BuiltDesign  # of a folder alone: this brings MLIR along

    built = BuiltDesign.load(folder)
    check_product(folder, built.manifest.device, device)
    if built.manifest.kind == COMPOSITION:
        image = clip_path(built.image("xclbin"))
        raise SpecError(f"{clip_path(folder)}: is a composition of designs; take one of theirs, or its image, {image}")
    found = plan_of(built.manifest, folder)
    operator = operator_of(found.spec)
    return found, [operator.problem([*problem.sizes.values()]) for problem in built.manifest.problems]


def check_product(folder: Path, built_for: str, device: str) -> None:
    """typer.BadParameter for another product than the one that a folder's design was built for."""
    if device not in (built_for, DEFAULT_PRODUCT):
        raise typer.BadParameter(f"{folder} was built for {built_for}; leave --device {device} out")
