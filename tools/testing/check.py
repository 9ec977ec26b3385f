"""The tests of `./go check`: those that belong to the files that differ from main.

Of the tests the nearest ones run, for as long as there is time; the one that runs when it is over counts as not run.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))
from tools.testing.affected import affected_tests  # noqa: E402

SECONDS = 45  # of a minute, from before the tests are collected; lint and types have run
BASE = ("main", "origin/main", "HEAD")


def changed(root: Path = ROOT) -> list[Path]:
    """Files that differ from where this branch left main, committed or not, new ones too."""

    def git(*words: str) -> list[str]:
        done = subprocess.run(["git", "-C", str(root), *words], text=True, capture_output=True, check=False)
        return done.stdout.splitlines()

    base = next((found[0] for name in BASE if (found := git("merge-base", "HEAD", name))), "HEAD")
    names = {*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")}
    return sorted(root / name for name in names if (root / name).is_file())


class Clock:
    """Lets tests run until an alarm; what is left is told at the end."""

    def __init__(self, seconds: int):
        self.seconds, self.over, self.running, self.left = seconds, False, False, 0

    def pytest_sessionstart(self) -> None:
        signal.signal(signal.SIGALRM, self.ring)
        signal.alarm(self.seconds)

    def ring(self, *_: object) -> None:
        self.over = True
        if self.running:
            pytest.skip("the time is over")

    def pytest_runtest_protocol(self, item: pytest.Item) -> bool | None:
        self.left += self.over
        return self.over or None

    def pytest_runtest_logstart(self) -> None:
        self.running = True

    def pytest_runtest_logfinish(self) -> None:
        self.running = False

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        signal.alarm(0)
        if self.over:
            terminalreporter.write_line(f"after {self.seconds} s {self.left} tests were left out: ./go test runs all")


def check(files: list[Path], seconds: int = SECONDS) -> int:
    """Exit code of pytest; 0 when no test belongs to the files."""
    tests = [str(test.relative_to(ROOT)) for test in affected_tests(files)]
    print(f"{len(files)} files differ: tests of {len(tests)} files", flush=True)
    words = ["-q", "--no-header", "-m", "not slow", "-p", "no:cacheprovider", "-p", "no:warnings", *tests]
    tested = pytest.main(words, plugins=[Clock(seconds)]) if tests else 0
    return 0 if tested == pytest.ExitCode.NO_TESTS_COLLECTED else int(tested)


if __name__ == "__main__":
    sys.exit(check(changed()))
