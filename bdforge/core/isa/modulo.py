"""Modulo scheduling: cycles and units for tasks that repeat every `interval` cycles.

Iterative modulo scheduling (B. R. Rau, "Iterative modulo scheduling", MICRO-27, 1994): tasks are placed in order of
height; one that finds no free place evicts others, until the budget is spent. Some tasks may be fixed beforehand: then
all others keep to the windows that those leave them, and never evict them.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from heapq import heappop, heappush
from operator import or_
from typing import NamedTuple

BUDGET = 8  # placements per task, interval and order before the next is tried (Rau finds 6 to suffice)

NEVER = 1
"""The bit of a cell that is always taken."""

Places = tuple[tuple[tuple[str, int], ...], ...]
"""Alternatives of a task, each the (unit, cycle after issue) that it takes."""


class Edge(NamedTuple):
    """`later` issues at least `delay` cycles after the `earlier` of `distance` iterations before."""

    earlier: int
    later: int
    delay: int
    distance: int


@dataclass(frozen=True, slots=True)
class ModuloSchedule:
    """Issue cycle of each task in its first iteration, and the alternative it uses."""

    interval: int
    issues: tuple[int, ...]
    choices: tuple[int, ...]


@dataclass(frozen=True)
class ModuloProblem:
    """Tasks by what they occupy, with their dependences. `fixed` are those whose (cycle, alternative) is settled."""

    places: Sequence[Places]
    edges: Sequence[Edge]
    fixed: Mapping[int, tuple[int, int]]
    late: Collection[int]
    """Tasks that finally move as late as they may: values that are made late occupy registers for a shorter time."""
    start: int | None = None
    """The earliest cycle of tasks that are not fixed, where some are."""


def heights(problem: ModuloProblem, interval: int) -> list[int] | None:
    """Height of each task above the end of its iteration; None if a circle of dependences needs more cycles."""
    above = [0] * len(problem.places)
    for _ in range(len(above) + 1):
        changed = False
        for e in problem.edges:
            height = above[e.later] + e.delay - interval * e.distance
            if height > above[e.earlier]:
                above[e.earlier], changed = height, True
        if not changed:
            return above
    return None


def plans(problem: ModuloProblem, interval: int) -> Iterable[ModuloSchedule]:
    """Plans at one interval: by Rau's order, by height, and by four others, for problems on which it circles."""
    windows = _windows(problem, interval) if fits(problem.places, interval) else None
    if windows is None:
        return
    above, indices, cells = windows.heights, range(len(problem.places)), _Cells(problem.places, interval)
    settled = _settled(problem, cells)
    free = [i for i in indices if i not in problem.fixed]
    if any(cells.all_taken(i, windows.low[i], windows.high[i], settled) for i in free):
        return  # no order finds a place for it
    for order in (
        [(above[i], -i) for i in indices],
        [(above[i], i) for i in indices],
        [(-len(problem.places[i]), above[i], -i) for i in indices],
        [(-i,) for i in indices],
        [(i,) for i in indices],
    ):
        found = _Attempt(problem, interval, windows, cells).run(order)
        if found is not None:
            yield found


def late_plans(problem: ModuloProblem, interval: int) -> Iterator[ModuloSchedule]:
    """Plans that place each task as shortly before those that wait for it as is free: values need few registers.

    They are plans of the mirrored problem, read backwards; nothing may be fixed.
    """
    mirrored = ModuloProblem(
        [tuple(tuple((unit, -cycle) for unit, cycle in cells) for cells in places) for places in problem.places],
        [Edge(e.later, e.earlier, e.delay, e.distance) for e in problem.edges], {}, (),
    )  # fmt: skip
    for plan in plans(mirrored, interval):
        yield ModuloSchedule(interval, tuple(-issue for issue in plan.issues), plan.choices)


def fits(tasks: Sequence[Places], interval: int) -> bool:
    """Whether no unit has more to do than there are cycles; of tasks with alternatives nobody knows yet."""
    used = Counter(unit for places in tasks if len(places) == 1 for unit, _ in places[0])
    return max(used.values(), default=0) <= interval


@dataclass(frozen=True, slots=True)
class _Windows:
    """Earliest and latest cycle of each task, None where nothing fixed bounds it, and the order to place them in."""

    low: Sequence[int | None]
    high: Sequence[int | None]
    heights: Sequence[int]


