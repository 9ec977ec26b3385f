"""Runs of the command line in a process of its own, as a user would see them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from support.forked import BDFORGE, forks_of_programs

MESSAGE_MOST = 4096
SECONDS = 120  # only keep a hang from stopping all tests
ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def bdforge(*arguments: str | Path, device: Path | None = None) -> Ended:
    """Runs `bdforge` with these arguments. Its output goes to `device` where one is given, which nobody reads."""
    words = ("bdforge", *map(str, arguments))
    return _ended(forks_of_programs().run(BDFORGE, *words, cwd=Path.cwd(), environ=os.environ, device=device))


def started(*arguments: str | Path, **environment: str) -> Ended:
    """Runs `bdforge` in an interpreter that starts with this environment."""
    return _ended(subprocess.run(
        [sys.executable, "-m", "bdforge.cli", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS,
        check=False, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    ))  # fmt: skip


def _ended(done: subprocess.CompletedProcess[str]) -> Ended:
    return Ended(done.returncode, done.stdout, done.stderr)


def refused(*arguments: str | Path, code: int = 2) -> str:
    """The message of a command that must fail with `code`."""
    return message_of(bdforge(*arguments), code)


def message_of(ended: Ended, code: int = 2) -> str:
    """What a command that failed with `code` said: bounded, printable, no traceback."""
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    assert ended.err.startswith("bdforge: "), ended.err
    assert len(ended.err.encode()) <= MESSAGE_MOST
    assert not [character for character in ended.err if not character.isprintable() and character not in "\n\t"]
    return ended.err
