"""A scratch copy of the tree to build in."""

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from scratch_tree import WRITE_OUTPUT, Run, program, run_scons, small_tree


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A copy of what SCons needs."""
    return small_tree(tmp_path)


@pytest.fixture
def scons(tree: Path) -> Callable[..., Run]:
    """Runs SCons in the copy; keywords are environment variables."""
    return partial(run_scons, tree)


@pytest.fixture
def quick_cxx(tmp_path: Path) -> str:
    """A compiler that only writes its output."""
    return f"cxx={program(tmp_path / 'tools of mine' / 'cxx', WRITE_OUTPUT)}"
