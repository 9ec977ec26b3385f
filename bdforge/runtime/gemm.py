"""GEMMs on the emulated array: packing, staging, the run and the comparison with numpy."""

import time
from dataclasses import dataclass

import numpy as np

from bdforge.emulator import ArgumentError, TimingOptions, TimingReport, emulate
from bdforge.emulator.trace import Trace
from bdforge.operators.gemm import GemmSequence, Problem, sequence
from bdforge.runtime.design import BuiltDesign
from bdforge.runtime.epilogues import NO_SCALES, Scales, fed_operands
from bdforge.runtime.operands import b_operand, c_buffer, c_matrix, check_matrix, staged_a


@dataclass(frozen=True, slots=True)
class GemmRun:
    """Result of one GEMM: C, its sequence, host seconds of emulation, warnings; report and trace of a timed run."""

    c: np.ndarray
    sequence: GemmSequence
    seconds: float
    warnings: tuple[str, ...]
    timing: TimingReport | None = None
    trace: Trace | None = None


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first wrong element in row-major order, and how many there are."""

    row: int
    column: int
    got: float
    expected: float
    count: int

    def __str__(self) -> str:
        more = f"; {self.count} elements are wrong" if self.count > 1 else ""
        return f"C[{self.row}, {self.column}] is {self.got}, expected {self.expected}{more}"


def run_gemm(
    design: BuiltDesign,
    a: np.ndarray,
    weights: np.ndarray,
    timing: TimingOptions | None = None,
    scales: Scales = NO_SCALES,
    *,
    poison: bool = False,
) -> GemmRun:
    """C = a @ weights on the emulated array, then the design's epilogue, with `scales` where it takes some.

    `a` (M, K) and `weights` (K, N) have the dtypes (`bdforge.runtime.DTYPES`) and orders of the design: int8, and
    int8 of -1, 0, 1 for BitNet's. With `timing` the run is timed, and the same C comes with a report. With `poison`
    reading tile memory that nobody wrote is an error. ArgumentError for other types or shapes, EmulationError for
    what the array would not survive.
    """
    spec = design.plan.spec
    check_matrix("a", a, spec.a, spec.layouts.a)
    check_matrix("weights", weights, spec.b, spec.layouts.b)
    if a.shape[1] != weights.shape[0]:
        raise ArgumentError(
            f"a is {a.shape[0]} x {a.shape[1]}, but weights are {weights.shape[0]} x {weights.shape[1]}"
        )
    problem = Problem(a.shape[0], a.shape[1], weights.shape[1])
    planned = sequence(design.plan, problem.M, problem.K, problem.N)
    c = c_buffer(planned)
    arguments = [staged_a(planned, a), b_operand(design.plan, weights), c, *fed_operands(planned, scales)]
    start = time.perf_counter()
    mlir = design.mlir_for(problem)
    file = str(design.mlir_file)
    result = emulate(mlir, arguments, design.kernels, problem.sequence, file=file, timing=timing, poison=poison)
    seconds = time.perf_counter() - start
    return GemmRun(c_matrix(planned, c), planned, seconds, result.warnings, result.timing, result.trace)


def first_mismatch(got: np.ndarray, expected: np.ndarray, bound: np.ndarray | None = None) -> Mismatch | None:
    """The first element that differs, by more than its `bound` if there is one; None when there is no such."""
    wrong = got != expected if bound is None else ~(np.abs(got.astype(np.float64) - expected) <= bound)
    if not wrong.any():
        return None
    row, column = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Mismatch(row, column, got[row, column].item(), expected[row, column].item(), int(wrong.sum()))
