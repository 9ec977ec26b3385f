"""Time of a composition: its steps, as each is modelled alone, the changes between them, and one dispatch for all."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bdforge.array.emulator.timed.controller_time import operation_ns
from bdforge.devices.timing import Timing
from bdforge.devices.txn_format.operations import BlockWrite, Operation
from bdforge.operators import ComposedPlan, Plan, Problem
from bdforge.operators.gemm import GemmPlan, GemmProblem
from bdforge.perf.bounds.case import case_of
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.bounds.operator_bound import cost_estimate
from bdforge.perf.tune.time_model import kernel_on


@dataclass(frozen=True, slots=True)
class StepTime:
    """A step, microseconds without a dispatch, what binds it, and those of the change before it; all modelled."""

    name: str
    design: str
    problem: Problem
    us: float
    bound: str
    change_us: float


def change_us(operations: Sequence[Operation], timing: Timing) -> float:
    """What the controller takes for a change of the configuration, modelled."""
    words = (len(op.words) if isinstance(op, BlockWrite) else 1 for op in operations)
    return sum(operation_ns(timing, type(op).__name__, n) for op, n in zip(operations, words, strict=True)) / 1e3


def step_times(
    plan: ComposedPlan, problem: Problem, changes: Sequence[Sequence[Operation]], timing: Timing
) -> Iterator[StepTime]:
    """The steps of a problem, in order, then what ends a run where that is a change; `changes` are by number.

    Products take the cycles of their assembled kernels.
    """
    numbers = [s.configuration for s in plan.program.do if s.kind == "configure"]
    costs = [0.0 if number is None else change_us(changes[number], timing) for number in numbers]
    steps = plan.steps(problem.sizes)
    for (name, one, own, _), cost in zip(steps, costs, strict=False):
        us, bound = _alone(one, own, timing)
        yield StepTime(name, one.spec.name, own, us, bound, cost)
    if len(costs) > len(steps):
        yield StepTime("back to the first", "", problem, 0.0, "", costs[-1])


def _alone(plan: Plan, problem: Problem, timing: Timing) -> tuple[float, str]:
    """Microseconds of a step without its dispatch, and what binds it then."""
    if isinstance(plan, GemmPlan):
        case = case_of(plan.spec, plan.device, GemmProblem.of(problem.sizes))
        found = estimate(case, timing=timing, kernel=kernel_on(plan, case, "assembled"))
        us, times = found.time_us, found.parallel
    else:
        known = cost_estimate(plan, problem, timing)
        us, times = known.time_us, known.parallel
    return float(us) - timing.dispatch_ns / 1e3, max(times, key=lambda name: float(times[name]))
