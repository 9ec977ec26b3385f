"""The scheduler's lists and the lock's range on their own, at their ends."""

from dataclasses import dataclass

import pytest

from bdforge.emulator.errors import BudgetExceeded, LockError
from bdforge.emulator.lock import Lock
from bdforge.emulator.scheduler import Agent, RandomScheduler, Scheduler

SCHEDULERS = [Scheduler, lambda: RandomScheduler(3)]


class Counter(Agent):
    """Counts its turns."""

    turns = 0

    def run(self):
        while True:
            self.turns += 1
            yield


@dataclass
class Source:
    """A blocked source that could move a little."""

    owner: Agent
    blocked: bool = True
    listed: bool = False


@pytest.mark.parametrize("make", SCHEDULERS)
def test_nobody_of_a_configuration_moves_after_it_was_replaced(make):
    scheduler = make()
    ready, patient = Counter("ready"), Counter("patient")
    scheduler.wake(ready)
    scheduler.wake_when_idle(Source(patient))
    scheduler.clear()
    scheduler.run()
    assert (ready.turns, patient.turns) == (0, 0)


@pytest.mark.parametrize("make", SCHEDULERS)
def test_a_patient_source_gets_its_turn_when_nobody_else_can_move(make):
    scheduler = make()
    agent = Counter("patient")
    source = Source(agent)
    scheduler.wake_when_idle(source)
    scheduler.wake_when_idle(source)  # once in the list, however often it asks
    scheduler.run()
    assert (agent.turns, agent.pressed, source.listed, source.blocked) == (1, True, False, False)


def test_an_adversary_presses_a_source_early_now_and_then():
    """A tenth of its steps, where others could move; the plain scheduler never does."""
    early = 0
    for seed in range(100):
        scheduler = RandomScheduler(seed)
        ready, patient = Counter("ready"), Counter("patient")
        scheduler.wake(ready)
        scheduler.wake_when_idle(Source(patient))
        assert scheduler.step()
        assert ready.turns + patient.turns == 1
        early += patient.turns
    assert 1 <= early <= 30


@pytest.mark.parametrize("words", [1, 2, 7])
def test_an_adversary_moves_one_half_or_all_of_some_words(words: int):
    scheduler = RandomScheduler(1)
    assert {scheduler.portion(words) for _ in range(60)} == {1, max(words // 2, 1), words}
    assert Scheduler().portion(words) == words


def test_the_budget_is_the_last_step_that_is_allowed():
    scheduler = Scheduler(budget=2)
    for agent in (Counter("first"), Counter("second")):
        scheduler.wake(agent)
    scheduler.run()
    scheduler.wake(Counter("third"))
    with pytest.raises(BudgetExceeded, match="no end after 2 steps; third ran last"):
        scheduler.run()


def lock(faults: list | None = None) -> Lock:
    return Lock("0 of core (0, 2)", 63, lambda agent: None, fault=None if faults is None else faults.append)


@pytest.mark.parametrize("value", [0, 63])
def test_a_lock_holds_the_ends_of_its_range(value):
    held = lock()
    held.set(value)
    assert held.value == value


@pytest.mark.parametrize("value", [-1, 64])
def test_one_beyond_the_range_is_an_error(value):
    with pytest.raises(LockError, match=f"would become {value}, outside 0 to 63"):
        lock().set(value)


@pytest.mark.parametrize(("value", "kept"), [(-1, -1), (-63, -63), (-64, -64), (-65, -64), (64, 63), (127, 63)])
def test_where_it_is_permitted_a_lock_saturates_at_the_ends_of_seven_bits(value, kept):
    faults: list[LockError] = []
    held = lock(faults)
    held.set(value)
    assert (held.value, len(faults)) == (kept, 1)
