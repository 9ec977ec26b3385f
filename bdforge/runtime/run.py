"""A run of a built design on the emulated array, and how its results differ from what they should be."""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from bdforge.array.emulator import TimingOptions, TimingReport, emulate
from bdforge.array.emulator.trace import Trace
from bdforge.design.sequences import PlannedSequence
from bdforge.design.sequences.buffers import arguments, fetched, placed, sizes_of
from bdforge.runtime.built_design import BuiltDesign


@dataclass(frozen=True, slots=True)
class Run:
    """Outputs by operand, the sequence, host seconds of emulation, warnings; report and trace of a timed run.

    `between` are arrays that the array made and read again, of a composition.
    """

    outputs: dict[str, np.ndarray]
    sequence: PlannedSequence
    seconds: float
    warnings: tuple[str, ...]
    timing: TimingReport | None = None
    trace: Trace | None = None
    between: dict[str, np.ndarray] = field(default_factory=dict)


def run(
    design: BuiltDesign, inputs: Mapping[str, np.ndarray], timing: TimingOptions | None = None, *, poison: bool = False
) -> Run:
    """Run a design on arrays by operand name, in the types and orders that it takes.

    With `timing` the run is timed, and the same outputs come with a report. With `poison` reading tile memory that
    nobody wrote is an error. OperandError for other types, shapes or values, EmulationError for what the array would
    not survive.
    """
    sizes = sizes_of(design.program, inputs)
    planned = design.sequence(sizes)
    buffers = arguments(planned, placed(planned, inputs))
    start = time.perf_counter()
    name = design.built_sequence(sizes)
    result = emulate(
        design.mlir, buffers, design.kernels, name, instructions=None if name else planned.words(),
        file=str(design.mlir_file), timing=timing, poison=poison, image=design.booted,
        permissive=design.permissive,
    )  # fmt: skip
    seconds = time.perf_counter() - start
    between = fetched(planned, buffers, [o for o in design.program.operands if o.direction == "between"])
    return Run(fetched(planned, buffers), planned, seconds, result.warnings, result.timing, result.trace, between)


@dataclass(frozen=True, slots=True)
class Closeness:
    """How near an output is: of its `bound` the largest share that an element takes, and the `mean` error.

    The mean error is the sum of all errors' sizes over that of the exact values' sizes; 0 where nothing is off.
    """

    bound: float
    mean: float

    @classmethod
    def of(cls, got: np.ndarray, expected: np.ndarray, bound: np.ndarray) -> "Closeness":
        """Of an output with a bound for each element; a bound of 0 is left out of shares."""
        if not got.size:
            return cls(0.0, 0.0)
        exact = expected.astype(np.float64)
        error = np.abs(got.astype(np.float64) - exact)
        shares = np.divide(error, bound, out=np.zeros(error.shape), where=bound > 0)
        size = np.abs(exact).sum()
        return cls(float(shares.max()), float(error.sum() / size) if size else 0.0)
