"""One tile: data memory, locks, BD registers and DMA channels."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from bdforge.array.emulator.bd_access import DecodedBd, Order, decode_bd
from bdforge.array.emulator.dma import DmaChannel, base_outside
from bdforge.array.emulator.errors import DmaError
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.poison import poisoned
from bdforge.array.emulator.register_space import RegisterMap
from bdforge.devices import AIE2, TileKind
from bdforge.devices.limits import GRANULE_BYTES, MEMTILE_NEIGHBOUR_CHANNELS
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS, TILE_REGISTERS

if TYPE_CHECKING:
    from bdforge.array.emulator.array import Array

DIRECTIONS = ("S2MM", "MM2S")
_MEMORY_ALIGN_BYTES = 4096
RED_ZONE_BYTES = _MEMORY_ALIGN_BYTES
"""On either side of a tile's memory, for what kernels write beyond it."""


def _guarded(size_bytes: int) -> np.ndarray:
    """Zeroed bytes with red zones around them, whose host address is as aligned as tile address 0.

    So kernels see true alignment.
    """
    raw = np.zeros(size_bytes + 2 * RED_ZONE_BYTES + _MEMORY_ALIGN_BYTES, np.uint8)
    start = -raw.ctypes.data % _MEMORY_ALIGN_BYTES
    return raw[start : start + size_bytes + 2 * RED_ZONE_BYTES]


def _words(guarded: np.ndarray) -> np.ndarray:
    """What lies between the red zones."""
    return guarded[RED_ZONE_BYTES:-RED_ZONE_BYTES].view(np.uint32)


