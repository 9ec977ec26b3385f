"""Where the time of a composition's run goes, step by step: what a timed emulation says of each."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.table import Table

from bdforge.array.emulator.timed import TimelineSpan, TimingReport
from bdforge.common.screen import new_table
from bdforge.design.sequences import PlannedSequence
from bdforge.operators import ComposedPlan, Plan, Problem

BACK = "back to the first"


@dataclass(frozen=True, slots=True)
class EmulatedStep:
    """A step from the first operation that changes the array for it to the last token: three times, in cycles.

    What is written ahead of a step is part of the one before.
    """

    name: str
    design: str
    changes: float
    starts: float
    ends: float


def emulated_steps(
    plan: Plan, problem: Problem, sequence: PlannedSequence, report: TimingReport
) -> tuple[EmulatedStep, ...]:
    """The steps of a run, in order, then the change that ends it, if one does; none of what is no composition."""
    if not isinstance(plan, ComposedPlan):
        return ()
    names = [(name, one.spec.name) for name, one, _, _ in plan.steps(problem.sizes)]
    times = [*report.operations, report.cycles]
    parts = [(times[change], times[start]) for change, start in sequence.step_starts()]
    ends = [*(change for change, _ in parts[1:]), report.cycles]
    return tuple(
        EmulatedStep(*known, *part, end)
        for known, part, end in zip([*names, (BACK, "")], parts, ends, strict=False)
        if known[1] or end > part[0]
    )


def step_table(steps: Sequence[EmulatedStep], report: TimingReport) -> Table:
    """Microseconds of each step, and of the change of the array's configuration before it."""
    table = new_table("steps (emulated)", "step", "design", ">change, us", ">us", ">share")
    us = 1e6 / report.array_hz
    for step in steps:
        change, own = (step.starts - step.changes) * us, (step.ends - step.starts) * us
        share = (step.ends - step.changes) / report.cycles
        table.add_row(step.name, step.design, f"{change:.1f}", f"{own:.1f}", f"{share:.1%}")
    return table


def step_spans(steps: Sequence[EmulatedStep]) -> list[TimelineSpan]:
    """A row of the timeline for steps and changes."""
    found = []
    for step in steps:
        change = f"change to {step.design}" if step.design else step.name
        found.append(TimelineSpan("controller: steps", change, step.changes, step.starts, True))
        found.append(TimelineSpan("controller: steps", step.name, step.starts, step.ends, False))
    return [span for span in found if span.end > span.start]
