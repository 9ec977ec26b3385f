"""The command line: thin, every command calls one function of the packages."""

from typing import Annotated

import typer

import bdforge
from bdforge.cli import (
    balance,
    build,
    device,
    doctor,
    emulate,
    estimate,
    generate,
    insts,
    isa,
    model_bench,
    plot,
    run,
    sweep,
    texts,
    tune,
    weights,
)
from bdforge.cli.options import checks
from bdforge.screen import say

app = typer.Typer(
    name="bdforge", no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Explicit, checked and emulated designs for AMD's NPU.",
)  # fmt: skip
for part in (
    build, run, emulate, device, texts, insts, isa, estimate, weights, generate, model_bench, tune, balance, sweep,
    plot, doctor,
):  # fmt: skip
    app.add_typer(part.app)
app.command(name="checks")(checks)


def _version(wanted: bool) -> None:
    if wanted:
        say(f"bdforge {bdforge.__version__}")
        raise typer.Exit


@app.callback()
def _everywhere(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and end.")
    ] = False,
) -> None:
    """Explicit, checked and emulated designs for AMD's NPU."""
