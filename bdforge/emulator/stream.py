"""Circuit streams: one source port, one or many sinks, each with a small finite buffer.

A word leaves its source only when every sink has room for it. A sink whose DMA is in the middle of a BD *demands*
the rest of that BD: such words go straight to memory, so whole BDs move at once; the buffer matters when they
cannot. Both are schedules that the hardware may follow, and values are the same.
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bdforge.devices.limits import STREAM_BUFFER_WORDS
from bdforge.emulator.scheduler import Agent, Scheduler


@dataclass(slots=True, eq=False)
class Sink:
    """The receiving end of a stream: an S2MM channel's input."""

    owner: Agent
    receive: Callable[[np.ndarray], None]
    demand: int = 0
    held: int = 0
    chunks: deque[np.ndarray] = field(default_factory=deque)
    source: "Stream | None" = None

    def deliver(self, words: np.ndarray, scheduler: Scheduler) -> None:
        """Take words from the source: what is demanded goes to memory, the rest is held."""
        if direct := min(self.demand, len(words)):
            self.receive(words[:direct])
            self.demand -= direct
            if not self.demand:
                scheduler.wake(self.owner)
        if direct < len(words):
            self.chunks.append(words[direct:])
            self.held += len(words) - direct

    def take(self, limit: int) -> np.ndarray:
        """Up to `limit` held words, oldest first."""
        words = self.chunks.popleft()
        if len(words) > limit:
            self.chunks.appendleft(words[limit:])
            words = words[:limit]
        self.held -= len(words)
        return words


@dataclass(slots=True)
class DataWait:
    """A sink's owner waits for words."""

    sink: Sink
    where: Callable[[], str]

    def sentence(self) -> str:
        if self.sink.source is None:
            return f"waits for {self.sink.demand} words, but no flow leads to it{self.where()}"
        return f"waits for {self.sink.demand} words from {self.sink.source.owner.name}{self.where()}"

    def providers(self) -> Iterator[Agent]:
        return iter([] if self.sink.source is None else [self.sink.source.owner])


@dataclass(slots=True)
class RoomWait:
    """A source waits for its sinks."""

    stream: "Stream"
    left: int
    where: Callable[[], str]

    def sentence(self) -> str:
        full = ", ".join(agent.name for agent in self.providers()) or "a flow, but none leads away from it"
        return f"has {self.left} words left and waits for {full}{self.where()}"

    def providers(self) -> Iterator[Agent]:
        return (sink.owner for sink in self.stream.sinks if not self.stream.room_of(sink))


@dataclass(slots=True, eq=False)
class Stream:
    """The sending end: an MM2S channel's output and all its sinks."""

    owner: Agent
    scheduler: Scheduler
    sinks: list[Sink] = field(default_factory=list)
    blocked: bool = False
    listed: bool = False

    def connect(self, sink: Sink) -> None:
        """Add a sink."""
        self.sinks.append(sink)
        sink.source = self

    def room_of(self, sink: Sink) -> int:
        """Words that one sink can take."""
        return sink.demand + STREAM_BUFFER_WORDS - sink.held

    def wanted(self) -> int:
        """Words that every sink demands."""
        return min((sink.demand for sink in self.sinks), default=0)

    def room(self) -> int:
        """Words that every sink can take, buffers included."""
        return min((self.room_of(sink) for sink in self.sinks), default=0)

    def send(self, words: np.ndarray) -> None:
        """Hand words, no more than `room()`, to every sink."""
        for sink in self.sinks:
            sink.deliver(words, self.scheduler)

    def changed(self) -> None:
        """A sink demands more or has freed room: a blocked source may go on."""
        if not self.blocked:
            return
        if self.wanted():
            self.blocked = False
            self.scheduler.wake(self.owner)
        elif self.room():
            self.scheduler.wake_when_idle(self)
