"""`bdforge run`: problem after problem, with progress and a table."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from bdforge.plan import GemmSequence, Problem, SpecError
from bdforge.runtime.design import BuiltDesign
from bdforge.runtime.gemm import GemmRun, Mismatch, first_mismatch, reference, run_gemm
from bdforge.weights import check_shape, read

TABLE_WIDTH = 132


def run_problems(
    design: BuiltDesign, problems: Sequence[Problem], weights: Path | None, tensors: Sequence[str], seed: int
) -> int:
    """Run and check each problem (the design's own by default); the exit code is 1 when an element is wrong.

    Data are random int8 and ternary values from `seed`; `weights` and `tensors` name a file to take B from.
    """
    problems = tuple(problems) or design.problems
    if not problems:
        raise SpecError(f"{design.plan.spec.name} names no problems; give one with --shape M,K,N")
    stored = None if weights is None else read(weights, tensors)
    console = Console()
    rows: list[tuple[Problem, GemmRun, Mismatch | None]] = []
    for i, problem in enumerate(problems):
        if stored is not None:
            check_shape(stored, problem.K, problem.N)
        with console.status(
            f"{i + 1}/{len(problems)}: {problem} {problem.name} on the emulated {design.plan.device.name}"
        ):
            rows.append(_run_one(design, problem, None if stored is None else stored.weights, seed))
    _print(console, design, rows)
    return 1 if any(wrong is not None for _, _, wrong in rows) else 0


def _run_one(
    design: BuiltDesign, problem: Problem, weights: np.ndarray | None, seed: int
) -> tuple[Problem, GemmRun, Mismatch | None]:
    a, random_weights = random_operands(problem, seed)
    weights = random_weights if weights is None else weights
    run = run_gemm(design, a, weights)
    return problem, run, first_mismatch(run.c, reference(a, weights))


def random_operands(problem: Problem, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """int8 activations over their whole range and ternary weights."""
    rng = np.random.default_rng(seed)
    a = rng.integers(-128, 128, (problem.M, problem.K), np.int8)
    return a, rng.integers(-1, 2, (problem.K, problem.N), np.int8)


def padding(planned: GemmSequence) -> str:
    """What the array computes beyond a problem, and which operands the host stages."""
    problem = planned.problem
    sizes = zip("MKN", (problem.M, problem.K, problem.N), planned.processed, strict=True)
    grown = [f"{axis} {size}→{whole}" for axis, size, whole in sizes if size != whole]
    staged = [name for name, buffer in (("A", planned.staging.a), ("C", planned.staging.c)) if buffer]
    grown += [f"{' and '.join(staged)} staged"] if staged else []
    return ", ".join(grown) or "none"


def _print(console: Console, design: BuiltDesign, rows: Sequence[tuple[Problem, GemmRun, Mismatch | None]]) -> None:
    tile = design.plan.spec.tile
    width = None if console.is_terminal else TABLE_WIDTH
    table = Table(title=f"{design.plan.spec.name} on the emulated {design.plan.device.name}", width=width)
    for name in (
        "shape M x K x N",
        "layer",
        "tile m x k x n",
        "padding",
        "MACs",
        "check against numpy",
        "host s",
    ):
        table.add_column(name, justify="right" if name in ("MACs", "host s") else "left")
    for problem, run, wrong in rows:
        table.add_row(
            str(problem), problem.name, f"{tile.m}x{tile.k}x{tile.n}", padding(run.sequence),
            f"{problem.macs / 1e9:.2f} G", "exact" if wrong is None else f"WRONG: {wrong}", f"{run.seconds:.1f}",
        )  # fmt: skip
    Console(width=width).print(table) if width else console.print(table)
    for problem, run, _ in rows:
        for warning in run.warnings:
            console.print(f"warning: {problem}: {warning}")
