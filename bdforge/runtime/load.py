"""`bdforge.load`: a built design as a function of numpy arrays, on the emulated array or the NPU.

A backend is chosen by `device=` or the variable BDFORGE_DEVICE; the emulated array is the default.
"""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from bdforge.emulator import ArgumentError, emulate
from bdforge.operators.gemm import GemmSequence, SequenceOptions, render
from bdforge.operators.gemm import sequence as planned_sequence
from bdforge.operators.gemm.program import B
from bdforge.runtime.design import BuildError, BuiltDesign
from bdforge.runtime.epilogues import NO_SCALES, Scales, fed_operands
from bdforge.runtime.operands import b_operand, c_buffer, c_matrix, check_matrix, staged_a
from bdforge.weights import WeightError

VARIABLE = "BDFORGE_DEVICE"
DEFAULT = "emulator"


TIMEOUT_SECONDS = 10.0  # the driver gives up after about as long


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


@dataclass(frozen=True, slots=True, eq=False)
class PackedWeights:
    """Weights (K x N) in the order in which one design's cores eat them; pack once, use for every call.

    `data` may come from a file that `Gemm.pack(...).data.tofile` wrote for the same tile sizes.
    """

    K: int
    N: int
    data: np.ndarray
    scales: Scales = NO_SCALES

    def __repr__(self) -> str:
        return f"<PackedWeights {self.K} x {self.N}, {self.data.nbytes} bytes>"


class Gemm:
    """C = gemm(a, weights), M x K times K x N, in the dtypes (`DTYPES`) and memory orders of the design.

    Any M, K, N run on one loaded array.
    """

    def __init__(self, design: BuiltDesign, backend: Backend, timeout_seconds: float = TIMEOUT_SECONDS):
        self.design, self._backend, self.timeout_seconds = design, backend, timeout_seconds

    def __repr__(self) -> str:
        where = type(self._backend).__name__.lower()
        return f"<Gemm {self.design.plan.summary} by the {where}>"

    def pack(
        self, weights: np.ndarray, column_scales: np.ndarray | None = None, bias: np.ndarray | None = None
    ) -> PackedWeights:
        """Weights (K x N) as this design reads them, packed or staged; WeightError for values that their type lacks.

        `column_scales` and `bias`: float32 (N,), for designs whose epilogue takes them.
        """
        spec = self.design.plan.spec
        check_matrix("weights", weights, spec.b, spec.layouts.b)
        depth, columns = weights.shape
        scales = Scales(columns=column_scales, bias=bias)
        return PackedWeights(depth, columns, b_operand(self.design.plan, weights), scales)

    def __call__(
        self, a: np.ndarray, weights: np.ndarray | PackedWeights, row_scales: np.ndarray | None = None
    ) -> np.ndarray:
        """Multiply; ArgumentError says what was expected and what was given.

        `row_scales`: float32 (M,), for designs whose epilogue scales.
        """
        spec = self.design.plan.spec
        check_matrix("a", a, spec.a, spec.layouts.a)
        packed = weights if isinstance(weights, PackedWeights) else self.pack(weights)
        if a.shape[1] != packed.K:
            raise ArgumentError(f"a is {a.shape[0]} x {a.shape[1]}, but weights are {packed.K} x {packed.N}")
        planned = planned_sequence(self.design.plan, a.shape[0], packed.K, packed.N)
        _check_packed(packed, planned.argument_bytes[B])
        c = c_buffer(planned)
        fed = fed_operands(planned, replace(packed.scales, rows=row_scales))
        self._backend.run(planned, [staged_a(planned, a), packed.data, c, *fed], self.timeout_seconds)
        return np.ascontiguousarray(c_matrix(planned, c))


def _check_packed(packed: PackedWeights, needed: int) -> None:
    """WeightError unless the data are as long as the array will read."""
    if packed.data.nbytes != needed:
        raise WeightError(
            f"packed weights of {packed.K} x {packed.N} take {needed} bytes, got {packed.data.nbytes}; the file is "
            "truncated, or packed for other tile sizes: pack the weights again"
        )


def load(folder: Path | str, device: str | None = None, sequence: SequenceOptions | None = None) -> Gemm:
    """The design built in `folder`, ready to be called.

    `device` is "emulator" (the default) or "xrt"; without it the variable BDFORGE_DEVICE decides. `sequence` says how
    runs wait, where not as the design says. BuildError says what the folder lacks, NpuError what the NPU lacks.
    """
    design = BuiltDesign.load(folder).waiting(sequence)
    return Gemm(design, backend_for(design, device))
