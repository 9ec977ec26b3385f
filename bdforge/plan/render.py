"""From a Plan to MLIR text. Templates place values; every number is computed before."""

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jinja2

from bdforge.plan.gemm import Plan
from bdforge.plan.sequence import plan_sequence
from bdforge.plan.spec import Problem

TEMPLATES = Path(__file__).resolve().parents[2] / "templates"


def render(plan: Plan, problems: Sequence[Problem]) -> str:
    """MLIR of the array configuration with one runtime sequence for each problem."""
    sequences = [plan_sequence(plan, problem) for problem in dict.fromkeys(problems)]
    text = _environment().get_template("gemm.mlir.j2").render(plan=plan, sequences_of_problems=sequences)
    return text if text.endswith("\n") else text + "\n"


@cache
def _environment() -> jinja2.Environment:
    loader = jinja2.FileSystemLoader(TEMPLATES)
    return jinja2.Environment(loader=loader, undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
