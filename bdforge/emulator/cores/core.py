"""A core: the agent that runs an `aie.core` body, with its ends of cascades and streams."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from bdforge.devices.limits import CORE, CORE_LOCK_WINDOWS, TileKind, core_lock
from bdforge.emulator.cores.mlir.ports import StreamInput, StreamOutput
from bdforge.emulator.cores.mlir.translation import Translation
from bdforge.emulator.cores.stack import Frame, largest
from bdforge.emulator.errors import BudgetExceeded, CoreError, EmulationError
from bdforge.emulator.lock import Lock
from bdforge.emulator.scheduler import Agent, Scheduler
from bdforge.mlir import location
from bdforge.mlir.array_ops import BufferOp, CoreOp, LockOp, UseLockOp

if TYPE_CHECKING:
    from bdforge.emulator.array import Array
    from bdforge.emulator.cascade import Cascade
    from bdforge.emulator.cores.kernel_call import KernelCall

LOOP_BUDGET = 1 << 28


class Surroundings(Protocol):
    """What a core program reaches outside of itself."""

    array: "Array"

    @property
    def functions(self) -> Mapping[str, FuncOp]: ...

    def lock(self, op: LockOp) -> Lock: ...

    def view(self, op: BufferOp) -> np.ndarray: ...

    def kernel(self, name: str, core: "Core", op: Operation) -> "KernelCall": ...

    def check_acquire(self, use: UseLockOp) -> None: ...

    def acquire_zero(self, message: str) -> None: ...


@dataclass(slots=True)
class NoProgram:
    """A core without an aie.core: the end of other waits."""

    def sentence(self) -> str:
        return "has no program"

    def providers(self) -> Iterator[Agent]:
        return iter(())


class Core(Agent):
    """A core tile's processor. Without a program it does nothing, but cascades and streams may lead to it."""

    kind = "core"

    def __init__(self, column: int, row: int, scheduler: Scheduler):
        super().__init__(f"core ({column}, {row})", scheduler)
        self.place = column, row
        self.waiting = NoProgram()
        self.waits_in_kernels = False
        self.frames: list[tuple[str, Frame]] = []  # of the kernels that the program calls, where they are known
        self.fuel = self.budget = min(LOOP_BUDGET, scheduler.budget)
        self.released: list[Lock] = []
        self.cascade_in: Cascade | None = None
        self.cascade_out: Cascade | None = None
        self.input = StreamInput(self)
        self.output = StreamOutput(self, scheduler)
        self._translation: Translation | None = None
        self._program: Callable[[Core], Generator[None, None, None]] | None = None

    def load(self, op: CoreOp, outside: Surroundings) -> None:
        """Take over a program; CoreError for operations that cannot be run."""
        self._outside = outside
        self._translation = Translation(self, op, outside)
        self._program = self._translation.compile()
        if (fault := largest(self.frames, op.stack_size, self._translation.stack_bytes)) is not None:
            outside.array.strictness.fault("stack", CoreError(f"{location(op)}: {self.name}: {fault}"))
        self.waiting = None

    @property
    def has_program(self) -> bool:
        """Whether there is an aie.core."""
        return self._program is not None

    def run(self) -> Generator[None, None, None]:
        if self._program is None:
            return
        try:
            yield from self._program(self)
        except CoreError as error:
            raise CoreError(f"{self.name}: {error}") from None
        except EmulationError:
            raise
        except Exception as error:
            raise CoreError(f"{self.name}: {type(error).__name__}: {error}{self._place(error)}") from error

    def _place(self, error: Exception) -> str:
        """Where in the MLIR the program stood when it failed."""
        assert self._translation is not None
        trace = error.__traceback__
        line = None
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == self._translation.file:
                line = trace.tb_lineno
            trace = trace.tb_next
        return "" if line is None else f" ({location(self._translation.origin(line))})"

    def lock(self, number: int) -> Lock:
        """The lock that this core calls `number`; CoreError if it reaches none by that."""
        array = self._outside.array
        try:
            column, row, index = core_lock(*self.place, number)
            array.device.kind(column, row)  # the array has tiles beyond its edge, which cores do not reach
            tile = array.tile(column, row)
        except ValueError as error:
            raise CoreError(str(error)) from None
        if tile.kind is not TileKind.CORE:
            raise CoreError(f"lock {number} would be in {tile.name}, whose locks a core does not reach")
        return tile.locks[index]

    def number_of(self, lock: Lock, op: LockOp) -> int:
        """What this core calls a lock; CoreError if it does not reach it."""
        tile = op.tile.column, op.tile.row
        if not self.reaches(*tile):
            raise CoreError(f"{self.name} does not reach the locks of tile {tile}")
        window = CORE_LOCK_WINDOWS.index((tile[0] - self.place[0], tile[1] - self.place[1]))
        return CORE.locks * window + self._outside.array.tile(*tile).locks.index(lock)

    def releases(self, lock: Lock) -> None:
        """Remember that this core releases a lock."""
        known = self._outside.array.core_releases.setdefault(id(lock), [])
        if self not in known:
            known.append(self)

    def reaches(self, column: int, row: int) -> bool:
        """Whether locks of a core tile are among those this core can use."""
        return (column - self.place[0], row - self.place[1]) in CORE_LOCK_WINDOWS

    def check_acquire(self, value: int, equal: bool, where: Callable[[], str]) -> None:
        """Refuse an acquire that hardware would misread."""
        if value == 0 and not equal:
            self._outside.acquire_zero(f"AcquireGreaterEqual of 0 would be read as Acquire of 0{where()}")

    def spend(self, where: Callable[[], str]) -> None:
        """Count a step of a kernel; BudgetExceeded when there were too many."""
        self.fuel -= 1
        if self.fuel < 0:
            self.exhausted(where)

    def exhausted(self, where: Callable[[], str]) -> None:
        """A loop that went round too often without an end."""
        raise BudgetExceeded(f"{self.name}: no end after {self.budget} loop iterations{where()}")


def core_at(array: "Array", column: int, row: int) -> Core:
    """The core of a tile, made on first use."""
    for core in array.cores:
        if core.place == (column, row):
            return core
    core = Core(column, row, array.scheduler)
    array.cores.append(core)
    return core
