"""Software pipelining of an inner loop: the shortest initiation interval that slots, ports, latencies, registers allow.

Iterative modulo scheduling (B. R. Rau, "Iterative modulo scheduling", MICRO-27, 1994): operations are placed in order
of height; one that finds no free place evicts others; when the budget is spent, the interval grows by one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bdforge.perf.kernels.loop import INTERVAL_LIMIT, Loop, ScheduleError, heights, written

BUDGET = 8  # placements per operation, interval and order before the next is tried (Rau finds 6 to suffice)


@dataclass(frozen=True)
class LoopSchedule:
    """A loop with the issue cycle of each operation in its first iteration and the alternative it uses."""

    loop: Loop
    interval: int
    issues: tuple[int, ...]
    choices: tuple[int, ...]

    @property
    def span(self) -> int:
        """Cycles from the first to the last issue of one iteration, both included."""
        return max(self.issues) + 1

    @property
    def stages(self) -> int:
        """Iterations in flight in the steady state."""
        return -(-self.span // self.interval)

    @property
    def live_registers(self) -> int:
        """Most vector registers in use in one cycle, constants included, accumulators and temporaries not."""
        return _pressure(self.loop, self.interval, self.issues)

    def uses(self, trips: int) -> Iterable[tuple[str, int]]:
        """Every (slot or port, cycle) that `trips` iterations take."""
        for trip in range(trips):
            for operation, issue, choice in zip(self.loop.body, self.issues, self.choices, strict=True):
                for resource, cycle in operation.places[choice]:
                    yield resource, trip * self.interval + issue + cycle


def schedule(loop: Loop) -> LoopSchedule:
    """The loop at the shortest interval found, not below its resource and recurrence intervals.

    ScheduleError if none below INTERVAL_LIMIT fits, which means that its constants alone overflow the registers.
    """
    for interval in range(max(loop.resource_interval, loop.recurrence_interval), INTERVAL_LIMIT):
        for order in _orders(loop, interval):
            found = _Attempt(loop, interval).run(order)
            if found is not None and found.live_registers <= loop.registers:
                return found
    raise ScheduleError(
        f"{loop.name}: no schedule below {INTERVAL_LIMIT} cycles keeps to {loop.registers} vector registers; "
        f"{loop.constants} hold constants: shrink the block or its constants"
    )


def _orders(loop: Loop, interval: int) -> Iterable[Sequence[tuple[int, ...]]]:
    """Priorities to try: Rau's, by height, and four others, for loops on which it circles."""
    above = heights(loop, interval)
    if above is None:
        return
    indices = range(len(loop.body))
    yield [(above[i], -i) for i in indices]
    yield [(above[i], i) for i in indices]
    yield [(-len(loop.body[i].places), above[i], -i) for i in indices]
    yield [(-i,) for i in indices]
    yield [(i,) for i in indices]


