"""The man page and shells' completion of the command line, from its definition, where systems look for them.

A wheel brings them below the `share` of an environment, as packages do below `/usr/share`;
`python -m bdforge.cli.system_files FOLDER` writes them anywhere else.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer
from typer.completion import get_completion_script

import bdforge
from bdforge.cli.commands import HOMES, app
from bdforge.common.roff import roff, roff_prose

MAN_PAGE = "man/man1/bdforge.1"
_COMPLETION = {
    "bash": "bash-completion/completions/bdforge",
    "fish": "fish/vendor_completions.d/bdforge.fish",
    "zsh": "zsh/site-functions/_bdforge",
}
_ENDS = """.SH EXIT STATUS
0; 1 when a run fails or results differ, 2 when what was given cannot be used, 3 for a fault of bdforge itself, 130
after Ctrl\\-C.
"""


def system_files() -> dict[str, str]:
    """Texts by their paths below `share`."""
    scripts = {
        path: get_completion_script(prog_name="bdforge", complete_var="_BDFORGE_COMPLETE", shell=shell) + "\n"
        for shell, path in _COMPLETION.items()
    }
    return {MAN_PAGE: man_page()} | scripts


def man_page() -> str:
    """The man page in roff, all commands in it: `bdforge-run` is the name of a program in C++, which has one, too."""
    return "\n".join([*_start(app.info.help or ""), *_commands(), _ENDS])


def shown_commands() -> dict[str, Any]:
    """Commands, or groups of them, by name, in the order of the help; hidden ones left out."""
    commands = typer.main.get_group(app).commands
    return {name: commands[name] for name in HOMES if not commands[name].hidden}


def _start(told: str) -> Iterator[str]:
    yield f'.TH BDFORGE 1 "" "bdforge {bdforge.__version__}"'
    yield f".SH NAME\nbdforge \\- {roff_prose(told.rstrip('.'))}"
    yield ".SH SYNOPSIS\n.B bdforge\ncommand [options]\n.SH COMMANDS"


def _commands() -> Iterator[str]:
    for name, command in shown_commands().items():
        yield from _command(f"bdforge {name}", command)
        for part, inner in getattr(command, "commands", {}).items():
            yield from _command(f"bdforge {name} {part}", inner)


def _command(words: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=words)
    yield f".SS {roff(words)} {roff(' '.join(command.collect_usage_pieces(context)))}"
    yield roff_prose(command.help)
    for parameter in command.params:
        if (record := parameter.get_help_record(context)) is not None:  # None: hidden
            form, told = map(roff_prose, record)
            yield f".TP\n.B {form}\n{told or '.br'}"


def write_system_files(share: Path) -> None:
    """Write all files below a folder such as `/usr/share`."""
    for name, text in system_files().items():
        path = share / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write_system_files(Path(sys.argv[1]))
