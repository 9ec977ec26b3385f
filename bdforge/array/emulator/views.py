"""The array and its tiles as their parts see them: `Array` and `Tile` are made of these, which cannot import them.

The classes themselves say what their members are.
"""

from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

import numpy as np

from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.strictness import Strictness
from bdforge.devices import Device, TileKind
from bdforge.devices.capacities import StreamCapacities
from bdforge.devices.limits import TileLimits
from bdforge.devices.registers import TileRegisters

if TYPE_CHECKING:
    from bdforge.array.emulator.dma import DmaChannel


class CodeMemories(Protocol):
    """Program memory and control of the core at a column and row, as the registers of its tile reach them."""

    def store_code(self, place: tuple[int, int], offset: int, value: int, source: str) -> None: ...

    def code_word(self, place: tuple[int, int], offset: int) -> int: ...

    def control_core(self, place: tuple[int, int], value: int, source: str) -> None: ...


class ArrayView(Protocol):
    """The array as tiles, their channels and registers see it."""

    device: Device
    capacities: StreamCapacities
    host: HostBuffers
    scheduler: Scheduler
    strictness: Strictness
    poison: bool
    spoiled: np.ndarray | None
    programs: CodeMemories | None
    runs_machine_code: bool
    by_words: bool

    def issue_token(self, channel: "DmaChannel") -> None: ...

    def releasers(self, lock: EmulatedLock) -> list[Agent]: ...


class TileView(Protocol):
    """A tile as its channels and registers see it."""

    name: str
    column: int
    row: int
    limits: TileLimits
    kind: TileKind
    fills: dict[tuple[int, int], set[int]]
    registers: TileRegisters
    memory: np.ndarray
    locks: list[EmulatedLock]
    channels: "dict[tuple[str, int], DmaChannel]"

    @property
    def array(self) -> ArrayView: ...

    def bd_words(self, bd: int) -> tuple[int, ...]: ...

    def bd_source(self, bd: int) -> str: ...

    def advance_iteration(self, bd: int, wrap: int) -> int: ...

    def count_tasks(self, bds: Iterable[int], by: int) -> None: ...

    def dma_lock(self, index: int, channel: "DmaChannel") -> EmulatedLock: ...

    def dma_memory(
        self, base: int, order: Order, channel: "DmaChannel"
    ) -> tuple[np.ndarray, int, np.ndarray | None]: ...

    def store(self, word: int, value: int) -> None: ...

    def read_bd(self, bd: int, word: int) -> int: ...

    def write_bd(self, bd: int, word: int, value: int, source: str) -> None: ...
