"""What long work shows on a terminal: how far it is, and when it may end. In a pipe nothing is shown."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from threading import Event, Thread

import typer
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
from bdforge.cli.ending import INTERRUPTED
from bdforge.common.messages import clip
from bdforge.common.screen import say, screen
from bdforge.common.tasks import Told, Workers

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
def doing(workers: Workers, *names: str) -> Iterator[list[Told]]:
    """Around tasks: a bar for each kind of them."""
    with resumable(workers), counting(screen(stderr=True)) as progress:
        yield [_bar_of(progress, name) for name in names]


@contextmanager
def resumable(workers: Workers) -> Iterator[None]:
    """Around tasks: one sentence where Ctrl-C ends them."""
    try:
        yield
    except KeyboardInterrupt:
        kept = workers.kept and "what is done is kept, the same command goes on from there"
        say(f"interrupted; {kept or 'nothing is kept'}", err=True)
        raise typer.Exit(INTERRUPTED) from None


def _bar_of(progress: Progress, name: str) -> Told:
    bar = progress.add_task(name, total=None, visible=False)
    return lambda done, of: progress.update(bar, completed=done, total=of, visible=of > 0)


class _Tasks:
    """How many of the emulations are done."""

    done = of = 0

    def tell(self, done: int, of: int) -> None:
        self.done, self.of = done, of


def working(design: Path) -> AbstractContextManager[Told]:
    """Around work on a design without a share to tell: from two seconds on a line with its name and the time."""
    return emulating(design.name, screen(stderr=True), begun="")


@contextmanager
def emulating(
    what: str, console: Console, after_seconds: float = AFTER_SECONDS, begun: str = "starts"
) -> Iterator[Told]:
    """Around an emulation: from `after_seconds` on a line with its share of operations, who moves, and the end.

    Without a sequence, or in a loop of a core that never ends, there is no share; steps and the party tell then. Of
    several, which tell how many are done, the line is that of the one that runs here, or of all that run elsewhere.
    Before the first event it says `begun`.
    """
    tasks = _Tasks()
    if not console.is_terminal:
        yield tasks.tell
        return
    ended = Event()
    with watching() as watched:
        drawing = (what, watched, tasks, console, ended, after_seconds, begun)
        thread = Thread(target=_draw, args=drawing, daemon=True)
        thread.start()
        try:
            yield tasks.tell
        finally:
            ended.set()
            thread.join()


def _draw(
    what: str, watched: Watched, tasks: _Tasks, console: Console, ended: Event, after_seconds: float, begun: str
) -> None:
    if ended.wait(after_seconds):
        return
    with bar(console, TextColumn("{task.fields[state]}"), transient=True) as drawn:
        task = drawn.add_task(clip(what), total=None, state="")
        while True:
            _update(drawn, task, watched, tasks, begun)
            if ended.wait(_REFRESH_SECONDS):
                return


def _update(drawn: Progress, task: TaskID, watched: Watched, tasks: _Tasks, begun: str = "starts") -> None:
    count = f"{tasks.done} of {tasks.of}" if tasks.of > 1 else ""
    if count and not watched.party:
        drawn.update(task, total=tasks.of, completed=tasks.done, state=count)
        return
    state = f"{watched.steps:,} steps, {watched.party}" if watched.party else begun
    state = f"{count}: {state}" if count else state
    drawn.update(task, total=watched.total or None, completed=watched.done, state=state)
