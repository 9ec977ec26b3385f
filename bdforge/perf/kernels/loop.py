"""Inner loops of kernels: operations, their dependences, and the intervals that slots and latencies alone allow."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from bdforge.core.isa.modulo import Edge, ModuloProblem, heights
from bdforge.perf.kernels.scheduled_forms import SLOTS, VECTOR_REGISTERS, TimedForm

INTERVAL_LIMIT = 256  # cycles; no loop body of ours comes near it

SlotChoices = tuple[tuple[str, ...], ...]
"""Alternatives of issue slots, each the slots that one instruction takes together."""


class ScheduleError(Exception):
    """A loop or tile that cannot be scheduled as described."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One instruction of a loop body.

    `forms` are alternatives with the same timing (a load may issue in either unit). `reads` pairs operands with
    the values they take, `writes` names the values made. A value read before the body writes it comes from the
    iteration before; one that nobody writes is a constant held in a register.
    """

    forms: tuple[TimedForm, ...]
    reads: tuple[tuple[str, str], ...] = ()
    writes: tuple[str, ...] = ()

    @property
    def form(self) -> TimedForm:
        """The first alternative, whose timing stands for all."""
        return self.forms[0]

    @property
    def slot_choices(self) -> "SlotChoices":
        """The issue slots of each alternative."""
        return tuple(form.slots for form in self.forms)

    @property
    def places(self) -> tuple[tuple[tuple[str, int], ...], ...]:
        """Alternatives of resources: (slot or port, cycle after issue)."""
        return tuple((*((slot, 0) for slot in form.slots), *form.ports) for form in self.forms)


@dataclass(frozen=True)
class Loop:
    """One iteration of an inner loop, in program order.

    `in_place` values live in one fixed register (accumulators, a single temporary): they are not renamed from
    iteration to iteration, so the next write waits for the last read.
    """

    name: str
    body: tuple[Operation, ...]
    in_place: frozenset[str] = frozenset()
    registers: int = VECTOR_REGISTERS

    @cached_property
    def edges(self) -> tuple[Edge, ...]:
        """All register dependences."""
        return (*self._flow(), *self._reuse())

    @cached_property
    def problem(self) -> ModuloProblem:
        """What has to be placed; values that others read are made late."""
        late = {e.earlier for e in self.edges if e.earlier != e.later}
        return ModuloProblem([operation.places for operation in self.body], self.edges, {}, late)

    def _writers(self) -> dict[str, list[int]]:
        writers: dict[str, list[int]] = {}
        for index, operation in enumerate(self.body):
            for value in operation.writes:
                writers.setdefault(value, []).append(index)
        return writers

    def _flow(self) -> Iterable[Edge]:
        writers = self._writers()
        for index, operation in enumerate(self.body):
            for operand, value in operation.reads:
                if value not in writers:
                    continue
                before = [w for w in writers[value] if w < index]
                writer = before[-1] if before else writers[value][-1]
                delay = self.body[writer].form.distance_to(operation.form, operand)
                yield Edge(writer, index, delay, 0 if before else 1)

    def _reuse(self) -> Iterable[Edge]:
        writers = self._writers()
        for index, operation in enumerate(self.body):
            for operand, value in operation.reads:
                if value in self.in_place and value in writers:
                    yield self._until_overwritten(index, operand, writers[value])
        for value in self.in_place & writers.keys():
            yield from self._in_write_order(writers[value])

    def _until_overwritten(self, reader: int, operand: str, writers: Sequence[int]) -> Edge:
        """Anti-dependence: the next write may land in the cycle of the read at the earliest."""
        after = [w for w in writers if w > reader]
        writer = after[0] if after else writers[0]
        delay = self.body[reader].form.read_cycle(operand) - written(self.body[writer])
        return Edge(reader, writer, delay, 0 if after else 1)

    def _in_write_order(self, writers: Sequence[int]) -> Iterable[Edge]:
        for first, second in zip(writers, (*writers[1:], writers[0]), strict=True):
            delay = written(self.body[first]) - written(self.body[second]) + 1
            yield Edge(first, second, delay, 1 if second <= first else 0)

    @cached_property
    def slot_use(self) -> Mapping[str, int]:
        """Operations per iteration in each slot, alternatives shared out as evenly as they allow."""
        return shared_slots(Counter(operation.slot_choices for operation in self.body))

    @cached_property
    def resource_interval(self) -> int:
        """Least interval by slots (resource MII): the busiest slot."""
        return max(1, *self.slot_use.values())

    @cached_property
    def recurrence_interval(self) -> int:
        """Least interval by latencies (recurrence MII): no cycle of dependences may need more than it provides."""
        return next(ii for ii in range(1, INTERVAL_LIMIT) if heights(self.problem, ii) is not None)

    @cached_property
    def constants(self) -> int:
        """Values held in registers all through the loop."""
        made = self._writers().keys()
        return len({v for o in self.body for _, v in o.reads} - made)


def shared_slots(counts: Mapping[SlotChoices, int]) -> Mapping[str, int]:
    """Instructions in each slot when `counts` of each kind are shared out as evenly as their alternatives allow."""
    use = dict.fromkeys(SLOTS, 0)
    for alternatives, count in sorted(counts.items(), key=lambda item: len(item[0])):
        for _ in range(count):
            for slot in min(alternatives, key=lambda slots: max((use[s] for s in slots), default=0)):
                use[slot] += 1
    return use


def written(operation: Operation) -> int:
    """Cycle in which an operation's result is written; ScheduleError if it has none."""
    cycle = operation.form.write_cycle
    if cycle is None:
        raise ScheduleError(f"{operation.form.name}: writes no register")
    return cycle
