"""Timed emulation of GEMM designs: what a kernel's call costs there, and runs without data.

Values never change time, so a design that nobody built is timed with kernels that do nothing but take their cycles.
"""

from contextlib import suppress
from dataclasses import replace

import numpy as np

from bdforge.devices.timing import timing_of
from bdforge.devices.types import PEAK_MACS
from bdforge.emulator import TimingOptions, TimingReport, emulate
from bdforge.emulator.timed import Span
from bdforge.operators import Plan as AnyPlan
from bdforge.operators import Problem as AnyProblem
from bdforge.operators import render
from bdforge.operators.gemm import GemmSequence, Plan, Problem, sequence
from bdforge.operators.gemm.core_tiles import c_parts
from bdforge.perf.bounds.case import case_of
from bdforge.perf.kernels.schedule import Schedule, ScheduleError, kernel_costs
from bdforge.perf.tune.model import Basis, kernel_of, share_reached


def timing_options(
    plan: Plan, problem: Problem, *, schedule: Schedule = "overlapped", efficiency: float = 1.0,
    spans: list[Span] | None = None,
) -> TimingOptions:  # fmt: skip
    """How to time a problem of a design: its product's constants and the cycles of its kernels.

    `efficiency` is the share of `schedule` that matrix kernels reach (`bdforge.perf.kernels.schedule`), the ideal one
    with its stalls at memory banks; `spans`, if given, gets the timeline.
    """
    timing, tile, costs = timing_of(plan.device), plan.spec.tile, {}
    options = plan.finish.defines if plan.finish else ()
    if schedule == "overlapped":
        efficiency /= timing.core_bank_stall
    for symbol in plan.kernels.symbols:
        rows = tile.m if symbol == plan.kernel.multiply else tile.m // c_parts(plan.spec)
        with suppress(ScheduleError):  # the report names kernels without a cost
            costs |= kernel_costs(
                [symbol], rows, tile.k, tile.n, generation=plan.device.generation,
                a_rows=tile.m // plan.spec.buffers.rho, transposed=plan.transposed, which=schedule,
                efficiency=efficiency, options=options,
            )  # fmt: skip
    spec, generation = plan.spec, plan.device.generation.name
    peak = PEAK_MACS[generation].get((spec.a, spec.b), 0)
    return TimingOptions(timing, costs, problem.macs, spans, peak)


def timed(plan: Plan, problem: Problem, basis: Basis) -> TimingReport:
    """Time of a problem on the emulated array with kernels as a basis has them; SpecError, WalkError, EmulationError
    as a run's."""
    planned = sequence(plan, problem.M, problem.K, problem.N)
    silent = dict.fromkeys(plan.kernels.symbols, _nothing)
    options, words = basis_options(plan, problem, basis), planned.words()
    result = emulate(render(plan, []), _zeros(planned), silent, instructions=words, timing=options)
    assert result.timing is not None
    return result.timing


def basis_options(plan: Plan, problem: Problem, basis: Basis, spans: list[Span] | None = None) -> TimingOptions:
    """`timing_options` with the matrix kernel's cycles as a basis has them; ScheduleError where it has none."""
    spec = plan.spec
    if basis == "compiled":
        share = share_reached((spec.a, spec.b, spec.accumulator), plan.kernel.generation)
        return timing_options(plan, problem, schedule="sequential", efficiency=share, spans=spans)
    options = timing_options(plan, problem, spans=spans)
    cycles = kernel_of(case_of(spec, plan.device, problem), basis).cycles / plan.spec.buffers.rho
    return replace(options, kernels={**options.kernels, plan.kernel.multiply: cycles})


def run_options(plan: AnyPlan, problem: AnyProblem, basis: Basis, spans: list[Span] | None = None) -> TimingOptions:
    """How to time a run of any operator: of others than GEMM with what their plan says of kernels."""
    if isinstance(plan, Plan):
        return basis_options(plan, Problem.of(problem.sizes), basis, spans)
    return TimingOptions(timing_of(plan.device), plan.kernels.cycles, plan.cost(problem).operations, spans)


def _nothing(*_: object) -> None:
    pass


def _zeros(planned: GemmSequence) -> list[np.ndarray]:
    """Arguments of a sequence, as bytes."""
    return [np.zeros(size, np.uint8) for size in planned.argument_bytes]
