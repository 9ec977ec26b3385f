"""Files that one process makes for all those of a test run."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest


@contextmanager
def locked(file: Path) -> Iterator[None]:
    """One process at a time; the folder is made."""
    file.parent.mkdir(parents=True, exist_ok=True)
    with file.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def shared_folder(folders: pytest.TempPathFactory) -> Path:
    """The folder of all processes of a run."""
    base = folders.getbasetemp()
    return base.parent if "PYTEST_XDIST_WORKER" in os.environ else base


def made_in(folder: Path, make: Callable[[Path], object]) -> Path:
    """The folder, filled by `make` where no process has done so yet."""
    with locked(folder.with_name(f"{folder.name}.lock")):
        if not (folder / ".made").exists():
            folder.mkdir(parents=True, exist_ok=True)
            make(folder)
            (folder / ".made").touch()
    return folder
