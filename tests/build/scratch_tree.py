"""Helpers of the build tests."""

import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from stat import S_ISDIR

from support.forked import SCONS, Forks

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "SConstruct", "site_scons", "designs", "examples", "templates", "kernels", "host", "bdforge", "bd_patterns",
)  # fmt: skip
SECONDS = 120  # against a hang only
VARIABLES = ("PEANO_INSTALL_DIR", "MLIR_AIE_INSTALL_DIR", "XILINX_XRT", "SCONSFLAGS")

Run = subprocess.CompletedProcess[str]

WRITE_OUTPUT = 'while [ $# -gt 1 ]; do [ "$1" = -o ] && echo made >"$2"; shift; done'
"""A script that makes what -o names."""


def program(path: Path, script: str) -> Path:
    """An executable shell script."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def built(tree: Path) -> set[str]:
    """Files below build/, without SCons' own."""
    files = (path for path in (tree / "build").rglob("*") if path.is_file() and path.name != ".sconsign.dblite")
    return {str(path.relative_to(tree / "build")) for path in files}


def copy_tree(folder: Path) -> Path:
    """A copy of what SCons needs, its path with a space."""
    copy = folder / "a tree"
    copy.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part)  # with what Python has compiled, for speed
        else:
            shutil.copy(source, copy / part)
    return copy


def small_tree(folder: Path) -> Path:
    """A copy whose default design has one core: what SCons does is the same, and takes a third of the time."""
    copy = copy_tree(folder)
    spec = copy / "designs" / "gemm_i8_i2_bitnet.toml"
    spec.write_text(spec.read_text().replace("rows = 4\ncolumns = 8", "rows = 1\ncolumns = 1"))
    return copy


def restore(tree: Path, kept: Path) -> None:
    """Makes a tree what the other is, which takes a tenth of a copy's time."""
    found, wanted = _entries(tree), _entries(kept)
    for name in sorted(found.keys() - wanted.keys(), reverse=True):  # what is in a folder before it
        (tree / name).rmdir() if S_ISDIR(found[name][0]) else (tree / name).unlink()
    for name in sorted(name for name in wanted if found.get(name) != wanted[name]):
        if S_ISDIR(wanted[name][0]):
            (tree / name).mkdir(exist_ok=True)
            shutil.copymode(kept / name, tree / name)
        else:
            shutil.copy2(kept / name, tree / name)


def _entries(folder: Path) -> dict[str, tuple[int, ...]]:
    """Of all that is in a folder the mode, and of files the bytes and when they changed."""
    found: dict[str, tuple[int, ...]] = {}
    for place, folders, files in os.walk(folder):
        for path in (os.path.join(place, name) for name in (*folders, *files)):
            told = os.lstat(path)
            found[path[len(f"{folder}/") :]] = (
                (told.st_mode,) if S_ISDIR(told.st_mode) else (told.st_mode, told.st_size, told.st_mtime_ns)
            )
    return found


@cache
def forks(tree: Path) -> Forks:
    """SCons with what builds import, most of a short build's time; bdforge is that of the tree."""
    parts = ("array.images.image_build", "operators", "runtime.toolchain.doctor")
    return Forks(["SCons.Script", *(f"bdforge.{part}" for part in parts)], tree)


def run_scons(tree: Path, *arguments: str, **environ: str) -> Run:
    """SCons in the copy; keywords are environment variables."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES} | environ
    if "PYTHONPATH" in environ:  # which is for a Python that starts
        return subprocess.run(
            [sys.executable, "-B", "-m", "SCons", "-Q", *arguments], cwd=tree, env=kept, text=True,
            capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    return forks(tree).run(SCONS, "scons", "-Q", *arguments, cwd=tree, environ=kept)
