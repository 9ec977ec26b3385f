"""A lock by itself: who gets it at which value, in which order, and what it tells."""

import pytest

from bdforge.array.emulator.errors import LockError
from bdforge.array.emulator.lock import EmulatedLock
from bdforge.array.emulator.scheduler import Agent


class Watched:
    """A lock with what it did: agents woken, values told."""

    def __init__(self, value: int):
        self.woken: list[str] = []
        self.told: list[int] = []
        self.lock = EmulatedLock("gate", 63, lambda agent: self.woken.append(agent.name), value, notify=self._tell)

    def _tell(self, verb: str, lock: EmulatedLock, number: int, *_: object) -> None:
        assert lock is self.lock
        if verb == "value":
            self.told.append(number)


@pytest.mark.parametrize(
    ("value", "need", "equal", "taken"),
    [(3, 3, False, True), (4, 3, False, True), (2, 3, False, False), (3, 3, True, True), (4, 3, True, False)],
)
def test_a_lock_is_taken_at_its_value_at_once_or_when_it_comes_there(value, need, equal, taken):
    watched, agent = Watched(value), Agent("one")
    assert watched.lock.take(agent, need, equal) is taken
    if not taken:
        watched.lock.set(need)
        assert watched.woken == ["one"]
    assert watched.lock.value == (value - need if taken else 0)
    assert watched.lock.taken == 1
    assert not watched.lock.waiters
    assert watched.told == ([value - need] if taken else [need, 0])


def test_who_waits_longest_is_asked_first_and_others_stay():
    watched = Watched(0)
    for name, need in (("two", 2), ("one", 1), ("last", 1), ("much", 5)):
        assert not watched.lock.take(Agent(name), need)
    watched.lock.add(1)
    assert watched.woken == ["one"]  # not enough for the first
    watched.lock.add(3)
    assert watched.woken == ["one", "two", "last"]
    assert [agent.name for agent, _ in watched.lock.waiters] == ["much"]
    assert (watched.lock.value, watched.lock.taken) == (0, 3)


@pytest.mark.parametrize("at_once", [False, True])
def test_who_waits_for_exactly_what_a_taker_leaves_gets_it(at_once):
    watched = Watched(3)
    assert not watched.lock.take(Agent("empty"), 0, equal=True)
    assert watched.lock.take(Agent("all"), 3 if at_once else 4) is at_once
    if not at_once:
        watched.lock.add(1)
    assert watched.woken == (["empty"] if at_once else ["all", "empty"])
    assert (watched.lock.value, watched.lock.taken, len(watched.lock.waiters)) == (0, 2, 0)


def test_who_is_forgotten_is_not_woken():
    watched, first, second = Watched(0), Agent("first"), Agent("second")
    for agent in (first, second):
        watched.lock.take(agent, 1)
    watched.lock.forget(first)
    watched.lock.add(1)
    assert watched.woken == ["second"]


@pytest.mark.parametrize(("times", "words"), [(0, "never"), (1, "once"), (2, "twice"), (3, "3 times")])
def test_a_wait_tells_who_released_how_often(times, words):
    watched, busy, lazy = Watched(0), Agent("busy"), Agent("lazy")
    watched.lock.releasers = lambda: [busy, lazy]
    for _ in range(times):
        watched.lock.add(0, agent=lazy)
    for _ in range(5):
        watched.lock.add(0, agent=busy)
    waiter = Agent("waiter")
    watched.lock.take(waiter, 7, where=lambda: " (here)")
    assert waiter.waiting is not None
    assert waiter.waiting.sentence() == (
        f"waits for lock gate >= 7, which is 0 (released {words} by lazy, 5 times by busy) (here)"
    )
    assert list(waiter.waiting.providers()) == [busy, lazy]


@pytest.mark.parametrize(("count", "more"), [(4, ""), (5, " and 1 more"), (6, " and 2 more")])
def test_four_releasers_are_named_and_the_rest_counted(count, more):
    watched, agents = Watched(0), [Agent(name) for name in "abcdef"[:count]]
    watched.lock.releasers = lambda: agents
    waiter = Agent("waiter")
    watched.lock.take(waiter, 1)
    assert waiter.waiting is not None
    assert waiter.waiting.sentence().endswith(f"since the start (released never by a, b, c, d{more})")


def test_a_new_configuration_keeps_the_value_alone():
    watched = Watched(1)
    watched.lock.take(Agent("taker"), 1)
    watched.lock.take(Agent("waiter"), 1)
    watched.lock.add(0, agent=Agent("giver"))
    watched.lock.set(0)
    watched.lock.restart("other")
    assert (watched.lock.name, watched.lock.value, watched.lock.taken) == ("other", 0, 0)
    assert not watched.lock.waiters
    assert not watched.lock.released


RANGE = {-65: -64, -64: -64, -63: -63, -1: -1, 0: None, 63: None, 64: 63, 127: 63}


@pytest.mark.parametrize(("value", "kept"), RANGE.items())
def test_a_lock_holds_0_to_63_and_saturates_at_seven_bits_where_more_is_permitted(value: int, kept: int | None):
    watched, faults = Watched(0), list[LockError]()
    if kept is not None:
        with pytest.raises(LockError, match=f"would become {value}, outside 0 to 63"):
            watched.lock.set(value)
    watched.lock.fault = faults.append
    watched.lock.set(value)
    assert (watched.lock.value, len(faults)) == ((value, 0) if kept is None else (kept, 1))
