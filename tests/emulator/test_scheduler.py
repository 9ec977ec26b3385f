"""The scheduler's lists on their own, at their ends."""

import pytest

from bdforge.array.emulator.errors import ArgumentError, BudgetExceeded
from bdforge.array.emulator.scheduler import Agent, RandomScheduler, Scheduler, scheduler_named
from bdforge.array.emulator.stream import Stream

SCHEDULERS = [Scheduler, lambda: RandomScheduler(3)]


class Counter(Agent):
    """Counts its turns."""

    turns = 0

    def run(self):
        while True:
            self.turns += 1
            yield


@pytest.mark.parametrize("make", SCHEDULERS)
def test_nobody_of_a_configuration_moves_after_it_was_replaced(make):
    scheduler = make()
    ready, patient = Counter("ready"), Counter("patient")
    scheduler.wake(ready)
    scheduler.wake_when_idle(Stream(patient, scheduler, blocked=True))
    scheduler.clear()
    scheduler.run()
    assert (ready.turns, patient.turns) == (0, 0)


@pytest.mark.parametrize("make", SCHEDULERS)
def test_a_patient_source_gets_its_turn_when_nobody_else_can_move(make):
    scheduler = make()
    agent = Counter("patient")
    source = Stream(agent, scheduler, blocked=True)
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
        scheduler.wake_when_idle(Stream(patient, scheduler, blocked=True))
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


def test_an_adversary_lets_the_array_move_no_step_or_some_between_two_operations():
    """0, 1, 3, 10 or 100 steps, or fewer where nobody can move; the plain scheduler moves all that can."""
    steps: set[int] = set()
    for seed in range(40):
        scheduler = RandomScheduler(seed)
        for agent in (endless := [Counter("one"), Counter("two")]):
            scheduler.wake(agent)
            agent.run = lambda agent=agent, scheduler=scheduler: awake(agent, scheduler)
        scheduler.between_operations()
        steps.add(scheduler.steps)
        assert sum(agent.turns for agent in endless) == scheduler.steps
    assert steps == {0, 1, 3, 10, 100}
    scheduler = Scheduler()
    scheduler.wake(Counter("one"))
    scheduler.between_operations()
    assert scheduler.steps == 1


def awake(agent: Counter, scheduler: Scheduler):
    """Steps of an agent that always goes on."""
    while True:
        agent.turns += 1
        scheduler.wake(agent)
        yield


@pytest.mark.parametrize(("name", "kind"), [("in-order", Scheduler), ("random", RandomScheduler)])
def test_a_schedule_has_a_name_a_seed_and_a_budget(name: str, kind: type):
    found = scheduler_named(name, 7, 99)
    assert (type(found), found.budget) == (kind, 99)
    if isinstance(found, RandomScheduler):
        again, other = (scheduler_named(name, seed, 99) for seed in (7, 8))
        drawn = [[scheduler.portion(1000) for _ in range(30)] for scheduler in (found, again, other)]
        assert drawn[0] == drawn[1] != drawn[2]


def test_a_schedule_that_nobody_knows_is_refused_with_those_that_there_are():
    with pytest.raises(ArgumentError, match="no schedule is called 'shuffled'; there is in-order, random"):
        scheduler_named("shuffled", 0, 1)
