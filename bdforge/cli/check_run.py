"""`bdforge check-run`: what a run on any device wrote, against an operator's reference; for bdforge-gemm --verify."""

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.files import FileError, read_json
from bdforge.operators import Expected, plan, spec_from
from bdforge.runtime import first_mismatch
from bdforge.runtime.arrays import load_arrays
from bdforge.screen import say
from bdforge.sequences.program import Operand

app = typer.Typer()


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
    """An operand's array in its type, as which words of the same width are taken; None where there is no file."""
    path = folder / f"{operand.name}.npy"
    if not path.is_file():
        return None
    (array,) = load_arrays([path])
    dtype = np.dtype(np.float32) if operand.blocked else TYPES[operand.type].dtype
    return array if array.dtype == dtype else array.view(dtype)


def _mismatch(name: str, got: Any, expected: Expected) -> str:
    """The first wrong element as a sentence; "" where there is none."""
    if got is None:
        return f"{name} is missing"
    if got.shape != expected.values.shape:
        return f"{name} has shape {got.shape}, expected {expected.values.shape}"
    return str(first_mismatch(got, expected.values, expected.bound, name) or "")
