"""The tuner: every design that can be built, by the analytical model, then the best by timed emulation."""

import time
from collections.abc import Callable
from dataclasses import dataclass

from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.tune.candidate_search import Ranked, Runner, Search, SearchPart, fastest, in_process
from bdforge.perf.tune.emulated_finalists import EmulatedFinalist, emulated
from bdforge.perf.tune.search_state import State
from bdforge.perf.tune.space import Candidate, rows_of_tiles
from bdforge.perf.tune.time_model import case_at

FINALISTS = 8


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


def search(
    wanted: Search,
    run: Runner = in_process,
    state: State | None = None,
    ended: Callable[[int, int], None] | None = None,
) -> list[SearchPart]:
    """All parts, those of `state` taken over and new ones kept there; `ended` hears of parts done and of all parts."""
    heights = rows_of_tiles(wanted.space)
    parts = dict(state.parts) if state else {}
    tell = ended or (lambda done, of: None)
    tell(len(parts), len(heights))
    for part in run(wanted, [m for m in heights if m not in parts]):
        parts[part.m] = part
        if state:
            state.add(part)
        tell(len(parts), len(heights))
    return [parts[m] for m in heights]


def tune(
    wanted: Search, run: Runner = in_process, *, state: State | None = None, finalists: int = FINALISTS,
    ended: Callable[[int, int], None] | None = None, emulating: Callable[[int, int], None] | None = None,
) -> Tuned:  # fmt: skip
    """Search exhaustively and re-rank the best `finalists` by timed emulation (0: by the model alone).

    `ended` and `emulating` hear of the progress. PerfError when nothing can be built, or no finalist can run.
    """
    resumed, start = len(state.parts) if state else 0, time.perf_counter()
    parts = search(wanted, run, state, ended)
    searched = time.perf_counter()
    best = fastest(ranked for part in parts for ranked in part.best)
    if not best:
        fixed = "".join(f", {name} of {' or '.join(map(str, values))}" for name, values in wanted.space.fixed)
        raise PerfError(f"no tile can be built: no choice of m, k, n and buffers{fixed} fits")
    ranked = _reranked(wanted, best, finalists, state, emulating)
    return Tuned(
        wanted, ranked, sum(p.examined for p in parts), sum(p.legal for p in parts), resumed, searched - start,
        time.perf_counter() - searched,
    )  # fmt: skip


def _reranked(
    wanted: Search, best: list[Ranked], count: int, state: State | None, tell: Callable[[int, int], None] | None
) -> tuple[Finalist, ...]:
    """Emulates the best until `count` of them could run."""
    if count == 0:
        return tuple(Finalist(ranked) for ranked in best)
    found: list[Finalist] = []
    for ranked in best:
        good = sum(f.emulated is not None for f in found)
        if tell:
            tell(good, count)
        if good == count:
            break
        found.append(_finalist(wanted, ranked, state))
    if not any(f.emulated for f in found):
        raise PerfError(f"none of the {len(found)} fastest designs can run the problems: {found[0].passed_over}")
    return tuple(sorted(found, key=lambda f: (f.emulated is None, f.time_us)))


def _finalist(wanted: Search, ranked: Ranked, state: State | None) -> Finalist:
    found = state.emulated.get(ranked.candidate) if state else None
    if found is None:
        try:
            found = emulated(wanted, ranked.candidate)
        except PerfError as error:
            found = str(error)
        if state:
            state.add_emulated(ranked.candidate, found)
    if isinstance(found, str):
        return Finalist(ranked, passed_over=found)
    return Finalist(ranked, found, fixed_us=_fixed_us(wanted, ranked.candidate))


def _fixed_us(wanted: Search, candidate: Candidate) -> float:
    """Dispatch, first slabs and last tiles of every run of every problem."""
    cases = [(case_at(wanted.space, candidate, problem), count) for problem, count in wanted.problems]
    return sum(count * sum(estimate(case).serial.values()) for case, count in cases)
