"""`bdforge.load`: a built design as a function of numpy arrays."""

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from bdforge.emulator import ArgumentError
from bdforge.plan import sequence
from bdforge.runtime.backends import Backend, backend_for
from bdforge.runtime.design import BuiltDesign
from bdforge.runtime.gemm import check_matrix
from bdforge.runtime.operands import c_buffer, packed_weights, staged_a

TIMEOUT_SECONDS = 10.0  # the driver gives up after about as long


@dataclass(frozen=True, slots=True, eq=False)
class PackedWeights:
    """Weights (K x N) in the order in which one design's cores eat them; pack once, use for every call."""

    K: int
    N: int
    data: np.ndarray


class Gemm:
    """C = gemm(a, weights): int8 (M, K) times ternary (K, N), int32 (M, N). Any M, K, N run on one loaded array."""

    def __init__(self, design: BuiltDesign, backend: Backend, timeout_seconds: float = TIMEOUT_SECONDS):
        self.design, self._backend, self.timeout_seconds = design, backend, timeout_seconds

    def pack(self, weights: np.ndarray) -> PackedWeights:
        """Weights of -1, 0, 1 (int8, K x N) packed for this design; WeightError for other values."""
        check_matrix("weights", weights)
        depth, columns = weights.shape
        return PackedWeights(depth, columns, packed_weights(self.design.plan, weights))

    def __call__(self, a: np.ndarray, weights: np.ndarray | PackedWeights) -> np.ndarray:
        """Multiply; ArgumentError says what was expected and what was given."""
        check_matrix("a", a)
        packed = weights if isinstance(weights, PackedWeights) else self.pack(weights)
        if a.shape[1] != packed.K:
            raise ArgumentError(f"a is {a.shape[0]} x {a.shape[1]}, but weights are {packed.K} x {packed.N}")
        planned = sequence(self.design.plan, a.shape[0], packed.K, packed.N)
        c = c_buffer(planned)
        self._backend.run(planned, staged_a(planned, a), packed.data, c, self.timeout_seconds)
        return np.ascontiguousarray(c[: a.shape[0], : packed.N])


def load(folder: Path | str, device: str | None = None) -> Gemm:
    """The design built in `folder`, ready to be called.

    `device` is "emulator" (the default) or "xrt"; without it the variable BDFORGE_DEVICE decides. BuildError says
    what the folder lacks, NpuError what the NPU lacks.
    """
    design = BuiltDesign.load(folder)
    return Gemm(design, backend_for(design, device))
