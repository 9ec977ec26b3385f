"""Runs of a loaded design: at once, or one after the other in a thread of their own."""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from concurrent.futures import TimeoutError as NotYet
from contextlib import contextmanager
from threading import Lock
from typing import Any, Protocol

import numpy as np

from bdforge.common.messages import Fault, InputError, RunFault, warn_once
from bdforge.design.sequences import PlannedSequence

ListedRun = tuple[PlannedSequence, Sequence[np.ndarray]]
"""A run of a list: its sequence, and its buffers by argument."""


class UseError(Fault, RuntimeError):
    """An object that is closed, that a run still uses, or that belongs to another thread."""


@contextmanager
def numbered(number: int, count: int) -> Iterator[None]:
    """Faults tell the number of the run of a list that they are of."""
    try:
        yield
    except (RunFault, InputError, UseError) as error:
        raise type(error)(f"run {number} of {count}: {error}") from error


class Backend(Protocol):
    """Where a design is loaded; any thread may run, one run at a time."""

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        """Run a planned sequence on its host buffers, of which the array writes some in place. Returns warnings."""
        ...

    def run_list(self, runs: "Sequence[ListedRun]", timeout_seconds: float) -> tuple[str, ...]:
        """Run several in order, `RUNLIST_COMMANDS_MAX` at a time; none behind one that fails, whose number is told.

        They may have buffers in common. A submission has `timeout_seconds`, where its device counts. Returns warnings.
        """
        ...

    def resident(self, argument: int, buffer: np.ndarray) -> np.ndarray:
        """A host buffer that many runs use, in memory where they find it without a copy."""
        ...

    def send(self, buffer: np.ndarray) -> None:
        """Make what the host wrote in a resident buffer visible to the array: no run does."""
        ...

    def receive(self, buffer: np.ndarray) -> None:
        """Make what runs wrote in a resident buffer visible to the host: no run does."""
        ...

    def ready(self) -> None:
        """Load the array where that is not done yet."""
        ...

    def close(self) -> None:
        """Give back the array; nothing runs any more."""
        ...


class Pending:
    """A run that was submitted. Its arrays are the run's until `wait` returns."""

    def __init__(self, what: str, future: "Future[Any]"):
        self._what, self._future = what, future

    @property
    def done(self) -> bool:
        """Whether it has ended, well or not."""
        return self._future.done()

    def wait(self, timeout_seconds: float | None = None) -> Any:
        """What a call would have returned, or raised; UseError where the run has not ended after so long."""
        try:
            return self._future.result(timeout_seconds)
        except NotYet:
            if self.done:  # meanwhile, or by a fault of that kind
                return self._future.result()
            raise UseError(f"{self._what} has not ended after {timeout_seconds:g} s; wait again") from None

    def __repr__(self) -> str:
        failed = self.done and self._future.exception() is not None
        return f"<Pending {self._what}: {'failed' if failed else 'done' if self.done else 'under way'}>"


class RunQueue:
    """What one loaded array runs, until it is closed; any thread may ask."""

    def __init__(self, name: str, backend: Backend):
        self.name, self._backend = name, backend
        self._lock, self._running, self._closed = Lock(), Lock(), False
        self._pool: ThreadPoolExecutor | None = None

    @property
    def backend(self) -> Backend:
        """Where the design is loaded; UseError when that was closed."""
        if self._closed:
            raise UseError(f"design {self.name} was closed; load it again")
        return self._backend

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> None:
        """Run now; what the array warns of is logged, once each."""
        with self._running:
            warnings = self.backend.run(planned, buffers, timeout_seconds)
        self._warn(warnings)

    def run_list(self, runs: Sequence[ListedRun], timeout_seconds: float) -> None:
        """Run several now, as one list."""
        with self._running:
            warnings = self.backend.run_list(runs, timeout_seconds)
        self._warn(warnings)

    def _warn(self, warnings: Sequence[str]) -> None:
        for warning in warnings:
            warn_once(f"{self.name}: {warning}")

    def submit(self, what: str, work: Callable[[], Any]) -> Pending:
        """Do some work behind what was submitted before."""
        with self._lock:
            _ = self.backend  # UseError where it was closed
            self._pool = self._pool or ThreadPoolExecutor(1, f"bdforge {self.name}")
            return Pending(f"{what} of {self.name}", self._pool.submit(work))

    def close(self) -> None:
        """Wait for what runs or was submitted, then give back the array; nothing when that was done."""
        with self._lock:
            if self._pool is not None:
                self._pool.shutdown()  # runs take `_running` alone, so they can end
            with self._running:
                if not self._closed:
                    self._closed = True
                    self._backend.close()
