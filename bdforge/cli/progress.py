"""What long work shows on a terminal: how far it is, and when it may end. In a pipe nothing is shown."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from bdforge.array.emulator.observe import Watched, watching
from bdforge.common.messages import clip

AFTER_SECONDS = 2.0  # of work before anything is shown
_REFRESH_SECONDS = 0.25


def bar(console: Console, *columns: ProgressColumn, transient: bool = False) -> Progress:
    """A bar with the time that is left, on a terminal only; one that is `transient` is gone at the end."""
    shown = [TextColumn("{task.description}"), BarColumn(), *columns, TimeElapsedColumn(), TimeRemainingColumn()]
    return Progress(*shown, console=console, disable=not console.is_terminal, transient=transient)


def counting(console: Console) -> Progress:
    """A bar for things that are counted."""
    return bar(console, MofNCompleteColumn())


@contextmanager
def emulating(what: str, console: Console, after_seconds: float = AFTER_SECONDS) -> Iterator[None]:
    """Around an emulation: from `after_seconds` on a line with its share of operations, who moves, and the end.

    Without a sequence, or in a loop of a core that never ends, there is no share; steps and the party tell then.
    """
    if not console.is_terminal:
        yield
        return
    ended = Event()
    with watching() as watched:
        thread = Thread(target=_draw, args=(what, watched, console, ended, after_seconds), daemon=True)
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()


def _draw(what: str, watched: Watched, console: Console, ended: Event, after_seconds: float) -> None:
    if ended.wait(after_seconds):
        return
    with bar(console, TextColumn("{task.fields[state]}"), transient=True) as drawn:
        task = drawn.add_task(clip(what), total=None, state="")
        while True:
            _update(drawn, task, watched)
            if ended.wait(_REFRESH_SECONDS):
                return


def _update(drawn: Progress, task: TaskID, watched: Watched) -> None:
    state = f"{watched.steps:,} steps, {watched.party}" if watched.party else "starts"
    drawn.update(task, total=watched.total or None, completed=watched.done, state=state)
