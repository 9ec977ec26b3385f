"""Observers see what happens and in which order; they can change nothing."""

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from bdforge.files import write_whole


class Observer(Protocol):
    """Gets every event: its number (order, not time), the party, the kind of event, and what it was about.

    Kinds: `begin` and `end` of a BD, kernel or task; `wait` when a party blocks; `value` of a lock.
    """

    def event(self, clock: int, party: str, kind: str, what: str) -> None: ...


@dataclass
class Timeline:
    """Collects events and writes them as Chrome trace JSON, which Perfetto and chrome://tracing open.

    One track for each channel, core and lock. The time axis counts events: it shows order, not duration.
    """

    tracks: dict[str, int] = field(default_factory=dict)
    events: list[dict[str, Any]] = field(default_factory=list)
    _open: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def event(self, clock: int, party: str, kind: str, what: str) -> None:
        """Record one event."""
        track = self.tracks.setdefault(party, len(self.tracks))
        match kind:
            case "begin":
                self._open.setdefault(party, []).append({"name": what, "ts": clock, "tid": track})
            case "end":
                self._close(party, clock)
            case "value":
                value = {"value": int(what)}
                self.events.append({"ph": "C", "name": party, "ts": clock, "pid": 0, "tid": track, "args": value})
            case _:
                self.events.append({"ph": "i", "s": "t", "name": f"{kind} {what}", "ts": clock, "pid": 0, "tid": track})

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
        names = [
            {"ph": "M", "name": "thread_name", "pid": 0, "tid": track, "args": {"name": party}}
            for party, track in self.tracks.items()
        ]
        process = {"ph": "M", "name": "process_name", "pid": 0, "args": {"name": "emulated array (order, not time)"}}
        text = json.dumps({"traceEvents": [process, *names, *self.events], "displayTimeUnit": "ns"})
        write_whole(path, text)
