"""The search: every legal candidate of every tile height, in parts that can be kept, shared out and taken up again.

A part is one m. Parts are independent, so neither their order nor processes nor a cluster change the result.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from signal import SIG_IGN, SIGINT, signal
from typing import Any

import numpy as np

from bdforge.operators.gemm import GemmProblem
from bdforge.perf.errors import PerfError
from bdforge.perf.tune.legal import legal
from bdforge.perf.tune.space import Candidate, SearchSpace, candidates_of
from bdforge.perf.tune.time_model import Basis, modelled_us

KEPT = 32  # fastest candidates that a part returns, each of another kind
_AT_ONCE = 1 << 18  # candidates that are modelled together: arrays that caches hold


@dataclass(frozen=True, slots=True)
class Search:
    """A whole search: what is given, whose kernels are believed, and the problems with how often each is run."""

    space: SearchSpace
    basis: Basis
    problems: tuple[tuple[GemmProblem, int], ...]


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate and its modelled microseconds for all problems."""

    time_us: float
    candidate: Candidate

    @property
    def kind(self) -> tuple[int, ...]:
        """m, k, n, a_shims and the power of two of k_mt: what is worth emulating apart."""
        c = self.candidate
        return c.m, c.k, c.n, c.a_shims, c.k_mt.bit_length()

    @property
    def rank(self) -> tuple:
        """Faster first; of equals the one with two buffers of C in memtiles, one shim for A, and small buffers."""
        c, time_us = self.candidate, round(self.time_us, 6)
        return time_us, -c.c_memtile_buffers, c.a_shims, c.b_layout, c.k_mt, c.c_buffers, c.rho, c.m, c.k, c.n


@dataclass(frozen=True, slots=True)
class SearchPart:
    """Result of one tile height: candidates whose buffers fit a core, those of them that can be built, the fastest."""

    m: int
    examined: int
    legal: int
    best: tuple[Ranked, ...]


def search_part(wanted: Search, m: int) -> SearchPart:
    """Model every legal candidate with this m."""
    examined, counted, best = 0, 0, []
    for candidates in candidates_of(wanted.space, m):
        examined += candidates.length
        good = buildable(wanted.space, candidates)
        counted += good.length
        for start in range(0, good.length, _AT_ONCE):
            piece = good.at(slice(start, start + _AT_ONCE))
            times = modelled_us(wanted.space, wanted.basis, piece, wanted.problems)
            best = fastest([*best, *_fastest(piece, times)])
    return SearchPart(m, examined, counted, tuple(best))


def buildable(space: SearchSpace, candidates: Candidate) -> Candidate:
    """Those that can be built; with one buffer of C for each core in memtiles where there is no room for two."""
    good = legal(space, candidates)
    rest = candidates.at(~good)
    single = rest._replace(c_memtile_buffers=np.ones(rest.length, np.int64))
    return Candidate(*map(np.concatenate, zip(candidates.at(good), single.at(legal(space, single)), strict=True)))


def _fastest(candidates: Candidate, times: np.ndarray) -> list[Ranked]:
    few = min(len(times), 16 * KEPT)
    nearest = np.argpartition(times, few - 1)[:few] if few else []
    return fastest(Ranked(float(times[i]), candidates.row(int(i))) for i in nearest)


def fastest(ranked: Iterable[Ranked], count: int = KEPT) -> list[Ranked]:
    """The fastest of each kind, fastest first."""
    best: dict[tuple[int, ...], Ranked] = {}
    for entry in sorted(ranked, key=lambda entry: entry.rank):
        best.setdefault(entry.kind, entry)
    return list(best.values())[:count]


Runner = Callable[[Search, list[int]], Iterator[SearchPart]]
"""Searches the given tile heights and yields their parts as they end."""


def in_process(wanted: Search, heights: list[int]) -> Iterator[SearchPart]:
    """One after the other."""
    return (search_part(wanted, m) for m in heights)


def in_processes(jobs: int) -> Runner:
    if jobs < 1:
        raise PerfError(f"-j {jobs} is below 1; this host has {os.cpu_count()} processors")

    def run(wanted: Search, heights: list[int]) -> Iterator[SearchPart]:
        with ProcessPoolExecutor(jobs, get_context("spawn"), _left_to_the_parent) as pool:
            try:
                for done in as_completed([pool.submit(search_part, wanted, m) for m in heights]):
                    yield done.result()
            except BrokenProcessPool:
                raise PerfError(
                    "a process of the search was ended; go on with the same command and a smaller -j"
                ) from None
            finally:
                pool.shutdown(cancel_futures=True)

    return in_process if jobs == 1 else run


def _left_to_the_parent() -> None:
    """Ctrl-C reaches all processes of a terminal; only the first one says so and keeps what is done."""
    signal(SIGINT, SIG_IGN)


def on_cluster(address: str, timeout_seconds: float = 10) -> Runner:
    """The workers of the Dask scheduler at `address`; PerfError without Dask, or when nobody answers."""
    try:
        from distributed import Client
    except ImportError:
        raise PerfError("--scheduler needs Dask, which is not installed; pip install 'bdforge[dask]'") from None

    def run(wanted: Search, heights: list[int]) -> Iterator[SearchPart]:
        from distributed import as_completed as completed

        with _client(Client, address, timeout_seconds) as client:
            futures = client.map(search_part, [wanted] * len(heights), heights, pure=False)
            try:
                for future in completed(futures):
                    yield future.result()
            except (ImportError, OSError, RuntimeError) as error:
                raise PerfError(f"a worker of {address!r} cannot search: {error}; is this bdforge there?") from None

    return run


@contextmanager
def _client(make: Any, address: str, timeout_seconds: float) -> Iterator[Any]:
    try:
        client = make(address, timeout=timeout_seconds)
    except (OSError, ValueError) as error:
        raise PerfError(f"no Dask scheduler answers at {address!r}: {error}") from None
    with client:
        yield client
