"""The tuner: every design that can be built, by the analytical model, then the best by timed emulation."""

import time
from dataclasses import dataclass

from bdforge.common.tasks import HERE, Told, Workers, untold
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.tune.candidate_search import Height, Ranked, Search, SearchPart, fastest, search_part
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist, Emulation, emulated_or_not
from bdforge.perf.tune.space import Candidate, rows_of_tiles
from bdforge.perf.tune.time_model import case_at

FINALISTS, FINALISTS_MOST = 8, 10_000
"""Of a search: as many as are emulated unless told, and at most, which takes a night of several machines."""


@dataclass(frozen=True, slots=True)
class Finalist:
    """One of the fastest: as modelled, and as emulation corrects it, or why it was passed over."""

    ranked: Ranked
    emulated: EmulatedFinalist | None = None
    passed_over: str = ""
    fixed_us: float = 0.0

    @property
    def time_us(self) -> float:
        """Microseconds of all problems: what happens once, and the steady part times emulated over modelled."""
        if self.emulated is None:
            return self.ranked.time_us
        return self.fixed_us + (self.ranked.time_us - self.fixed_us) * self.emulated.ratio


@dataclass(frozen=True, slots=True)
class Tuned:
    """A search's result. `finalists` are ranked, those passed over last; `seconds` are of this run's search alone."""

    wanted: Search
    finalists: tuple[Finalist, ...]
    examined: int
    legal: int
    resumed_parts: int
    seconds: float
    emulation_seconds: float

    @property
    def best(self) -> Finalist:
        return self.finalists[0]


def search(wanted: Search, workers: Workers = HERE, ended: Told = untold) -> list[SearchPart]:
    """All parts; `ended` hears of parts done and of all parts, at first of those that were kept."""
    return workers.results(search_part, [Height(wanted, m) for m in rows_of_tiles(wanted.space)], ended)


def tune(
    wanted: Search, workers: Workers = HERE, *, finalists: int = FINALISTS, ended: Told = untold,
    emulating: Told = untold,
) -> Tuned:  # fmt: skip
    """Search exhaustively and re-rank the best `finalists` by timed emulation (0: by the model alone).

    `ended` and `emulating` hear of the progress. PerfError when nothing can be built, or no finalist can run.
    """
    done: list[int] = []
    start = time.perf_counter()
    parts = search(wanted, workers, lambda parts, of: (done.append(parts), ended(parts, of)))
    searched = time.perf_counter()
    best = fastest((ranked for part in parts for ranked in part.best), wanted.kept)
    if not best:
        fixed = "".join(f", {name} of {' or '.join(map(str, values))}" for name, values in wanted.space.fixed)
        raise PerfError(f"no tile can be built: no choice of m, k, n and buffers{fixed} fits")
    ranked = _reranked(wanted, best, finalists, workers, emulating)
    return Tuned(
        wanted, ranked, sum(p.examined for p in parts), sum(p.legal for p in parts), done[0], searched - start,
        time.perf_counter() - searched,
    )  # fmt: skip


def _reranked(wanted: Search, best: list[Ranked], count: int, workers: Workers, tell: Told) -> tuple[Finalist, ...]:
    """Emulates the best until `count` of them could run: as many at once as are wanted yet."""
    if count == 0:
        return tuple(Finalist(ranked) for ranked in best)
    found: list[Finalist] = []
    good = 0
    while good < count and len(found) < len(best):
        tasks = [Emulation.of(wanted, r.candidate) for r in best[len(found) : len(found) + count - good]]
        results = workers.results(emulated_or_not, tasks, lambda done, of, before=good: tell(before + done, count))
        found += [_finalist(wanted, *pair) for pair in zip(best[len(found) :], results, strict=False)]
        good = sum(finalist.emulated is not None for finalist in found)
    if not good:
        raise PerfError(f"none of the {len(found)} fastest designs can run the problems: {found[0].passed_over}")
    return tuple(sorted(found, key=lambda f: (f.emulated is None, f.time_us)))


def _finalist(wanted: Search, ranked: Ranked, found: EmulatedFinalist | str) -> Finalist:
    if isinstance(found, str):
        return Finalist(ranked, passed_over=found)
    return Finalist(ranked, found, fixed_us=_fixed_us(wanted, ranked.candidate))


def _fixed_us(wanted: Search, candidate: Candidate) -> float:
    """Dispatch, first slabs and last tiles of every run of every problem."""
    cases = [(case_at(wanted.space, candidate, problem), count) for problem, count in wanted.problems]
    return sum(count * sum(estimate(case).serial.values()) for case, count in cases)
