"""Helpers of the build tests."""

import atexit
import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from select import select

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


@cache
def server() -> subprocess.Popen[str]:
    """The process that runs SCons; it ends with this one."""
    words = [sys.executable, "-B", Path(__file__).with_name("scons_server.py")]
    process = subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(process.communicate)
    return process


def run_scons(tree: Path, *arguments: str, **environ: str) -> Run:
    """SCons in the copy; keywords are environment variables."""
    kept = {name: value for name, value in os.environ.items() if name not in VARIABLES} | environ
    if "PYTHONPATH" in environ:  # which is for a Python that starts
        return subprocess.run(
            [sys.executable, "-B", "-m", "SCons", "-Q", *arguments], cwd=tree, env=kept, text=True,
            capture_output=True, timeout=SECONDS, check=False,
        )  # fmt: skip
    files = {name: str(tree.parent / name) for name in ("out", "err")}
    for file in files.values():
        Path(file).write_text("")
    facts = {"tree": str(tree), "words": arguments, "environ": kept, **files}
    asked, said = server().stdin, server().stdout
    assert asked
    assert said
    asked.write(f"{json.dumps(facts)}\n")
    asked.flush()
    assert select([said], [], [], SECONDS)[0], f"scons {' '.join(arguments)} takes longer than {SECONDS} s"
    return Run(arguments, int(said.readline()), *(Path(file).read_text() for file in files.values()))
