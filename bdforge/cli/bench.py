"""`bdforge run`: problem after problem, with progress and a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from bdforge.array.emulator.timed import TimelineSpan
from bdforge.array.emulator.timed.time_tables import tables, write_timeline
from bdforge.cli.options import with_schedule
from bdforge.cli.progress import emulating
from bdforge.common.screen import new_table, put, screen
from bdforge.design.sequences.buffers import staying
from bdforge.models.weights import TernaryMatrix, check_shape, read
from bdforge.operators import Plan, Problem, SpecError
from bdforge.perf.timed import timing_options
from bdforge.perf.tune.time_model import Basis
from bdforge.runtime import BuiltDesign, ElementMismatch, Run, first_mismatch, run

_MANY = 10_000_000  # operations
SUGGESTION = (
    "wrong results often come from memory that nobody wrote: run it again with --poison, which names the reader"
)


@dataclass(frozen=True, slots=True)
class TimedRuns:
    """That runs are to be timed: whose kernel cycles, and a file for a timeline."""

    basis: Basis
    timeline: Path | None = None


@dataclass(frozen=True, slots=True)
class _Checked:
    """A run, its first wrong element if there is one, and whether it had to be exact."""

    problem: Problem
    run: Run
    wrong: ElementMismatch | None
    exact: bool

    @property
    def verdict(self) -> str:
        if self.wrong is not None:
            return f"WRONG: {self.wrong}"
        return "exact" if self.exact else "within its bound"


def run_problems(
    design: BuiltDesign,
    plan: Plan,
    problems: Sequence[Problem],
    weights: Path | None,
    tensors: Sequence[str],
    seed: int,
    timed: TimedRuns | None = None,
    *,
    poison: bool = False,
) -> int:
    """Run and check each problem (the plan's own by default); the exit code is 1 when an element is wrong.

    Data are random values of the design's types from `seed`; `weights` and `tensors` name a file for the operand that
    stays from run to run. With `timed`, tables tell where each run's time goes; a timeline takes one problem. With
    `poison`, reading tile memory that nobody wrote is an error.
    """
    problems = tuple(problems) or tuple(plan.problems)
    if not problems:
        raise SpecError(f"{design.name} names no problems; give one with --shape")
    if timed is not None and timed.timeline is not None and len(problems) > 1:
        raise SpecError(f"a timeline holds one problem, not {len(problems)}; choose one with --shape")
    stored = None if weights is None else read(weights, tensors)
    console = screen()
    rows: list[_Checked] = []
    for i, problem in enumerate(problems):
        inputs = plan.random(problem, seed)
        if stored is not None:
            inputs |= _stored(design, problem, stored)
        with emulating(f"{i + 1}/{len(problems)}: {problem} {problem.name}", screen(stderr=True)):
            rows.append(_run_one(design, plan, problem, inputs, timed, poison))
    _print(console, plan, rows, design.cores_note)
    _print_times(console, rows)
    if not any(row.wrong is not None for row in rows):
        return 0
    if not poison:
        console.print(SUGGESTION)
    return 1


def _stored(design: BuiltDesign, problem: Problem, stored: TernaryMatrix) -> dict[str, np.ndarray]:
    """A file's weights as the operand that stays."""
    operands = [operand for operand in staying(design.program) if len(operand.axes) == 2]
    if not operands:
        raise SpecError(f"{design.name} has no matrix that stays from run to run; run it without --weights")
    depth, columns = (design.program.values[axis.size] for axis in operands[0].axes)
    check_shape(stored, problem.sizes[str(depth)], problem.sizes[str(columns)])
    return {operands[0].name: stored.weights}


def _run_one(
    design: BuiltDesign, plan: Plan, problem: Problem, inputs: dict[str, np.ndarray], timed: TimedRuns | None,
    poison: bool,
) -> _Checked:  # fmt: skip
    spans: list[TimelineSpan] | None = None if timed is None or timed.timeline is None else []
    options = None if timed is None else with_schedule(lambda: timing_options(plan, problem, timed.basis, spans))
    found = run(design, inputs, options, poison=poison)
    if timed is not None and timed.timeline is not None and spans is not None and found.timing is not None:
        write_timeline(timed.timeline, spans, found.timing.array_hz)
    right = plan.reference(inputs)
    wrong = (first_mismatch(found.outputs[name], want.values, want.bound, name) for name, want in right.items())
    exact = all(want.bound is None for want in right.values())
    return _Checked(problem, found, next((mismatch for mismatch in wrong if mismatch), None), exact)


def _print(console: Console, plan: Plan, rows: Sequence[_Checked], cores: str) -> None:
    title = f"{plan.summary}, emulated{cores and f', {cores}'}"
    table = new_table(title, "=shape", "name", "padding", ">operations", "check against numpy", ">host s")
    for row in rows:
        table.add_row(
            str(row.problem), row.problem.name, plan.padding(row.run.sequence),
            _count(plan.cost(row.problem).operations), row.verdict, f"{row.run.seconds:.1f}",
        )  # fmt: skip
    put(console, table)
    for row in rows:
        for warning in row.run.warnings:
            console.print(f"warning: {row.problem}: {warning}", markup=False)


def _count(operations: int) -> str:
    """In units of 10^9 where there are many."""
    return f"{operations / 1e9:.2f} G" if operations >= _MANY else f"{operations:,}"


def _print_times(console: Console, rows: Sequence[_Checked]) -> None:
    for row in rows:
        if row.run.timing is not None:
            put(console, *tables(row.run.timing, f"{row.problem} {row.problem.name}".strip()))
