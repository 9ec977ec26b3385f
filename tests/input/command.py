"""Runs of the command line in a process of its own, as a user would see them."""

import os
import subprocess
import sys
from collections.abc import Mapping
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from bdforge.cli import main

MESSAGE_MOST = 4096
SECONDS = 120  # only keep a hang from stopping all tests
ROOT = Path(__file__).parents[2]
_SERVER = get_context("forkserver")
_SERVER.set_forkserver_preload([f"bdforge.cli.{name}" for name in ("commands", "emulate", "run", "texts", "weights")])


class Ended(NamedTuple):
    code: int
    out: str
    err: str


def bdforge(*arguments: str | Path, device: Path | None = None) -> Ended:
    """Runs `bdforge` with these arguments, forked by a process that has imported the commands: that takes a second.

    Its output goes to `device` where one is given, which nobody reads.
    """
    with TemporaryDirectory() as folder:
        out, err = device or Path(folder, "out"), Path(folder, "err")
        place = Path.cwd(), dict(os.environ)
        process = _SERVER.Process(target=_run, args=([*map(str, arguments)], out, err, *place))
        process.start()
        process.join(SECONDS)
        process.kill()
        process.join()
        assert process.exitcode is not None
        return Ended(process.exitcode, "" if device else out.read_text(), err.read_text())


def _run(words: list[str], out: Path, err: Path, folder: Path, environment: Mapping[str, str]) -> None:
    for path, descriptor in ((out, 1), (err, 2)):
        os.dup2(os.open(path, os.O_WRONLY | os.O_CREAT), descriptor)
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    sys.argv = ["bdforge", *words]
    main()


def started(*arguments: str | Path, **environment: str) -> Ended:
    """Runs `bdforge` in an interpreter that starts with this environment."""
    done = subprocess.run(
        [sys.executable, "-m", "bdforge.cli", *map(str, arguments)], capture_output=True, text=True, timeout=SECONDS,
        check=False, env=os.environ | {"PYTHONPATH": str(ROOT)} | environment,
    )  # fmt: skip
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
