"""Modulo scheduling: cycles and units for tasks that repeat every `interval` cycles.

Iterative modulo scheduling (B. R. Rau, "Iterative modulo scheduling", MICRO-27, 1994): tasks are placed in order of
height; one that finds no free place evicts others, until the budget is spent. Some tasks may be fixed beforehand: then
all others keep to the windows that those leave them, and never evict them.
"""

from collections import Counter, defaultdict, deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

BUDGET = 8  # placements per task, interval and order before the next is tried (Rau finds 6 to suffice)

Places = tuple[tuple[tuple[str, int], ...], ...]
"""Alternatives of a task, each the (unit, cycle after issue) that it takes."""


@dataclass(frozen=True, slots=True)
class Edge:
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
    above, indices = windows.heights, range(len(problem.places))
    for order in (
        [(above[i], -i) for i in indices],
        [(above[i], i) for i in indices],
        [(-len(problem.places[i]), above[i], -i) for i in indices],
        [(-i,) for i in indices],
        [(i,) for i in indices],
    ):
        found = _Attempt(problem, interval, windows).run(order)
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


class _Attempt:
    """Placing tasks in one order."""

    def __init__(self, problem: ModuloProblem, interval: int, windows: _Windows) -> None:
        self.problem, self.interval, self.windows = problem, interval, windows
        self.issues: dict[int, int] = {}
        self.choices: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.busy: dict[tuple[str, int], int] = {}
        self.into: dict[int, list[Edge]] = defaultdict(list)
        self.out_of: dict[int, list[Edge]] = defaultdict(list)
        for e in problem.edges:
            if e.earlier != e.later:
                self.into[e.later].append(e)
                self.out_of[e.earlier].append(e)

    def run(self, order: Sequence[tuple[int, ...]]) -> ModuloSchedule | None:
        """Place tasks, the greatest of `order` first; None when the budget is spent."""
        for index, (at, choice) in self.problem.fixed.items():
            if any(cell in self.busy for cell in self._cells(index, at, choice)):
                return None
            self._take(index, at, choice)
        waiting = {i for i in range(len(self.problem.places)) if i not in self.issues}
        for _ in range(BUDGET * len(waiting) + 1):
            if not waiting:
                return self._finished()
            index = max(waiting, key=order.__getitem__)
            released = self._place(index)
            if released is None:
                return None
            waiting = (waiting - {index} if index in self.issues else waiting) | released
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
        for e in self.out_of[index]:
            if e.later in self.issues:
                yield self.issues[e.later] - e.delay + self.interval * e.distance

    def _force(self, index: int, issue: int) -> set[int] | None:
        for choice in range(len(self.problem.places[index])):
            cells = self._cells(index, issue, choice)
            holders = {self.busy[c] for c in cells if c in self.busy}
            # A long task may meet itself round the interval.
            if len(set(cells)) == len(cells) and not holders & self.problem.fixed.keys():
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
        bounds = (
            self.issues[e.earlier] + e.delay - self.interval * e.distance
            for e in self.into[index]
            if e.earlier in self.issues
        )
        return max((low, *bounds))

    def _cells(self, index: int, issue: int, choice: int) -> list[tuple[str, int]]:
        return [(name, (issue + cycle) % self.interval) for name, cycle in self.problem.places[index][choice]]

    def _fitting(self, index: int, issue: int) -> int | None:
        for choice in range(len(self.problem.places[index])):
            cells = self._cells(index, issue, choice)
            if len(set(cells)) == len(cells) and self.busy.keys().isdisjoint(cells):
                return choice
        return None

    def _broken(self, index: int) -> set[int]:
        """Release what has come too near to a task that was placed just now."""
        found = set()
        for e in (*self.into[index], *self.out_of[index]):
            if not (e.earlier in self.issues and e.later in self.issues):
                continue
            if self.issues[e.later] < self.issues[e.earlier] + e.delay - self.interval * e.distance:
                other = e.later if e.earlier == index else e.earlier
                if other not in self.problem.fixed:
                    self._release(other)
                    found.add(other)
        return found

    def _take(self, index: int, issue: int, choice: int) -> None:
        self.issues[index], self.choices[index], self.last[index] = issue, choice, issue
        self.busy.update(dict.fromkeys(self._cells(index, issue, choice), index))

    def _release(self, index: int) -> None:
        for cell in self._cells(index, self.issues[index], self.choices[index]):
            del self.busy[cell]
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
        latest = min(self._latest(index))
        self._release(index)
        for late in range(latest, issue, -1):
            found = self._fitting(index, late)
            if found is not None:
                issue, choice = late, found
                break
        self._take(index, issue, choice)
