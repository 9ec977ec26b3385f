"""A process that emulates texts, one JSON line each, with bounded memory: no hang or crash takes the tests along.

Run as a script; `Worker` is the other end.
"""

import contextlib
import io
import json
import os
import re
import resource
import select
import subprocess
import sys
import traceback
from dataclasses import asdict, dataclass, field
from pathlib import Path

MEMORY_BYTES = 3 << 30
STEPS = 1_000_000  # of all cores and channels
DTYPES = {"i8": "int8", "i16": "int16", "i32": "int32"}


@dataclass(frozen=True, slots=True)
class Report:
    """What became of one text: `accepted`, `refused` with a documented exception, `escaped`, `hung` or `crashed`."""

    outcome: str
    detail: str
    message: str = field(default="", compare=False)  # of the exception

    @property
    def is_fault(self) -> bool:
        return self.outcome in ("escaped", "hung", "crashed")


class Worker:
    """Hands texts to the process; starts it anew after a hang or a crash."""

    def __init__(self, seconds: float = 10):
        self.seconds = seconds
        self.process: subprocess.Popen | None = None

    def start(self) -> subprocess.Popen:
        tests = Path(__file__).parents[1]
        environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent)))}
        return subprocess.Popen(
            [sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )

    def run(self, text: str, arguments: list[tuple[str, int]], seed: int = 0) -> Report:
        """Emulates `text` with zero arrays of these element types and sizes; odd seeds shuffle the schedule."""
        if self.process is None:
            self.process = self.start()
            self.answer(60)
        assert self.process.stdin is not None
        try:
            self.process.stdin.write(json.dumps({"text": text, "arguments": arguments, "seed": seed}) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            return self.lost("crashed", "the process is gone")
        line = self.answer(self.seconds)
        if line is None:
            return self.lost("hung", f"no answer within {self.seconds} s")
        if not line:
            return self.lost("crashed", "the process ended")
        return Report(**json.loads(line))

    def answer(self, seconds: float) -> str | None:
        """One line, empty at the end of the process; None when the time is over."""
        assert self.process is not None
        assert self.process.stdout is not None
        ready, _, _ = select.select([self.process.stdout], [], [], seconds)
        return self.process.stdout.readline() if ready else None

    def lost(self, outcome: str, detail: str) -> Report:
        self.close()
        return Report(outcome, detail)

    def close(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


def examine(text: str, arguments: list[tuple[str, int]], seed: int) -> Report:
    """Emulates a text in this process."""
    import numpy as np

    import bdforge
    from bdforge.array.emulator import EmulationError
    from bdforge.array.mlir import MlirError

    arrays = [np.zeros(size, DTYPES[element]) for element, size in arguments]
    schedule = "random" if seed % 2 else "in-order"
    try:
        bdforge.emulate(
            text, arrays, Kernels(text), budget=STEPS, schedule=schedule, seed=seed, permissive=["buffer-arguments"]
        )
    except (MlirError, EmulationError) as error:
        return Report("refused", type(error).__name__, str(error))
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        place = " < ".join(f"{Path(f.filename).name}:{f.lineno} {f.name}" for f in reversed(frames))
        return Report("escaped", f"{type(error).__name__}: {str(error)[:200]} at {place}", str(error))
    return Report("accepted", "")


_RETURNING = re.compile(r"func\.func\s+(?:private\s+)?@([\w$.]+)\s*\([^)]*\)\s*->")


class Kernels(dict):
    """Every function exists, and returns 1 where the text declares a result."""

    def __init__(self, text: str):
        super().__init__()
        self.returning = set(_RETURNING.findall(text))

    def __contains__(self, name: object) -> bool:
        return True

    def __missing__(self, name: str):
        value = 1 if name in self.returning else None
        return lambda *arguments: value

    def get(self, name, default=None):
        return self[name]


def serve() -> None:
    """Answers each line of standard input until it ends."""
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    import bdforge.array.emulator  # noqa: F401  # before the first answer: its time is no case's

    answers = sys.stdout
    print("ready", file=answers, flush=True)
    for line in sys.stdin:
        case = json.loads(line)
        with contextlib.redirect_stdout(io.StringIO()):
            report = examine(case["text"], [(e, n) for e, n in case["arguments"]], case["seed"])
        print(json.dumps(asdict(report)), file=answers, flush=True)


if __name__ == "__main__":
    serve()
