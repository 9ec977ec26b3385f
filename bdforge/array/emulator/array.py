"""The array: tiles, streams, cores and completion tokens, reached by addresses as the controller does."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np

from bdforge.array.emulator.cores.core import EmulatedCore, Frame
from bdforge.array.emulator.dma import DmaChannel
from bdforge.array.emulator.dram_order import DramOrder
from bdforge.array.emulator.errors import RegisterAccessError
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.silicon_rules import TokenKey, check_unread
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.core.isa.elf import CoreProgram
from bdforge.core.isa.meaning import Approximated, Approximation
from bdforge.devices import Device, DeviceError, TileKind
from bdforge.devices.capacities import KNOWN, StreamCapacities
from bdforge.devices.registers import split_address

if TYPE_CHECKING:
    from bdforge.array.emulator.cores.load_machine_code import ProgramMemories
    from bdforge.array.emulator.cores.machine_code_core import Breakpoints
    from bdforge.array.emulator.streams import WrittenStreams

FIRMWARE_WORD = 0x00CD0CD0  # the firmware overwrites that word between the runs of a context (HS)


class Array:
    """A configured array. `write` and `read` act on the same state as BDs, locks and cores do.

    `token_ways` is there where the design sets its switches itself: it tells, for column, row and packet id, why
    completion tokens do not reach the controller (None: they do). With `poison` its memory remembers who wrote it
    (`bdforge.array.emulator.poison`). `capacity` words are what streams hold instead of what is known of the device's.
    """

    def __init__(
        self, device: Device, host: HostBuffers, scheduler: Scheduler, strictness: Strictness, poison: bool = False,
        capacity: int | Literal["known"] = KNOWN,
    ):  # fmt: skip
        self.device, self.host = device, host
        self.scheduler, self.strictness = scheduler, strictness
        self.poison = poison
        self.capacities = device.generation.capacities if capacity == KNOWN else StreamCapacities.uniform(capacity)
        self.tiles: dict[tuple[int, int], EmulatedTile] = {}
        self.cores: list[EmulatedCore] = []
        self.core_releases: dict[int, list[EmulatedCore]] = {}  # id of a lock: cores whose program releases it
        self.tokens: Counter[TokenKey] = Counter()
        self.dram = DramOrder(self)
        self.token_ways: Callable[[int, int, int], str | None] | None = None
        self.streams: WrittenStreams | None = None  # as switches join them
        self._outside: dict[int, EmulatedTile] = {}
        self.frames: dict[str, Frame] = {}  # of compiled kernels
        self.spoiled: np.ndarray | None = None  # the memory whose word 0 a run before has overwritten
        self.controlled: set[int] = set()  # columns that control packets wrote to
        self.programs: ProgramMemories | None = None  # machine code of cores, as registers reach it
        self.breakpoints: Breakpoints | None = None  # where somebody looks at cores that run machine code
        self.approximation = Approximation.OFF  # what becomes of those of machine code
        self.approximated: dict[Approximated, None] = {}  # what was, in order
        self.elfs: Mapping[tuple[int, int], Path | CoreProgram] = {}  # instead of the text's
        self.runs_machine_code = False  # then accesses to the banks of cores' memories are told
        self.by_words = False  # whether instruction words run, not a sequence of the text

    def tile(self, column: int, row: int) -> EmulatedTile:
        """The tile at (column, row), made on first use; DeviceError where the device has none."""
        if (column, row) not in self.tiles:
            self.tiles[column, row] = EmulatedTile(self, column, row)
        return self.tiles[column, row]

    def core(self, column: int, row: int) -> EmulatedCore:
        """The core of a tile, made on first use."""
        for core in self.cores:
            if core.place == (column, row):
                return core
        self.cores.append(EmulatedCore(column, row, self))
        return self.cores[-1]

    def west_of_npu1(self, row: int) -> EmulatedTile:
        """A memtile that no design names: Phoenix has a column without a shim west of column 0 (hardware facts 1.1)."""
        if row not in self._outside:
            self._outside[row] = EmulatedTile(self, -1, row)
        return self._outside[row]

    def restart(self) -> None:
        """Before another configuration: no tasks, streams or cores; memory and lock values stay.

        Tasks and tokens that nobody awaited are lost, with a warning.
        """
        for channel in self.channels():
            if channel.tile.kind is TileKind.SHIM and channel.tasks:
                self.strictness.warn(f"{channel.name} had {len(channel.tasks)} tasks left at a reconfiguration")
        for warning in self.left_over():
            self.strictness.warn(f"{warning}, at a reconfiguration")
        self.tokens.clear()
        self.dram.lose_tokens()
        self.scheduler.notify("stop")
        self.scheduler.clear()
        self.cores.clear()
        self.core_releases.clear()
        self.token_ways = self.streams = None
        for tile in self.tiles.values():
            tile.restart()

    def settle(self) -> None:
        """Let streams go where writes to switches lead them, before anything may send."""
        if self.streams is not None:
            self.streams.settle()

    def refill(self) -> None:
        """The whole budget again for everybody, for another run."""
        self.scheduler.refill()
        for core in self.cores:
            core.refill()

    def spoil_word(self) -> None:
        """In poison mode: what the run of a context before this one leaves in word 0 of column 0's memtile (HS)."""
        tile = self.tiles.get((0, 1))
        if not self.poison or tile is None or tile.written is None or self.strictness.permits("memtile-word"):
            return
        if tile.kind is TileKind.MEMTILE:
            self.spoiled = tile.memory
            tile.memory[0] = FIRMWARE_WORD
            tile.written[:4] = False

    def left_over(self) -> Iterator[str]:
        """Tokens nobody awaited, words that no BD took, and BDs that began and never got the rest."""
        for (column, row, direction, index), count in self.tokens.items():
            if count:
                tokens = f"{count} token{'s' if count > 1 else ''}"
                yield f"{tokens} of {direction} {index} of tile ({column}, {row}) nobody awaited"
        for channel in self.channels():
            if channel.sink is not None and channel.sink.held:
                yield f"{channel.sink.held} words were left in the input of {channel.name}{channel.source()}"
            if (unmoved := channel.unmoved()) is not None and not self.strictness.permits("unpatched-address"):
                yield unmoved
            if missing := channel.missing_words():
                where = f"BD {channel.bd}, {missing} words are missing{channel.source()}"
                yield f"{channel.name} stopped in the middle of {where}"

    def write(self, address: int, value: int, source: str = "") -> None:
        tile, offset = self.at(address, source)
        tile.write(offset, value, source)

    def read(self, address: int, source: str = "") -> int:
        tile, offset = self.at(address, source)
        return tile.read(offset)

    def at(self, address: int, source: str = "") -> tuple[EmulatedTile, int]:
        """Tile and offset of a full address; RegisterAccessError outside of every tile."""
        column, row, offset = split_address(address)
        try:
            return self.tile(column, row), offset
        except DeviceError as error:
            raise RegisterAccessError(f"address {address:#x}: {error}{source}") from None

    def issue_token(self, channel: DmaChannel) -> None:
        self.tokens[channel.tile.column, channel.tile.row, channel.direction, channel.index] += 1
        check_unread(self.tokens, channel.tile.column, self.strictness)

    def channels(self) -> Iterator[DmaChannel]:
        for tile in self.tiles.values():
            yield from tile.channels.values()

    def releasers(self, lock: EmulatedLock, home: EmulatedTile) -> list[Agent]:
        """Cores and channels with tasks that could release `lock`, which is one of the tile `home`."""
        known: list[Agent] = [*self.core_releases.get(id(lock), [])]
        near = (tile for tile in self.tiles.values() if tile.row == home.row and abs(tile.column - home.column) <= 1)
        known += (channel for tile in near for channel in tile.channels.values() if _releases(channel, lock))
        return known or [c for c in self.cores if c.waits_in_kernels and c.reaches(home.column, home.row)]


def _releases(channel: DmaChannel, lock: EmulatedLock) -> bool:
    for task in channel.tasks:
        for bd in task.chain:
            release = channel.tile.bd(bd).release
            if release is not None and channel.tile.dma_lock(release[0], channel) is lock:
                return True
    return False