class _Attempt:
    """Scheduling at one interval."""

    def __init__(self, loop: Loop, interval: int):
        self.loop = loop
        self.interval = interval
        self.issues: dict[int, int] = {}
        self.choices: dict[int, int] = {}
        self.last: dict[int, int] = {}
        self.busy: dict[tuple[str, int], int] = {}

    def run(self, order: Sequence[tuple[int, ...]]) -> LoopSchedule | None:
        """Place operations, the greatest of `order` first; None when the budget is spent."""
        for _ in range(BUDGET * len(self.loop.body)):
            waiting = [i for i in range(len(self.loop.body)) if i not in self.issues]
            if not waiting:
                return self._finished()
            self._place(max(waiting, key=order.__getitem__))
        return None

    def _place(self, index: int) -> None:
        earliest = self._earliest(index)
        for issue in range(earliest, earliest + self.interval):
            choice = self._fitting(index, issue)
            if choice is not None:
                break
        else:
            issue = max(earliest, self.last.get(index, earliest - 1) + 1)
            choice = self._evict_for(index, issue)
            if choice is None:
                return
        self._take(index, issue, choice)
        self._evict_broken(index)

    def _earliest(self, index: int) -> int:
        bounds = (
            self.issues[e.earlier] + e.delay - self.interval * e.distance
            for e in self.loop.edges
            if e.later == index and e.earlier in self.issues and e.earlier != index
        )
        return max((0, *bounds))

    def _latest(self, index: int) -> int:
        return min(
            self.issues[e.later] - e.delay + self.interval * e.distance
            for e in self.loop.edges
            if e.earlier == index and e.later != index
        )

    def _cells(self, index: int, issue: int, choice: int) -> list[tuple[str, int]]:
        return [(name, (issue + cycle) % self.interval) for name, cycle in self.loop.body[index].places[choice]]

    def _fitting(self, index: int, issue: int) -> int | None:
        for choice in range(len(self.loop.body[index].places)):
            cells = self._cells(index, issue, choice)
            if len(set(cells)) == len(cells) and not any(self.busy.get(c, index) != index for c in cells):
                return choice
        return None

    def _evict_for(self, index: int, issue: int) -> int | None:
        for choice in range(len(self.loop.body[index].places)):
            cells = self._cells(index, issue, choice)
            if len(set(cells)) == len(cells):
                for other in {self.busy[c] for c in cells if c in self.busy}:
                    self._release(other)
                return choice
        return None

    def _evict_broken(self, index: int) -> None:
        for e in self.loop.edges:
            if index not in (e.earlier, e.later) or e.earlier == e.later:
                continue
            if not (e.earlier in self.issues and e.later in self.issues):
                continue
            if self.issues[e.later] < self.issues[e.earlier] + e.delay - self.interval * e.distance:
                self._release(e.later if e.earlier == index else e.earlier)

    def _take(self, index: int, issue: int, choice: int) -> None:
        self.issues[index], self.choices[index], self.last[index] = issue, choice, issue
        self.busy.update(dict.fromkeys(self._cells(index, issue, choice), index))

    def _release(self, index: int) -> None:
        for cell in self._cells(index, self.issues[index], self.choices[index]):
            del self.busy[cell]
        del self.issues[index], self.choices[index]

    def _finished(self) -> LoopSchedule:
        """Move operations with consumers as late as they may go: fewer live registers, shorter prologue."""
        for index in sorted(self.issues, key=lambda i: -self.issues[i]):
            if any(e.earlier == index and e.later != index for e in self.loop.edges):
                self._move_late(index)
        first = min(self.issues.values())
        order = range(len(self.loop.body))
        issues = tuple(self.issues[i] - first for i in order)
        return LoopSchedule(self.loop, self.interval, issues, tuple(self.choices[i] for i in order))

    def _move_late(self, index: int) -> None:
        issue, choice = self.issues[index], self.choices[index]
        latest = self._latest(index)
        self._release(index)
        for late in range(latest, issue, -1):
            found = self._fitting(index, late)
            if found is not None:
                issue, choice = late, found
                break
        self._take(index, issue, choice)


def _pressure(loop: Loop, interval: int, issues: Sequence[int]) -> int:
    """Values alive per cycle of the steady state: from the cycle of the result to that of the last read."""
    alive = [loop.constants] * interval
    for start, stop in _lifetimes(loop, interval, issues):
        for cycle in range(start, stop):
            alive[cycle % interval] += 1
    return max(alive)


def _lifetimes(loop: Loop, interval: int, issues: Sequence[int]) -> Iterable[tuple[int, int]]:
    """Of values in vector registers; what the MAC slot makes lies in accumulators."""
    for index, operation in enumerate(loop.body):
        if operation.form.slots == ("vec",):
            continue
        for value in set(operation.writes) - loop.in_place:
            ends = [
                issues[e.later] + interval * e.distance + loop.body[e.later].form.read_cycle(operand)
                for e in loop.edges
                if e.earlier == index
                for operand, name in loop.body[e.later].reads
                if name == value
            ]
            start = issues[index] + written(operation)
            yield start, max(start + 1, *ends, 0)
