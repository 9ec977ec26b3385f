"""`bdforge new` and `bdforge build`: projects of a user's own, and SCons' builds from anywhere."""

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.options import Force, ProductName
from bdforge.common.files import FileError, write_whole
from bdforge.common.messages import clip_path, listed
from bdforge.common.screen import say
from bdforge.common.tree import scons, tree

app = typer.Typer()


def _folder(text: str) -> Path:
    if not text:
        raise typer.BadParameter("name a folder; . is this one")
    return Path(text)


@app.command(name="new")
def new_command(
    folder: Annotated[Path, typer.Argument(help="Folder of the project, made when needed.", parser=_folder)],
    force: Force = False,
) -> None:
    """Write a project of your own: SConstruct, two designs, a template, a kernel, a golden test and a C++ host."""
    sources = _project_files(tree() / "examples")
    if there := [] if force else [clip_path(path) for name in sources if (path := folder / name).exists()]:
        raise FileError(f"{listed(there)}: already there; choose another folder, or replace with --force")
    for name, source in sources.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, source.read_bytes())
        say(f"wrote {folder / name}")
    way = "pytest" if find_spec("pytest") else "pip install 'bdforge[project]'; pytest"
    say(f"now: cd {folder}; scons emulate; {way}; scons app")


def _project_files(examples: Path) -> dict[Path, Path]:
    """What is written, by place in the project: the example of a project, and that of a C++ host."""
    found = sorted(path for path in (examples / "project").rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(examples / "project"): path for path in found} | {
        Path("host/main.cpp"): examples / "cpp" / "main.cpp"
    }


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
    code, _ = scons(*choices, target)
    raise typer.Exit(BAD_INPUT if code else 0)


def _absolute(design: str) -> str:
    """A spec's path, which holds in another folder too; a name stays one."""
    return str(Path(design).resolve()) if design.endswith(".toml") else design
