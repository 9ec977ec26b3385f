"""Cycles of the kernels of one design, or of millions, from `kernels.schedule` or from published rates.

`BASES` are what a search may believe: *compiled*, a plain loop nest's schedule at the mean share that published
compiled kernels reach of it (`compiled_efficiency`; their traces hold stalls at memory banks); *ideal*, the ideal
kernel schedule with the stalls that hand-made kernels were measured with, or compiled where that is faster; *fitted*,
the form of `kernels.rates`, which needs no kernel of ours.
"""

from typing import Literal, get_args

import numpy as np

from bdforge.devices import Generation
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.published import compiled_efficiency
from bdforge.perf.kernels.rates import KernelCycles, kernel_cycles
from bdforge.perf.kernels.schedule import kernel_multiples, matrix_cycles

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
