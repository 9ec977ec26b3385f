"""Helpers of the build tests."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARTS = (
    "SConstruct", "site_scons", "designs", "examples", "templates", "kernels", "host", "bdforge", "bd_patterns",
)  # fmt: skip
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


def run_scons(tree: Path, *arguments: str, **environ: str) -> Run:
    """SCons in the copy; keywords are environment variables."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
    return subprocess.run(
        [sys.executable, "-B", "-m", "SCons", "-Q", *arguments], cwd=tree, env=kept | environ,
        text=True, capture_output=True, timeout=60, check=False,
    )  # fmt: skip
