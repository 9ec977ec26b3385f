"""`bdforge run`: a built design on the emulated array, against numpy."""

from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.bench import TimedRuns, run_problems
from bdforge.cli.files import Force
from bdforge.cli.options import InFlight, Kernel, Poison, Seed, Shapes, Tensors, Timing, Wait, problems_of
from bdforge.cli.timing import TimelineFile, without_timing
from bdforge.devices import DEVICES
from bdforge.files import FileError, new_file
from bdforge.operators import load_spec, operator_of, plan_of
from bdforge.perf.tune.kernel import basis_named
from bdforge.runtime import BuiltDesign
from bdforge.sequences import SequenceOptions
from bdforge.watched import part

DEFAULT_DEVICE = "strix_halo"
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
    poison: Poison = False,
    timing: Timing = False,
    kernel: Kernel = "ideal",
    timeline: TimelineFile = None,
    force: Force = False,
    wait: Wait = None,
    in_flight: InFlight = None,
) -> None:
    """Run a built design on the emulated array and compare every element with numpy."""
    wants_time = timing or timeline is not None
    if not wants_time:
        without_timing({"--kernel": kernel != "ideal"})
    if tensor and weights is None:
        raise typer.BadParameter("--tensor names matrices of a file; give it with --weights")
    timed = TimedRuns(basis_named(kernel), timeline and new_file(timeline, force)) if wants_time else None
    folder = _folder(design)
    part()
    built = BuiltDesign.load(folder).waiting(SequenceOptions.given(wait, in_flight))
    plan = plan_of(built.manifest)
    chosen = problems_of(operator_of(plan.spec), shape)
    raise typer.Exit(run_problems(built, plan, chosen, weights, tensor or [], seed, timed, poison=poison))


def _folder(design: Path) -> Path:
    """`design`, unless it is no folder but a design's spec: then FileError with the folder, or how to build it."""
    if design.suffix != ".toml" or design.is_dir():
        return design
    spec = load_spec(design)
    name = spec.name
    if built := sorted(Path("build").glob(f"*/{name}/manifest.json")):
        folders = " or ".join(str(manifest.parent) for manifest in built)
        raise FileError(f"{design} is the spec of a design; run what was built of it: bdforge run {folders}")
    device = next((device.name for device in DEVICES.values() if operator_of(spec).fits(spec, device)), DEFAULT_DEVICE)
    raise FileError(
        f"{design} is the spec of a design; build it with 'scons device={device} design={name} host', "
        f"then: bdforge run build/{device}/{name}"
    )
