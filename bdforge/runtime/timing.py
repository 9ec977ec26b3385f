"""What timed emulation needs to know of a design: constants of its product, cycles of its kernels."""

from contextlib import suppress

from bdforge.devices.timing import PEAK_MACS, timing_of
from bdforge.emulator import TimingOptions
from bdforge.emulator.timed import Span
from bdforge.operators.gemm import Plan, Problem
from bdforge.perf.bounds.types import type_named
from bdforge.perf.kernels.schedule import Schedule, ScheduleError, kernel_costs


def timing_options(
    plan: Plan,
    problem: Problem,
    *,
    schedule: Schedule = "overlapped",
    efficiency: float = 1.0,
    spans: list[Span] | None = None,
) -> TimingOptions:
    """How to time a problem of a design.

    `efficiency` is the share of `schedule` that matrix kernels reach (`bdforge.perf.kernels.schedule`), the ideal one
    with its stalls at memory banks; `spans`, if given, gets the timeline.
    """
    timing, tile, costs = timing_of(plan.device), plan.spec.tile, {}
    options = plan.finish.defines if plan.finish else ()
    if schedule == "overlapped":
        efficiency /= timing.core_bank_stall
    for symbol in plan.kernel_names:
        with suppress(ScheduleError):  # the report names kernels without a cost
            costs |= kernel_costs(
                [symbol], tile.m, tile.k, tile.n, generation=plan.device.generation,
                a_rows=tile.m // plan.parts, transposed=plan.transposed, which=schedule, efficiency=efficiency,
                options=options,
            )  # fmt: skip
    spec, generation = plan.spec, plan.device.generation.name
    peak = PEAK_MACS[generation].get((type_named(spec.a), type_named(spec.b)), 0)
    return TimingOptions(timing, costs, problem.macs, spans, peak)
