"""The command line: thin, every command calls one function of the packages."""

import json
import sys
from pathlib import Path
from typing import Annotated

import typer

from bd_patterns import PatternError, WalkError
from bdforge.devices import DEVICES, DeviceError, device_named
from bdforge.emulator import EmulationError, emulate
from bdforge.mlir import MlirError
from bdforge.plan import Problem, SpecError, load_spec, manifest, plan_gemm, render
from bdforge.runtime import BuildError, BuiltDesign, KernelLibraryError, load_kernels
from bdforge.runtime.arrays import ArrayFileError, load_arrays, save_arrays
from bdforge.runtime.bench import run_problems
from bdforge.weights import WeightError

BAD_INPUT = 2
USER_ERRORS = (
    ArrayFileError,
    BuildError,
    DeviceError,
    KernelLibraryError,
    MlirError,
    PatternError,
    SpecError,
    WalkError,
    WeightError,
)

app = typer.Typer(
    name="bdforge", no_args_is_help=True, add_completion=False, pretty_exceptions_enable=False,
    help="Explicit, checked and emulated designs for AMD's NPU.",
)  # fmt: skip


def _shape(text: str) -> Problem:
    try:
        m, k, n = (int(part) for part in text.replace("x", ",").split(","))
        if min(m, k, n) < 1:
            raise ValueError
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not M,K,N, three positive numbers") from None
    return Problem(m, k, n)


@app.command()
def run(
    design: Annotated[
        Path, typer.Argument(help="Folder of a built design, such as build/strix_halo/gemm_i8_i2_bitnet.")
    ],
    shape: Annotated[list[str] | None, typer.Option(help="M,K,N instead of the design's problems; repeatable.")] = None,
    weights: Annotated[Path | None, typer.Option(help="Ternary weights: .safetensors or .gguf.")] = None,
    tensor: Annotated[list[str] | None, typer.Option(help="Tensors of that file, fused along N; repeatable.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of the random data.")] = 0,
) -> None:
    """Run a GEMM design on the emulated array and compare every element with numpy."""
    problems = [_shape(text) for text in shape or []]
    raise typer.Exit(run_problems(BuiltDesign.load(design), problems, weights, tensor or [], seed))


@app.command(name="emulate")
def emulate_command(
    design: Annotated[Path, typer.Argument(help="MLIR text with an aie.device.")],
    arg: Annotated[list[Path] | None, typer.Option(help="A .npy file for each host buffer, in order.")] = None,
    out: Annotated[Path | None, typer.Option(help="Folder for the arrays after the run (new files only).")] = None,
    kernels: Annotated[Path | None, typer.Option(help="Kernels: lib.so or module.py.")] = None,
    sequence: Annotated[str | None, typer.Option(help="Runtime sequence, when there are several.")] = None,
) -> None:
    """Run any explicit design on the emulated array."""
    files = arg or []
    text = _read_text(design)
    arrays = load_arrays(files)
    result = emulate(text, arrays, load_kernels(kernels) if kernels else None, sequence, file=str(design))
    for warning in result.warnings:
        typer.echo(f"warning: {warning}", err=True)
    if out is not None:
        for path in save_arrays(out, files, arrays):
            typer.echo(f"wrote {path}")
    typer.echo(f"{design}: ended (emulated), {len(arrays)} host buffers, {len(result.buffers)} named tile buffers")


@app.command(name="render")
def render_command(
    design: Annotated[Path, typer.Argument(help="Design spec, such as designs/gemm_i8_i2_bitnet.toml.")],
    device: Annotated[str, typer.Option(help=f"One of {', '.join(DEVICES)}.")] = "strix_halo",
    shape: Annotated[list[str] | None, typer.Option(help="M,K,N instead of the design's problems; repeatable.")] = None,
    with_manifest: Annotated[bool, typer.Option("--manifest", help="Print the manifest instead of the MLIR.")] = False,
) -> None:
    """Print a design's MLIR (or its manifest)."""
    spec = load_spec(design)
    plan = plan_gemm(spec, device_named(device))
    problems = [_shape(text) for text in shape or []] or spec.problems
    typer.echo(json.dumps(manifest(plan, problems), indent=2) if with_manifest else render(plan, problems), nl=False)


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise ArrayFileError(f"{path}: cannot be read: {reason}") from None


def main() -> None:
    """Entry point: faults of the input end with one message and exit code 2, faults of a run with 1."""
    try:
        app()
    except USER_ERRORS as error:
        _fail(error, BAD_INPUT)
    except EmulationError as error:
        _fail(error, BAD_INPUT if isinstance(error, ValueError) else 1)


def _fail(error: Exception, code: int) -> None:
    print(f"bdforge: {error}", file=sys.stderr)
    sys.exit(code)


if __name__ == "__main__":
    main()
