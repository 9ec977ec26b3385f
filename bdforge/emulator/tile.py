"""One tile: data memory, locks, BD registers and DMA channels."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from bdforge.devices import TileKind
from bdforge.devices.limits import TASK_REPEAT_MAX
from bdforge.devices.registers import MEMTILE_WINDOW_BYTES, MEMTILE_WINDOW_LOCKS, TILE_REGISTERS
from bdforge.emulator.bd import Order
from bdforge.emulator.dma import Channel
from bdforge.emulator.errors import DmaError, RegisterAccessError
from bdforge.emulator.lock import Lock

if TYPE_CHECKING:
    from bdforge.emulator.array import Array

DIRECTIONS = ("S2MM", "MM2S")
NEIGHBOUR_CHANNELS = 4  # memtile channels 0 to 3 reach the neighbours' memory and locks (MA, 020)
_WORD = 4
_MEMORY_ALIGN_BYTES = 4096


def _aligned_words(size_bytes: int) -> np.ndarray:
    """Zeroed words whose host address is as aligned as tile address 0, so that kernels see true alignment."""
    raw = np.zeros(size_bytes + _MEMORY_ALIGN_BYTES, np.uint8)
    start = -raw.ctypes.data % _MEMORY_ALIGN_BYTES
    return raw[start : start + size_bytes].view(np.uint32)


class Tile:
    """State of a tile. Everything a controller can write is written through `write`, word by word."""

    def __init__(self, array: "Array", column: int, row: int):
        self.array, self.column, self.row = array, column, row
        self.limits = array.device.limits(column, row)
        self.kind = self.limits.kind
        self.registers = TILE_REGISTERS[self.kind]
        self.name = f"{self.kind} ({column}, {row})"
        self.memory = _aligned_words(self.limits.memory_bytes)
        self.bytes = self.memory.view(np.uint8)
        self.locks = [self._lock(i) for i in range(self.limits.locks)]
        self.channels = {(d, i): Channel(self, d, i) for d in DIRECTIONS for i in range(self.limits.channels)}
        self._bds = [(0,) * self.registers.bd.words for _ in range(self.limits.bds)]
        self._iterations = [0] * self.limits.bds
        self._busy = [0] * self.limits.bds
        self._sources = [""] * self.limits.bds
        self._queues = {self.registers.queue_offset(d, i): c for (d, i), c in self.channels.items()}

    def _lock(self, index: int) -> Lock:
        name = f"{index} of {self.name}"
        lock = Lock(name, self.limits.lock_value_max, self.array.scheduler.wake)
        lock.releasers = lambda: self.array.releasers(lock)
        lock.fault = lambda error: self.array.strictness.fault("lock-range", error)
        if self.array.scheduler.observers:
            lock.tell = lambda value: self.array.scheduler.tell(f"lock {lock.name}", "value", str(value))
        return lock

    def bd_words(self, bd: int) -> tuple[int, ...]:
        """Register words of a BD, iteration counter excluded: that is kept apart."""
        return self._bds[bd]

    def bd_source(self, bd: int) -> str:
        """Where a BD was written in the MLIR, as a suffix of messages."""
        return self._sources[bd]

    def set_bd_source(self, bd: int, source: str) -> None:
        """Remember where a BD came from."""
        self._sources[bd] = source

    def advance_iteration(self, bd: int, wrap: int) -> int:
        """The BD's iteration counter; it advances by one and returns to 0 after `wrap` executions."""
        current = self._iterations[bd]
        self._iterations[bd] = (current + 1) % wrap
        return current

    def mark_busy(self, bds: Iterable[int]) -> None:
        """A task that will run these BDs is in flight."""
        for bd in bds:
            self._busy[bd] += 1

    def clear_busy(self, bds: Iterable[int]) -> None:
        """Such a task has ended."""
        for bd in bds:
            self._busy[bd] -= 1

    def dma_lock(self, index: int, channel: Channel) -> Lock:
        """The lock that a BD of `channel` means by `index`: memtiles see west, own and east locks."""
        if self.kind is not TileKind.MEMTILE:
            return self.locks[index]
        side, lock = divmod(index, MEMTILE_WINDOW_LOCKS)
        return self._neighbour(side, channel, f"lock {index}").locks[lock]

    def dma_memory(self, base: int, order: Order, channel: Channel) -> tuple[np.ndarray, int]:
        """Memory words and start index of a transfer; DmaError when it leaves the memory."""
        if self.kind is TileKind.SHIM:
            return self.array.host.locate(base, order, channel.direction == "S2MM", channel.where())
        tile: Tile = self
        if self.kind is TileKind.MEMTILE:
            side, base = divmod(base, MEMTILE_WINDOW_BYTES // _WORD)
            tile = self._neighbour(side, channel, "memory")
        if base + order.low < 0 or base + order.high >= len(tile.memory):
            error = DmaError(
                f"{channel.where()} touches words {base + order.low} to {base + order.high} of {tile.name}, "
                f"whose memory has {len(tile.memory)}"
            )
            self.array.strictness.fault("dma-bounds", error)
        return tile.memory, base

    def _neighbour(self, side: int, channel: Channel, what: str) -> "Tile":
        if side == 1:
            return self
        if channel.index >= NEIGHBOUR_CHANNELS:
            error = DmaError(
                f"{channel.where()} reaches a neighbour's {what}; only channels 0 to {NEIGHBOUR_CHANNELS - 1} can"
            )
            self.array.strictness.fault("neighbour-channel", error)
        column = self.column + side - 1
        if side > 2 or not 0 <= column < self.array.device.columns:
            raise DmaError(f"{channel.where()} reaches {what} beyond the array's edge")
        return self.array.tile(column, self.row)

    def write(self, offset: int, value: int, source: str = "") -> None:
        """Store one 32-bit word at a tile offset: memory, BD, task queue or lock; other registers are ignored."""
        if offset % _WORD:
            raise RegisterAccessError(f"{self.name}: offset {offset:#x} is not a multiple of {_WORD}{source}")
        if offset < self.limits.memory_bytes:
            self.memory[offset // _WORD] = value
        elif (channel := self._queues.get(offset)) is not None:
            self._push(channel, value)
        elif 0 <= (place := offset - self.registers.bd_base) < self.limits.bds * self.registers.bd_stride:
            self._write_bd(*divmod(place, self.registers.bd_stride), value, source)
        elif 0 <= (place := offset - self.registers.lock_base) < self.limits.locks * self.registers.lock_stride:
            if not place % self.registers.lock_stride:
                self.locks[place // self.registers.lock_stride].set(value & 0x3F)

    def read(self, offset: int) -> int:
        """The word at a tile offset; registers that are not modelled read as 0."""
        if offset < self.limits.memory_bytes:
            return int(self.memory[offset // _WORD])
        if 0 <= (place := offset - self.registers.bd_base) < self.limits.bds * self.registers.bd_stride:
            bd, byte = divmod(place, self.registers.bd_stride)
            return self._bds[bd][byte // _WORD] if byte // _WORD < self.registers.bd.words else 0
        if 0 <= (place := offset - self.registers.lock_base) < self.limits.locks * self.registers.lock_stride:
            return self.locks[place // self.registers.lock_stride].value
        return 0

    def _push(self, channel: Channel, value: int) -> None:
        fields = self.registers.queue.decode([value])
        if fields["bd"] >= self.limits.bds:
            raise DmaError(f"{channel.name}: BD {fields['bd']} is pushed, but the tile has {self.limits.bds}")
        runs = fields["repeat"] + 1
        assert runs <= TASK_REPEAT_MAX
        channel.push(fields["bd"], runs, bool(fields["token"]))

    def _write_bd(self, bd: int, byte: int, value: int, source: str) -> None:
        word = byte // _WORD
        if word >= self.registers.bd.words:
            return
        if self._busy[bd]:
            error = DmaError(
                f"{self.name}: BD {bd} is rewritten while a task that uses it is queued or running{source}; "
                "await that task's token first"
            )
            self.array.strictness.fault("bd-rewrite", error)
        words = list(self._bds[bd])
        words[word] = value
        field = self.registers.bd.fields["iteration_current"]
        if field.word == word:
            self._iterations[bd] = field.extract(words)
            words[word] &= ~(((1 << (field.high - field.low + 1)) - 1) << field.low)
        self._bds[bd] = tuple(words)
        self._sources[bd] = source or self._sources[bd]
