"""GEMM problems with random operands, run on the emulated array with options of the emulator."""

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from bdforge.emulator import Result, emulate
from bdforge.operators.gemm import Problem, sequence
from bdforge.runtime import BuiltDesign, reference
from bdforge.runtime.operands import b_operand, c_buffer, c_matrix, staged_a


@dataclass(frozen=True)
class GemmProblem:
    """One problem on one design: its text, operands and the C that numpy makes of them."""

    design: BuiltDesign
    problem: Problem
    mlir: str
    a: np.ndarray
    b: np.ndarray
    expected: np.ndarray

    @classmethod
    def random(cls, design: BuiltDesign, m: int, k: int, n: int, seed: int = 1) -> "GemmProblem":
        """A problem of M, K, N with random int8 activations and ternary weights."""
        rng = np.random.default_rng(seed)
        a, weights = rng.integers(-128, 128, (m, k), np.int8), rng.integers(-1, 2, (k, n), np.int8)
        problem = Problem(m, k, n)
        staged = staged_a(sequence(design.plan, m, k, n), a)
        expected = reference(a, weights)
        return cls(design, problem, design.mlir_for(problem), staged, b_operand(design.plan, weights), expected)

    def run(self, **options: Any) -> tuple[np.ndarray, Result]:
        """C and the rest of a run."""
        problem = self.problem
        planned = sequence(self.design.plan, problem.M, problem.K, problem.N)
        c = c_buffer(planned)
        result = emulate(self.mlir, [self.a, self.b, c], self.design.kernels, problem.sequence, **options)
        return c_matrix(planned, c), result

    def mutated(self, pattern: str, replacement: str, count: int = 1) -> "GemmProblem":
        """The same with `count` matches of a pattern replaced in its text."""
        text, found = re.subn(pattern, replacement, self.mlir, count=count)
        assert found == count
        return GemmProblem(self.design, self.problem, text, self.a, self.b, self.expected)
