"""A core's own stream ports: one word of 32 bits at a time, in and out."""

from collections.abc import Callable, Generator

import numpy as np

from bdforge.emulator.scheduler import Agent, Scheduler
from bdforge.emulator.stream import DataWait, Sink, Stream


class StreamInput:
    """The port from which a core gets words."""

    def __init__(self, core: Agent):
        self.core = core
        self.sink = Sink(core, self._receive)
        self._received: list[np.ndarray] = []

    def _receive(self, words: np.ndarray) -> None:
        self._received.append(words)

    def get(self, count: int, where: Callable[[], str]) -> Generator[None, None, bytes]:
        """Steps of the core that end with the bytes of `count` words."""
        sink = self.sink
        left = count
        if self.core.trace is not None:
            self.core.trace.add("receive", count, None)
        while sink.held and left:
            words = sink.take(left)
            self._received.append(words)
            left -= len(words)
        sink.demand = left
        if sink.source is not None:
            sink.source.changed()
        while sink.demand:
            self.core.waiting = DataWait(sink, where)
            yield
        found = b"".join(words.tobytes() for words in self._received)
        self._received.clear()
        return found


class StreamOutput:
    """The port to which a core puts words."""

    def __init__(self, core: Agent, scheduler: Scheduler):
        self.stream = Stream(core, scheduler)

    def put(self, data: bytes, where: Callable[[], str], last: bool = False) -> Generator[None, None, None]:
        """Steps of the core that send the words of `data`; `last` marks the final one with TLAST."""
        yield from self.stream.push(np.frombuffer(data, np.uint32), where, last)
