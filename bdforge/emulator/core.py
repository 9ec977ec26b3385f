"""A core: the agent that runs an `aie.core` body, with its ends of cascades and streams."""

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation

from bdforge.emulator.core_ports import StreamInput, StreamOutput
from bdforge.emulator.core_translation import Translation
from bdforge.emulator.errors import BudgetExceeded, CoreError, EmulationError
from bdforge.emulator.lock import Lock
from bdforge.emulator.scheduler import Agent, Scheduler
from bdforge.mlir import location
from bdforge.mlir.array_ops import BufferOp, CoreOp, LockOp, UseLockOp

if TYPE_CHECKING:
    from bdforge.emulator.array import Array
    from bdforge.emulator.cascade import Cascade

LOOP_BUDGET = 1 << 28


class Surroundings(Protocol):
    """What a core program reaches outside of itself."""

    array: "Array"

    @property
    def functions(self) -> Mapping[str, FuncOp]: ...

    def lock(self, op: LockOp) -> Lock: ...

    def view(self, op: BufferOp) -> np.ndarray: ...

    def kernel(self, name: str, core: "Core", op: Operation) -> Callable[..., Any]: ...

    def check_acquire(self, use: UseLockOp) -> None: ...


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
        self._translation = Translation(self, op, outside)
        self._program = self._translation.compile()
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
