"""Candidates of a search as cases of the model, one or all that share B's layout as arrays, and their kernels' cycles.

`BASES` are what a search may believe: *compiled*, a plain loop nest's schedule at the mean share that published
compiled kernels reach of it (`compiled_efficiency`; their traces hold stalls at memory banks); *ideal*, the ideal
kernel schedule with the stalls that hand-made kernels were measured with, or compiled where that is faster; *fitted*,
the form of `kernels.rates`, which needs no kernel of ours.
"""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, Literal, get_args

import numpy as np

from bdforge.devices import Generation
from bdforge.operators.gemm import Problem
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.published import compiled_efficiency
from bdforge.perf.kernels.rates import KernelCycles, kernel_cycles
from bdforge.perf.kernels.schedule import kernel_multiples, matrix_cycles
from bdforge.perf.tune.resident import kept_shares
from bdforge.perf.tune.space import B_LAYOUTS, Candidates, SearchSpace

Basis = Literal["compiled", "ideal", "fitted"]
BASES: tuple[Basis, ...] = ("compiled", "ideal", "fitted")


def basis_named(text: str) -> Basis:
    """The basis called `text`; PerfError lists them."""
    names: dict[str, Basis] = dict(zip(get_args(Basis), BASES, strict=True))
    if text not in names:
        raise PerfError(f"kernel {text!r} is not one of {', '.join(BASES)}")
    return names[text]


def share_reached(types: tuple[str, str, str], generation: Generation) -> float:
    """Mean share of the sequential schedule that published compiled kernels of such types reach, at most 1."""
    return min(compiled_efficiency(*types, generation).mean, 1.0)


def check_basis(types: tuple[str, str, str], generation: Generation, basis: Basis) -> None:
    """ScheduleError where no loop of ours, or no published rate, is known for types of A, B and the accumulator."""
    if basis != "fitted":
        kernel_multiples(types, generation)
        share_reached(types, generation)


def kernel_of(case: GemmCase, basis: Basis) -> KernelCycles:
    """Cycles of one step of a case (or of many, by arrays), all its rho calls; errors as `matrix_cycles`."""
    generation, types = case.array.generation, (case.a, case.b, case.accumulator or case.c)
    if basis == "fitted":
        return kernel_cycles(generation.name, types, case.m, case.k, case.n)
    turned = {"a": case.a_layout, "b": case.b_layout, "c": case.c_layout}
    calls = matrix_cycles(
        types, case.m // case.rho, case.k, case.n, generation=generation,
        transposed=[name for name, layout in turned.items() if layout == "column"],
    )  # fmt: skip
    share = share_reached(types, generation)
    compiled = np.maximum(calls.slots, np.ceil(calls.sequential / share))
    if basis == "compiled":
        return KernelCycles(case.rho * compiled, f"compiled: {share:.2f} of the sequential schedule")
    stalled = np.minimum(np.ceil(calls.ideal * case.timing.core_bank_stall), compiled)
    return KernelCycles(case.rho * stalled, "ideal kernel schedule with bank stalls")


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
    if space.residency == "b":
        here = SimpleNamespace(**sizes, c_memtile_buffers=space.c_memtile_buffers)
        sizes = sizes | {
            "b_kept": kept_shares(space, here, problem.K)[()],
            "c_in_parts": space.c_in_parts(here.rho, here.k, here.k_mt),
        }
    return GemmCase(
        device=space.device.name, a=space.a, b=space.b, c=space.c,
        rows=space.rows, columns=space.columns, M=problem.M, K=problem.K, N=problem.N,
        a_layout=space.a_layout, b_layout=B_LAYOUTS[b_layout], c_layout=space.c_layout,
        accumulator=space.accumulator, **sizes,
    )  # fmt: skip
