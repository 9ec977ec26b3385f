"""Timed emulation of designs: what a kernel's call costs there, and runs without data.

Values hardly ever change time, so a design that nobody built is timed with kernels that do nothing but take their
cycles, or on zeros with those that are assembled. Where cores ask kernels what to do next, a plan tells what they say.
"""

from contextlib import suppress
from dataclasses import replace
from math import ceil

import numpy as np

from bdforge.array.emulator import Result, TimingOptions, TimingReport, emulate
from bdforge.array.emulator.timed import TimelineSpan
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.devices.timing import timing_of
from bdforge.devices.types import peak_macs
from bdforge.operators import Plan, Problem, render
from bdforge.operators.gemm import GemmPlan, GemmProblem
from bdforge.operators.gemm.core_tiles import c_parts
from bdforge.perf.assembled.counted_core import core_elfs
from bdforge.perf.bounds.case import case_of
from bdforge.perf.kernels.kernel_cost import Schedule, ScheduleError, kernel_cost
from bdforge.perf.kernels.rates import compiled_share
from bdforge.perf.tune.time_model import Basis, counted, kernel_of

_LOCK_CYCLES = 4  # of the lock port, for each operation


def timing_options(
    plan: Plan, problem: Problem, basis: Basis, spans: list[TimelineSpan] | None = None
) -> TimingOptions:
    """How to time a problem of a design: its product's constants and the cycles of its kernels.

    A plan tells the cycles of kernels that are not modelled here, as those of a GEMM are: by `basis`, ScheduleError
    where that has none. `spans`, if given, gets the timeline.
    """
    cycles, peak = dict(plan.kernels.cycles), 0
    timing = timing_of(plan.device)
    if isinstance(plan, GemmPlan):
        cycles |= _gemm_cycles(plan, problem, basis)
        peak = peak_macs(plan.device.generation.name, plan.spec.a, plan.spec.b)
        if basis == "assembled":  # where kernels are the host's, with the locks and calls of machine code
            timing = replace(timing, core_lock_cycles=_LOCK_CYCLES, kernel_call_cycles=1 + DELAY_SLOTS)
    return TimingOptions(timing, cycles, plan.cost(problem).operations, spans, peak)


def _gemm_cycles(plan: GemmPlan, problem: Problem, basis: Basis) -> dict[str, float]:
    spec = plan.spec
    if basis == "compiled":
        share = compiled_share((spec.a, spec.b, spec.accumulator), plan.kernel.generation)
        return scheduled_cycles(plan, "sequential", share)
    if basis == "assembled":
        return _counted_cycles(plan)
    case = case_of(spec, plan.device, GemmProblem.of(problem.sizes))
    return scheduled_cycles(plan) | {plan.kernel.multiply: kernel_of(case, basis).cycles / spec.buffers.rho}


def _counted_cycles(plan: GemmPlan) -> dict[str, float]:
    """Cycles of a call of each kernel, with stalls at banks at the plan's addresses; ScheduleError as `kernel_on`."""
    costs, rho, parts = counted(plan), plan.spec.buffers.rho, c_parts(plan.spec)
    ends = {symbol: costs.ends.of(symbol) / parts for symbol in plan.kernels.symbols if symbol != costs.multiply}
    return ends | {costs.multiply: costs.step.of(costs.multiply) / rho}


def scheduled_cycles(plan: GemmPlan, schedule: Schedule = "ideal", efficiency: float = 1.0) -> dict[str, float]:
    """Cycles of a GEMM's kernels where matrix kernels reach a share of a schedule (`perf.kernels.kernel_cost`).

    None takes less than its busiest slot. The ideal one has its stalls at memory banks. A kernel without a schedule is
    left out.
    """
    tile, costs = plan.spec.tile, {}
    options = plan.finish.defines if plan.finish else ()
    if schedule == "ideal":  # shares of compiled kernels were measured with their stalls
        efficiency /= timing_of(plan.device).core_bank_stall
    for symbol in plan.kernels.symbols:
        rows = tile.m if symbol == plan.kernel.multiply else tile.m // c_parts(plan.spec)
        with suppress(ScheduleError):  # the report names kernels without a cost
            cost = kernel_cost(
                symbol, rows, tile.k, tile.n, generation=plan.device.generation,
                a_rows=tile.m // plan.spec.buffers.rho, transposed=plan.transposed, options=options,
            )  # fmt: skip
            reached = ceil(cost.cycles_of(schedule) / (efficiency if cost.macs else 1))
            costs[symbol] = max(reached, cost.slot_cycles) if schedule == "sequential" else reached
    return costs


def timed(plan: Plan, problem: Problem, basis: Basis) -> TimingReport:
    """Time of a problem on the emulated array with kernels as a basis has them; errors as `recorded`."""
    result, _ = recorded(plan, problem, basis)
    assert result.timing is not None
    return result.timing


def recorded(plan: Plan, problem: Problem, basis: Basis) -> tuple[Result, TimingOptions]:
    """A run of a problem on the emulated array, and how it was timed.

    SpecError, WalkError, EmulationError as a run's.

    Assembled kernels run, in cores that run machine code altogether; others do nothing but take their cycles.
    """
    planned, text = plan.sequence(problem), render(plan, [])
    silent = dict.fromkeys(plan.kernels.symbols, lambda *_: None) | plan.control(planned)
    options, words = timing_options(plan, problem, basis), planned.words()
    zeros = [np.zeros(size, np.uint8) for size in planned.argument_bytes]
    elfs = core_elfs(plan, text) if basis == "assembled" and isinstance(plan, GemmPlan) else None
    result = emulate(text, zeros, silent, instructions=words, timing=options, elfs=elfs)
    return result, options
