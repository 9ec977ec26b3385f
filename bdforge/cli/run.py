"""`bdforge run`: a built design on the emulated array, against numpy."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from bdforge.array.emulator.timed.time_tables import tables
from bdforge.cli.checked_runs import CheckedRun, checked_run, tasks_of
from bdforge.cli.options import (
    DEFAULT_PRODUCT,
    Data,
    Force,
    InFlight,
    Jobs,
    Kernel,
    Poison,
    Scheduler,
    Seed,
    Shapes,
    Tensors,
    Timing,
    Wait,
    problems_of,
    workers_of,
)
from bdforge.cli.progress import emulating, resumable
from bdforge.cli.timing import TimelineFile, without_timing
from bdforge.common.files import FileError
from bdforge.common.screen import new_table, put, screen
from bdforge.common.tasks import HERE, Workers
from bdforge.common.watched import part
from bdforge.design.sequences import SequenceOptions
from bdforge.devices import DEVICES
from bdforge.operators import (
    Plan,
    Problem,
    SpecError,
    load_spec,
    of_own_code,
    operator_of,
    plan_of,
)
from bdforge.perf.composed_run import step_table
from bdforge.perf.tune.time_model import Basis, basis_named
from bdforge.runtime import BuiltDesign

_MANY = 10_000_000  # operations
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
    plan: Plan,
    problems: Sequence[Problem],
    weights: Path | None,
    tensors: Sequence[str],
    seed: int,
    timed: TimedRuns | None = None,
    *,
    poison: bool = False,
    data: str = "random",
    workers: Workers = HERE,
) -> int:
    """Run and check each problem (the plan's own by default); the exit code is 1 when an element is wrong.

    Inputs are of a kind of `bdforge.operators.DATA`, in the design's types, from `seed`; `weights` and `tensors` name a
    file for the operand that stays from run to run. With `timed`, tables tell where each run's time goes; a timeline
    takes one problem. With `poison`, reading tile memory that nobody wrote is an error.
    """
    problems = tuple(problems) or tuple(plan.problems)
    if not problems:
        raise SpecError(f"{design.name} names no problems; give one with --shape")
    timeline, basis = (timed.timeline, timed.basis) if timed else (None, None)
    if timeline is not None and len(problems) > 1:
        raise SpecError(f"a timeline holds one problem, not {len(problems)}; choose one with --shape")
    tasks = tasks_of(design, problems, weights, tensors, {"seed": seed, "data": data, "poison": poison, "basis": basis})
    console = screen()
    with resumable(workers), emulating(_named(problems), screen(stderr=True)) as told:
        rows = workers.results(checked_run, tasks, told) if timeline is None else [checked_run(tasks[0], timeline)]
    _print(console, plan, problems, rows, design.cores_note)
    _print_times(console, problems, rows)
    if not any(row.wrong for row in rows):
        return 0
    if not poison:
        console.print(SUGGESTION)
    return 1


def _named(problems: Sequence[Problem]) -> str:
    return f"{problems[0]} {problems[0].name}".strip() if len(problems) == 1 else "problems"


def _print(console: Console, plan: Plan, problems: Sequence[Problem], rows: Sequence[CheckedRun], cores: str) -> None:
    title = f"{plan.summary}, emulated{cores and f', {cores}'}"
    table = new_table(title, "=shape", "name", "padding", ">operations", "check against numpy", ">host s")
    for problem, row in zip(problems, rows, strict=True):
        operations = _count(plan.cost(problem).operations)
        table.add_row(str(problem), problem.name, row.padding, operations, row.verdict, f"{row.seconds:.1f}")
    put(console, table)
    for problem, row in zip(problems, rows, strict=True):
        for warning in row.warnings:
            console.print(f"warning: {problem}: {warning}", markup=False)


def _count(operations: int) -> str:
    """In units of 10^9 where there are many."""
    return f"{operations / 1e9:.2f} G" if operations >= _MANY else f"{operations:,}"


def _print_times(console: Console, problems: Sequence[Problem], rows: Sequence[CheckedRun]) -> None:
    for problem, row in zip(problems, rows, strict=True):
        if row.timing is not None:
            steps = [step_table(row.steps, row.timing)] if row.steps else []
            put(console, *tables(row.timing, f"{problem} {problem.name}".strip()), *steps)


app = typer.Typer()


@app.command(name="run")
def run_command(
    design: Annotated[
        Path, typer.Argument(help="Folder of a built design, such as build/strix_halo/gemm_i8_i2_bitnet.")
    ],
    shape: Shapes = None,
    weights: Annotated[Path | None, typer.Option(help="Ternary weights: .safetensors or .gguf.")] = None,
    tensor: Tensors = None,
    seed: Seed = 0,
    data: Data = "random",
    poison: Poison = False,
    timing: Timing = False,
    kernel: Kernel = "ideal",
    timeline: TimelineFile = None,
    force: Force = False,
    wait: Wait = None,
    in_flight: InFlight = None,
    jobs: Jobs = 1,
    scheduler: Scheduler = None,
) -> None:
    """Run a built design on the emulated array and compare every element with numpy."""
    wants_time = timing or timeline is not None
    if not wants_time:
        without_timing({"--kernel": kernel != "ideal"})
    if tensor and weights is None:
        raise typer.BadParameter("--tensor names matrices of a file; give it with --weights")
    timed = TimedRuns(basis_named(kernel), timeline) if wants_time else None
    folder = _folder(design)
    part()
    built = BuiltDesign.load(folder).waiting(SequenceOptions.given(wait, in_flight))
    plan = plan_of(built.manifest, folder)
    chosen = problems_of(operator_of(plan.spec), shape)
    workers = workers_of(jobs, scheduler, of_own_code(plan))
    how: dict[str, Any] = {"poison": poison, "data": data, "workers": workers}
    raise typer.Exit(run_problems(built, plan, chosen, weights, tensor or [], seed, timed, **how))


def _folder(design: Path) -> Path:
    """`design`, unless it is no folder but a design's spec: then FileError with the folder, or how to build it."""
    if design.suffix != ".toml" or design.is_dir():
        return design
    spec = load_spec(design)
    name = spec.name
    if built := sorted(Path("build").glob(f"*/{name}/manifest.json")):
        folders = " or ".join(str(manifest.parent) for manifest in built)
        raise FileError(f"{design} is the spec of a design; run what was built of it: bdforge run {folders}")
    device = next((device.name for device in DEVICES.values() if operator_of(spec).fits(spec, device)), DEFAULT_PRODUCT)
    raise FileError(
        f"{design} is the spec of a design; build it with 'scons device={device} design={name} host', "
        f"then: bdforge run build/{device}/{name}"
    )
