"""`bdforge weights`: ternary matrices of a file, and packing them for a design."""

from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.options import DEFAULT_PRODUCT, Force, ProductName, SpecOption, Tensors, new_path
from bdforge.common.files import FileError
from bdforge.common.messages import clip
from bdforge.common.screen import say
from bdforge.design.sequences import buffers
from bdforge.devices import device_named, mlir_device_named
from bdforge.models import weights
from bdforge.operators import load_spec, plan

group = typer.Typer(
    name="weights", no_args_is_help=True,
    help="Ternary weights: what a .safetensors or .gguf file holds, packed for a design.",
)  # fmt: skip
app = typer.Typer()
app.add_typer(group)

NAME_CHARACTERS = 256  # of a tensor; GGUF's readers allow as many
File = Annotated[Path, typer.Argument(help="Weights: .safetensors or .gguf.")]


@group.command(name="list")
def list_tensors(file: File) -> None:
    """Name and K x N of every ternary matrix."""
    for name, (depth, columns) in weights.tensors(file):
        say(f"{clip(name, NAME_CHARACTERS)}  {depth} x {columns}")


@group.command()
def pack(
    file: File,
    tensor: Tensors,
    design: SpecOption,
    out: Annotated[Path, new_path("New .npy file for the packed bytes.", "--out", "-o")],
    device: ProductName = DEFAULT_PRODUCT,
    force: Force = False,
) -> None:
    """Pack matrices in the order in which a design's cores eat them."""
    planned = plan(load_spec(design), device_named(device))
    matrix = weights.read(file, tensor or [])
    if not (staying := buffers.staying(planned.program)):
        raise FileError(f"{design} has no operand that stays from run to run; there is nothing to pack")
    given = {staying[0].name: matrix.weights}
    _, packed = buffers.pack(planned.program, mlir_device_named(planned.mlir_device), given)
    weights.write_packed(out, packed[staying[0].argument].view("u1"), force=force)
    depth, columns = matrix.shape
    scales = ", ".join(f"{scale:g}" for scale in matrix.scales)
    say(f"wrote {out}: {matrix.name}, {depth} x {columns}, scale {scales}")
