"""Runs of tests for faults: which tests reach which lines, processes that end in time, a tree in a file's place."""

import ast
import contextlib
import importlib.machinery
import os
import pickle
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import hypothesis  # noqa: F401  what most tests import is imported once, before processes fork
import numpy  # noqa: F401
import pytest
import xdsl.parser  # noqa: F401

MEMORY_BYTES = 8 << 30
Reached = dict[int, set[str]]
"""Tests by the lines that they run; "" for lines that run when the file is imported, all tests at line 0."""


class Lines:
    """pytest plugin: which tests run which lines of one file."""

    def __init__(self, path: Path):
        self.path, self.test = str(path), ""
        self.reached: Reached = {}
        sys.settrace(self._trace)

    def _trace(self, frame: Any, _event: str, _argument: Any) -> Callable | None:
        if frame.f_code.co_filename != self.path:
            return None
        self.reached.setdefault(frame.f_lineno, set()).add(self.test)
        return self._trace

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        self.test = _name(item)
        self.reached.setdefault(0, set()).add(self.test)
        sys.settrace(self._trace)
        result = yield
        self.test = ""
        return result


class Only:
    """pytest plugin: lets run the named tests alone."""

    def __init__(self, tests: set[str]):
        self.tests = tests

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items[:] = [item for item in items if _name(item) in self.tests]


def _name(item: pytest.Item) -> str:
    return f"{item.path}::{item.nodeid.partition('::')[2]}"


def run_tests(tests: Iterable[str], *plugins: object) -> int:
    """pytest's exit code."""
    arguments = ["-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-m", "not slow", *tests]
    return int(pytest.main(arguments, plugins=list(plugins)))


def in_processes(works: Iterable[tuple[Any, Callable[[], int], float]], jobs: int) -> Iterator[tuple[Any, int]]:
    """Run (key, work, seconds) in processes of their own; (key, exit code), negative where time or memory ran out."""
    running: dict[int, Any] = {}
    for key, work, seconds in works:
        if len(running) == jobs:
            yield _ended(running)
        pid = os.fork()
        if not pid:
            _work(work, seconds)
        running[pid] = key
    while running:
        yield _ended(running)


def _ended(running: dict[int, Any]) -> tuple[Any, int]:
    pid, status = os.wait()
    with contextlib.suppress(ProcessLookupError):
        os.killpg(pid, signal.SIGKILL)  # what the tests started
    return running.pop(pid), os.waitstatus_to_exitcode(status)


def _work(work: Callable[[], int], seconds: float) -> None:
    os.setpgid(0, 0)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    nothing = os.open(os.devnull, os.O_WRONLY)
    for stream in (1, 2):
        os.dup2(nothing, stream)
    code = 1
    with tempfile.TemporaryDirectory() as folder:
        os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = folder
        with contextlib.suppress(BaseException):
            code = work()
    os._exit(code)


def reached_lines(path: Path, tests: list[str]) -> tuple[Reached, float]:
    """Tests by lines of a file, and the seconds that all take; ends the program where a test fails without a fault."""
    with tempfile.NamedTemporaryFile() as file:

        def work() -> int:
            plugin = Lines(path)
            code = run_tests(tests, plugin)
            Path(file.name).write_bytes(pickle.dumps(plugin.reached))
            return code

        began = time.monotonic()
        [(_, code)] = in_processes([(path, work, 3600)], 1)
        if code:
            sys.exit(f"{' '.join(tests)} fails without a fault (exit code {code})")
        return pickle.loads(Path(file.name).read_bytes()), time.monotonic() - began


def with_fault(path: Path, faulty: ast.Module, tests: set[str]) -> int:
    """Exit code of `tests` where imports of `path` get a faulty tree."""
    loader, read = importlib.machinery.SourceFileLoader, importlib.machinery.SourceFileLoader.get_code
    code = compile(faulty, str(path), "exec")
    loader.get_code = lambda self, fullname: code if self.path == str(path) else read(self, fullname)
    return run_tests(sorted({test.split("::")[0] for test in tests}), Only(tests))
