"""How far a run is, for whoever watches it meanwhile from another thread; it changes nothing and costs nothing else.

with watching() as run:
    ...  # emulate; run.done of run.total operations, run.steps and run.party in the meantime
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from bdforge.emulator.scheduler import Scheduler
from bdforge.txn import Operation


@dataclass
class Watched:
    """A run: operations of the controller that are done and in all, and the scheduler of the array.

    The controller does one after the other and the array moves as far as it can in between, so that the share of
    operations is about that of time. Both are 0 before the first one.
    """

    done: int = 0
    total: int = 0
    scheduler: Scheduler | None = None

    @property
    def steps(self) -> int:
        """Steps that cores and channels have taken."""
        return 0 if self.scheduler is None else self.scheduler.steps

    @property
    def party(self) -> str:
        """Who moved last, such as "core (0, 2)"; it may be in a loop of its own."""
        last = None if self.scheduler is None else self.scheduler.last
        return "" if last is None else last.name


_WATCHED: ContextVar[Watched | None] = ContextVar("watched", default=None)


@contextmanager
def watching() -> Iterator[Watched]:
    """Tells of the runs of this thread, one after the other."""
    watched = Watched()
    token = _WATCHED.set(watched)
    try:
        yield watched
    finally:
        _WATCHED.reset(token)


def attend(scheduler: Scheduler) -> None:
    """A run begins; whoever watches sees its array."""
    if (watched := _WATCHED.get()) is not None:
        watched.done, watched.total, watched.scheduler = 0, 0, scheduler


def counted(operations: Sequence[Operation]) -> Iterator[Operation]:
    """The operations; whoever watches sees how many were taken."""
    watched = _WATCHED.get() or Watched()
    watched.total = len(operations)
    for operation in operations:
        yield operation
        watched.done += 1
