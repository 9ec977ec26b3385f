"""bdforge: explicit, checked and emulated designs for AMD's NPU.

`bdforge.emulate` runs any design on the emulated array and returns a `bdforge.Result`; `bdforge.load` makes a built
design a function of numpy arrays, on the emulated array or the NPU; `bdforge.einsum` contracts tensors on a built GEMM.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bdforge.array.emulator import Result, emulate
    from bdforge.models.tensors import einsum
    from bdforge.runtime import load

__version__ = "0.2.0"
__all__ = ["Result", "__version__", "einsum", "emulate", "load"]
_HOMES = {
    "Result": "bdforge.array.emulator",
    "emulate": "bdforge.array.emulator",
    "load": "bdforge.runtime",
    "einsum": "bdforge.models.tensors",
}


def __dir__() -> list[str]:
    """The names that there are, those that are imported when they are used too."""
    return sorted({*globals(), *__all__})


def __getattr__(name: str):
    """Import the emulator on first use: facts of devices and patterns need no MLIR parser."""
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'bdforge' has no attribute {name!r}")
