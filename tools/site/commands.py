"""A page for each command, from the command line's own parser: usage, arguments, options with their defaults."""

from collections.abc import Iterator
from typing import Any

from bdforge.cli.system_files import shown_commands
from tools.docs.markdown import table
from tools.site.parts import escaped, subpages

_START = """# Commands

`bdforge --help` lists them, `--help` or `-h` behind a command tells of it, and `bdforge --version` prints the version.
All end with [these exit codes](../docs/building.md#exit-codes).
"""


def pages() -> dict[str, str]:
    """Text of the pages by path below `reference`: one for each command, and their list."""
    shown = shown_commands()
    rows = [(f"[`bdforge {name}`](commands/{name}.md)", escaped(_first(one))) for name, one in shown.items()]
    text = "\n".join([_START, table(("command", "does"), rows), subpages(f"commands/{name}" for name in shown)])
    return {"commands.md": text} | {f"commands/{name}.md": "\n".join(page(name, one)) for name, one in shown.items()}


def _first(command: Any) -> str:
    return " ".join(command.help.split("\n\n")[0].split())


def page(name: str, command: Any) -> Iterator[str]:
    """Parts of the page of a command, or of a group of commands."""
    yield f"# bdforge {name}\n"
    yield from _command(f"bdforge {name}", command)
    for part, inner in getattr(command, "commands", {}).items():
        yield f"## bdforge {name} {part}\n"
        yield from _command(f"bdforge {name} {part}", inner)


def _command(words: str, command: Any) -> Iterator[str]:
    context = command.context_class(command, info_name=words)
    yield f"{escaped(command.help)}\n"
    yield f"```text\n{words} {' '.join(command.collect_usage_pieces(context))}\n```\n"
    yield f"```{{program}} {words}\n```\n"
    for parameter in command.params:
        if (record := parameter.get_help_record(context)) is not None:  # None: hidden
            form, told = record
            kind = "option" if parameter.param_type_name == "option" else "describe"
            yield f"````{{{kind}}} {form}\n{escaped(told)}\n````\n"
