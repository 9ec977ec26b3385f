"""The command line: thin, every command calls one function of the packages."""

from collections import UserDict
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

import bdforge
from bdforge.cli import importing
from bdforge.cli.ending import BAD_INPUT, refuse
from bdforge.cli.summaries import summaries
from bdforge.common.messages import bounded
from bdforge.common.screen import say

HOMES = {
    "new": "build", "build": "build", "compose": "compose", "run": "run", "check-run": "check_run",
    "emulate": "emulate", "verify": "emulate", "device": "device", "plan": "plan", "render": "texts",
    "convert": "texts", "show": "texts", "route": "texts", "lower": "texts", "insts": "insts", "asm": "machine_code",
    "disasm": "machine_code", "explain": "explain", "estimate": "estimate", "contract": "contract",
    "weights": "weights", "generate": "models", "bench": "models", "tune": "tune", "balance": "tune",
    "sweep": "sweep", "reproduce": "reproduce", "plot": "plot", "demo": "demo", "puzzle": "puzzle",
    "doctor": "doctor", "checks": "options",
}  # fmt: skip
"""Commands in the order of the help, and the module of this package that has each."""


_UsageError: Any = typer.BadParameter.__base__
_USAGE_BYTES = 1024  # a frame is drawn around it


class _Commands(UserDict[str, Any]):
    """Commands by name. Only the module of the one that runs is imported: all of them take seconds."""

    def __getitem__(self, key: str) -> Any:
        if self.data[key] is None:
            with importing():
                part = import_module(f"bdforge.cli.{HOMES[key]}").app
            self.data |= {name: _without_empty(found) for name, found in typer.main.get_group(part).commands.items()}
        return self.data[key]


class _Group(TyperGroup):
    def __init__(self, **attrs: Any) -> None:
        attrs["commands"] = _Commands(dict.fromkeys(HOMES))
        super().__init__(**attrs)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """The help of all commands."""
        self.commands = _told()
        super().format_help(ctx, formatter)

    def shell_complete(self, ctx: Any, incomplete: str) -> Any:
        """Names of commands, for shells."""
        self.commands = _told()
        return super().shell_complete(ctx, incomplete)

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Options before a command; usage errors are bounded."""
        with _bounded():
            return super().parse_args(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Run a command; usage errors are bounded."""
        with _bounded():
            return super().invoke(ctx)


def _told() -> dict[str, Any]:
    """Names and help of all commands, of which none is imported."""
    told = {name: found for home in {*HOMES.values()} for name, found in summaries(home).items()}
    return {name: TyperCommand(name, help=told[name][0], hidden=told[name][1]) for name in HOMES}


@contextmanager
def _bounded() -> Iterator[None]:
    """Around what raises usage errors, which repeat what was given: their messages have _USAGE_BYTES at most."""
    try:
        yield
    except _UsageError as error:
        error.message = bounded(error.message, _USAGE_BYTES)
        refuse(error.format_message(), BAD_INPUT)
        raise


def _without_empty(command: Any) -> Any:
    """The command, which refuses an empty text for an option that has no use for one."""
    for each in getattr(command, "commands", {}).values():
        _without_empty(each)
    for parameter in command.params:
        takes_text = parameter.type_descriptor.annotation is str and not parameter.multiple
        if takes_text and parameter.default != "" and parameter.callback is None:
            parameter.callback = _not_empty
    return command


def _not_empty(ctx: Any, parameter: Any, value: str | None) -> str | None:
    if value == "":
        raise typer.BadParameter("an empty text says nothing; leave it out", ctx=ctx, param=parameter)
    return value


app = typer.Typer(
    name="bdforge", cls=_Group, no_args_is_help=True, pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
    help="Explicit, checked and emulated designs for AMD's NPU.",
)  # fmt: skip


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
