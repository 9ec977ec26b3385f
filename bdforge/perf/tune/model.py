"""Candidates of a search as cases of the model: one of them, or all that share B's layout as arrays."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from bdforge.operators.gemm import Problem
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.tune.kernel import Basis, kernel_of
from bdforge.perf.tune.space import B_LAYOUTS, Candidates, SearchSpace


def case_at(space: SearchSpace, candidates: Candidates, index: int, problem: Problem) -> GemmCase:
    """One candidate on one problem."""
    m, k, n, k_mt, c_buffers, _, rho, a_shims, b_layout = candidates.row(index)
    sizes = {"m": m, "k": k, "n": n, "k_mt": k_mt, "c_buffers": c_buffers, "rho": rho, "a_shims": a_shims}
    return _case(space, sizes, b_layout, problem)


def modelled_us(
    space: SearchSpace, basis: Basis, candidates: Candidates, problems: Sequence[tuple[Problem, int]]
) -> np.ndarray:
    """Microseconds that each candidate needs for all problems, each as often as its count says (modelled)."""
    total = np.zeros(len(candidates))
    for b_layout in np.unique(candidates.b_layout):
        chosen = candidates.b_layout == b_layout
        c = candidates[chosen]
        cases = [(cases_of(space, c, int(b_layout), problem), count) for problem, count in problems]
        kernel = kernel_of(cases[0][0], basis)  # the same for all problems
        total[chosen] = sum(count * estimate(case, kernel=kernel).time_us for case, count in cases)
    return total


def cases_of(space: SearchSpace, candidates: Candidates, b_layout: int, problem: Problem) -> GemmCase:
    """Candidates that share B's layout on one problem, as a case of arrays."""
    sizes = {name: getattr(candidates, name) for name in ("m", "k", "n", "k_mt", "c_buffers", "rho", "a_shims")}
    return _case(space, sizes, b_layout, problem)


def _case(space: SearchSpace, sizes: dict[str, Any], b_layout: int, problem: Problem) -> GemmCase:
    return GemmCase(
        device=space.device.name, a=space.a, b=space.b, c=space.c,
        rows=space.rows, columns=space.columns, M=problem.M, K=problem.K, N=problem.N,
        a_layout=space.a_layout, b_layout=B_LAYOUTS[b_layout], c_layout=space.c_layout,
        accumulator=space.accumulator, **sizes,
    )  # fmt: skip
