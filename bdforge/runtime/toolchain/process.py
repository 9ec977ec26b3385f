"""Running a tool so that its outputs appear whole or not at all."""

import os
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path


class ToolError(RuntimeError):
    """A tool that failed: one line with its exit code and the command to repeat; `output` is what it said."""

    def __init__(self, message: str, output: str = ""):
        super().__init__(message)
        self.output = output


def run_tool(
    command: Sequence[str | Path],
    outputs: Sequence[Path],
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
    written: Callable[[str], str] = str,
) -> str:
    """Run `command`, which writes `outputs`, and return what it said.

    Every mention of an output in the command is turned to a folder beside it, from which the file is moved when
    the tool has succeeded and every output is there. A name with {} in the outputs' folder is a pattern that the tool
    fills in, and is turned likewise. All outputs belong to one folder, which is made when missing. Raises ToolError
    otherwise; outputs then keep the state they had. Without outputs the tool writes where it likes. `written` tells by
    which name the tool writes an output where it chooses one; an output's own name will do too.
    """
    words = [str(word) for word in command]
    if not outputs:
        return _run(words, words, cwd, environ)
    folder = outputs[0].absolute().parent
    folder.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=".part-", dir=folder))
    try:
        said = _run([_staged(word, outputs, staging) for word in words], words, cwd, environ)
        found = {output: (staging / written(output.name), staging / output.name) for output in outputs}
        made = {output: named if named.exists() else plain for output, (named, plain) in found.items()}
        if absent := [str(output) for output, file in made.items() if not file.exists()]:
            raise ToolError(f"{words[0]} succeeded but did not write {', '.join(absent)}; {_repeat(words, cwd)}", said)
        for output, file in made.items():
            os.replace(file, output)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return said


def _staged(word: str, outputs: Sequence[Path], staging: Path) -> str:
    """`word` with the path of an output or of a pattern, alone or after "=", replaced by its place in `staging`."""
    option, equals, value = word.rpartition("=")
    for output in outputs:
        if value == str(output):
            return f"{option}{equals}{staging / output.name}"
    pattern = Path(value)
    if "{" in pattern.name and pattern.parent == outputs[0].parent:
        return f"{option}{equals}{staging / pattern.name}"
    return word


def _run(words: list[str], shown: list[str], cwd: Path | None, environ: Mapping[str, str] | None) -> str:
    try:
        done = subprocess.run(
            words, cwd=cwd, env=environ, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", check=False,
        )  # fmt: skip
    except OSError as error:
        raise ToolError(f"{words[0]} does not start: {error.strerror}") from None
    if done.returncode:
        how = f"exit code {done.returncode}" if done.returncode > 0 else f"signal {-done.returncode}"
        raise ToolError(f"{Path(words[0]).name} failed with {how}; {_repeat(shown, cwd)}", done.stdout)
    return done.stdout


def _repeat(words: list[str], cwd: Path | None) -> str:
    place = f"cd {shlex.quote(str(cwd))} && " if cwd else ""
    return f"to repeat: {place}{shlex.join(words)}"
