"""A party on its way through its actions in the order of time, and where its time went.

Times are array cycles; 0 is when the first operation of the sequence starts.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from bdforge.array.emulator.trace import Party


class Clock:
    """A queue of calls, each at a time; calls at the same time run in the order in which they were asked for."""

    def __init__(self, start: float):
        self.now = start
        self._events: list[tuple[float, int, Callable[..., Any], tuple[Any, ...]]] = []
        self._count = 0

    def at(self, time: float, call: Callable[..., Any], *arguments: Any) -> None:
        """Call at `time`, which is not before now."""
        self._count += 1
        heapq.heappush(self._events, (time, self._count, call, arguments))

    def run(self) -> None:
        events = self._events
        while events:
            self.now, _, call, arguments = heapq.heappop(events)
            call(*arguments)

    def stop(self) -> None:
        self._events.clear()


NO_TASK, ENDED = "no task", "ended"
WAS_RESET = ("was reset",)

Verb = Callable[..., bool]
"""Does an action of a runner. True: go on at once; False: whoever ends the wait calls `advance` again."""


@dataclass(frozen=True, slots=True)
class TimelineSpan:
    """Something that a party did, in cycles. Transfers move words in the last `moving` of them, and wait for DRAM in
    `dram` before those."""

    party: str
    what: str
    start: float
    end: float
    waits: bool
    moving: float | None = None
    dram: float = 0.0


class TimedParty:
    """One party of the trace. `busy` and `stalled` are cycles by reason, counted from time 0 on."""

    def __init__(self, party: Party, clock: Clock, verbs: Mapping[str, Verb], spans: list[TimelineSpan] | None):
        self.party, self.clock = party, clock
        self.is_core = party.kind == "core"
        self.busy: dict[str, float] = {}
        self.stalled: dict[str, float] = {}
        self.blocked: tuple[str, float] | None = None
        self.begun = self.stopped = False
        self.issues = False  # whether its bundles are counted one by one, those of lock operations among them
        self.quiet: float | None = None
        self.epoch = 0  # counts resets: what was under way before one has no effect
        self._actions, self._next = party.actions, 0
        self._ahead: list[tuple[dict[str, float], str, float, float]] = []
        self._verbs, self._spans = verbs, spans

    @property
    def ended(self) -> bool:
        return self.blocked is None and self._next == len(self._actions)

    def advance(self) -> None:
        """Do actions until one takes time or has to wait."""
        if self.stopped:
            return
        actions, verbs = self._actions, self._verbs
        while self._next < len(actions):
            action = actions[self._next]
            self._next += 1
            if not verbs[action[0]](self, *action[1:]):
                return
        self.quiet = self.clock.now

    def again(self) -> None:
        """Try the last action once more."""
        self._next -= 1
        self.advance()

    def advance_at(self, time: float) -> bool:
        """Go on at `time`; False, as a verb's answer."""
        self.clock.at(time, self._advance_of, self.epoch)
        return False

    def work(self, what: str, cycles: float, shown: str = "") -> bool:
        """Be busy from now on, `shown` on the timeline, and go on behind it; False, as a verb's answer."""
        start = self.clock.now
        self.spend(what, start, start + cycles)
        if shown:
            self.show(shown, start, start + cycles)
        return self.advance_at(start + cycles)

    def _advance_of(self, epoch: int) -> None:
        if epoch == self.epoch:
            self.advance()

    def reset(self) -> None:
        """Drop what is under way and go on behind the next `was reset`."""
        self.epoch += 1
        if self.blocked is not None:
            self.unblock()
        if not (self._next and self._actions[self._next - 1] == WAS_RESET):
            self._next = self._actions.index(WAS_RESET, self._next) + 1
        self.advance_at(self.clock.now)

    def spend(self, what: str, start: float, end: float) -> None:
        if (cycles := end - max(start, 0.0)) > 0:
            self.busy[what] = self.busy.get(what, 0.0) + cycles
            self._remember(self.busy, what, start, end)

    def stall(self, what: str, start: float, end: float, *, visible: bool = True) -> None:
        """Count time in which the party waits, and show it."""
        if (cycles := end - max(start, 0.0)) > 0:
            self.stalled[what] = self.stalled.get(what, 0.0) + cycles
            self._remember(self.stalled, what, start, end)
            if visible:
                self.show(what, start, end, waits=True)

    def _remember(self, where: dict[str, float], what: str, start: float, end: float) -> None:
        """Keep what was counted ahead of time, in case that the run ends before it does."""
        if end > self.clock.now:
            self._ahead = [entry for entry in self._ahead if entry[3] > self.clock.now]
            self._ahead.append((where, what, start, end))

    def show(
        self, what: str, start: float, end: float, *, waits: bool = False, moving: float | None = None,
        dram: float = 0.0,
    ) -> None:  # fmt: skip
        """Put a span, or a moment, on the timeline, if there is one."""
        if self._spans is not None and end >= max(start, 0.0):
            self._spans.append(TimelineSpan(self.party.name, what, max(start, 0.0), end, waits, moving, dram))

    def block(self, what: str) -> bool:
        """Wait from now on; False, as a verb's answer."""
        self.blocked = what, self.clock.now
        return False

    def retry(self) -> None:
        """The wait ends now: try the action that waited once more."""
        self.unblock()
        self.clock.at(self.clock.now, self.again)

    def unblock(self, until: float | None = None) -> None:
        """The wait ends, now or at a time; the caller lets the party advance then."""
        assert self.blocked is not None
        what, since = self.blocked
        self.blocked = None
        self.stall(what, since, self.clock.now if until is None else until)

    def close(self, end: float) -> None:
        """The run is over: count a wait that never ended, or the time since the last action."""
        for where, what, start, until in self._ahead:
            if until > end:
                where[what] -= until - max(start, end, 0.0)
        if self.blocked is not None:
            self.stall(*self.blocked, end)
        elif self.quiet is not None:
            self.stall(NO_TASK if self.party.kind == "channel" else ENDED, self.quiet, end, visible=False)


class Polled:
    """Whom a poll of the controller lets wait until a number is one of some values."""

    def __init__(self) -> None:
        self._waiting: tuple[TimedParty, frozenset[int]] | None = None

    def wait(self, runner: TimedParty, values: frozenset[int], reason: str, number: int) -> bool:
        """Poll from now on; False, as a verb's answer."""
        self._waiting = runner, values
        runner.block(reason)
        self.look(number)
        return False

    def look(self, number: int) -> None:
        """Let the poll end if its value is there now."""
        if self._waiting is not None and number in self._waiting[1]:
            runner, self._waiting = self._waiting[0], None
            runner.unblock()
            runner.advance_at(runner.clock.now)
