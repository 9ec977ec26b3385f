"""Runs of the command line in a process of its own, as a user would see them."""

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

MESSAGE_MOST = 4096
ROOT = Path(__file__).parents[2]


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def bdforge(*arguments: str | Path, stdout=subprocess.PIPE, seconds: float = 120, **environment: str) -> Ended:
    """Runs `bdforge` with these arguments; the seconds only keep a hang from stopping all tests."""
    done = subprocess.run(
        [sys.executable, "-m", "bdforge.cli", *map(str, arguments)], stdout=stdout, stderr=subprocess.PIPE, text=True,
        timeout=seconds, check=False, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip
    return Ended(done.returncode, done.stdout or "", done.stderr)


def refused(*arguments: str | Path, code: int = 2, **options) -> str:
    """The message of a command that must fail with `code`: bounded, printable, no traceback."""
    ended = bdforge(*arguments, **options)
    assert ended.code == code, ended
    assert "Traceback" not in ended.err
    assert ended.err.startswith("bdforge: "), ended.err
    assert len(ended.err.encode()) <= MESSAGE_MOST
    assert not [character for character in ended.err if not character.isprintable() and character not in "\n\t"]
    return ended.err
