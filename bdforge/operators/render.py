"""From a Plan to MLIR text. Templates place values; every number is computed before."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from bdforge.design.events import placed_sequence
from bdforge.design.render import render as render_design
from bdforge.mlir import Era, convert
from bdforge.operators.operator import Plan
from bdforge.operators.specs import Problem
from bdforge.sequences import PlannedSequence


def render(plan: Plan, problems: Sequence[Problem], era: Era = Era.MARCH) -> str:
    """MLIR of the array configuration with one runtime sequence for each problem; SpecError, WalkError as of a plan."""
    return render_sequences(plan, {problem.sequence: plan.sequence(problem) for problem in problems}, era)


def render_sequences(plan: Plan, sequences: Mapping[str, PlannedSequence], era: Era = Era.MARCH) -> str:
    """MLIR of the array configuration with runtime sequences by name.

    The templates write the dialect's form of March 2026; for another `era` that text is converted.
    """
    placed = (
        placed_sequence(
            name, plan.note(planned), plan.design, planned.program, planned.elements, planned.events, planned.wide
        )
        for name, planned in sequences.items()
    )
    text = render_design(replace(plan.design, sequences=tuple(placed)))
    return text if era is Era.MARCH else convert(text, era, plan.spec.name)
