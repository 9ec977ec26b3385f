"""`bdforge run`: problem after problem, with progress and a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from rich.console import Console

from bdforge.cli.options import with_schedule
from bdforge.cli.progress import emulating
from bdforge.devices.types import TYPES
from bdforge.emulator.timed import Span
from bdforge.emulator.timed.tables import tables
from bdforge.emulator.timed.timeline import write_timeline
from bdforge.operators.gemm import GemmSequence, Problem, SpecError
from bdforge.perf.timed import basis_options
from bdforge.perf.tune.kernel import Basis
from bdforge.runtime.design import BuiltDesign
from bdforge.runtime.gemm import GemmRun, Mismatch, first_mismatch, run_gemm
from bdforge.runtime.reference import expected, random_operands, random_scales
from bdforge.screen import new_table, put, screen
from bdforge.weights import check_shape, read

SUGGESTION = (
    "wrong results often come from memory that nobody wrote: run it again with --poison, which names the reader"
)


@dataclass(frozen=True, slots=True)
class TimedRuns:
    """That runs are to be timed: whose kernel cycles, and a file for a timeline."""

    basis: Basis
    timeline: Path | None = None


def run_problems(
    design: BuiltDesign,
    problems: Sequence[Problem],
    weights: Path | None,
    tensors: Sequence[str],
    seed: int,
    timed: TimedRuns | None = None,
    *,
    poison: bool = False,
) -> int:
    """Run and check each problem (the design's own by default); the exit code is 1 when an element is wrong.

    Data are random values of the design's types from `seed`; `weights` and `tensors` name a file to take B from. With
    `timed`, tables tell where each run's time goes; a timeline takes one problem. With `poison`, reading tile memory
    that nobody wrote is an error.
    """
    problems = tuple(problems) or design.problems
    if not problems:
        raise SpecError(f"{design.plan.spec.name} names no problems; give one with --shape MxKxN")
    if timed is not None and timed.timeline is not None and len(problems) > 1:
        raise SpecError(f"a timeline holds one problem, not {len(problems)}; choose one with --shape MxKxN")
    stored = None if weights is None else read(weights, tensors)
    console = screen()
    rows: list[tuple[Problem, GemmRun, Mismatch | None]] = []
    for i, problem in enumerate(problems):
        if stored is not None:
            check_shape(stored, problem.K, problem.N)
        with emulating(f"{i + 1}/{len(problems)}: {problem} {problem.name}", screen(stderr=True)):
            rows.append(_run_one(design, problem, None if stored is None else stored.weights, seed, timed, poison))
    _print(console, design, rows)
    _print_times(console, rows)
    if not any(wrong is not None for _, _, wrong in rows):
        return 0
    if not poison:
        console.print(SUGGESTION)
    return 1


def _run_one(
    design: BuiltDesign, problem: Problem, weights: np.ndarray | None, seed: int, timed: TimedRuns | None, poison: bool
) -> tuple[Problem, GemmRun, Mismatch | None]:
    a, random_weights = random_operands(design.plan, problem, seed)
    scales = random_scales(design.plan, problem, seed)
    weights = random_weights if weights is None else weights
    if timed is None:
        run = run_gemm(design, a, weights, scales=scales, poison=poison)
    else:
        spans: list[Span] | None = None if timed.timeline is None else []
        options = with_schedule(lambda: basis_options(design.plan, problem, timed.basis, spans))
        run = run_gemm(design, a, weights, options, scales, poison=poison)
        if timed.timeline is not None and spans is not None and run.timing is not None:
            write_timeline(timed.timeline, spans, run.timing.array_hz)
    right = expected(design.plan, a, weights, scales)
    return problem, run, first_mismatch(run.c, right.values, right.bound)


def padding(planned: GemmSequence) -> str:
    """What the array computes beyond a problem, and which operands the host stages."""
    problem = planned.problem
    sizes = zip("MKN", (problem.M, problem.K, problem.N), planned.processed, strict=True)
    grown = [f"{axis} {size}→{whole}" for axis, size, whole in sizes if size != whole]
    staged = [name for name in "ABC" if getattr(planned.staging, name.lower())]
    grown += [f"{' and '.join(staged)} staged"] if staged else []
    return ", ".join(grown) or "none"


def _print(console: Console, design: BuiltDesign, rows: Sequence[tuple[Problem, GemmRun, Mismatch | None]]) -> None:
    tile = design.plan.spec.tile
    title = f"{design.plan.spec.name} on the emulated {design.plan.device.name}, tile {tile.m}x{tile.k}x{tile.n}"
    table = new_table(title, "=shape MxKxN", "layer", "padding", ">MACs", "check against numpy", ">host s")
    for problem, run, wrong in rows:
        table.add_row(
            str(problem), problem.name, padding(run.sequence),
            f"{problem.macs / 1e9:.2f} G", _verdict(design, wrong), f"{run.seconds:.1f}",
        )  # fmt: skip
    put(console, table)
    for problem, run, _ in rows:
        for warning in run.warnings:
            console.print(f"warning: {problem}: {warning}", markup=False)


def _verdict(design: BuiltDesign, wrong: Mismatch | None) -> str:
    if wrong is not None:
        return f"WRONG: {wrong}"
    return "exact" if TYPES[design.plan.spec.c].integer else "within its bound"


def _print_times(console: Console, rows: Sequence[tuple[Problem, GemmRun, Mismatch | None]]) -> None:
    for problem, run, _ in rows:
        if run.timing is not None:
            put(console, *tables(run.timing, f"{problem} {problem.name}".strip()))
