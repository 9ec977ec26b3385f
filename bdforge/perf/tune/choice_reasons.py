"""Why a tuned design is as it is: bounds by problem, and what every other choice would cost."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from bdforge.operators.gemm import GemmProblem, SpecError, plan_gemm
from bdforge.perf.bounds.estimate import Estimate, estimate
from bdforge.perf.tune.candidate_search import Search, buildable
from bdforge.perf.tune.space import B_LAYOUTS, BUFFERS, Candidate
from bdforge.perf.tune.time_model import Basis, case_at, kernel_on, modelled_us

LIFTS = {
    "compute": "a better kernel or larger m·n",
    "L1 stream": "a larger m (for B) or n (for A), or a second buffer of C",
    "shim channel": "more columns or a_shims = 2",
    "shim requests": "a deeper k_mt, packed B or more columns",
    "DRAM bandwidth": "narrower types, C above all, or larger m and n if they fitted",
    "DRAM run length": "a deeper k_mt or packed B",
    "controller": "fewer and larger transfers",
    "dispatch": "larger problems, or several GEMMs in one run",
    "padding": "tiles that divide M, K and N",
    "BD reconfiguration": "BDs written while others run",
}
"""What would lift each bound."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """A problem on a design: estimates by basis of the kernel."""

    problem: GemmProblem
    count: int
    estimates: dict[Basis, Estimate]

    def sentence(self) -> str:
        """TOPS by basis, and what binds."""
        speeds = ", ".join(f"{found.tops:.2f} {basis}" for basis, found in self.estimates.items())
        first = next(iter(self.estimates.values()))
        parts = {**first.parallel, **first.serial}
        largest = sorted(parts.items(), key=lambda part: -part[1])[:4]
        told = ", ".join(f"{name} {time_us:.0f}" for name, time_us in largest)
        return f"{self.problem}: {speeds} TOPS; bound: {first.bound} ({told} us of {first.time_us:.0f})"


def verdicts(wanted: Search, candidate: Candidate) -> list[Verdict]:
    """Every problem of a search on one candidate: for its basis first, then for our loops as compiled and ideal."""
    plan = plan_gemm(wanted.space.spec(candidate), wanted.space.device)
    bases: dict[Basis, None] = dict.fromkeys((wanted.basis, "compiled", "ideal"))
    found = []
    for problem, count in wanted.problems:
        case = case_at(wanted.space, candidate, problem)
        found.append(Verdict(problem, count, {b: estimate(case, kernel=kernel_on(plan, case, b)) for b in bases}))
    return found


def alternatives(wanted: Search, candidate: Candidate) -> Iterator[str]:
    """One line for each choice: the best other value with all else equal, and what it costs."""
    own = float(modelled_us(wanted.space, wanted.basis, Candidate.of([candidate]), wanted.problems)[0])
    for field in ("m", "k", "n", "k_mt", "c_buffers", "rho", "a_shims", "b_layout"):
        yield from _alternative(wanted, candidate, field, own)


def _alternative(wanted: Search, candidate: Candidate, field: str, own: float) -> Iterator[str]:
    own_value = getattr(candidate, field)
    values = [value for value in _values(wanted, candidate, field) if value != own_value]
    rows = [_changed(candidate, field, value, wanted.space.c_memtile_buffers) for value in values]
    told = f"{_name(field)} = {_shown(field, own_value)}"
    if not rows:
        return
    good = buildable(wanted.space, Candidate.of(rows))
    if not good.length:
        yield f"{told}: no other value can be built; {_reason(wanted, rows[0], field, values[0])}"
        return
    times = modelled_us(wanted.space, wanted.basis, good, wanted.problems)
    best = int(times.argmin())
    other = _shown(field, getattr(good.row(best), field))
    change = float(times[best]) / own - 1
    yield f"{told}: the next best, {other}, takes {change:+.1%} of the time; {good.length} of {len(rows)} others fit"


def _values(wanted: Search, candidate: Candidate, field: str) -> list[int]:
    """Values of one field with all else equal."""
    r, step_k, step_n = wanted.space.kernel.multiples
    if field == "b_layout":
        return [B_LAYOUTS.index(layout) for layout in wanted.space.b_layouts]
    if field in ("c_buffers", "a_shims"):
        return list(BUFFERS)
    if field == "k_mt":
        return [candidate.k * slices for slices in range(1, -(-wanted.space.deepest // candidate.k) + 1)]
    if field == "rho":
        return [d for d in range(1, candidate.m // r + 1) if candidate.m % (r * d) == 0]
    step = {"m": r * candidate.rho * candidate.a_shims, "k": step_k, "n": step_n}[field]
    return [step * i for i in range(1, 2 * getattr(candidate, field) // step + 1)]


def _changed(candidate: Candidate, field: str, value: int, first: int) -> Candidate:
    """A candidate with another value, and `first` buffers of C in memtiles; slabs keep about their depth with k."""
    row = candidate._replace(c_memtile_buffers=first)._replace(**{field: value})
    return row._replace(k_mt=value * max(1, round(row.k_mt / value))) if field == "k" else row


def _reason(wanted: Search, row: Candidate, field: str, value: int) -> str:
    spec = wanted.space.spec(row, f"{_name(field)} = {_shown(field, value)}")
    try:
        plan_gemm(spec, wanted.space.device)
    except SpecError as error:
        return re.sub(r" \([^()]*\)", "", str(error).splitlines()[0])
    return "not tried"


def _name(field: str) -> str:
    return "layouts.b" if field == "b_layout" else field


def _shown(field: str, value: int) -> str:
    return B_LAYOUTS[value] if field == "b_layout" else str(value)
