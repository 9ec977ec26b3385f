"""DMA channels: task queues, BD chains and the transfers themselves."""

from collections import deque
from collections.abc import Generator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from bdforge.emulator.bd import PAD, DecodedBd, Order, chain, decode_bd
from bdforge.emulator.errors import DmaError
from bdforge.emulator.scheduler import Agent
from bdforge.emulator.stream import DataWait, RoomWait, Sink, Stream

if TYPE_CHECKING:
    from bdforge.emulator.tile import Tile


@dataclass(frozen=True, slots=True)
class Task:
    """An entry of a task queue: run the chain at `bd` `runs` times, then issue a token if asked."""

    bd: int
    runs: int
    token: bool
    chain: tuple[int, ...]


@dataclass(slots=True)
class NoTask:
    """A channel without a task: not a wait of its own, but the root of other waits."""

    def sentence(self) -> str:
        return "has no task"

    def providers(self) -> Iterator[Agent]:
        return iter(())


def base_outside(base: int, order: Order, memory: np.ndarray) -> bool:
    """Whether a (permitted) transfer leaves its memory."""
    return base + order.low < 0 or base + order.high >= len(memory)


class Channel(Agent):
    """One direction of one DMA channel. BDs are latched when their turn comes."""

    def __init__(self, tile: "Tile", direction: str, index: int):
        super().__init__(f"{tile.name} {direction} {index}", tile.array.scheduler)
        self.tile, self.direction, self.index = tile, direction, index
        self.tasks: deque[Task] = deque()
        self.waiting = NoTask()
        self.bd = 0
        self.array = tile.array
        self.sink: Sink | None = None
        self.stream: Stream | None = None
        if direction == "S2MM":
            self.sink = Sink(self, self._receive)
        else:
            self.stream = Stream(self, tile.array.scheduler)
        self._memory = np.zeros(0, np.uint32)
        self._offsets: np.ndarray | None = None
        self._base = self._position = 0

    def push(self, bd: int, runs: int, token: bool) -> None:
        """Queue a task; DmaError when the queue is full or the channel may not use the BD."""
        if len(self.tasks) >= TASK_QUEUE_ENTRIES:
            error = DmaError(
                f"{self.name}: BD {bd} is pushed while {len(self.tasks)} tasks are in flight; the queue holds "
                f"{TASK_QUEUE_ENTRIES} and hardware loses the entry; await a token of this channel first"
            )
            self.array.strictness.fault("queue-overflow", error)
            return
        ids = chain(self.tile.kind, self.tile.bd_words, bd)
        allowed = self.tile.limits.bds_of_channel(self.index)
        for used in ids:
            if used not in allowed:
                error = DmaError(f"{self.name} cannot use BD {used}, only {allowed.start} to {allowed.stop - 1}")
                self.array.strictness.fault("bd-half", error)
        if not self.tasks:
            self.array.scheduler.wake(self)
        self.tasks.append(Task(bd, runs, token, tuple(ids)))
        self.tile.mark_busy(ids)

    def run(self) -> Generator[None, None, None]:
        while True:
            while not self.tasks:
                self.waiting = NoTask()
                yield
            task = self.tasks[0]  # stays in the queue while it runs: the safe reading of its capacity
            for _ in range(task.runs):
                yield from self._run_chain(task.bd)
            self.tasks.popleft()
            self.tile.clear_busy(task.chain)
            if task.token:
                self.array.issue_token(self)

    def _run_chain(self, first: int) -> Generator[None, None, None]:
        self.bd = first
        while True:
            bd = decode_bd(self.tile.kind, self.tile.bd_words(self.bd))
            if not bd.valid:
                raise DmaError(f"{self.where()}: the BD is not valid; nobody has configured it")
            if bd.acquire is not None:
                lock, value = bd.acquire
                if not self.tile.dma_lock(lock, self).take(self, abs(value), value >= 0, self.source):
                    yield
            self._latch(bd)
            self.note("begin", f"BD {self.bd}")
            yield from self._receive_all(bd) if self.sink is not None else self._send_all(bd)
            if bd.release is not None:
                lock, value = bd.release
                self.tile.dma_lock(lock, self).add(value, self.source)
            self.note("end", f"BD {self.bd}")
            if not bd.use_next:
                return
            self.bd = bd.next

    def _latch(self, bd: DecodedBd) -> None:
        base = bd.address
        if bd.iteration_wrap > 1:
            step = bd.iteration_step * (4 if self.tile.kind == "shim" else 1)  # shim addresses are in bytes
            base += self.tile.advance_iteration(self.bd, bd.iteration_wrap) * step
        self._memory, self._base = self.tile.dma_memory(base, bd.order, self)
        self._offsets, self._position = bd.order.offsets, 0
        if base_outside(self._base, bd.order, self._memory):
            self._offsets = np.arange(bd.order.length) if self._offsets is None else self._offsets
            self._offsets = np.where(self._offsets == PAD, PAD, (self._base + self._offsets) % len(self._memory))
            self._base = 0

    def _receive_all(self, bd: DecodedBd) -> Generator[None, None, None]:
        sink, length = self.sink, bd.order.length
        assert sink is not None
        if bd.order.padded:
            raise DmaError(f"{self.where()}: only MM2S can pad")
        while sink.held and self._position < length:
            self._receive(sink.take(length - self._position))
        sink.demand = length - self._position
        if sink.source is not None:
            sink.source.changed()
        while sink.demand:
            self.waiting = DataWait(sink, self.source)
            yield

    def _send_all(self, bd: DecodedBd) -> Generator[None, None, None]:
        stream, length = self.stream, bd.order.length
        assert stream is not None
        while left := length - self._position:
            count = min(left, stream.room() if self.pressed else stream.wanted())
            self.pressed = False
            if count:
                count = self.array.scheduler.portion(count)
                stream.send(self._fetch(count, bd.order.padded))
                continue
            self.waiting = RoomWait(stream, left, self.source)
            stream.blocked = True
            stream.changed()
            yield

    def _fetch(self, count: int, padded: bool) -> np.ndarray:
        start, self._position = self._position, self._position + count
        if self._offsets is None:
            return self._memory[self._base + start : self._base + start + count].copy()
        offsets = self._offsets[start : start + count]
        words = self._memory[self._base + offsets]
        if padded:
            words[offsets == PAD] = 0
        return words

    def _receive(self, words: np.ndarray) -> None:
        start, self._position = self._position, self._position + len(words)
        if self._offsets is None:
            self._memory[self._base + start : self._base + self._position] = words
        else:
            self._memory[self._base + self._offsets[start : self._position]] = words

    def missing_words(self) -> int:
        """Words that an S2MM BD still waits for after it has got some."""
        return self.sink.demand if self.sink is not None and self._position else 0

    def source(self) -> str:
        """Where the current BD stands in the MLIR, as a suffix of messages."""
        return self.tile.bd_source(self.bd)

    def where(self) -> str:
        """Channel and BD, for messages."""
        return f"{self.name}, BD {self.bd}{self.source()}"
