"""Machine code as a core's program: an executor between program memory and the array."""

from bisect import bisect_right
from collections.abc import Generator, Mapping
from typing import TYPE_CHECKING, Any

from bdforge.devices.limits import CORE_LOCK_WINDOWS, TileKind
from bdforge.emulator.cores.core import Core
from bdforge.emulator.cores.isa.build import library
from bdforge.emulator.cores.isa.interpreter import Interpreter
from bdforge.emulator.cores.isa.memory import DataMemory
from bdforge.emulator.cores.isa.translated import Translated
from bdforge.emulator.cores.kernel_call import perform
from bdforge.emulator.errors import BudgetExceeded, CoreError, KernelError
from bdforge.isa import Isa, IsaError
from bdforge.isa.errors import StepBudgetError

if TYPE_CHECKING:
    from bdforge.emulator.tile import Tile

_MOST_NAME = 60


Executor = Interpreter | Translated
"""What runs machine code; both do the same."""


def executor_for(core: Core) -> type[Executor]:
    """The fast executor; the plain one, with a warning, where no C++ compiler is."""
    if library() is not None:
        return Translated
    core.array.strictness.warn("machine code is interpreted, slowly: there is no C++ compiler g++")
    return Interpreter


class MachineCode:
    """A program of machine code. `names` are those of addresses in program memory, `file` is for messages.

    `executor` is the last run's, None before the first.
    """

    def __init__(self, instructions: Isa, code: bytes, names: Mapping[int, str], file: str) -> None:
        self.instructions, self.code, self.file = instructions, code, file
        self._names = sorted(names.items())
        self.executor: Executor | None = None
        self._counted = 0

    def run(self, core: Core) -> Generator[None, None, None]:
        """Steps of the core until DONE; CoreError and BudgetExceeded name the bundle."""
        core.waits_in_kernels = True  # which locks it releases only running tells
        self.executor = executor_for(core)(self.instructions, self.code, memory_of(core))
        self._counted = 0
        steps = self.executor.run(core.budget)
        answer: Any = None
        while True:
            try:
                request = steps.send(answer)
            except StopIteration:
                break
            except StepBudgetError as error:
                raise BudgetExceeded(f"{core.name}: {error}{self.where()}") from None
            except IsaError as error:
                raise CoreError(f"{error}{self.where()}") from error
            self._count(core)
            try:
                answer = yield from perform(core, request, self.where)
            except (KernelError, ValueError) as error:
                raise CoreError(f"{error}{self.where()}") from None
        self._count(core)

    def place(self, error: Exception) -> str:
        """Where the program stood."""
        return self.where()

    def where(self) -> str:
        """The bundle that runs, with the name before it, as a suffix of messages."""
        assert self.executor is not None
        pc = self.executor.pc
        index = bisect_right(self._names, (pc, chr(0x10FFFF))) - 1
        if index < 0:
            return f" ({self.file}, at {pc:#x})"
        start, name = self._names[index]
        return f" ({self.file}, at {pc:#x}, {name[:_MOST_NAME]} + {pc - start:#x})"

    def _count(self, core: Core) -> None:
        """Let a timed run know the cycles since it was told last."""
        assert self.executor is not None
        cycles = self.executor.cycle + self.executor.conflicts
        if core.trace is not None:
            core.trace.work += cycles - self._counted
        self._counted = cycles


def memory_of(core: Core) -> DataMemory:
    """The memories that a core reaches."""
    tiles = [_tile(core, east, north) for east, north in CORE_LOCK_WINDOWS]
    return DataMemory([t and t.bytes for t in tiles], [t and t.written for t in tiles])


def _tile(core: Core, east: int, north: int) -> "Tile | None":
    """A core tile beside this one, None where there is none."""
    column, row = core.place[0] + east, core.place[1] + north
    device = core.array.device
    if not (0 <= column < device.columns and 0 <= row < device.rows):
        return None
    return core.array.tile(column, row) if device.kind(column, row) is TileKind.CORE else None