class EmulatedTile:
    """State of a tile. Everything a controller can write is written through `write`, word by word.

    `written` says of every byte of memory whether anybody wrote it; it exists in poison mode only.
    """

    def __init__(self, array: "Array", column: int, row: int):
        self.array, self.column, self.row = array, column, row
        self.limits = array.device.limits(max(column, 0), row)  # a column of -1 is as those that designs see
        self.kind = self.limits.kind
        self.registers = TILE_REGISTERS[self.kind]
        self.name = f"{self.kind} ({column}, {row})"
        self.guarded = _guarded(self.limits.memory_bytes)
        self.memory = _words(self.guarded)
        self.bytes = self.memory.view(np.uint8)
        self.written = poisoned(self.bytes) if array.poison else None
        self.locks = [self._lock(i) for i in range(self.limits.locks)]
        self.restart()

    def restart(self) -> None:
        """Forget BDs, tasks and what waits for locks, as before a configuration; memory and lock values stay.

        BDs become invalid: what silicon keeps of them is not documented.
        """
        for index, lock in enumerate(self.locks):
            lock.restart(self._lock_name(index))
        self.channels = {(d, i): DmaChannel(self, d, i) for d in DIRECTIONS for i in range(self.limits.channels)}
        self._bds = [(0,) * self.registers.bd.words for _ in range(self.limits.bds)]
        self._decoded: list[DecodedBd | None] = [None] * self.limits.bds
        self._iterations = [0] * self.limits.bds
        self._expected = [0] * self.limits.bds  # iterations as they are after all tasks in flight
        self.fills: dict[tuple[int, int], set[int]] = {}  # pair of locks: S2MM channels that fill between them
        self._busy = [0] * self.limits.bds
        self.code: bytearray | None = None  # program memory, once machine code was written there
        self._sources = [""] * self.limits.bds
        self.map = RegisterMap(self)

    def grow(self, size_bytes: int) -> None:
        """Make room for buffers beyond the tile's memory, where that is permitted."""
        if size_bytes <= self.bytes.nbytes:
            return
        self.guarded = _guarded(-(-size_bytes // GRANULE_BYTES) * GRANULE_BYTES)
        memory = _words(self.guarded)
        memory[: len(self.memory)] = self.memory
        if self.written is not None:
            old, self.written = self.written, poisoned(memory.view(np.uint8)[self.bytes.nbytes :])
            self.written = np.concatenate([old, self.written])
        self.memory, self.bytes = memory, memory.view(np.uint8)

    def _lock_name(self, index: int) -> str:
        return f"{index} of {self.name}"

    def _lock(self, index: int) -> EmulatedLock:
        scheduler = self.array.scheduler
        lock = EmulatedLock(self._lock_name(index), self.limits.lock_value_max, scheduler.wake)
        lock.releasers = lambda: self.array.releasers(lock, self)
        lock.fault = lambda error: self.array.strictness.fault("lock-range", error)
        if scheduler.observers:
            lock.notify = scheduler.notify
        return lock

    def bd(self, bd: int) -> DecodedBd:
        """The meaning of a BD's words as they are, without its iteration counter; DmaError if there is none."""
        if bd >= self.limits.bds:
            raise DmaError(f"{self.name}: a chain leads to BD {bd}, but the tile has {self.limits.bds}")
        if (known := self._decoded[bd]) is None:
            known = self._decoded[bd] = decode_bd(self.kind, self._bds[bd])
        return known

    def bd_source(self, bd: int) -> str:
        """Where a BD was written in the MLIR, as a suffix of messages."""
        return self._sources[bd]

    def advance_iteration(self, bd: int, wrap: int) -> int:
        """The BD's iteration counter; it advances by one and returns to 0 after `wrap` executions."""
        current = self._iterations[bd]
        self._iterations[bd] = (current + 1) % wrap
        return current

    def expected_iterations(self, bd: int, runs: int, wrap: int) -> set[int]:
        """Which iterations of a BD a task that runs it so often goes through, after those of all tasks before it."""
        if wrap == 1:
            return {0}
        first, self._expected[bd] = self._expected[bd], (self._expected[bd] + runs) % wrap
        return {(first + run) % wrap for run in range(min(runs, wrap))}

    def count_tasks(self, bds: Iterable[int], by: int) -> None:
        """One more task that will run these BDs is in flight, or one less."""
        for bd in bds:
            self._busy[bd] += by

    def dma_lock(self, index: int, channel: DmaChannel) -> EmulatedLock:
        """The lock that a BD of `channel` means by `index`: memtiles see west, own and east locks."""
        if self.kind is not TileKind.MEMTILE:
            return self.locks[index]
        side, lock = divmod(index, MEMTILE_WINDOW_LOCKS)
        return self._neighbour(side, channel, f"lock {index}").locks[lock]

    def dma_memory(self, base: int, order: Order, channel: DmaChannel) -> tuple[np.ndarray, int, np.ndarray | None]:
        """Memory words, start index and, in poison mode, who wrote the words; DmaError when it leaves the memory."""
        if self.kind is TileKind.SHIM:
            return *self.array.host.locate(base, order, channel.direction == "S2MM", channel.where()), None
        tile: EmulatedTile = self
        if self.kind is TileKind.MEMTILE:
            side, base = divmod(base, MEMTILE_WINDOW_BYTES // GRANULE_BYTES)
            tile = self._neighbour(side, channel, "memory")
        if base_outside(base, order, tile.memory):
            error = DmaError(
                f"{channel.where()} touches words {base + order.low} to {base + order.high} of {tile.name}, "
                f"whose memory has {len(tile.memory)}"
            )
            self.array.strictness.fault("dma-bounds", error)
        return tile.memory, base, None if tile.written is None else tile.written.reshape(-1, GRANULE_BYTES)

    def _neighbour(self, side: int, channel: DmaChannel, what: str) -> "EmulatedTile":
        if side == 1:
            return self
        if channel.index >= MEMTILE_NEIGHBOUR_CHANNELS:
            error = DmaError(
                f"{channel.where()} reaches a neighbour's {what}; "
                f"only channels 0 to {MEMTILE_NEIGHBOUR_CHANNELS - 1} can"
            )
            self.array.strictness.fault("neighbour-channel", error)
        column = self.column + side - 1
        if column < 0 and self.array.device.generation is AIE2:
            self.array.strictness.caution(
                "npu1-window",
                f"{channel.where()} reaches {what} in the window west of column 0: on Phoenix a memtile that no design "
                "names, which keeps what is written there until the next run",
            )
            return self.array.west_of_npu1(self.row)
        if side > 2 or not 0 <= column < self.array.device.columns:
            raise DmaError(f"{channel.where()} reaches {what} beyond the array's edge")
        return self.array.tile(column, self.row)

    def write(self, offset: int, value: int, source: str = "") -> None:
        self.map.write(offset, value, source)

    def write_block(self, offset: int, words: Sequence[int], source: str = "") -> None:
        """Words for consecutive registers, or a memory at once."""
        end, program = offset + GRANULE_BYTES * len(words), self.registers.program_memory
        if offset % GRANULE_BYTES == 0 and end <= self.limits.memory_bytes:
            self.fill(offset, np.array(words, np.uint32).tobytes())
            return
        if offset % GRANULE_BYTES == 0 and program.start <= offset and end <= program.stop:
            self.map.write_program(offset, np.array(words, np.uint32).tobytes(), source)
            return
        self._write_words(offset, words, source)

    def _write_words(self, offset: int, words: Sequence[int], source: str) -> None:
        """Words for consecutive registers, those of a BD at once."""
        done = 0
        while done < len(words):
            at = offset + GRANULE_BYTES * done
            if (place := self.map.bd_place(at)) is None:
                self.write(at, words[done], source)
                done += 1
                continue
            bd, first = place
            some = words[done : done + self.registers.bd.words - first]
            self.write_bd(bd, first, some, source)
            done += len(some)

    def read(self, offset: int) -> int:
        """The word at a tile offset; registers that are not modelled read as they were written."""
        return self.map.read(offset)

    def fill(self, start: int, data: bytes) -> None:
        self.bytes[start : start + len(data)] = np.frombuffer(data, np.uint8)
        if self.written is not None:
            self.written[start : start + len(data)] = True

    def store(self, word: int, value: int) -> None:
        self.memory[word] = value
        if self.written is not None:
            self.written[GRANULE_BYTES * word : GRANULE_BYTES * (word + 1)] = True

    def read_bd(self, bd: int, word: int) -> int:
        """A word of a BD with its iteration counter."""
        value = self._bds[bd][word]
        field = self.registers.bd.fields["iteration_current"]
        return value | self._iterations[bd] << field.low if field.word == word else value

    def write_bd(self, bd: int, first: int, values: Sequence[int], source: str) -> None:
        """Store words of a BD from `first` on; DmaError while a task that uses the BD is in flight."""
        if self._busy[bd]:
            error = DmaError(
                f"{self.name}: BD {bd} is rewritten while a task that uses it is queued or running{source}; "
                "await that task's token first"
            )
            self.array.strictness.fault("bd-rewrite", error)
        self.array.scheduler.notify("write bd", self.column, self.row, bd)
        words = list(self._bds[bd])
        words[first : first + len(values)] = values
        field = self.registers.bd.fields["iteration_current"]
        if first <= field.word < first + len(values):
            self._iterations[bd] = self._expected[bd] = field.extract(words)
            words[field.word] &= ~field.mask  # kept apart: BDs that differ by their counter decode once
        self._bds[bd], self._decoded[bd] = tuple(words), None
        self._sources[bd] = source or self._sources[bd]
