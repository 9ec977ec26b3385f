"""The controller under time, arbiters of packets, and what it polls for."""

from collections import deque
from dataclasses import dataclass, field

from bdforge.array.emulator.timed.timed_run import Clock, TimedParty, Verb
from bdforge.devices.timing import Timing

_BD_WORDS = 8  # of the blockwrite that `controller_bd_ns` states


def operation_ns(timing: Timing, kind: str, words: int) -> float:
    """What one operation of an instruction stream takes.

    A transfer is a blockwrite of 8 words, a patch and a write; what it takes beyond the first and the last is counted
    on the patch. A masked write reads first and takes as long as a BD (XE). Waiting is no operation.
    """
    match kind:
        case "Write":
            return timing.controller_write_ns
        case "MaskWrite":
            return timing.controller_bd_ns
        case "BlockWrite":
            each = (timing.controller_bd_ns - timing.controller_write_ns) / _BD_WORDS
            return timing.controller_write_ns + each * words
        case "Patch":
            return max(0.0, timing.controller_transfer_ns - timing.controller_bd_ns - timing.controller_write_ns)
        case "LoadPdi":
            return timing.reconfiguration_ns
        case _:
            return 0.0


@dataclass(slots=True)
class _Arbiter:
    holder: TimedParty | None = None
    waiters: deque[TimedParty] = field(default_factory=deque)


class TimedController:
    """Operations, signals and arbiters."""

    def __init__(self, clock: Clock, timing: Timing):
        self._clock, self._timing = clock, timing
        self._arbiters: dict[int, _Arbiter] = {}
        self._signals: set[int] = set()
        self._awaiting: dict[int, TimedParty] = {}
        self.starts: list[float] = []  # of operations
        self.verbs: dict[str, Verb] = {
            "operation": self._operation, "signal": self._signal, "await": self._await,
            "dispatch": lambda runner: runner.advance_at(max(self._clock.now, 0.0)),
            "take": self._take, "give": self._give,
        }  # fmt: skip

    def _operation(self, runner: TimedParty, kind: str, words: int) -> bool:
        self.starts.append(self._clock.now)
        cycles = operation_ns(self._timing, kind, words) * self._timing.array_hz / 1e9
        return runner.work(kind, cycles, kind) if cycles else True

    def _signal(self, _: TimedParty, number: int) -> bool:
        self._signals.add(number)
        if number in self._awaiting:
            awaiting = self._awaiting.pop(number)
            awaiting.unblock()
            self._clock.at(self._clock.now, awaiting.advance)
        return True

    def _await(self, runner: TimedParty, number: int) -> bool:
        if number in self._signals:
            return True
        self._awaiting[number] = runner
        return runner.block("polled register")

    def _take(self, runner: TimedParty, sinks: tuple[int, ...]) -> bool:
        for sink in sinks:
            arbiter = self._arbiters.setdefault(sink, _Arbiter())
            if arbiter.holder is None:
                arbiter.holder = runner
            elif arbiter.holder is not runner:
                arbiter.waiters.append(runner)
                return runner.block("packet arbiter")
        return runner.work("packet arbitration", self._timing.packet_arbitration_cycles)

    def _give(self, _: TimedParty, sinks: tuple[int, ...]) -> bool:
        for sink in sinks:
            arbiter = self._arbiters[sink]
            arbiter.holder = arbiter.waiters.popleft() if arbiter.waiters else None
            if arbiter.holder is not None:
                arbiter.holder.retry()  # from its first arbiter on: those that it holds already let it pass
        return True
