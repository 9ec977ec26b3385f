"""What a run of the tests took of the processors, told at its end: in all, and by the files that took most."""

import os
from collections import Counter

import pytest

DEAREST = 10
ENDED_LAST = "(what ended with its process: device servers)"


def spent() -> float:
    """Seconds of this process and of those that it waited for."""
    return sum(os.times()[:4])


class CpuTime:
    """Milliseconds by file, which workers hand to the process that started them."""

    def __init__(self) -> None:
        self.files = Counter[str]()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None):
        before = spent()
        done = yield
        self.files[item.location[0] if nextitem else ENDED_LAST] += round(1000 * (spent() - before))
        return done

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if (told := getattr(session.config, "workeroutput", None)) is not None:
            told["cpu_time"] = dict(self.files)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node) -> None:
        self.files.update(getattr(node, "workeroutput", {}).get("cpu_time", {}))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if terminalreporter.verbosity >= 0 and self.files:
            terminalreporter.write_line(f"{spent() / 60:.1f} CPU minutes; most of them:")
            for file, milliseconds in self.files.most_common(DEAREST):
                terminalreporter.write_line(f"  {milliseconds / 1000:5.1f} s  {file}")
