"""Finalists of a search on the emulated array, timed.

Time depends on no value, so the kernels do nothing and only cost their cycles. The problem is reduced to whole tiles of
the candidate: one row panel and a few column steps. It is run with two counts of steps, so that what happens once, in
emulation as in the model, drops out of the differences; emulated over modelled difference is the ratio that scales the
steady part of the modelled time on the true problems.
"""

from dataclasses import dataclass, replace
from math import ceil

from bdforge.array.emulator import EmulationError
from bdforge.operators import WalkError
from bdforge.operators.gemm import GemmPlan, GemmProblem, SpecError, plan_gemm, sequence
from bdforge.operators.gemm.plan import GemmSpec
from bdforge.perf.bounds.estimate import estimate
from bdforge.perf.errors import PerfError
from bdforge.perf.timed import timed
from bdforge.perf.tune.candidate_search import Search
from bdforge.perf.tune.space import Candidate
from bdforge.perf.tune.time_model import case_at, kernel_on

ROUNDS = (2, 5)
"""Tiles of C for each core, in both runs."""
_DEPTH = 2560  # elements of K, at most, up to whole slabs


@dataclass(frozen=True, slots=True)
class EmulatedFinalist:
    """A finalist: the larger reduced problem, and microseconds that its additional tiles take."""

    problem: tuple[int, int, int]
    emulated_us: float
    modelled_us: float

    @property
    def ratio(self) -> float:
        return self.emulated_us / self.modelled_us


def reduced(spec: GemmSpec, problems: tuple[tuple[GemmProblem, int], ...], rounds: int) -> GemmProblem:
    """Whole tiles of one row panel and `rounds` column steps, or the other way round where B stays.

    Slabs are up to the problems' K or `_DEPTH`.
    """
    deepest = min(max(problem.K for problem, _ in problems), _DEPTH)
    k_mt = spec.buffers.k_mt
    if spec.buffers.residency == "b":  # what stays is of use for several row panels
        return GemmProblem(rounds * spec.tile.m * spec.rows, ceil(deepest / k_mt) * k_mt, spec.tile.n * spec.columns)
    return GemmProblem(spec.tile.m * spec.rows, ceil(deepest / k_mt) * k_mt, rounds * spec.tile.n * spec.columns)


def emulated(wanted: Search, candidate: Candidate) -> EmulatedFinalist:
    """Time a candidate on its reduced problem; PerfError when a problem cannot be walked or the array stops."""
    plan = plan_gemm(wanted.space.spec(candidate, "finalist"), wanted.space.device)
    few, many = (reduced(plan.spec, wanted.problems, rounds) for rounds in ROUNDS)
    try:
        for walked, _ in wanted.problems:
            sequence(plan, walked.M, walked.K, walked.N)
        times = [_emulated_us(plan, wanted, problem) for problem in (few, many)]
    except (SpecError, WalkError, EmulationError) as error:
        raise PerfError(str(error).splitlines()[0]) from None
    cases = [case_at(wanted.space, candidate, problem) for problem in (few, many)]
    modelled = [estimate(case, kernel=kernel_on(plan, case, wanted.basis)).time_us for case in cases]
    return EmulatedFinalist((many.M, many.K, many.N), times[1] - times[0], modelled[1] - modelled[0])


@dataclass(frozen=True, slots=True)
class Emulation:
    """A task: a candidate for the problems of a search, by its kernels; what else is searched does not count."""

    wanted: Search
    candidate: Candidate

    @classmethod
    def of(cls, wanted: Search, candidate: Candidate) -> "Emulation":
        space = replace(wanted.space, b_layouts=(), fixed=())
        return cls(Search(space, wanted.basis, wanted.problems), candidate)


def emulated_or_not(task: Emulation) -> EmulatedFinalist | str:
    """What `emulated` finds, or why it cannot."""
    try:
        return emulated(task.wanted, task.candidate)
    except PerfError as error:
        return str(error)


def _emulated_us(plan: GemmPlan, wanted: Search, problem: GemmProblem) -> float:
    return timed(plan, problem, wanted.basis).array_seconds * 1e6
