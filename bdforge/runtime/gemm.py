"""GEMMs on the emulated array: packing, staging, the run and the comparison with numpy."""

import time
from dataclasses import dataclass

import numpy as np

from bdforge.emulator import ArgumentError, emulate
from bdforge.plan import GemmSequence, Problem, sequence
from bdforge.runtime.design import BuiltDesign
from bdforge.runtime.operands import c_buffer, packed_weights, staged_a

_EXACT_FLOAT32 = 1 << 24  # integers up to here are exact in float32
_LARGEST_INT8 = 128


@dataclass(frozen=True, slots=True)
class GemmRun:
    """Result of one GEMM: C, the sequence that made it, seconds of emulation, warnings of the run."""

    c: np.ndarray
    sequence: GemmSequence
    seconds: float
    warnings: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mismatch:
    """The first wrong element in row-major order, and how many there are."""

    row: int
    column: int
    got: int
    expected: int
    count: int

    def __str__(self) -> str:
        more = f"; {self.count} elements are wrong" if self.count > 1 else ""
        return f"C[{self.row}, {self.column}] is {self.got}, expected {self.expected}{more}"


def run_gemm(design: BuiltDesign, a: np.ndarray, weights: np.ndarray) -> GemmRun:
    """C = a @ weights on the emulated array.

    `a`: int8 (M, K), row-major. `weights`: int8 (K, N) of -1, 0, 1. ArgumentError for other types or shapes,
    EmulationError for what the array would not survive.
    """
    check_matrix("a", a)
    check_matrix("weights", weights)
    if a.shape[1] != weights.shape[0]:
        raise ArgumentError(
            f"a is {a.shape[0]} x {a.shape[1]}, but weights are {weights.shape[0]} x {weights.shape[1]}"
        )
    problem = Problem(a.shape[0], a.shape[1], weights.shape[1])
    planned = sequence(design.plan, problem.M, problem.K, problem.N)
    a_host, b, c = staged_a(planned, a), packed_weights(design.plan, weights), c_buffer(planned)
    start = time.perf_counter()
    mlir = design.mlir_for(problem)
    result = emulate(mlir, [a_host, b, c], design.kernels, problem.sequence, file=str(design.mlir_file))
    seconds = time.perf_counter() - start
    return GemmRun(c[: problem.M, : problem.N], planned, seconds, result.warnings)


def check_matrix(name: str, array: np.ndarray) -> None:
    """ArgumentError unless `array` is a C-contiguous int8 matrix."""
    if not isinstance(array, np.ndarray) or array.dtype != np.int8 or array.ndim != 2 or not array.size:
        got = f"{array.dtype} of shape {array.shape}" if isinstance(array, np.ndarray) else type(array).__name__
        raise ArgumentError(f"{name} must be an int8 matrix, got {got}")
    if not array.flags.c_contiguous:
        raise ArgumentError(f"{name} is not C-contiguous; pass np.ascontiguousarray({name})")


def reference(a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """int32 a @ weights by numpy. Sums below 2^24 are exact in float32, which BLAS multiplies fastest."""
    exact = np.float32 if _LARGEST_INT8 * a.shape[1] <= _EXACT_FLOAT32 else np.float64
    return (a.astype(exact) @ weights.astype(exact)).astype(np.int32)


def first_mismatch(got: np.ndarray, expected: np.ndarray) -> Mismatch | None:
    """The first element that differs, or None."""
    wrong = got != expected
    if not wrong.any():
        return None
    row, column = (int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return Mismatch(row, column, int(got[row, column]), int(expected[row, column]), int(wrong.sum()))
