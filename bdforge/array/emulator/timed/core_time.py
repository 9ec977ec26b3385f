"""Cores under time: kernels, other operations, cascades."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from bdforge.array.emulator.cores.ports import CAPACITY
from bdforge.array.emulator.timed.bank_conflicts import OWN, Bank, Banks
from bdforge.array.emulator.timed.timed_run import Clock, TimedParty, Verb
from bdforge.devices import Device
from bdforge.devices.timing import Timing

KernelCost = float | Callable[[tuple[int, ...]], float]
"""Cycles of one call, or a function that tells them from the elements of each array that the kernel gets."""

CALLS, PROGRAM = "kernel calls", "core program"


@dataclass(slots=True)
class _Cascade:
    values: int = 0
    source: TimedParty | None = None
    target: TimedParty | None = None


@dataclass(slots=True)
class TimedCores:
    """What cores do by themselves. `assumed` names the kernels that nobody gave a cost for.

    Such a kernel takes one vector access for every vector of its arrays. An operation of a core program takes a cycle.
    """

    clock: Clock
    timing: Timing
    device: Device
    costs: Mapping[str, KernelCost]
    banks: Banks
    assumed: set[str] = field(default_factory=set)
    _cascades: dict[int, _Cascade] = field(default_factory=dict)
    _known: dict[tuple, float] = field(default_factory=dict)

    @property
    def verbs(self) -> dict[str, Verb]:
        return {"kernel": self._kernel, "work": self._work, "run": self._run, "put": self._put, "get": self._get}

    def _kernel(self, runner: TimedParty, name: str, elements: tuple[int, ...], size_bytes: int) -> bool:
        now = self.clock.now
        begin = now + self.timing.kernel_call_cycles
        end = begin + self._cycles(name, elements, size_bytes)
        runner.spend(CALLS, now, begin)
        runner.spend(name, begin, end)
        runner.show(name, now, end)
        return runner.advance_at(end)

    def _cycles(self, name: str, elements: tuple[int, ...], size_bytes: int) -> float:
        key = name, elements, size_bytes
        if key not in self._known:
            cost = self.costs.get(name)
            if cost is None:
                self.assumed.add(name)
                cost = size_bytes / self.device.generation.vector_align_bytes
            self._known[key] = float(cost(elements) if callable(cost) else cost)
        return self._known[key]

    def _work(self, runner: TimedParty, operations: int) -> bool:
        return runner.work(PROGRAM, operations)

    def _run(
        self,
        runner: TimedParty,
        cycles: int,
        waits: int,
        accesses: Mapping[Bank, int],
        parts: Sequence[tuple[str, int]],
    ) -> bool:
        """Machine code: its cycles are exact, with those in which it waits for banks that it uses itself."""
        start = at = self.clock.now
        end = start + cycles + waits
        runner.issues = True
        runner.spend(PROGRAM, start, end - waits)
        runner.stall(OWN, end - waits, end, visible=False)
        for name, took in parts:
            runner.show(name, at, at + took)
            at += took
        self.banks.ran(runner, start, end, accesses)
        return runner.advance_at(end)

    def _put(self, runner: TimedParty) -> bool:
        cascade = self._cascades.setdefault(runner.party.index, _Cascade())
        if cascade.values == CAPACITY:
            cascade.source = runner
            return runner.block("cascade out")
        cascade.values += 1
        if cascade.target is not None:
            target, cascade.target = cascade.target, None
            target.retry()
        return runner.advance_at(self.clock.now + 1)

    def _get(self, runner: TimedParty, source: int) -> bool:
        cascade = self._cascades.setdefault(source, _Cascade())
        if not cascade.values:
            cascade.target = runner
            return runner.block("cascade in")
        cascade.values -= 1
        if cascade.source is not None:
            sender, cascade.source = cascade.source, None
            sender.retry()
        return runner.advance_at(self.clock.now + 1)
