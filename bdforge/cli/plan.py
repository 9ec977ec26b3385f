"""`bdforge plan`: a spec's whole design as a document. It needs no MLIR, whose dialects take long to import."""

from collections.abc import Sequence
from dataclasses import replace
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
from bdforge.common.screen import say
from bdforge.design.document import design_of, document
from bdforge.design.document.schema import json_schema
from bdforge.design.sequences import SequenceOptions
from bdforge.devices import device_named
from bdforge.operators import Plan, Problem, design_for, document_at, load_spec, operator_of, plan

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
    if as_written and (content := document_at(design)) is not None:
        return print_or_write(document(design_of(content, str(design))), out, force)
    made, chosen = planned(design, device, shape, wait, in_flight)
    found = made.whole
    if shape:
        found = replace(found, program=None, problems=(), sequences=design_for(made, chosen).sequences)
    return print_or_write(document(found), out, force)


def planned(
    design: Path, device: str, shape: list[str] | None, wait: str | None, in_flight: int | None
) -> tuple[Plan, Sequence[Problem]]:
    """A spec's plan that waits as asked, and the chosen problems or those that are built in."""
    spec = load_spec(design)
    found = plan(spec, device_named(device))
    if options := SequenceOptions.given(wait, in_flight):
        found = found.waiting(options)
    return found, problems_of(operator_of(spec), shape) or found.problems
