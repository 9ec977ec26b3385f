"""`bdforge run`: a built design on the emulated array, against numpy; `bdforge check-run`: the same of any run.

The latter is for bdforge-run --verify.
"""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bdforge.cli.bench import TimedRuns, run_problems
from bdforge.cli.options import Force, InFlight, Kernel, Poison, Seed, Shapes, Tensors, Timing, Wait, problems_of
from bdforge.cli.timing import TimelineFile, without_timing
from bdforge.common.files import FileError, read_json
from bdforge.common.screen import say
from bdforge.common.watched import part
from bdforge.design.sequences import SequenceOptions
from bdforge.design.sequences.sequence_program import Operand
from bdforge.devices import DEVICES, device_named
from bdforge.devices.types import TYPES
from bdforge.operators import Expected, load_spec, operator_of, plan, plan_of, spec_from
from bdforge.perf.tune.time_model import basis_named
from bdforge.runtime import BuiltDesign, first_mismatch
from bdforge.runtime.array_files import load_arrays

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
    timed = TimedRuns(basis_named(kernel), timeline) if wants_time else None
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


@app.command(name="check-run", hidden=True)
def check_run(
    manifest: Annotated[Path, typer.Argument(help="manifest.json of the design that ran.")],
    folder: Annotated[Path, typer.Argument(help="Folder of its operands, NAME.npy each.")],
) -> None:
    """Compare outputs with the reference; exit code 1 and the first wrong element where one differs."""
    content = read_json(manifest, FileError)
    try:
        spec = spec_from(content["spec"], content["design"], str(manifest))
        planned = plan(spec, device_named(content["device"]))
    except (KeyError, TypeError) as error:
        raise FileError(f"{manifest}: {error} is missing; build the design again") from None
    arrays = {operand.name: _array(operand, folder) for operand in planned.program.operands}
    inputs = {operand.name for operand in planned.program.operands if operand.direction == "in"}
    given = {name: array for name, array in arrays.items() if name in inputs and array is not None}
    for name, expected in planned.reference(given).items():
        if sentence := _mismatch(name, arrays[name], expected):
            say(sentence)
            raise typer.Exit(1)


def _array(operand: Operand, folder: Path) -> Any:
    """An operand's array in its type, as which words of the same width are taken; None where there is no file.

    FileError for elements of another width.
    """
    path = folder / f"{operand.name}.npy"
    if not path.is_file():
        return None
    (array,) = load_arrays([path])
    dtype = np.dtype(np.float32) if operand.blocked else TYPES[operand.type].dtype
    if array.dtype.itemsize != dtype.itemsize:
        raise FileError(f"{path}: holds {array.dtype} elements, {operand.name} has {dtype}")
    return array.view(dtype)


def _mismatch(name: str, got: Any, expected: Expected) -> str:
    """The first wrong element as a sentence; "" where there is none."""
    if got is None:
        return f"{name} is missing"
    if got.shape != expected.values.shape:
        return f"{name} has shape {got.shape}, expected {expected.values.shape}"
    return str(first_mismatch(got, expected.values, expected.bound, name) or "")
