"""When the steps of a walk start, with which buffer descriptors, and when the host waits."""

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from bdforge.devices.limits import TASK_QUEUE_ENTRIES, TileLimits
from bdforge.operators.gemm.walk import Step, Transfer


@dataclass(frozen=True, slots=True)
class Start:
    """Configure and start transfers of a step; `bd_ids` holds the BDs of each transfer's chain."""

    step: Step
    transfers: tuple[Transfer, ...]
    bd_ids: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Release:
    """Tell the cores what to compute and let them begin."""


@dataclass(frozen=True, slots=True)
class AwaitC:
    """Wait for one token from each C transfer of a step; all of its BDs are free afterwards."""

    step: Step


Event = Start | Release | AwaitC


def schedule(steps: Iterable[Step], limits: TileLimits, *, in_flight: int = TASK_QUEUE_ENTRIES) -> Iterator[Event]:
    """When to start and await what: at most `in_flight` steps at a time, their BDs taken from each shim in a ring.

    A step is one task for each channel, so steps in flight are tasks in a queue. C's tokens are enough: C is complete
    only after all of A and B was consumed, and tasks of a channel end in order. Cores are released once, as soon as
    the first step's A and B are on their way to them.
    """
    rings: dict[int, _Ring] = {}
    running: deque[Step] = deque()
    for step in steps:
        needs = _bds_by_column(step)
        for column in needs:
            rings.setdefault(column, _Ring(limits.bds))
        while running and (len(running) == in_flight or not all(rings[c].has(n) for c, n in needs.items())):
            oldest = running.popleft()
            for column, count in _bds_by_column(oldest).items():
                rings[column].free(count)
            yield AwaitC(oldest)
        bd_ids = tuple(rings[t.column].take(len(t.bds)) for t in step.transfers)
        yield from [Start(step, step.transfers, bd_ids)] if step.index else _first(step, bd_ids)
        running.append(step)
    yield from map(AwaitC, running)


def _first(step: Step, bd_ids: tuple[tuple[int, ...], ...]) -> Iterator[Event]:
    """The first step: what the cores read, the cores, what they write."""
    read = sum(transfer.direction == "MM2S" for transfer in step.transfers)
    yield Start(step, step.transfers[:read], bd_ids[:read])
    yield Release()
    yield Start(step, step.transfers[read:], bd_ids[read:])


@dataclass(slots=True)
class _Ring:
    """The BDs of one shim, taken and freed in order."""

    size: int
    head: int = 0
    used: int = 0

    def has(self, count: int) -> bool:
        return self.used + count <= self.size

    def take(self, count: int) -> tuple[int, ...]:
        taken = tuple((self.head + i) % self.size for i in range(count))
        self.head, self.used = (self.head + count) % self.size, self.used + count
        return taken

    def free(self, count: int) -> None:
        self.used -= count


def _bds_by_column(step: Step) -> dict[int, int]:
    counts: dict[int, int] = {}
    for transfer in step.transfers:
        counts[transfer.column] = counts.get(transfer.column, 0) + len(transfer.bds)
    return counts
