"""Events in the order of time. Times are array cycles; 0 is when the first operation of the sequence starts."""

import heapq
from collections.abc import Callable
from typing import Any


class Clock:
    """A queue of calls, each at a time; calls at the same time run in the order in which they were asked for."""

    def __init__(self, start: float):
        self.now = start
        self._events: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, time: float, call: Callable[..., Any], *arguments: Any) -> None:
        """Call at `time`, which is not before now."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, call, arguments))

    def run(self) -> None:
        """Make every call, also those that calls ask for."""
        events = self._events
        while events:
            self.now, _, call, arguments = heapq.heappop(events)
            call(*arguments)

    def stop(self) -> None:
        """Forget what was still to come."""
        self._events.clear()
