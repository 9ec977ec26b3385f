"""From a Plan to MLIR text. Templates place values; every number is computed before."""

from collections.abc import Sequence
from dataclasses import replace

from bdforge.design.render import render as render_design
from bdforge.mlir import Era, convert
from bdforge.operators.gemm.plan import Plan
from bdforge.operators.gemm.sequence import GemmSequence, mlir_sequence, sequence
from bdforge.operators.gemm.spec import Problem


def render(plan: Plan, problems: Sequence[Problem | GemmSequence], era: Era = Era.MARCH) -> str:
    """MLIR of the array configuration with one runtime sequence for each problem, or for each planned one.

    The templates write the dialect's form of March 2026; for another `era` that text is converted.
    """
    planned = (p if isinstance(p, GemmSequence) else sequence(plan, p.M, p.K, p.N) for p in _without_doubles(problems))
    sequences = tuple(map(mlir_sequence, planned))
    text = render_design(replace(plan.design, sequences=sequences))
    return text if era is Era.MARCH else convert(text, era, plan.spec.name)


def _without_doubles(problems: Sequence[Problem | GemmSequence]) -> list[Problem | GemmSequence]:
    """The first problem of each name: a sequence is called after its sizes."""
    named = {(p.problem if isinstance(p, GemmSequence) else p).sequence: p for p in reversed(problems)}
    return list(reversed(named.values()))
