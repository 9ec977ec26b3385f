"""DMA channels: task queues, BD chains and the transfers themselves."""

from collections import deque
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from bdforge.array.emulator.bd_access import PAD, DecodedBd, Order, chain, words_by_bank
from bdforge.array.emulator.dram_order import DramPass, DramWrite
from bdforge.array.emulator.errors import DmaError, UnpatchedError
from bdforge.array.emulator.lock import EmulatedLock, LockWait
from bdforge.array.emulator.poison import check_written
from bdforge.array.emulator.scheduler import Agent, PlainWait
from bdforge.array.emulator.silicon_rules import check_lock_pair, check_reset_lock, check_shim_access
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.devices import AIE2P, TileKind
from bdforge.devices.limits import GRANULE_BYTES, TASK_QUEUE_ENTRIES
from bdforge.devices.registers import packet_header

if TYPE_CHECKING:
    from bdforge.array.emulator.tile import EmulatedTile


@dataclass(frozen=True, slots=True)
class QueuedTask:
    """An entry of a task queue: run the chain at `bd` `runs` times, then issue a token if asked.

    `write` takes what it writes to DRAM, where that is held back.
    """

    bd: int
    runs: int
    token: bool
    chain: tuple[int, ...]
    write: DramWrite | None


NO_TASK = PlainWait(lambda: "has no task")
SPOILED = (
    "; word 0 of column 0's memtile does not survive from one run of a context to the next: keep what stays elsewhere, "
    "or send it again (memtile-word)"
)


def base_outside(base: int, order: Order, memory: np.ndarray) -> bool:
    return base + order.low < 0 or base + order.high >= len(memory)


