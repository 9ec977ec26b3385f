"""Checks on the command line: their names, how to switch them off, and the warnings that are left."""

from collections.abc import Iterable
from typing import Annotated

import typer

from bdforge.emulator.strictness import CAUTIONS, CHECKS, HABITS
from bdforge.messages import listed
from bdforge.screen import say

Permissive = Annotated[
    list[str] | None,
    typer.Option("--permissive", help="Switch a check off by its name (`bdforge checks` lists them); repeatable."),
]


def tell(warnings: Iterable[str]) -> None:
    """Warnings, one a line, apart from what the command prints: the first ten, then how many more."""
    if found := [f"warning: {warning}" for warning in warnings]:
        say(listed(found, "\n"), err=True)


def checks() -> None:
    """List what --permissive switches off: errors first, then warnings, then what silicon does."""
    for what, names in (("error", CHECKS), ("warning", CAUTIONS), ("as silicon", HABITS)):
        for name, meaning in names.items():
            say(f"{name} ({what}): {meaning}")
