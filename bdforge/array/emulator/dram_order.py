"""The order of DRAM in a run: from when on a task may read what another one writes.

A shim reads as soon as its task is pushed, and what another channel writes is under way until that one's task ends,
which the controller learns from a token alone. So the writer's token has to be awaited before the reader is started.
Tasks of a channel end in the order of their pushes: a token tells of those before it, too.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import product
from random import Random
from typing import TYPE_CHECKING

import numpy as np

from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.errors import ArgumentError, DmaError
from bdforge.array.emulator.host import HostBuffer
from bdforge.array.emulator.silicon_rules import TokenKey
from bdforge.common.messages import clip
from bdforge.devices import TileKind
from bdforge.devices.limits import GRANULE_BYTES

if TYPE_CHECKING:
    from bdforge.array.emulator.array import Array
    from bdforge.array.emulator.dma import DmaChannel

DRAM: dict[str, Callable[[int], Random | None]] = {"fresh": lambda seed: None, "stale": Random}
"""What a read of DRAM finds where a task of the run writes whose token was not awaited: the newest bytes, or, by a
seed, what was there before."""
_HASTES = (0, 0, 0.05, 0.5)
"""Chances that stale DRAM shows a channel's writes after each of them, of which a run has one: mostly it shows none."""


def dram_named(name: str, seed: int) -> Random | None:
    """Whose dice tell when writes are seen, None where at once; ArgumentError lists the names."""
    if (make := DRAM.get(name)) is None:
        raise ArgumentError(f"no DRAM is called {clip(repr(name))}; there is {', '.join(DRAM)}")
    return make(seed)


@dataclass(frozen=True, slots=True)
class DramPass:
    """One pass over a BD: through an argument, from word `start` of the address space on in `order`."""

    bd: int
    buffer: HostBuffer
    start: int
    order: Order

    @property
    def low(self) -> int:
        return self.start + self.order.low

    @property
    def end(self) -> int:
        return self.start + self.order.high + 1

    def bytes_of(self, words: tuple[int, int]) -> str:
        """What words, from the first to behind the last, are of the argument."""
        first, end = (GRANULE_BYTES * word - self.buffer.address for word in words)
        return f"bytes {first} to {end - 1} of argument {self.buffer.name}"

    def shared(self, other: "DramPass") -> tuple[int, int] | None:
        """First word that both touch, and the one behind the last; None if there is none."""
        low, end = max(self.low, other.low), min(self.end, other.end)
        if low >= end:
            return None
        walks = [each._words(low, end) for each in (self, other) if each.order.offsets is not None]
        if not walks:
            return low, end
        words = np.intersect1d(walks[0], walks[-1])
        return (int(words[0]), int(words[-1]) + 1) if len(words) else None

    def _words(self, low: int, end: int) -> np.ndarray:
        assert self.order.offsets is not None
        words = self.order.offsets + self.start
        return words[(words >= low) & (words < end)]


@dataclass(slots=True, eq=False)
class DramWrite:
    """A task that writes DRAM, from its start until a token tells of its end.

    `queue` holds it and what else of its channel nobody has awaited; `unseen` are its writes that stale DRAM keeps
    from readers: memory, places and words.
    """

    queue: "deque[DramWrite]"
    channel: str
    source: str
    token: bool
    passes: Sequence[DramPass]
    low: int
    end: int
    unseen: list[tuple[np.ndarray, slice | np.ndarray, np.ndarray]] = field(default_factory=list)

    def show(self) -> None:
        for memory, places, words in self.unseen:
            memory[places] = words
        self.unseen.clear()


