"""Who watches a run: order as a timeline, and how far it is, from another thread. Neither changes anything.

with watching() as run:
    ...  # emulate; run.done of run.total operations, run.steps and run.party in the meantime
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.common.files import write_whole
from bdforge.devices.txn_format.operations import Operation


@dataclass
class PerfettoTrace:
    """An observer that writes Chrome trace JSON, which Perfetto and chrome://tracing open.

    One track for each channel, core and lock. The time axis counts events: it shows order, not duration.
    """

    tracks: dict[str, int] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    _clock: int = 0

    def event(self, party: Agent | None, verb: str, *about: Any) -> None:
        if verb == "value":
            self._clock += 1
            name, args = f"lock {about[0].name}", {"value": about[1]}
            event = {"ph": "C", "name": name, "ts": self._clock, "pid": 0, "tid": self._track(name), "args": args}
            self.events.append(event)
        elif party is not None and verb == "begin":
            self._clock += 1
            begun = {"name": about[0], "ts": self._clock, "tid": self._track(party.name)}
            self._open.setdefault(party.name, []).append(begun)
        elif party is not None and verb == "end":
            self._clock += 1
            self._close(party.name, self._clock)

    def _track(self, name: str) -> int:
        return self.tracks.setdefault(name, len(self.tracks))

    def _close(self, party: str, clock: int) -> None:
        if stack := self._open.get(party):
            begun = stack.pop()
            self.events.append({"ph": "X", "pid": 0, "dur": clock - begun["ts"], **begun})

    def write(self, path: Path) -> None:
        """Write the trace, FileError if that fails; what is still open ends at the last event."""
        begun = [event for stack in self._open.values() for event in stack]
        last = max((event["ts"] for event in (*self.events, *begun)), default=0) + 1
        for party, stack in self._open.items():
            for _ in range(len(stack)):
                self._close(party, last)
        tracks = [(0, track, party) for party, track in self.tracks.items()]
        write_trace(path, ["emulated array (order, not time)"], tracks, self.events)


def write_trace(
    path: Path, processes: Sequence[str], tracks: Iterable[tuple[int, int, str]], events: Sequence[dict[str, Any]]
) -> None:
    """Write Chrome trace JSON of processes, tracks (process, number, name) and events; FileError if that fails."""
    names = [
        {"ph": "M", "name": "process_name", "pid": number, "args": {"name": name}}
        for number, name in enumerate(processes)
    ]
    names += [
        {"ph": "M", "name": "thread_name", "pid": process, "tid": number, "args": {"name": name}}
        for process, number, name in tracks
    ]
    write_whole(path, json.dumps({"traceEvents": [*names, *events], "displayTimeUnit": "ns"}))


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
