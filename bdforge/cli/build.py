"""`bdforge new` and `bdforge build`: projects of a user's own, and SCons' builds from anywhere."""

import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from bdforge.cli.ending import BAD_INPUT
from bdforge.cli.options import DEFAULT_PRODUCT, Force, ProductName
from bdforge.common.files import FileError, write_whole
from bdforge.common.messages import clip_path, listed
from bdforge.common.screen import say
from bdforge.common.tree import scons, tree
from bdforge.operators import OPERATORS

app = typer.Typer()


def _folder(text: str) -> Path:
    if not text:
        raise typer.BadParameter("name a folder; . is this one")
    return Path(text)


@app.command(name="new")
def new_command(
    folder: Annotated[
        Path | None,
        typer.Argument(help="Folder, made when needed; for an operator its name, if left out.", parser=_folder),
    ] = None,
    operator: Annotated[
        str | None, typer.Option(help="Write a package with an operator of this name instead, such as rmsnorm.")
    ] = None,
    force: Force = False,
) -> None:
    """Write a project of your own: SConstruct, designs, a template, a kernel, a test, a C++ host; or an operator."""
    if folder is None and operator is None:
        raise typer.BadParameter("name a folder; . is this one")
    folder = folder or Path(operator or "")
    files = _project_files(tree() / "examples") if operator is None else _operator_files(operator)
    write_new(folder, files, ", or replace with --force", force=force)
    way = "pytest" if find_spec("pytest") else "pip install 'bdforge[project]'; pytest"
    if operator is None:
        say(f"now: cd {folder}; scons emulate; {way}; scons app")
    else:
        say(f"now: cd {folder}; pip install --no-build-isolation -e .; {way}")


def _project_files(examples: Path) -> dict[str, bytes]:
    """What is written, by place in the project: the example of a project, and that of a C++ host."""
    return contents(examples / "project") | {"host/main.cpp": (examples / "cpp" / "main.cpp").read_bytes()}


def _operator_files(name: str) -> dict[str, bytes]:
    """The example of an operator's package, under another name."""
    if not re.fullmatch(r"[a-z][a-z0-9_]{0,63}", name):
        raise typer.BadParameter("choose small letters, digits and _, a letter first", param_hint="--operator")
    if name in iter(OPERATORS):
        raise typer.BadParameter(f"there is an operator {name}; choose another name", param_hint="--operator")
    words = ((b"rowscale", name.encode()), (b"Rowscale", name.capitalize().encode()))
    found = {}
    for path, content in contents(tree() / "examples" / "operator").items():
        for old, new in words:
            content = content.replace(old, new)
        found[path.replace("rowscale", name)] = content
    return found


def write_new(folder: Path, files: Mapping[str, bytes], way: str = "", *, force: bool = False) -> None:
    """Write files by place in a folder, which is made; FileError where one is there already, unless `force`.

    `way` ends its message.
    """
    if there := [] if force else [clip_path(path) for name in files if (path := folder / name).exists()]:
        raise FileError(f"{listed(there)}: already there; choose another folder{way}")
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_whole(folder / name, content)
        say(f"wrote {folder / name}")


def contents(folder: Path) -> dict[str, bytes]:
    """The files of a folder, by place in it."""
    found = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in found}


@app.command(name="build")
def build_command(
    designs: Annotated[
        list[str] | None,
        typer.Argument(help="Design specs (.toml), or names of those that came with bdforge; default or all."),
    ] = None,
    device: ProductName = DEFAULT_PRODUCT,
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
    return str(Path(design).resolve()) if design.endswith((".toml", ".py")) else design
