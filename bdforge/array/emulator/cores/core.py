"""A core: the agent that runs a program, with its stack, and its ends of cascades and streams.

Frames of kernels are known where an object file or the kernel itself tells them: Peano leaves that of every function in
a section `.stack_sizes` when it compiles with `-fstack-size-section`. What a kernel calls comes on top and is not
followed, so a stack that passes may still be too small.
"""

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from bdforge.array.emulator.cores.ports import CascadeFifo
from bdforge.array.emulator.errors import ArgumentError, BudgetExceeded, CoreError, EmulationError, LoadError
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.scheduler import Agent, PlainWait, Scheduler
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.array.mlir.memory_ops import LockOp
from bdforge.common.binary import ImageError
from bdforge.common.files import FileError, read_bytes
from bdforge.core.isa.stack_sizes import frame_bytes
from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS, TileKind, core_lock

if TYPE_CHECKING:
    from bdforge.array.emulator.array import Array


@dataclass(frozen=True, slots=True)
class Frame:
    """What a function keeps on the stack, and who says so."""

    size_bytes: int
    source: str


def frames_of(path: Path) -> dict[str, Frame]:
    """Frames of an object's functions by symbol, none without the section; ArgumentError for no ELF file."""
    try:
        return {name: Frame(size, path.name) for name, size in frame_bytes(read_bytes(path)).items()}
    except FileError as error:
        raise ArgumentError(str(error)) from None
    except ImageError as error:
        raise ArgumentError(f"{path}: {error}") from None


def largest(frames: Sequence[tuple[str, Frame]], stack_size: int, kept_bytes: int) -> str | None:
    """What is wrong with a stack of `stack_size` bytes that holds `kept_bytes` when kernels are called, if anything."""
    if not frames:
        return None
    name, frame = max(frames, key=lambda named: named[1].size_bytes)
    if kept_bytes + frame.size_bytes <= stack_size:
        return None
    beside = f" beside {kept_bytes} of memref.alloca" if kept_bytes else ""
    return (
        f"its stack has {stack_size} bytes, but {name} takes {frame.size_bytes}{beside} ({frame.source}), without what "
        "it calls; on the array that overwrites the buffer behind the stack: raise stack_size of the aie.core"
    )


class RunnableProgram(Protocol):
    """What a core runs: the body of an `aie.core`, which may call kernels of the host, or machine code.

    `run` yields whenever the core cannot go on, with `waiting` set, as agents do, and reaches locks, cascade and
    streams through the core. `place` tells where the program stood when it failed, as a suffix of messages.
    """

    def run(self, core: "EmulatedCore") -> Generator[None, None, None]: ...

    def place(self, error: Exception) -> str: ...


class EmulatedCore(Agent):
    """A core tile's processor. Without a program it does nothing, but cascades and streams may lead to it."""

    kind = "core"

    def __init__(self, column: int, row: int, array: "Array"):
        scheduler: Scheduler = array.scheduler
        super().__init__(f"core ({column}, {row})", scheduler)
        self.array = array
        self.place = column, row
        self.waiting = PlainWait(lambda: "has no program")
        self.waits_in_kernels = False
        self.frames: list[tuple[str, Frame]] = []  # of the kernels that the program calls, where they are known
        self.fuel = self.budget = scheduler.budget
        self.refilled = False  # since its program ran out of it
        self.released: list[EmulatedLock] = []
        self.kept: dict[object, Any] = {}  # what kernels of the host remember from call to call
        self.cascade_in: CascadeFifo | None = None
        self.cascade_out: CascadeFifo | None = None
        self._received: list[np.ndarray] = []
        self.input = Sink(self, self._received.append, array.capacities)
        self.output = Stream(self, scheduler)
        self.program: RunnableProgram | None = None
        self._locks: dict[int, EmulatedLock] = {}

    def take(self, program: RunnableProgram) -> None:
        self.program = program
        self.waiting = None

    @property
    def has_program(self) -> bool:
        return self.program is not None

    def run(self) -> Generator[None, None, None]:
        program = self.program
        if program is None:
            return
        try:
            yield from program.run(self)
        except CoreError as error:
            named = CoreError(f"{self.name}: {error}")
            for note in getattr(error, "__notes__", ()):
                named.add_note(note)
            raise named from None
        except (EmulationError, BrokenPipeError):  # nobody reads any more what a breakpoint shows
            raise
        except Exception as error:
            raise CoreError(f"{self.name}: {type(error).__name__}: {error}{program.place(error)}") from error

    def get_words(self, count: int, where: Callable[[], str]) -> Generator[None, None, bytes]:
        """Steps that end with the bytes of `count` words from the core's stream."""
        self.notify("receive", count, None)
        yield from self.input.fill(count, where)
        found = b"".join(words.tobytes() for words in self._received)
        self._received.clear()
        return found

    def lock(self, number: int) -> EmulatedLock:
        """The lock that this core calls `number`; CoreError if it reaches none by that."""
        if (known := self._locks.get(number)) is None:
            known = self._locks[number] = self._found(number)
        return known

    def _found(self, number: int) -> EmulatedLock:
        array = self.array
        try:
            column, row, index = core_lock(*self.place, number)
            array.device.kind(column, row)  # the array has tiles beyond its edge, which cores do not reach
            there = array.tile(column, row)
        except ValueError as error:
            raise CoreError(str(error)) from None
        if there.kind is not TileKind.CORE:
            raise CoreError(f"lock {number} would be in {there.name}, whose locks a core does not reach")
        return there.locks[index]

    def number_of(self, lock: EmulatedLock, op: LockOp) -> int:
        """What this core calls a lock; CoreError if it does not reach it."""
        tile = op.tile.column, op.tile.row
        if not self.reaches(*tile):
            raise CoreError(f"{self.name} does not reach the locks of tile {tile}")
        window = CORE_LOCK_WINDOWS.index((tile[0] - self.place[0], tile[1] - self.place[1]))
        return CORE.locks * window + self.array.tile(*tile).locks.index(lock)

    def releases(self, lock: EmulatedLock) -> None:
        """Remember that this core releases a lock."""
        known = self.array.core_releases.setdefault(id(lock), [])
        if self not in known:
            known.append(self)

    def reaches(self, column: int, row: int) -> bool:
        """Whether locks of a core tile are among those this core can use."""
        return (column - self.place[0], row - self.place[1]) in CORE_LOCK_WINDOWS

    def check_acquire(self, value: int, equal: bool, where: Callable[[], str]) -> None:
        """Refuse an acquire that hardware would misread."""
        if value == 0 and not equal:
            message = f"AcquireGreaterEqual of 0 would be read as Acquire of 0{where()}"
            self.array.strictness.fault("acquire-zero", LoadError(message))

    def refill(self) -> None:
        """The whole budget again, for another run on the same array."""
        self.fuel, self.refilled = self.budget, True

    def spend(self, where: Callable[[], str]) -> None:
        """Count a step of a kernel; BudgetExceeded when there were too many."""
        self.fuel -= 1
        if self.fuel < 0:
            self.exhausted(where)

    def exhausted(self, where: Callable[[], str]) -> None:
        """A loop that went round too often without an end."""
        raise BudgetExceeded(f"{self.name}: no end after {self.budget} loop iterations and calls{where()}")
