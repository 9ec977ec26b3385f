"""`bdforge run`: a GEMM design on the emulated array, against numpy."""

from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.bench import TimedRuns, run_problems
from bdforge.cli.files import Force
from bdforge.cli.options import InFlight, Kernel, Poison, Shapes, Timing, Wait, problems
from bdforge.cli.timing import TimelineFile, without_timing
from bdforge.files import new_file
from bdforge.operators.gemm import SequenceOptions
from bdforge.perf.tune.kernel import basis_named
from bdforge.runtime import BuiltDesign
from bdforge.watched import part

app = typer.Typer()


@app.command(name="run")
def run_command(
    design: Annotated[
        Path, typer.Argument(help="Folder of a built design, such as build/strix_halo/gemm_i8_i2_bitnet.")
    ],
    shape: Shapes = None,
    weights: Annotated[Path | None, typer.Option(help="Ternary weights: .safetensors or .gguf.")] = None,
    tensor: Annotated[list[str] | None, typer.Option(help="Tensors of that file, fused along N; repeatable.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random data.")] = 0,
    poison: Poison = False,
    timing: Timing = False,
    kernel: Kernel = "ideal",
    timeline: TimelineFile = None,
    force: Force = False,
    wait: Wait = None,
    in_flight: InFlight = None,
) -> None:
    """Run a GEMM design on the emulated array and compare every element with numpy."""
    chosen = problems(shape)
    wants_time = timing or timeline is not None
    if not wants_time:
        without_timing({"--kernel": kernel != "ideal"})
    if tensor and weights is None:
        raise typer.BadParameter("--tensor names matrices of a file; give it with --weights")
    timed = TimedRuns(basis_named(kernel), timeline and new_file(timeline, force)) if wants_time else None
    part()
    built = BuiltDesign.load(design).waiting(SequenceOptions.given(wait, in_flight))
    raise typer.Exit(run_problems(built, chosen, weights, tensor or [], seed, timed, poison=poison))
