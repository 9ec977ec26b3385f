"""The emulated array: reads MLIR (or instruction words) and nothing else, and runs it strictly."""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bdforge.array.emulator.api import Result, emulate
    from bdforge.array.emulator.errors import (
        ArgumentError,
        BudgetExceeded,
        CoreError,
        Deadlock,
        DmaError,
        EmulationError,
        KernelError,
        LoadError,
        LockError,
        PoisonError,
        RegisterAccessError,
        TimingError,
    )
    from bdforge.array.emulator.timed import TimingOptions, TimingReport, replay

__all__ = [
    "ArgumentError",
    "BudgetExceeded",
    "CoreError",
    "Deadlock",
    "DmaError",
    "EmulationError",
    "KernelError",
    "LoadError",
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
_HOMES = {"emulate": "api", "Result": "api", "replay": "timed", "TimingOptions": "timed", "TimingReport": "timed"}


def __getattr__(name: str):
    """Import the machine on first use: what checks designs or makes words needs no emulated array."""
    if name in __all__:
        return getattr(import_module(f"bdforge.array.emulator.{_HOMES.get(name, 'errors')}"), name)
    raise AttributeError(f"module 'bdforge.array.emulator' has no attribute {name!r}")
