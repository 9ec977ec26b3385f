"""Where a built design runs: one class for each backend, the same `run`.

A backend is chosen by `device=` or the variable BDFORGE_DEVICE; the emulated array is the default.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Protocol

import numpy as np

from bdforge.emulator import emulate
from bdforge.operators.gemm import GemmSequence, render
from bdforge.runtime.design import BuildError, BuiltDesign

VARIABLE = "BDFORGE_DEVICE"
DEFAULT = "emulator"


class Backend(Protocol):
    """Runs a planned sequence on its arguments as the array sees them; C is written in place. Returns warnings."""

    def run(
        self, planned: GemmSequence, arguments: Sequence[np.ndarray], timeout_seconds: float
    ) -> tuple[str, ...]: ...


class Emulator:
    """The emulated array, configured by the design's MLIR and driven by the words that the NPU would get."""

    def __init__(self, design: BuiltDesign):
        self._design = design
        self._configuration = render(design.plan, [])

    def run(self, planned: GemmSequence, arguments: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        """Run until the sequence has ended; faults are EmulationErrors. There is no clock, hence no time-out."""
        del timeout_seconds
        design = self._design
        result = emulate(
            self._configuration,
            arguments,
            design.kernels,
            instructions=planned.words(),
            file=str(design.mlir_file),
        )
        return result.warnings


def backend_for(design: BuiltDesign, device: str | None, environ: Mapping[str, str] = os.environ) -> Backend:
    """The backend called `device`, or by BDFORGE_DEVICE; BuildError for an unknown name."""
    name = device or environ.get(VARIABLE) or DEFAULT
    if name == "emulator":
        return Emulator(design)
    if name == "xrt":
        from bdforge.runtime.xrt import Xrt

        return Xrt(design)
    raise BuildError(f"device {name!r} is unknown; choose emulator or xrt (device= or {VARIABLE})")
