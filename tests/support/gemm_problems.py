"""GEMM problems with random operands, run on the emulated array with options of the emulator."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bdforge.array.emulator import Result, emulate
from bdforge.design.sequences import PlannedSequence
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.operators.gemm import GemmPlan, GemmProblem, sequence
from bdforge.runtime import BuiltDesign, Run, run
from support.built_designs import PlannedDesign

Filled = tuple[PlannedSequence, list[np.ndarray], np.ndarray]


def operands(M: int, K: int, N: int, seed: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """Random int8 activations and ternary weights."""
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, (M, K), np.int8), rng.integers(-1, 2, (K, N), np.int8)


def reference(a: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """int32 a @ weights; sums that no float32 holds are made in float64."""
    return (a.astype(np.float64) @ weights.astype(np.float64)).astype(np.int32)


def run_gemm(design: BuiltDesign, a: np.ndarray, weights: np.ndarray, timing=None, **options: Any) -> Run:
    """A run of a design that takes nothing but A and B."""
    return run(design, {"A": a, "B": weights}, timing, **options)


def host_buffers(planned: PlannedSequence, inputs: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The buffers of a run, in order."""
    return arguments(planned, placed(planned, inputs))


def filled(design: PlannedDesign, M: int, K: int, N: int, seed: int = 1) -> Filled:
    """A sequence, its buffers with random operands, and the C that it must give."""
    a, weights = operands(M, K, N, seed)
    planned = sequence(design.plan, M, K, N)
    return planned, host_buffers(planned, {"A": a, "B": weights}), reference(a, weights)


def natural_leading(plan: GemmPlan, problem: GemmProblem) -> dict[str, int]:
    """Positions from line to line of operands without gaps, by operand."""
    M, K, N, layouts = problem.M, problem.K, problem.N, plan.spec.layouts
    shapes = {"a": (layouts.a, M, K), "b": (layouts.b, K, N), "c": (layouts.c, M, N)}
    return {name: down if order == "column" else across for name, (order, down, across) in shapes.items()}


@dataclass(frozen=True)
class FilledProblem:
    """One problem on one design: its text, host buffers of A and B, and the C that numpy makes of them."""

    design: PlannedDesign
    problem: GemmProblem
    mlir: str
    a: np.ndarray
    b: np.ndarray
    expected: np.ndarray

    @classmethod
    def random(cls, design: PlannedDesign, m: int, k: int, n: int, seed: int = 1) -> "FilledProblem":
        """A problem of M, K, N with random int8 activations and ternary weights."""
        problem = GemmProblem(m, k, n)
        _, (staged, packed, _), expected = filled(design, m, k, n, seed)
        return cls(design, problem, design.mlir_for(problem), staged, packed, expected)

    def run(self, **options: Any) -> tuple[np.ndarray, Result]:
        """C and the rest of a run."""
        planned = self.design.plan.sequence(self.problem)
        buffers = arguments(planned, {0: self.a, 1: self.b})
        result = emulate(self.mlir, buffers, self.design.kernels, self.problem.sequence, **options)
        return fetched(planned, buffers)["C"], result
