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
)

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
    "emulate",
]
