"""Tables and lines for people: folded on a narrow screen, never cut, and whole lines where there is no screen."""

import os
from collections.abc import Iterable, Iterator
from functools import partial
from io import StringIO
from textwrap import wrap

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, Group, RenderableType
from rich.segment import Segment
from rich.table import Column, Table

from bdforge.common.messages import printable

PIPED_WIDTH = 4096  # characters; no table of ours is as wide, so that a pipe gets one line for each row
_LEAST_WIDTH, _GAP = 6, 3  # characters: of a column that is folded, and between columns
_UNDER = " " * 9


class _Screen(Console):
    """A console that shows control characters in what it prints; its own codes for colours are no text."""

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def screen(*, stderr: bool = False) -> Console:
    """A console as wide as the terminal, or as COLUMNS says; without either nothing is folded."""
    columns = os.environ.get("COLUMNS", "")
    console = _Screen(stderr=stderr, highlight=False)
    folds = int(columns) > 0 if columns.isdigit() else console.is_terminal
    return console if folds else _Screen(stderr=stderr, highlight=False, width=PIPED_WIDTH)


def new_table(title: str | None, *columns: str) -> Table:
    """A table whose cells fold. Numbers stand at the right (">" before the name of their column); they and shapes
    ("=") fold last: half a number reads like another one."""
    table = Table(title=title, title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        justify = "right" if name.startswith(">") else "left"
        table.add_column(name.lstrip(">="), justify=justify, no_wrap=name[:1] in (">", "="), overflow="fold")
    return table


def put(console: Console, *parts: RenderableType) -> None:
    """Print parts without blanks at the ends of lines."""
    with console.capture() as captured:
        for part in parts:
            for inner in part.renderables if isinstance(part, Group) else [part]:
                if isinstance(inner, Table):
                    _relax(inner, console.width)
                console.print(inner)
    console.file.write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))
    console.file.flush()


def say(text: str, *, nl: bool = True, err: bool = False) -> None:
    """Print text that may come from a file: control characters are shown, not sent."""
    typer.echo(printable(text), nl=nl, err=err)


def say_prose(text: str) -> None:
    """`say` sentences that fold between words, below the tenth character: what stands before is a label."""
    fold = partial(wrap, width=screen().width, subsequent_indent=_UNDER, break_long_words=False, break_on_hyphens=False)
    say("\n".join(part for line in text.splitlines() for part in fold(line)))


def as_text(parts: Iterable[RenderableType], width: int = 120) -> str:
    """Parts as plain text of at most `width` characters per line, without blanks at the ends."""
    file = StringIO()
    put(_Screen(file=file, width=width, color_system=None, force_terminal=False, highlight=False), *parts)
    return file.getvalue()


def _relax(table: Table, width: int) -> None:
    """Let every column fold where those that should not leave no room: rich would cut them."""
    needed = sum(_longest(column) if column.no_wrap else _LEAST_WIDTH for column in table.columns)
    if needed + _GAP * len(table.columns) > width:
        for column in table.columns:
            column.no_wrap = False


def _longest(column: Column) -> int:
    texts = [str(column.header), *map(str, column.cells)]
    return max(cell_len(line) for text in texts for line in text.split("\n"))
