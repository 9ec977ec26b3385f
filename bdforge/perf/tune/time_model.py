"""Candidates of a search as cases of the model, one or all that share B's layout as arrays, and their kernels' cycles.

`BASES` are what a search may believe: *compiled*, a plain loop nest's schedule at the mean share that published
compiled kernels reach of it (`compiled_efficiency`; their traces hold stalls at memory banks); *ideal*, the ideal
kernel schedule with the stalls that hand-made kernels were measured with, or compiled where that is faster; *fitted*,
the form of `kernels.rates`, which needs no kernel of ours; *assembled*, what cores with this project's assembled
kernels take: of one design as counted, of many as the kernels' generator expects (`perf.assembled`).
"""

from collections.abc import Sequence
from typing import Literal, get_args

import numpy as np

from bdforge.core.codegen.errors import CodegenError
from bdforge.devices import Generation
from bdforge.operators.gemm import GemmPlan, GemmProblem
from bdforge.perf.assembled.counted_core import CoreCosts, core_costs
from bdforge.perf.assembled.counted_tiles import Kind, core_form
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.kernel_cost import ScheduleError, kernel_cost, matrix_kernel
from bdforge.perf.kernels.rates import KernelCycles, compiled_share, kernel_cycles
from bdforge.perf.tune.legal import kept_shares
from bdforge.perf.tune.space import B_LAYOUTS, Candidate, SearchSpace

Basis = Literal["compiled", "ideal", "fitted", "assembled"]
BASES: tuple[Basis, ...] = get_args(Basis)


def basis_named(text: str) -> Basis:
    """The basis called `text`; PerfError lists them."""
    for basis in BASES:
        if basis == text:
            return basis
    raise PerfError(f"kernel {text!r} is not one of {', '.join(BASES)}")


def check_basis(types: tuple[str, str, str], generation: Generation, basis: Basis) -> None:
    """ScheduleError where no kernel of ours is known for types of A, B and the accumulator.

    Which kernels are assembled only asking for one tells.
    """
    if basis in ("compiled", "ideal"):
        matrix_kernel(types, generation)


def kernel_of(case: GemmCase, basis: Basis) -> KernelCycles:
    """Cycles of one step of a case (or of many, by arrays), all its rho calls; errors as `kernel_cost`."""
    generation, types = case.array.generation, (case.a, case.b, case.accumulator or case.c)
    if basis == "fitted":
        return kernel_cycles(generation.name, types, case.m, case.k, case.n)
    if basis == "assembled":
        return _assembled(case)
    turned = {"a": case.a_layout, "b": case.b_layout, "c": case.c_layout}
    call = kernel_cost(
        types, case.m // case.rho, case.k, case.n, generation=generation,
        transposed=[name for name, layout in turned.items() if layout == "column"],
    )  # fmt: skip
    share = compiled_share(types, generation)
    compiled = np.maximum(call.slot_cycles, np.ceil(call.sequential_cycles / share))
    if basis == "compiled":
        return KernelCycles(case.rho * compiled, f"modelled: compiled, {share:.2f} of the sequential schedule")
    stalled = np.minimum(np.ceil(call.cycles * case.timing.core_bank_stall), compiled)
    return KernelCycles(case.rho * stalled, "modelled: ideal kernel schedule with bank stalls")


def _assembled(case: GemmCase) -> KernelCycles:
    parts = bool(np.all(case.c_in_parts))
    types, layouts = (case.a, case.b, case.c, case.accumulator or case.c), (case.a_layout, case.b_layout, case.c_layout)
    try:
        form = core_form(Kind(case.device, types, layouts, parts))
    except CodegenError as error:
        raise ScheduleError(str(error)) from None
    return KernelCycles(
        form.step(case.rho, case.m, case.k, case.n), "modelled: assembled as expected, but for stalls at banks",
        form.around_step(case.rho), form.ends_of(case.rho, case.m, case.n),
    )  # fmt: skip


def counted(plan: GemmPlan) -> CoreCosts:
    """Counted cycles of a plan's cores; ScheduleError where a kernel is not assembled."""
    try:
        return core_costs(plan)
    except CodegenError as error:
        raise ScheduleError(str(error)) from None


def kernel_on(plan: GemmPlan, case: GemmCase, basis: Basis) -> KernelCycles:
    """Cycles of one step of a case of a plan: as `kernel_of`, of assembled kernels exactly and with stalls at banks."""
    if basis != "assembled":
        return kernel_of(case, basis)
    costs = counted(plan)
    multiply = costs.step.of(costs.multiply)
    told = "counted: assembled, with stalls at own banks"
    return KernelCycles(multiply, told, costs.step.total - multiply, costs.ends.total)


def modelled_us(
    space: SearchSpace, basis: Basis, candidates: Candidate, problems: Sequence[tuple[GemmProblem, int]]
) -> np.ndarray:
    """Microseconds that each candidate needs for all problems, each as often as its count says (modelled)."""
    total = np.zeros(candidates.length)
    for b_layout in np.unique(candidates.b_layout):
        chosen = candidates.b_layout == b_layout
        c = candidates.at(chosen)._replace(b_layout=b_layout)
        cases = [(case_at(space, c, problem), count) for problem, count in problems]
        kernel = kernel_of(cases[0][0], basis)  # the same for all problems
        total[chosen] = sum(count * estimate(case, kernel=kernel).time_us for case, count in cases)
    return total


def case_at(space: SearchSpace, candidate: Candidate, problem: GemmProblem) -> GemmCase:
    """A candidate on a problem; many that share B's layout, which is one number then, as a case of arrays."""
    sizes = candidate._asdict()
    b_layout = B_LAYOUTS[sizes.pop("b_layout")]
    del sizes["c_memtile_buffers"]
    if space.residency == "b":
        pooled = candidate._replace(c_memtile_buffers=space.c_memtile_buffers)
        sizes["b_kept"] = kept_shares(space, pooled, problem.K)[()]
        sizes["c_in_parts"] = space.c_in_parts(candidate.rho, candidate.k, candidate.k_mt)
    return GemmCase(
        device=space.device.name, a=space.a, b=space.b, c=space.c,
        rows=space.rows, columns=space.columns, M=problem.M, K=problem.K, N=problem.N,
        a_layout=space.a_layout, b_layout=b_layout, c_layout=space.c_layout, accumulator=space.accumulator, **sizes,
    )  # fmt: skip