class DmaChannel(Agent):
    """One direction of one DMA channel. BDs are latched when their turn comes."""

    kind = "channel"

    def __init__(self, tile: "EmulatedTile", direction: str, index: int):
        super().__init__(f"{tile.name} {direction} {index}", tile.array.scheduler)
        self.tile, self.direction, self.index = tile, direction, index
        self.place = tile.column, tile.row
        self.tasks: deque[QueuedTask] = deque()
        self.waiting = NO_TASK
        self.bd = 0
        self.array = tile.array
        self.sink: Sink | None = None
        self.stream: Stream | None = None
        if direction == "S2MM":
            self.sink = Sink(self, self._receive, tile.array.capacities)
        else:
            self.stream = Stream(self, tile.array.scheduler)
        self._address = 0
        self._memory = np.zeros(0, np.uint32)
        self._offsets: np.ndarray | None = None
        self._written: np.ndarray | None = None
        self._taken: tuple[EmulatedLock, int] | None = None  # by the running BD, and how often it was set by then
        self._dropped: list[tuple[EmulatedLock, int]] = []  # what tasks that a reset dropped had taken
        self._write: DramWrite | None = None
        self._base = self._position = 0
        self._padded = False
        self._unpatched: UnpatchedError | None = None
        self.pad_value = 0

    def push(self, bd: int, runs: int, token: bool, source: str = "") -> None:
        """Queue a task; DmaError when the queue is full or the channel may not use the BD."""
        if len(self.tasks) >= TASK_QUEUE_ENTRIES:
            error = DmaError(
                f"{self.name}: BD {bd} is pushed while {len(self.tasks)} tasks are in flight; the queue holds "
                f"{TASK_QUEUE_ENTRIES} and hardware loses the entry; await a token of this channel first{source}"
            )
            self.array.strictness.fault("queue-overflow", error)
            return
        ids = chain(self.tile.bd, bd)
        self.check_half(ids, source)
        for used in ids:
            decoded = self.tile.bd(used)
            self.check_join(decoded)
            self._check_dropped(decoded, source)
        write = None
        if self.tile.kind is TileKind.SHIM:
            write = self.array.dram.start(self, self._passes(ids, runs), token, source)
        # An idle channel waits for nothing that would wake it; a busy one finds the task by itself.
        if not self.tasks:
            self.array.scheduler.wake(self)
        self.array.scheduler.notify("push", self, tuple(ids))
        self.tasks.append(QueuedTask(bd, runs, token, tuple(ids), write))
        self.tile.count_tasks(ids, 1)

    def _passes(self, bds: Sequence[int], runs: int) -> list[DramPass]:
        """What so many runs of a chain go through in DRAM, each place once; nothing where there is no argument."""
        passes = []
        for bd in bds:
            found = self.tile.bd(bd)
            for step in self.tile.expected_iterations(bd, runs, found.iteration_wrap):
                base = found.address + GRANULE_BYTES * step * found.iteration_step
                if found.order.length and (buffer := self.array.host.holding(base)) is not None:
                    passes.append(DramPass(bd, buffer, base // GRANULE_BYTES, found.order))
        return passes

    def skip(self) -> None:
        """End every task at once, with its token, as if all had been moved: for what needs no data."""
        while self.tasks:
            self._end(self.tasks[0])

    def check_half(self, bds: Sequence[int], source: str) -> None:
        """DmaError for a BD of the half of a memtile's that this channel cannot use."""
        allowed = self.tile.limits.bds_of_channel(self.index)
        for bd in bds:
            if bd not in allowed:
                error = DmaError(f"{self.name} cannot use BD {bd}, only {allowed.start} to {allowed.stop - 1}{source}")
                self.array.strictness.fault("bd-half", error)

    def check_join(self, bd: DecodedBd) -> None:
        """A caution for one of several S2MM of a memtile between the same two locks, where that deadlocks."""
        joins = self.sink is not None and self.tile.kind is TileKind.MEMTILE
        if not joins or self.array.device.generation is not AIE2P or bd.acquire is None or bd.release is None:
            return
        pair = bd.acquire[0], bd.release[0]
        if pair[0] != pair[1]:
            users = self.tile.fills.setdefault(pair, set())
            users.add(self.index)
            check_lock_pair(self.tile.name, users, self.array.strictness)

    def _check_dropped(self, bd: DecodedBd, source: str) -> None:
        """A caution for a lock that a task had taken which a reset dropped, if nobody has set it since."""
        if not self._dropped:
            return
        used = [self.tile.dma_lock(use[0], self) for use in (bd.acquire, bd.release) if use is not None]
        for lost in (lost for lost, sets in self._dropped if lost in used and lost.sets == sets):
            check_reset_lock(self.name, lost.name, lost.value, source, self.array.strictness)

    def reset(self) -> None:
        """Drop every task, the running one included; what was received stays, words on their way stay in the stream."""
        self.array.scheduler.notify("reset", self)  # replays stop the channel here and go on with it at "was reset"
        self.notify("was reset")
        for task in self.tasks:
            self.tile.count_tasks(task.chain, -1)
        self.tasks.clear()
        for users in self.tile.fills.values():
            users.discard(self.index)
        # A lock that is not forgotten would be given to a task that is gone; one that was given is lost with it.
        if isinstance(self.waiting, LockWait) and not self.waiting.lock.forget(self):
            self._taken = self.waiting.lock, self.waiting.lock.sets
        if self._taken is not None:
            self._dropped.append(self._taken)
            self._taken = None
        self.steps, self.waiting = None, NO_TASK  # BDs keep their iteration: a reset leaves the counters
        if self.sink is not None:
            self.sink.demand = 0
            self.sink.wait_for_bd(False)
        if self.stream is not None:
            self.stream.blocked = False
            if self.stream.packets is not None:
                self.stream.packets.forget()

    def finish_on_tlast(self, mode: int, source: str) -> None:
        """Let TLAST end a BD (modes 1 to 3) or only its length (0); DmaError for MM2S, which has no such mode.

        Modes 1 to 3 differ in how the controller learns the word counts, which no operation here reads.
        """
        if self.sink is not None:
            self.sink.finishes = bool(mode)
        elif mode:
            raise DmaError(f"{self.name}: finish_on_tlast = {mode}, but only S2MM channels finish on TLAST{source}")

    def run(self) -> Generator[None, None, None]:
        while True:
            while not self.tasks:
                self.waiting = NO_TASK
                yield
            task = self.tasks[0]  # stays in the queue while it runs: the safe reading of its capacity
            self._write = task.write
            self.notify("task")
            for _ in range(task.runs):
                yield from self._run_chain(task.bd)
            self._end(task)
            self.notify("end task", task.token)

    def _end(self, task: QueuedTask) -> None:
        self.tasks.popleft()
        self.tile.count_tasks(task.chain, -1)
        if task.token:
            self.array.issue_token(self)  # behind count_tasks: who awaits it may rewrite the BDs

    def _run_chain(self, first: int) -> Generator[None, None, None]:
        self.bd = first
        while True:
            bd = self.tile.bd(self.bd)
            if not bd.valid:
                raise DmaError(f"{self.where()}: the BD is not valid; nobody has configured it")
            if bd.refusal:
                raise DmaError(f"{self.where()}: {bd.refusal}")
            if bd.access is not None:
                bursts = self.array.device.generation.bursts
                check_shim_access(bd.access, self.where, self.array.strictness, bursts[-1])
            if bd.acquire is not None:
                lock, value = bd.acquire
                # What waits here counts no iteration and touches no memory yet.
                taken = self.tile.dma_lock(lock, self)
                if not taken.take(self, abs(value), value >= 0, self.source):
                    yield from self._wait_for_lock()
                self._taken = taken, taken.sets
            self._latch(bd)
            self.note("begin", f"BD {self.bd}")
            yield from self._receive_all(bd) if self.sink is not None else self._send_all(bd)
            if self.sink is not None and self.sink.finishes:
                self.notify("received", self._position)  # replays take what came, not the BD's length
            if bd.release is not None:
                lock, value = bd.release
                self.tile.dma_lock(lock, self).add(value, self.source, self)
            self._taken = None
            self.note("end", f"BD {self.bd}")
            if not bd.use_next:
                return
            self.bd = bd.next

    def _wait_for_lock(self) -> Iterator[None]:
        """A step that ends with the lock; meanwhile the stream holds what it does for a BD that waits."""
        if self.sink is not None:
            self.sink.wait_for_bd(True)
        yield
        if self.sink is not None:
            self.sink.wait_for_bd(False)

    def _latch(self, bd: DecodedBd) -> None:
        base = bd.address
        if bd.iteration_wrap > 1:
            step = bd.iteration_step * (4 if self.tile.kind == "shim" else 1)  # shim addresses are in bytes
            base += self.tile.advance_iteration(self.bd, bd.iteration_wrap) * step
        self._address = base
        self._unpatched = None
        try:
            self._memory, self._base, self._written = self.tile.dma_memory(base, bd.order, self)
        except UnpatchedError as error:  # a trace's BD may wait for words that never come: no fault until one does
            self._unpatched = error
            self._memory, self._base, self._written = np.zeros(bd.order.high + 1, np.uint32), 0, None
        self._offsets, self._padded, self._position = bd.order.offsets, bd.order.padded, 0
        if base_outside(self._base, bd.order, self._memory):
            self._offsets = np.arange(bd.order.length) if self._offsets is None else self._offsets
            self._offsets = np.where(self._offsets == PAD, PAD, (self._base + self._offsets) % len(self._memory))
            self._base = 0

    def _receive_all(self, bd: DecodedBd) -> Generator[None, None, None]:
        sink, length = self.sink, bd.order.length
        assert sink is not None
        if bd.order.padded:
            raise DmaError(f"{self.where()}: only MM2S can pad")
        if self.observed:
            self._notify_banks(bd)
            self.notify("receive", length, self._dram(bd))
        yield from sink.fill(length, self.source)

    def _send_all(self, bd: DecodedBd) -> Generator[None, None, None]:
        stream, length = self.stream, bd.order.length
        assert stream is not None
        if stream.packets is not None or bd.packet is not None:
            yield from self._send_header(stream, bd)
        if self.observed:
            self._notify_banks(bd)
            stream.notify_send(length - self._position, self._dram(bd))
        left, portion = length - self._position, self.array.scheduler.portion  # a header out of memory has gone already
        yield from stream.drain(left, self._fetch, self.source, bd.ends_packet, portion)
        if stream.packets is not None and bd.ends_packet:
            yield from stream.packets.end()

    def _dram(self, bd: DecodedBd) -> tuple[Order, int] | None:
        """How the BD goes through memory and from where, if that is DRAM."""
        return (bd.order, self._address) if self.tile.kind is TileKind.SHIM else None

    def _notify_banks(self, bd: DecodedBd) -> None:
        """Which banks of a core's memory the BD goes through: cores may have to wait for them."""
        if self.array.runs_machine_code and self.tile.kind is TileKind.CORE:
            self.notify("touches", words_by_bank(bd.order, self._base))

    def _send_header(self, stream: Stream, bd: DecodedBd) -> Iterator[None]:
        """Steps that send the BD's header or, without one, that route a packet by the first word in memory."""
        if bd.packet is not None and not bd.order.length:
            raise DmaError(f"{self.where()}: inserts a packet header but moves no words, which hardware does not allow")
        switch = stream.packets
        starts = switch is not None and switch.current is None and bool(bd.order.length)
        if bd.packet is not None:
            header = packet_header(self.tile.column, self.tile.row, *bd.packet)
        elif starts:
            header = int(self._fetch(1)[0])
        else:
            return
        last = self._position == bd.order.length and bd.ends_packet
        if switch is not None and starts:
            yield from switch.start(header, self.where if bd.packet else self._headerless, last)
        else:
            yield from stream.push(np.array([header], np.uint32), self.source, last)

    def _headerless(self) -> str:
        return f"{self.where()}: its BD has no packet, so that the first word of its data is the header"

    def unmoved(self) -> str | None:
        """A BD without a host address for which no word has come, as a sentence."""
        if self._unpatched is None or not self.tasks:
            return None
        return f"{self.where()} was pushed, but its address was never patched; no word came, so nothing was lost"

    def _fetch(self, count: int) -> np.ndarray:
        places = self._advance(count)
        if self._written is not None:
            hint = SPOILED if self._memory is self.array.spoiled else ""
            unpadded = places if isinstance(places, slice) else places[places != PAD]
            check_written(self._written, unpadded, self.where, hint)
        words = self._memory[places]
        if isinstance(places, slice):
            return words.copy()  # sinks hold them while others may write here again
        words[places == PAD] = self.pad_value
        return words

    def _receive(self, words: np.ndarray) -> None:
        places = self._advance(len(words))
        if self._written is not None:
            self._written[places] = True
        if self._write is None:
            self._memory[places] = words
        else:
            self.array.dram.put(self._write, self._memory, places, words)

    def _advance(self, count: int) -> slice | np.ndarray:
        """Go past the next words of the current BD; where they are."""
        if self._unpatched is not None:
            self.array.strictness.fault("unpatched-address", self._unpatched)
        start, self._position = self._position, self._position + count
        return self._places(start, self._position)

    def _places(self, start: int, stop: int) -> slice | np.ndarray:
        """Where in memory words of the current BD are, PAD for padded ones."""
        if self._offsets is None:
            return slice(self._base + start, self._base + stop)
        offsets = self._offsets[start:stop]
        return np.where(offsets == PAD, PAD, self._base + offsets) if self._padded else self._base + offsets

    def missing_words(self) -> int:
        """Words that an S2MM BD still waits for after it has got some."""
        return self.sink.demand if self.sink is not None and self._position else 0

    def source(self) -> str:
        """Where the current BD stands in the MLIR, as a suffix of messages."""
        return self.tile.bd_source(self.bd)

    def where(self) -> str:
        return f"{self.name}, BD {self.bd}{self.source()}"
