"""Timed emulation: replays a trace in the order of time.

Every party does its own actions in its own order; when each happens follows from clocks, locks, finite buffers, queues
and the shared DRAM, in the order in which time brings them. Values are those of the functional run and are not here.
The same trace can be replayed with other constants or kernel costs.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bdforge.array.emulator.errors import TimingError
from bdforge.array.emulator.timed.bank_conflicts import Banks, Conflicts
from bdforge.array.emulator.timed.controller_time import TimedController
from bdforge.array.emulator.timed.core_time import KernelCost, TimedCores
from bdforge.array.emulator.timed.dram import BOTH, READ, RUNS, WRITE, Dram
from bdforge.array.emulator.timed.links import Links
from bdforge.array.emulator.timed.locks import TimedLocks
from bdforge.array.emulator.timed.task_time import TimedTasks
from bdforge.array.emulator.timed.time_report import DramTime, PartyTime, TimingReport
from bdforge.array.emulator.timed.timed_run import NO_TASK, Clock, TimedParty, TimelineSpan, Verb
from bdforge.array.emulator.trace import Trace
from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from bdforge.devices.timing import Timing, timing_of
from bdforge.devices.types import PEAK_MACS

_LONGEST_REPORT = 12


@dataclass(frozen=True)
class TimingOptions:
    """How to time a run.

    `timing` holds the constants of a product; by default those of the array that the design names (`timing_of`).
    `kernels` gives the cycles of each linked kernel by symbol, without the call: a number, or a function of the
    elements of each array that it gets. `macs` of the run make TOPS. `spans`, if given, gets the timeline.
    `peak_macs_per_cycle` is what a core does at most with the run's types; without it, with int8.
    """

    timing: Timing | None = None
    kernels: Mapping[str, KernelCost] = field(default_factory=dict)
    macs: int | None = None
    spans: list[TimelineSpan] | None = None
    peak_macs_per_cycle: int = 0


def replay(trace: Trace, options: TimingOptions) -> TimingReport:
    """The time of a run; TimingError when it cannot end in the order that time gives it."""
    return _Replay(trace, options).run()


class _Replay:
    """One replay."""

    def __init__(self, trace: Trace, options: TimingOptions):
        self.trace, self.options = trace, options
        self.timing = timing = timing_of(trace.device) if options.timing is None else options.timing
        has_sequence = any(action[0] == "operation" for action in trace.parties[0].actions)
        self.clock = Clock(-timing.dispatch_ns * timing.array_hz / 1e9 if has_sequence else 0.0)
        self.verbs: dict[str, Verb] = {}
        self.runners = [TimedParty(party, self.clock, self.verbs, options.spans) for party in trace.parties]
        self.locks = TimedLocks(trace.locks, self.clock, timing)
        self.dram = Dram(self.clock, timing, trace.device.columns)
        self.tasks = TimedTasks(self.runners, self.clock, timing)
        self.banks = Banks()
        self.cores = TimedCores(self.clock, timing, trace.device, options.kernels, self.banks)
        self.links = Links(self.runners, self.clock, timing, self.dram, self.banks, trace.held_words)
        self.end: float | None = None
        self.operations = TimedController(self.clock, timing)
        for part in (self.locks, self.tasks, self.cores, self.links, self.operations):
            self.verbs |= part.verbs
        self.verbs["was reset"] = lambda runner: runner.block("reset")
        self.verbs |= {"start": self._start, "stop": self._stop, "finish": self._end, "reset": self._reset}
        self.controller = self.runners[0]

    def run(self) -> TimingReport:
        self.clock.at(self.clock.now, self.controller.advance)
        self.clock.run()
        if not self.controller.ended:
            raise TimingError(self._stuck())
        end = max(self.clock.now if self.end is None else self.end, 0.0)
        for runner in self.runners:
            runner.close(end)
        return self._report(end)

    def _start(self, _: TimedParty, configuration: int) -> bool:
        """Cores and channels of a configuration begin."""
        for other in self.runners[1:]:
            if other.party.configuration == configuration and not other.begun:
                other.begun = True
                other.advance_at(self.clock.now)
        return True

    def _stop(self, _: TimedParty) -> bool:
        """Whoever runs is stopped by a reconfiguration."""
        running = {other for other in self.runners[1:] if other.begun and not other.stopped}
        for other in running:  # of those that push to another's queue, too, the wait ends first
            self.tasks.drop(other)
        for other in running:
            other.stopped = True
            other.close(self.clock.now)
            other.blocked = None
        self.locks.forget(running)
        return True

    def _reset(self, _: TimedParty, party: int) -> bool:
        """A channel drops its tasks, a core what it does."""
        target = self.runners[party]
        self.locks.forget({target})
        if not target.is_core:
            self.tasks.drop(target)
            self.links.drop(target)
        target.reset()
        return True

    def _end(self, _: TimedParty) -> bool:
        """The sequence is over. One that awaited tokens ends the run; otherwise the array goes on until it is quiet."""
        if self.tasks.awaited:
            self.end = self.clock.now
            self.clock.stop()
        return True

    def _report(self, end: float) -> TimingReport:
        timing, options = self.timing, self.options
        used = [runner for runner in self.runners[1:] if runner.party.actions]
        conflicts = self.banks.conflicts()
        parties = [_party_time(runner, conflicts.get(runner, {})) for runner in used]
        return TimingReport(
            cycles=end,
            array_hz=timing.array_hz,
            dispatch_seconds=timing.dispatch_ns / 1e9,
            sync_seconds=timing.controller_sync_ns / 1e9 if self.tasks.awaited else 0.0,
            cores=tuple(party for party in parties if party.kind == "core"),
            channels=tuple(party for party in parties if party.kind == "channel"),
            controller=_party_time(self.controller, {}),
            dram=self._dram_time(end),
            macs=options.macs,
            peak_macs_per_cycle=options.peak_macs_per_cycle
            or PEAK_MACS[self.trace.device.generation.name]["int8", "int8"],
            warnings=tuple(self._warnings()),
            operations=tuple(self.operations.starts),
        )

    def _dram_time(self, end: float) -> DramTime:
        busy, moved = self.dram.busy_cycles, self.dram.moved_bytes
        requests = max((cycles for resource, cycles in busy.items() if isinstance(resource, tuple)), default=0.0)
        used = busy[READ], busy[WRITE], max(busy[BOTH], busy[RUNS]), requests
        shares = [cycles / end if end else 0.0 for cycles in used]
        return DramTime(moved[False], moved[True], *shares)

    def _warnings(self) -> Iterator[str]:
        if self.cores.assumed:
            names = ", ".join(sorted(self.cores.assumed))
            yield f"no cost is known for {names}: one pass over the arrays is assumed; give cycles per call"
        for name, time in self.tasks.overflows.items():
            yield (
                f"{name} is pushed to {self._after(time)} while {TASK_QUEUE_ENTRIES} tasks are in flight; hardware may "
                "lose the entry, the emulated time lets the pusher wait; await a token before"
            )
        for name, time in self.tasks.rewrites.items():
            yield (
                f"{name} is rewritten {self._after(time)} while a task that uses it is in flight; hardware may run it "
                "with the new words; await that task's token before"
            )

    def _after(self, time: float) -> str:
        return f"{time / self.timing.array_hz * 1e6:.1f} us after the start (emulated)"

    def _stuck(self) -> str:
        waits = [
            f"  {runner.party.name} waits for {runner.blocked[0]}"
            for runner in self.runners
            if runner.blocked is not None and runner.blocked[0] != NO_TASK
        ]
        more = [f"  … and {len(waits) - _LONGEST_REPORT} more"] if len(waits) > _LONGEST_REPORT else []
        head = "the run ended without time, but in the order of time it stops: its result depends on speed"
        return "\n".join([f"{head}; see --schedule random", *waits[:_LONGEST_REPORT], *more])


def _party_time(runner: TimedParty, conflicts: Mapping[str, Conflicts]) -> PartyTime:
    party = runner.party
    return PartyTime(
        party.name, party.kind, party.place, party.tile_kind, party.direction, dict(runner.busy), dict(runner.stalled),
        conflicts,
    )  # fmt: skip
