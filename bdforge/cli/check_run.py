"""`bdforge check-run`: what any run made against numpy, for bdforge-run --verify. It starts without the emulated array,
which only a composition needs and which takes long to import."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from bdforge.common.array_files import load_arrays
from bdforge.common.files import FileError, read_json
from bdforge.common.mismatch import first_mismatch
from bdforge.common.screen import say
from bdforge.design.manifest import Manifest, manifest_fault
from bdforge.design.sequences.sequence_program import Operand
from bdforge.devices.types import TYPES
from bdforge.operators import ComposedPlan, Expected, Plan, SpecError, plan_of

app = typer.Typer()


@app.command(name="check-run", hidden=True)
def check_run(
    manifest: Annotated[Path, typer.Argument(help="manifest.json of the design that ran.")],
    folder: Annotated[Path, typer.Argument(help="Folder of its operands, NAME.npy each.")],
) -> None:
    """Compare outputs with the reference; exit code 1 and the first wrong element where one differs."""
    content = read_json(manifest, FileError)
    if fault := manifest_fault(content):
        raise FileError(f"{manifest}: {fault}; build the design again")
    planned = plan_of(Manifest.model_validate(content), manifest.parent)
    arrays = {operand.name: _array(operand, folder) for operand in planned.program.operands}
    inputs = {operand.name for operand in planned.program.operands if operand.direction == "in"}
    given = {name: array for name, array in arrays.items() if name in inputs and array is not None}
    for name, expected in _right(planned, manifest.parent, given).items():
        if sentence := _mismatch(name, arrays[name], expected):
            say(sentence)
            raise typer.Exit(1)


def _right(plan: Plan, folder: Path, inputs: Mapping[str, np.ndarray]) -> Mapping[str, Expected]:
    """What outputs must be: of a composition the bits that the emulated array makes, whose steps are checked."""
    if not isinstance(plan, ComposedPlan):
        return plan.expected(inputs)
    from bdforge.runtime import BuiltDesign, run

    found = run(BuiltDesign.load(folder), inputs)
    made = found.outputs | found.between
    for name, expected in plan.expected(inputs, made).items():
        if sentence := _mismatch(name, made[name], expected):
            raise SpecError(f"{plan.spec.name}: the emulated array makes something wrong: {sentence}")
    return {name: Expected(array) for name, array in found.outputs.items()}


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
