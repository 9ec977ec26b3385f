"""Task queues and tokens under time."""

from collections import Counter, deque
from dataclasses import dataclass, field

from bdforge.array.emulator.timed.timed_run import NO_TASK, Clock, Polled, TimedParty, Verb
from bdforge.devices.limits import TASK_QUEUE_ENTRIES
from bdforge.devices.timing import Timing

TASK_START, FULL_QUEUE = "task start", "full task queue"


@dataclass(slots=True)
class _Queue:
    pushed: list[float] = field(default_factory=list)  # when each task came
    bds: list[tuple[int, ...]] = field(default_factory=list)  # of each task
    begun: int = 0
    ended: int = 0
    tokens: int = 0
    awaiting: TimedParty | None = None
    pushing: deque[TimedParty] = field(default_factory=deque)  # the controller, and who receives control packets
    poll: Polled = field(default_factory=Polled)
    idle: bool = False

    def look(self) -> None:
        self.poll.look(len(self.pushed) - self.ended)


class TimedTasks:
    """The queues of all channels.

    A task can start when its channel is free and its start latency since the push has passed; so what is queued early
    starts at once. Two faults show only in time: `overflows` names channels that were pushed to while full (the
    emulated time lets the pusher wait), `rewrites` BDs that were written while a task that uses them was in flight.
    Both say when it happened first.
    """

    def __init__(self, runners: list[TimedParty], clock: Clock, timing: Timing):
        self._runners, self._clock, self._timing = runners, clock, timing
        self._queues: dict[TimedParty, _Queue] = {}
        self.overflows: dict[str, float] = {}
        self.rewrites: dict[str, float] = {}
        self._in_flight: Counter[tuple[tuple[int, int], int]] = Counter()
        self.awaited = False
        self.verbs: dict[str, Verb] = {
            "push": self._push, "task": self._task, "end task": self._end,
            "token": self._token, "poll tasks": self._poll,
            "write bd": self._write_bd,
        }  # fmt: skip

    def _queue(self, runner: TimedParty) -> _Queue:
        return self._queues.setdefault(runner, _Queue())

    def _write_bd(self, _: TimedParty, column: int, row: int, bd: int) -> bool:
        if self._in_flight[(column, row), bd]:
            self.rewrites.setdefault(f"BD {bd} of tile ({column}, {row})", self._clock.now)
        return True

    def _push(self, runner: TimedParty, channel: int, bds: tuple[int, ...]) -> bool:
        target = self._runners[channel]
        queue = self._queue(target)
        if len(queue.pushed) - queue.ended >= TASK_QUEUE_ENTRIES:
            self.overflows.setdefault(target.party.name, self._clock.now)
            queue.pushing.append(runner)
            return runner.block(f"{FULL_QUEUE} of {target.party.name}")
        queue.pushed.append(self._clock.now)
        queue.bds.append(bds)
        self._in_flight.update((target.party.place, bd) for bd in bds)
        queue.look()
        if queue.idle:
            queue.idle = False
            target.unblock()
            if self._begin(target, queue):
                target.advance_at(self._clock.now)
        return True

    def _task(self, runner: TimedParty) -> bool:
        queue = self._queue(runner)
        if queue.begun == len(queue.pushed):
            queue.idle = True
            return runner.block(NO_TASK)
        return self._begin(runner, queue)

    def _begin(self, runner: TimedParty, queue: _Queue) -> bool:
        now, number = self._clock.now, queue.begun
        queue.begun += 1
        start = queue.pushed[number] + self._latency(runner, first=number == 0)
        if start <= now:
            return True
        runner.stall(TASK_START, now, start)
        return runner.advance_at(start)

    def _latency(self, runner: TimedParty, *, first: bool) -> float:
        timing, party = self._timing, runner.party
        if party.tile_kind != "shim":
            return timing.task_start_cycles
        if party.direction == "MM2S":
            latency_ns = timing.shim_mm2s_first_ns if first else timing.shim_mm2s_later_ns
        else:
            latency_ns = timing.shim_s2mm_first_ns if first else timing.shim_s2mm_later_ns
        return latency_ns * timing.array_hz / 1e9

    def drop(self, runner: TimedParty) -> None:
        """A channel is reset: its tasks are gone, and who waits to push has room."""
        queue = self._queue(runner)
        for bds in queue.bds[queue.ended :]:
            self._in_flight.subtract((runner.party.place, bd) for bd in bds)
        queue.begun = queue.ended = len(queue.pushed)
        queue.idle = False
        queue.look()
        while queue.pushing:
            queue.pushing.popleft().retry()

    def _end(self, runner: TimedParty, token: bool) -> bool:
        queue = self._queue(runner)
        self._in_flight.subtract((runner.party.place, bd) for bd in queue.bds[queue.ended])
        queue.ended += 1
        queue.tokens += token
        queue.look()
        if queue.pushing:
            queue.pushing.popleft().retry()
        if queue.tokens and queue.awaiting is not None:
            awaiting, queue.awaiting = queue.awaiting, None
            awaiting.retry()
        return True

    def _token(self, runner: TimedParty, channel: int) -> bool:
        queue = self._queue(self._runners[channel])
        self.awaited = True
        if queue.tokens:
            queue.tokens -= 1
            return True
        queue.awaiting = runner
        return runner.block(f"token of {self._runners[channel].party.name}")

    def _poll(self, runner: TimedParty, channel: int, counts: frozenset[int]) -> bool:
        queue, reason = self._queue(self._runners[channel]), f"status of {self._runners[channel].party.name}"
        return queue.poll.wait(runner, counts, reason, len(queue.pushed) - queue.ended)
