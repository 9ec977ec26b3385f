"""Timed runs of designs that nobody built: kernels that do nothing, since values never change time."""

import numpy as np

from bdforge.emulator import TimingOptions, emulate
from bdforge.emulator.timed import TimingReport
from bdforge.operators.gemm import GemmSequence, Plan, Problem, render, sequence
from bdforge.operators.gemm.types import TYPES


def timed_trial(plan: Plan, problem: Problem, options: TimingOptions) -> TimingReport:
    """Time of `problem` on `plan`'s design, on the emulated array; SpecError, WalkError, EmulationError as a run's."""
    planned = sequence(plan, problem.M, problem.K, problem.N)
    silent = dict.fromkeys(plan.kernel_names, _nothing)
    words = planned.words()
    result = emulate(render(plan, []), _zeros(planned), silent, instructions=words, timing=options)
    assert result.timing is not None
    return result.timing


def _nothing(*_: object) -> None:
    pass


def _zeros(planned: GemmSequence) -> list[np.ndarray]:
    """Arguments of a sequence, as bytes."""
    spec = planned.plan.spec
    a, c = (
        n * TYPES[name].memory_bits // 8 for n, name in ((planned.a_elements, spec.a), (planned.c_elements, spec.c))
    )
    fed = planned.fed_bytes if spec.epilogue.fed else ()
    return [np.zeros(size, np.uint8) for size in (a, planned.b_bytes, c, *fed)]
