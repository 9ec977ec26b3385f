"""Checks on the command line: their names, how to switch them off, and the warnings that are left."""

from collections.abc import Iterable
from typing import Annotated

import typer

from bdforge.emulator.strictness import CAUTIONS, CHECKS, HABITS

Permissive = Annotated[
    list[str] | None,
    typer.Option("--permissive", help="Switch a check off by its name (`bdforge checks` lists them); repeatable."),
]


def tell(warnings: Iterable[str]) -> None:
    """Warnings, one a line, apart from what the command prints."""
    for warning in warnings:
        typer.echo(f"warning: {warning}", err=True)


def checks() -> None:
    """List what --permissive switches off: errors first, then warnings, then what silicon does."""
    for what, names in (("error", CHECKS), ("warning", CAUTIONS), ("as silicon", HABITS)):
        for name, meaning in names.items():
            typer.echo(f"{name} ({what}): {meaning}")
