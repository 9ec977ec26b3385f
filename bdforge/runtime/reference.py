"""A GEMM's reference and random inputs, by matrices."""

import numpy as np

from bdforge.operators.gemm import Plan, Problem
from bdforge.operators.gemm.reference import product
from bdforge.operators.operator import Expected
from bdforge.runtime.epilogues import NO_SCALES, Scales

__all__ = ["Expected", "expected", "random_operands", "random_scales", "reference"]
reference = product


def random_operands(plan: Plan, problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A and B."""
    inputs = plan.random(problem, seed)
    return inputs["A"], inputs["B"]


def random_scales(plan: Plan, problem: Problem, seed: int) -> Scales:
    """What feeds the epilogue."""
    inputs = plan.random(problem, seed)
    return Scales(inputs.get("row_scales"), inputs.get("column_scales"), inputs.get("bias"))


def expected(plan: Plan, a: np.ndarray, b: np.ndarray, scales: Scales = NO_SCALES) -> Expected:
    """C of A (M, K) and B (K, N)."""
    given = {"row_scales": scales.rows, "column_scales": scales.columns, "bias": scales.bias}
    inputs = {"A": a, "B": b} | {name: array for name, array in given.items() if array is not None}
    return plan.reference(inputs)["C"]
