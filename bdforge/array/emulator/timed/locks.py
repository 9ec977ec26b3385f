"""Locks under time: who acquires first gets it, waiters are served in turn."""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from bdforge.array.emulator.timed.timed_run import Clock, Polled, TimedParty, Verb
from bdforge.devices.timing import Timing

LOCK_OPERATIONS = "lock operations"


@dataclass(slots=True)
class _Lock:
    reason: str
    value: int = 0
    waiters: deque[tuple[TimedParty, int, bool]] = field(default_factory=deque)
    poll: Polled = field(default_factory=Polled)

    def store(self, value: int) -> None:
        self.value = value
        self.poll.look(value)

    def grants(self, need: int, equal: bool) -> bool:
        return self.value == need if equal else self.value >= need


class TimedLocks:
    """All locks of the array.

    A core pays `core_lock_cycles` for each operation, which is what compiled code takes around one; of machine code the
    bundles are counted, and nothing besides. A release takes effect at its end. Whoever had to wait goes on
    `done_to_resume_cycles` (cores) or `memtile_turn_cycles` (channels) after the release that it waited for. A
    channel's own lock operations hide behind its transfers.
    """

    def __init__(self, names: Sequence[str], clock: Clock, timing: Timing):
        self._clock, self._timing = clock, timing
        self._locks = [_Lock(f"lock {name.partition(' (')[0]}") for name in names]
        self.verbs: dict[str, Verb] = {
            "acquire": self._acquire,
            "release": self._release,
            "set": self._set,
            "poll lock": self._poll,
        }

    def forget(self, runners: set[TimedParty]) -> None:
        """Stopped parties wait no longer."""
        for lock in self._locks:
            if lock.waiters:
                lock.waiters = deque(waiter for waiter in lock.waiters if waiter[0] not in runners)

    def _acquire(self, runner: TimedParty, index: int, need: int, equal: bool) -> bool:
        lock, now = self._locks[index], self._clock.now
        if not lock.grants(need, equal):
            lock.waiters.append((runner, need, equal))
            return runner.block(lock.reason)
        self._store(lock, lock.value - need)
        return runner.advance_at(self._operate(runner, f"take {lock.reason}", now)) if runner.is_core else True

    def _poll(self, runner: TimedParty, index: int, values: frozenset[int]) -> bool:
        lock = self._locks[index]
        return lock.poll.wait(runner, values, lock.reason, lock.value)

    def _operate(self, runner: TimedParty, what: str, start: float) -> float:
        """A core's operation on a lock; when it ends."""
        end = start + self._cost(runner)
        runner.spend(LOCK_OPERATIONS, start, end)
        runner.show(what, start, end)
        return end

    def _cost(self, runner: TimedParty) -> int:
        return 0 if runner.issues else self._timing.core_lock_cycles

    def _release(self, runner: TimedParty, index: int, amount: int) -> bool:
        lock = self._locks[index]
        if not runner.is_core:
            return self._set(runner, index, lock.value + amount)
        end = self._operate(runner, f"give {lock.reason}", self._clock.now)
        self._clock.at(end, self._released, runner, index, amount)
        return False

    def _released(self, runner: TimedParty, index: int, amount: int) -> None:
        self._set(runner, index, self._locks[index].value + amount)
        runner.advance()

    def _set(self, _: TimedParty, index: int, value: int) -> bool:
        self._store(self._locks[index], value)
        return True

    def _store(self, lock: _Lock, value: int) -> None:
        """Set a value, and give the lock to who may have it then: a taker may leave exactly what another waits for."""
        lock.store(value)
        for place, (runner, need, equal) in enumerate(lock.waiters):
            if lock.grants(need, equal):
                del lock.waiters[place]
                self._resume(runner)
                self._store(lock, lock.value - need)
                return

    def _resume(self, runner: TimedParty) -> None:
        now, timing = self._clock.now, self._timing
        if not runner.is_core:
            runner.unblock(now + timing.memtile_turn_cycles)
            runner.advance_at(now + timing.memtile_turn_cycles)
            return
        cost = self._cost(runner)
        assert runner.blocked is not None
        reason, since = runner.blocked
        resumed = max(now + timing.done_to_resume_cycles, since + cost)
        runner.unblock(resumed - cost)
        runner.advance_at(self._operate(runner, f"take {reason}", resumed - cost))
