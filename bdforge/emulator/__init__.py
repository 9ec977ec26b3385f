"""The emulated array: reads MLIR (or instruction words) and nothing else, and runs it strictly."""

from bdforge.emulator.api import Result, emulate
from bdforge.emulator.errors import (
    ArgumentError,
    BudgetExceeded,
    CoreError,
    Deadlock,
    DesignError,
    DmaError,
    EmulationError,
    KernelError,
    LockError,
    PoisonError,
    RegisterAccessError,
    TimingError,
)
from bdforge.emulator.timed import TimingOptions, TimingReport, replay

__all__ = [
    "ArgumentError",
    "BudgetExceeded",
    "CoreError",
    "Deadlock",
    "DesignError",
    "DmaError",
    "EmulationError",
    "KernelError",
    "LockError",
    "PoisonError",
    "RegisterAccessError",
    "Result",
    "TimingError",
    "TimingOptions",
    "TimingReport",
    "emulate",
    "replay",
]
