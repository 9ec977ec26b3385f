"""The search: every legal candidate of every tile height. Parts, of one m each, are independent tasks."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from bdforge.operators.gemm import GemmProblem
from bdforge.perf.tune.legal import legal
from bdforge.perf.tune.space import Candidate, SearchSpace, candidates_of
from bdforge.perf.tune.time_model import Basis, modelled_us

KEPT = 32
"""Fastest candidates that a part returns at least, each of another kind."""
_AT_ONCE = 1 << 18  # candidates that are modelled together: arrays that caches hold


@dataclass(frozen=True, slots=True)
class Search:
    """A whole search: what is given, whose kernels are believed, and the problems with how often each is run.

    `kept` are the fastest that each part returns.
    """

    space: SearchSpace
    basis: Basis
    problems: tuple[tuple[GemmProblem, int], ...]
    kept: int = KEPT


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


@dataclass(frozen=True, slots=True)
class Height:
    """A task: the part of a search with this m."""

    wanted: Search
    m: int


def search_part(height: Height) -> SearchPart:
    """Model every legal candidate with this m."""
    wanted, m = height.wanted, height.m
    examined, counted, best = 0, 0, []
    for candidates in candidates_of(wanted.space, m):
        examined += candidates.length
        good = buildable(wanted.space, candidates)
        counted += good.length
        for start in range(0, good.length, _AT_ONCE):
            piece = good.at(slice(start, start + _AT_ONCE))
            times = modelled_us(wanted.space, wanted.basis, piece, wanted.problems)
            best = fastest([*best, *_fastest(piece, times, wanted.kept)], wanted.kept)
    return SearchPart(m, examined, counted, tuple(best))


def buildable(space: SearchSpace, candidates: Candidate) -> Candidate:
    """Those that can be built; with one buffer of C for each core in memtiles where there is no room for two."""
    good = legal(space, candidates)
    rest = candidates.at(~good)
    single = rest._replace(c_memtile_buffers=np.ones(rest.length, np.int64))
    return Candidate(*map(np.concatenate, zip(candidates.at(good), single.at(legal(space, single)), strict=True)))


def _fastest(candidates: Candidate, times: np.ndarray, count: int = KEPT) -> list[Ranked]:
    few = min(len(times), 16 * count)
    nearest = np.argpartition(times, few - 1)[:few] if few else []
    return fastest((Ranked(float(times[i]), candidates.row(int(i))) for i in nearest), count)


def fastest(ranked: Iterable[Ranked], count: int = KEPT) -> list[Ranked]:
    """The fastest of each kind, fastest first."""
    best: dict[tuple[int, ...], Ranked] = {}
    for entry in sorted(ranked, key=lambda entry: entry.rank):
        best.setdefault(entry.kind, entry)
    return list(best.values())[:count]