class DramOrder:
    """The tasks of an array's run that write DRAM and whose end nobody has awaited.

    Those that a configuration starts are left out: who reads them waits for locks, not for a controller. With `dice`
    writes are seen by readers when they are awaited, at the end of the run, or any time before.
    """

    def __init__(self, array: "Array") -> None:
        self.array = array
        self.running = False  # whether a sequence is: what is pushed before is the configuration's
        self._writes: defaultdict[tuple[int, int], deque[DramWrite]] = defaultdict(deque)  # by column and channel
        self._older: Counter[tuple[int, int]] = Counter()  # tokens of tasks that are none of this run, to be read first
        self._dice: Random | None = None
        self._haste = 0.0

    def hold_back(self, dice: Random | None) -> None:
        """Let writes be seen as late as they may, or any time before."""
        self._dice, self._haste = dice, 0 if dice is None else dice.choice(_HASTES)

    def start(self, channel: "DmaChannel", passes: Sequence[DramPass], token: bool, source: str) -> DramWrite | None:
        """A task is pushed to a shim's channel; a write to be told of what it stores, where that is held back.

        DmaError ("dram-order") for one that reads what a task writes whose token was not awaited.
        """
        key = channel.tile.column, channel.index
        low, end = min((each.low for each in passes), default=0), max((each.end for each in passes), default=0)
        if channel.sink is None:
            self._check(channel, passes, low, end, source)
            return None
        if not self.running:
            self._older[key] += token
            return None
        queue = self._writes[key]
        queue.append(write := DramWrite(queue, channel.name, source, token, passes, low, end))
        return None if self._dice is None else write

    def _check(self, channel: "DmaChannel", passes: Sequence[DramPass], low: int, end: int, source: str) -> None:
        for queue in self._writes.values():
            for write in queue:
                if write.low < end and low < write.end and (shared := self._shared(passes, write)):
                    error = DmaError(f"{channel.name}, BD {shared[0]}{source} reads {shared[1]}")
                    self.array.strictness.fault("dram-order", error)
                    return

    @staticmethod
    def _shared(reads: Sequence[DramPass], write: DramWrite) -> tuple[int, str] | None:
        """The BD that reads what a task writes, and what it reads; None where there is nothing."""
        for read, written in product(reads, write.passes):
            if shared := read.shared(written):
                told = any(each.token for each in list(write.queue)[write.queue.index(write) :])
                ask = "" if told else "ask for the token (issue_token), "
                return read.bd, (
                    f"{read.bytes_of(shared)}, which {write.channel}, BD {written.bd}{write.source} writes in the same "
                    f"run; nobody has awaited that task's token when this one is started, so it may read what was "
                    f"there before: {ask}await it (sync, dma_wait, dma_await_task) before this task, or start this one "
                    "first if it is to read what was there"
                )
        return None

    def awaited(self, key: TokenKey) -> None:
        """The controller has read a channel's token: its task and those before it have written what they write."""
        column, row, direction, channel = key
        if direction != "S2MM" or self.array.tile(column, row).kind is not TileKind.SHIM:
            return
        queue = self._writes[column, channel]
        if self._older[column, channel]:
            self._older[column, channel] -= 1
            return
        while queue:
            write = queue.popleft()
            write.show()
            if write.token:
                return

    def put(self, write: DramWrite, memory: np.ndarray, places: slice | np.ndarray, words: np.ndarray) -> None:
        """A held back task writes; readers may see it now, with all that its channel has written before."""
        write.unseen.append((memory, places, words))
        if self._dice is not None and self._dice.random() < self._haste:
            for earlier in write.queue:
                earlier.show()

    def lose_tokens(self) -> None:
        """Before another configuration: what is under way ends untold, and what follows is the configuration's."""
        self.running = False
        self._older.clear()
        for write in (write for queue in self._writes.values() for write in queue):
            write.token = False

    def finish(self) -> None:
        """The end of a run: all is seen, channel by channel in any order; tokens may be awaited in the next one."""
        self.running = False
        keys = [*self._writes]
        if self._dice is not None:
            self._dice.shuffle(keys)
        for key in keys:
            for write in self._writes[key]:
                write.show()
                self._older[key] += write.token
        self._writes.clear()
