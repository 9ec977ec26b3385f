"""Software pipelining of an inner loop: the shortest initiation interval that slots, ports, latencies, registers allow.

Operations are placed by `bdforge.core.isa.modulo`, from which machine code is made too. What has consumers is made as
late as they allow, for fewer live registers and a shorter prologue.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from bdforge.core.isa.modulo import plans
from bdforge.perf.kernels.loop import INTERVAL_LIMIT, Loop, ScheduleError, written


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
        for plan in plans(loop.problem, interval):
            first = min(plan.issues)
            found = LoopSchedule(loop, interval, tuple(issue - first for issue in plan.issues), plan.choices)
            if found.live_registers <= loop.registers:
                return found
    raise ScheduleError(
        f"{loop.name}: no schedule below {INTERVAL_LIMIT} cycles keeps to {loop.registers} vector registers; "
        f"{loop.constants} hold constants: shrink the block or its constants"
    )


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