def _windows(problem: ModuloProblem, interval: int) -> _Windows | None:
    count = len(problem.places)
    if not problem.fixed:
        above = heights(problem, interval)
        return None if above is None else _Windows([None] * count, [None] * count, above)
    settled = {i: at for i, (at, _) in problem.fixed.items()}
    early, late = ({i: s * at for i, at in settled.items()} for s in (1, -1))
    forward = [(e.earlier, e.later, e.delay - interval * e.distance) for e in problem.edges]
    below = _bounds(forward, early)
    above = _bounds([(later, earlier, gap) for earlier, later, gap in forward], late)
    if below is None or above is None:
        return None
    low = [below.get(i, problem.start) for i in range(count)]
    if problem.start is not None:
        low = [at if i in settled or at is None else max(at, problem.start) for i, at in enumerate(low)]
    high = [-above[i] if i in above else None for i in range(count)]
    if any(a is not None and b is not None and a > b for a, b in zip(low, high, strict=True)):
        return None
    order = [(b if i in problem.late else -(a or 0)) or 0 for i, (a, b) in enumerate(zip(low, high, strict=True))]
    return _Windows(low, high, order)


def _bounds(gaps: Sequence[tuple[int, int, int]], start: Mapping[int, int]) -> dict[int, int] | None:
    """Longest ways from what is settled: least values of all that it bounds; None if it contradicts itself."""
    found, out_of = dict(start), defaultdict(list)
    for a, b, gap in gaps:
        out_of[a].append((b, gap))
    waiting, left = deque(start), len(gaps) * (len(out_of) + 1)  # in turn: each way is found in as many rounds
    while waiting and left > 0:
        a = waiting.popleft()
        for b, gap in out_of[a]:
            left -= 1
            if b not in found or found[a] + gap > found[b]:
                if b in start:
                    return None
                found[b] = found[a] + gap
                waiting.append(b)
    return None if waiting else found


class _Cells:
    """What tasks take of the units in the cycles of an interval: a bit for each, and NEVER for what meets itself."""

    def __init__(self, places: Sequence[Places], interval: int) -> None:
        self.places, self.interval = places, interval
        units = {unit for alternatives in places for cells in alternatives for unit, _ in cells}
        self._rows = {unit: 1 + row * interval for row, unit in enumerate(units)}
        self._known: dict[tuple[int, int], list[int]] = {}

    def of(self, index: int, issue: int) -> list[int]:
        """The bits of each alternative of a task that issues in a cycle."""
        key = index, issue % self.interval
        if key not in self._known:
            self._known[key] = [self._bits(cells, key[1]) for cells in self.places[index]]
        return self._known[key]

    def all_taken(self, index: int, low: int | None, high: int | None, busy: int) -> bool:
        """Whether no alternative of a task is free of the busy bits in any cycle from `low` to `high`, of all cycles
        where one of them is missing."""
        last = self.interval - 1 if low is None or high is None else min(high - low, self.interval - 1)
        return all(bits & busy for at in range(last + 1) for bits in self.of(index, (low or 0) + at))

    def _bits(self, cells: Sequence[tuple[str, int]], issue: int) -> int:
        bits = 0
        for unit, cycle in cells:
            bit = 1 << self._rows[unit] + (issue + cycle) % self.interval
            bits |= bit | (NEVER if bits & bit else 0)  # a long task meets itself round the interval
        return bits


def _settled(problem: ModuloProblem, cells: _Cells) -> int:
    """What the fixed tasks take."""
    bits = [cells.of(index, at)[choice] for index, (at, choice) in problem.fixed.items()]
    return reduce(or_, bits, NEVER)


