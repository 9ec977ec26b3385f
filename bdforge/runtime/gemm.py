"""GEMMs on the emulated array: padding, packing, the run and the comparison with numpy."""

import time
from dataclasses import dataclass

import numpy as np

from bdforge.emulator import ArgumentError, emulate
from bdforge.plan import Padding, Problem, padding
from bdforge.runtime.design import BuiltDesign
from bdforge.weights import pack, pad

_EXACT_FLOAT32 = 1 << 24  # integers up to here are exact in float32
_LARGEST_INT8 = 128


@dataclass(frozen=True, slots=True)
class GemmRun:
    """Result of one GEMM: C without padding, how it was padded, seconds of emulation, warnings of the run."""

    c: np.ndarray
    padding: Padding
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
    _check("a", a)
    _check("weights", weights)
    if a.shape[1] != weights.shape[0]:
        raise ArgumentError(
            f"a is {a.shape[0]} x {a.shape[1]}, but weights are {weights.shape[0]} x {weights.shape[1]}"
        )
    problem = Problem(a.shape[0], a.shape[1], weights.shape[1])
    padded = padding(design.plan, problem)
    tile = design.plan.spec.tile
    a_padded = np.zeros((padded.M, padded.K), np.int8)
    a_padded[: problem.M, : problem.K] = a
    b = pack(pad(weights, padded.K, padded.N), k=tile.k, n=tile.n)
    c = np.zeros((padded.M, padded.N), np.int32)
    start = time.perf_counter()
    mlir = design.mlir_for(problem)
    result = emulate(mlir, [a_padded, b, c], design.kernels, problem.sequence, file=str(design.mlir_file))
    seconds = time.perf_counter() - start
    return GemmRun(c[: problem.M, : problem.N], padded, seconds, result.warnings)


def _check(name: str, array: np.ndarray) -> None:
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
