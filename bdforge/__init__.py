"""bdforge: explicit, checked and emulated designs for AMD's NPU.

`bdforge.emulate` runs a design on the emulated array; `bdforge.Result` is what it returns.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bdforge.emulator import Result, emulate

__all__ = ["Result", "emulate"]


def __getattr__(name: str):
    """Import the emulator on first use: facts of devices and patterns need no MLIR parser."""
    if name in __all__:
        return getattr(import_module("bdforge.emulator"), name)
    raise AttributeError(f"module 'bdforge' has no attribute {name!r}")
