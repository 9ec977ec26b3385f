"""A scratch copy of the tree to build in."""

import shutil
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from scratch_tree import WRITE_OUTPUT, Run, program, restore, run_scons, small_tree


@pytest.fixture(scope="session")
def trees(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """One to work in, and one that stays."""
    tree = small_tree(tmp_path_factory.mktemp("tree"))
    return tree, shutil.copytree(tree, tmp_path_factory.mktemp("kept") / "tree")


@pytest.fixture
def tree(trees: tuple[Path, Path]) -> Path:
    """A copy of what SCons needs, in the same place for all tests, so that what imported bdforge there serves all."""
    restore(*trees)
    return trees[0]


@pytest.fixture
def scons(tree: Path) -> Callable[..., Run]:
    """Runs SCons in the copy; keywords are environment variables."""
    return partial(run_scons, tree)


@pytest.fixture
def quick_cxx(tmp_path: Path) -> str:
    """A compiler that only writes its output."""
    return f"cxx={program(tmp_path / 'tools of mine' / 'cxx', WRITE_OUTPUT)}"
