"""Who does tasks: processes of this host, or the workers of a Dask cluster.

One that is lost costs its task, which is done again; a task with which `LOST_MOST` were lost is given up.
"""

import os
import signal
from collections import Counter, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from queue import Empty, SimpleQueue
from typing import Any

from bdforge.common.tasks import Outcome, Outcomes, Runner, TaskError, made, named_task, one_by_one, sources

LOST_MOST = 3
"""Processes that may end while they do the same task."""
WITHOUT_WORKERS_SECONDS = 60.0
"""Without a result and without workers, until a cluster is given up."""
CONNECT_SECONDS = 10.0
_GRACE_SECONDS = 5.0
_SPAWN = get_context("spawn")


def in_processes(jobs: int) -> Runner:
    """So many processes of this host, one task each at a time; TaskError for none."""
    if jobs < 1:
        raise TaskError(f"-j {jobs} is below 1; this host has {os.cpu_count()} processors")

    def run(call: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
        working: dict[Any, _Process] = {}
        lost: Counter[int] = Counter()
        left = deque(range(len(tasks)))
        idle: list[_Process] = []
        try:
            while left or working:
                while left and len(working) < jobs:
                    process = idle.pop() if idle else _Process()
                    working[process.pipe] = process
                    process.begin(left[0], call, tasks[left.popleft()])
                for pipe in wait(list(working)):
                    process = working.pop(pipe)
                    if (outcome := process.outcome()) is not None:
                        idle.append(process)
                        yield process.place, outcome
                        continue
                    how = process.end()
                    lost[process.place] += 1
                    if lost[process.place] < LOST_MOST:
                        left.appendleft(process.place)
                        continue
                    task = named_task(call, tasks[process.place])
                    yield process.place, TaskError(f"{task}: {LOST_MOST} processes ended with it, the last {how}")
        finally:
            for process in [*working.values(), *idle]:
                process.end()

    return one_by_one if jobs == 1 else run


class _Process:
    """A process that does tasks one after the other, until its pipe or its parent ends."""

    def __init__(self) -> None:
        self.pipe, theirs = _SPAWN.Pipe()
        self.process = _SPAWN.Process(target=_serve, args=(theirs, sources()), daemon=True)
        self.process.start()
        theirs.close()  # so that the pipe ends with the process
        self.place = -1

    def begin(self, place: int, call: Callable[[Any], Any], task: Any) -> None:
        self.place = place
        with suppress(OSError):  # it has ended, as its outcome will tell
            self.pipe.send((call, task))

    def outcome(self) -> Outcome | None:
        """Of the task that it was given; None where the process has ended."""
        try:
            return self.pipe.recv()
        except (EOFError, OSError):
            self.process.join(_GRACE_SECONDS)  # between the end of its pipe and its own
            return None

    def end(self) -> str:
        """End it whatever it does, and how it has ended."""
        self.pipe.close()
        self.process.kill()  # of no effect on one that has exited
        self.process.join()
        ended = self.process.exitcode or 0
        self.process.close()
        return f"by {signal.Signals(-ended).name}" if ended < 0 else f"with exit code {ended}"


def _serve(pipe: Connection, of: str) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a terminal sends it to all; the parent ends the others
    with suppress(EOFError):
        while True:
            call, task = pipe.recv()
            pipe.send(made(call, task, of))


def on_cluster(address: str) -> Runner:
    """The workers of the Dask scheduler at `address`; TaskError without Dask, or when nobody answers."""
    try:
        from distributed import Client
    except ImportError:
        raise TaskError("--scheduler needs Dask, which is not installed; pip install 'bdforge[dask]'") from None

    def run(call: Callable[[Any], Any], tasks: Sequence[Any]) -> Outcomes:
        if not tasks:
            return
        with _client(Client, address) as client:
            done: SimpleQueue[Any] = SimpleQueue()
            futures = client.map(made, [call] * len(tasks), tasks, [sources()] * len(tasks), pure=False)
            places = {future.key: place for place, future in enumerate(futures)}
            for future in futures:
                future.add_done_callback(done.put)
            for _ in tasks:
                future = _next(done, client, address)
                place = places[future.key]
                yield place, _outcome(future, named_task(call, tasks[place]), address)

    return run


@contextmanager
def _client(make: Any, address: str) -> Iterator[Any]:
    try:
        client = make(address, timeout=CONNECT_SECONDS)
    except (OSError, ValueError) as error:
        raise TaskError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        yield client


def _next(done: SimpleQueue[Any], client: Any, address: str) -> Any:
    """The next future that is done; TaskError where there is nobody left to do one."""
    while True:
        with suppress(Empty):
            return done.get(timeout=WITHOUT_WORKERS_SECONDS)
        workers: Mapping = client.scheduler_info()["workers"] if client.status == "running" else {}
        if not workers:
            raise TaskError(
                f"{address!r} has had no workers for {WITHOUT_WORKERS_SECONDS:.0f} s; start some with dask worker "
                f"{address} and give the same command: what is done is kept"
            )


def _outcome(future: Any, task: str, address: str) -> Outcome:
    if future.status == "cancelled":
        return TaskError(f"the scheduler at {address!r} ended; give the same command when there is one again")
    if (error := future.exception()) is None:
        return future.result()
    if isinstance(error, ImportError):
        return TaskError(f"a worker of {address!r} has no bdforge: {error}")
    return TaskError(f"{task}: workers of {address!r} ended with it, or cannot do it: {error}")
