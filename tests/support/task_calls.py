"""Calls of tasks that processes and clusters can import, and what they leave in a folder."""

import os
import signal
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from pathlib import Path

from bdforge.common.files import FileError
from bdforge.common.tasks import TaskError


@dataclass(frozen=True, slots=True)
class Job:
    """A number, a folder for what was begun, and how often whoever does it is killed."""

    number: int
    folder: str = ""
    kills: int = 0


@dataclass(frozen=True, slots=True)
class Found:
    number: int
    root: float
    facts: Mapping[str, tuple[float, ...]]
    text: str | None = None


def found(job: Job) -> Found:
    """A value of every kind that results hold; says in the folder that it was begun, and is killed so often."""
    if job.folder:
        mine = [path for path in Path(job.folder).iterdir() if path.name.startswith(f"{job.number}-")]
        Path(job.folder, f"{job.number}-{len(mine)}").touch()
        if len(mine) < job.kills:
            os.kill(os.getpid(), signal.SIGKILL)
    return Found(job.number, job.number**0.5, {"tenths": (job.number / 10, inf)}, None if job.number % 2 else "even")


def refusing(job: Job) -> int:
    """Refuses odd numbers."""
    if job.number % 2:
        raise FileError(f"{job.number} is odd")
    return job.number


class TwoWordsError(TaskError):
    def __init__(self, what: str, why: str):
        super().__init__(f"{what}: {why}")


def says_two(job: Job) -> int:
    """Raises what cannot be made from its message alone."""
    raise TwoWordsError(str(job.number), "it is")


def begun(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def faulty(job: Job) -> int:
    """A fault of bdforge's own."""
    return job.number // 0
