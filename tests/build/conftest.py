"""A scratch copy of the tree to build in, its path with a space."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PARTS = ("SConstruct", "site_scons", "designs", "templates", "kernels", "host", "bdforge", "bd_patterns")
VARIABLES = ("PEANO_INSTALL_DIR", "MLIR_AIE_INSTALL_DIR", "XILINX_XRT", "SCONSFLAGS")

Run = subprocess.CompletedProcess[str]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what SCons needs."""
    copy = tmp_path / "a tree"
    copy.mkdir()
    for part in PARTS:
        source = ROOT / part
        if source.is_dir():
            shutil.copytree(source, copy / part, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, copy / part)
    return copy


@pytest.fixture
def scons(tree: Path) -> Callable[..., Run]:
    """Runs SCons in the copy; keywords are environment variables."""

    def run(*arguments: str, **environ: str) -> Run:
        kept = {name: value for name, value in os.environ.items() if name not in VARIABLES}
        return subprocess.run(
            [sys.executable, "-B", "-m", "SCons", "-Q", *arguments], cwd=tree, env=kept | environ,
            text=True, capture_output=True, timeout=60, check=False,
        )  # fmt: skip

    return run
