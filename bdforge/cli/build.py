"""`bdforge build`: SCons' builds from anywhere, with the rules and kernels that came with bdforge."""

import subprocess
import sys
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.options import ProductName
from bdforge.tree import tree

app = typer.Typer()


@app.command(name="build")
def build_command(
    designs: Annotated[
        list[str] | None,
        typer.Argument(help="Design specs (.toml), or names of those that came with bdforge; default or all."),
    ] = None,
    device: ProductName = "strix_halo",
    target: Annotated[str, typer.Option(help="host (what emulation needs), all (xclbins too) or emulate.")] = "host",
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for what is built, made when needed.")] = Path(
        "build"
    ),
) -> None:
    """Build designs as `scons` does in a checkout: MLIR, manifest, kernels for this machine, or all for the NPU."""
    if target not in ("host", "all", "emulate"):
        raise typer.BadParameter("choose host, all or emulate", param_hint="--target")
    wanted = ",".join(map(_absolute, designs or [])) or "default"
    choices = [f"device={device}", f"design={wanted}", f"build={out.resolve()}"]
    done = subprocess.run([sys.executable, "-m", "SCons", "-Q", *choices, target], cwd=tree(), check=False)
    raise typer.Exit(BAD_INPUT if done.returncode else 0)


def _absolute(design: str) -> str:
    """A spec's path, which holds in another folder too; a name stays one."""
    return str(Path(design).resolve()) if design.endswith(".toml") else design