class _Attempt:
    """Placing tasks in one order."""

    def __init__(self, problem: ModuloProblem, interval: int, windows: _Windows, cells: _Cells) -> None:
        self.problem, self.interval, self.windows, self.cells = problem, interval, windows, cells
        self.issues: dict[int, int] = {}
        self.choices: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.busy = NEVER
        self.taken: dict[int, int] = {}
        self.into: dict[int, list[tuple[int, int]]] = defaultdict(list)
        self.out_of: dict[int, list[tuple[int, int]]] = defaultdict(list)
        for e in problem.edges:
            if e.earlier != e.later:
                gap = e.delay - interval * e.distance
                self.into[e.later].append((e.earlier, gap))
                self.out_of[e.earlier].append((e.later, gap))

    def run(self, order: Sequence[tuple[int, ...]]) -> ModuloSchedule | None:
        """Place tasks, the greatest of `order` first; None when the budget is spent."""
        for index, (at, choice) in self.problem.fixed.items():
            if self.cells.of(index, at)[choice] & self.busy & ~NEVER:
                return None
            self._take(index, at, choice)
        rank = {index: number for number, index in enumerate(sorted(range(len(order)), key=order.__getitem__)[::-1])}
        waiting = sorted((rank[i], i) for i in range(len(self.problem.places)) if i not in self.issues)
        for _ in range(BUDGET * len(waiting) + 1):
            if not waiting:
                return self._finished()
            index = waiting[0][1]
            released = self._place(index)
            if released is None:
                return None
            if index in self.issues:
                heappop(waiting)
            for other in released:
                heappush(waiting, (rank[other], other))
        return None

    def _place(self, index: int) -> set[int] | None:
        """Find a cycle, if need be at the cost of others, which are returned; None if there is none."""
        earliest, high = self._earliest(index), self.windows.high[index]
        for issue in self._tried(index, earliest, high):
            choice = self._fitting(index, issue)
            if choice is not None:
                self._take(index, issue, choice)
                return self._broken(index)
        # Never where it was before: two tasks would evict each other for ever (Rau).
        issue = max(earliest, self.last.get(index, earliest - 1) + 1)
        if high is not None and issue > high:
            low = self.windows.low[index]
            issue = min(high, earliest) if low is None else low + (issue - low) % (high - low + 1)
        return self._force(index, issue)

    def _tried(self, index: int, earliest: int, high: int | None) -> range:
        """Cycles in the order in which they are tried: late tasks with a bound from there back."""
        if high is None or index not in self.problem.late:
            end = earliest + self.interval
            return range(earliest, end if high is None else min(high + 1, end))
        latest = min((high, *self._latest(index)))
        return range(latest, max(earliest, latest - self.interval + 1) - 1, -1)

    def _latest(self, index: int) -> Iterator[int]:
        """The last cycles in which a task may issue, by each of those that wait for it."""
        for later, gap in self.out_of[index]:
            if later in self.issues:
                yield self.issues[later] - gap

    def _force(self, index: int, issue: int) -> set[int] | None:
        for choice, cells in enumerate(self.cells.of(index, issue)):
            holders = {i for i, taken in self.taken.items() if taken & cells}
            if not cells & NEVER and not holders & self.problem.fixed.keys():
                for other in holders:
                    self._release(other)
                self._take(index, issue, choice)
                return holders | self._broken(index)
        self.last[index] = issue
        return set()

    def _earliest(self, index: int) -> int:
        low = self.windows.low[index]
        if low is None:
            high = self.windows.high[index]
            low = 0 if high is None else high - self.interval + 1
        for earlier, gap in self.into[index]:
            issue = self.issues.get(earlier)
            if issue is not None and issue + gap > low:
                low = issue + gap
        return low

    def _fitting(self, index: int, issue: int) -> int | None:
        for choice, cells in enumerate(self.cells.of(index, issue)):
            if not cells & self.busy:
                return choice
        return None

    def _broken(self, index: int) -> set[int]:
        """Release what has come too near to a task that was placed just now."""
        issues, at = self.issues, self.issues[index]
        near = {i for i, gap in self.into[index] if i in issues and at < issues[i] + gap}
        near |= {i for i, gap in self.out_of[index] if i in issues and issues[i] < at + gap}
        near -= self.problem.fixed.keys()
        for other in near:
            self._release(other)
        return near

    def _take(self, index: int, issue: int, choice: int) -> None:
        self.issues[index], self.choices[index], self.last[index] = issue, choice, issue
        self.taken[index] = self.cells.of(index, issue)[choice] & ~NEVER
        self.busy |= self.taken[index]

    def _release(self, index: int) -> None:
        self.busy &= ~self.taken.pop(index)
        del self.issues[index], self.choices[index]

    def _finished(self) -> ModuloSchedule:
        for index in sorted(self.problem.late, key=lambda i: -self.issues[i]):
            self._move_late(index)
        order = range(len(self.problem.places))
        return ModuloSchedule(
            self.interval, tuple(self.issues[i] for i in order), tuple(self.choices[i] for i in order)
        )

    def _move_late(self, index: int) -> None:
        issue, choice = self.issues[index], self.choices[index]
        latest = min(self._latest(index), default=issue)
        self._release(index)
        for late in range(latest, issue, -1):
            found = self._fitting(index, late)
            if found is not None:
                issue, choice = late, found
                break
        self._take(index, issue, choice)
