"""Modulo schedules: what plans promise on random problems, and heights, windows and limits by hand."""

import random
from itertools import product

import pytest

from bdforge.core.isa.modulo import Edge, ModuloProblem, ModuloSchedule, Places, fits, heights, late_plans, plans


def broken(problem: ModuloProblem, plan: ModuloSchedule) -> list[str]:
    """What a plan does not keep to, in words."""
    found, taken, ii = [], {}, plan.interval
    for e in problem.edges:
        apart = plan.issues[e.later] + ii * e.distance - plan.issues[e.earlier]
        if apart < e.delay:
            found.append(f"{e.earlier} -> {e.later}: {apart} cycles apart, not {e.delay}")
    for task, (places, issue, choice) in enumerate(zip(problem.places, plan.issues, plan.choices, strict=True)):
        for unit, cycle in places[choice]:
            other = taken.setdefault((unit, (issue + cycle) % ii), task)
            if other != task or list(places[choice]).count((unit, cycle)) > 1:
                found.append(f"{other} and {task} both take {unit} in cycle {(issue + cycle) % ii}")
        cells = {(unit, (issue + cycle) % ii) for unit, cycle in places[choice]}
        if len(cells) < len(places[choice]):
            found.append(f"{task} takes a unit twice in one cycle")
        if problem.start is not None and task not in problem.fixed and issue < problem.start:
            found.append(f"{task} at {issue}, before {problem.start}")
    found += [f"{task} is fixed" for task, at in problem.fixed.items() if at != (plan.issues[task], plan.choices[task])]
    return found


def some_places(rng: random.Random) -> Places:
    cells = [("a", 0), ("b", 0), ("a", 1), ("c", 2), ("b", 3)]
    return tuple(tuple(rng.sample(cells, rng.choice([1, 1, 2]))) for _ in range(rng.choice([1, 1, 2])))


def some_problem(seed: int, fixed: bool = False) -> ModuloProblem:
    rng, count = random.Random(seed), 6
    pairs = [(i, j) for i in range(count) for j in range(count) if i != j]
    edges = [Edge(min(pair), max(pair), rng.randrange(-1, 5), 0) for pair in rng.sample(pairs, 6)]
    edges += [Edge(j, i, rng.randrange(6), rng.choice([1, 2])) for i, j in rng.sample(pairs, 2) if j > i]
    places = [some_places(rng) for _ in range(count)]
    settled = {2: (rng.randrange(4, 8), 0)} if fixed else {}
    late = [i for i in range(count) if i not in settled and any(e.earlier == i for e in edges)]
    return ModuloProblem(
        places, edges, settled, late if rng.random() < 0.7 else [], rng.choice([None, 0, 3]) if fixed else None
    )


@pytest.mark.parametrize("fixed", [False, True], ids=["free", "fixed"])
def test_plans_keep_distances_units_and_what_is_fixed(fixed):
    """On random problems, from the shortest interval for which there is a plan on."""
    made = 0
    for seed in range(40):
        problem = some_problem(seed, fixed)
        for interval in range(1, 9):
            for plan in plans(problem, interval):
                made += 1
                assert not broken(problem, plan), (seed, problem, plan)
    assert made > 300


def test_late_plans_keep_distances_and_units():
    for seed in range(30):
        problem = some_problem(seed)
        problem = ModuloProblem(problem.places, problem.edges, {}, ())
        for interval in range(1, 8):
            for plan in late_plans(problem, interval):
                assert not broken(problem, plan), (seed, problem, plan)


def any_plan(problem: ModuloProblem, interval: int, most: int) -> bool:
    """Whether there is a plan with issues below `most`, by trying all."""
    choices = [range(len(places)) for places in problem.places]
    return any(
        not broken(problem, ModuloSchedule(interval, issues, chosen))
        for issues in product(range(most), repeat=len(problem.places))
        for chosen in product(*choices)
    )


def test_the_shortest_interval_of_small_problems_is_that_of_trying_all():
    rng = random.Random(5)
    for _ in range(12):
        places = [some_places(rng) for _ in range(3)]
        edges = [Edge(0, 1, rng.randrange(3), 0), Edge(1, 2, rng.randrange(3), 0), Edge(2, 0, rng.randrange(4), 1)]
        problem = ModuloProblem(places, edges, {}, ())
        for interval in range(1, 5):
            found = any(True for _ in plans(problem, interval))
            assert found == any_plan(problem, interval, 6), (problem, interval)


FREE: Places = ((),)
CIRCLE = [Edge(0, 1, 2, 0), Edge(1, 2, 1, 0), Edge(2, 0, 3, 2)]


@pytest.mark.parametrize(
    ("edges", "interval", "wanted"),
    [([Edge(0, 1, 4, 0), Edge(1, 2, 3, 0)], 1, [7, 3, 0]), ([Edge(0, 1, 4, 1), Edge(1, 2, 3, 0)], 2, [5, 3, 0]),
     (CIRCLE, 3, [3, 1, 0]), (CIRCLE, 4, [3, 1, 0]), (CIRCLE, 2, None), ([Edge(0, 0, 3, 1)], 3, [0, 0, 0]),
     ([Edge(0, 0, 3, 1)], 2, None)],
)  # fmt: skip
def test_heights_are_the_longest_way_to_the_end(edges, interval, wanted):
    """A circle of six cycles over two iterations takes an interval of three, and no less."""
    problem = ModuloProblem([FREE] * 3, edges, {}, ())
    assert heights(problem, interval) == wanted
    assert any(True for _ in plans(problem, interval)) == (wanted is not None)


def test_a_unit_is_full_with_as_many_tasks_as_cycles():
    """Tasks with alternatives are not counted, as nobody knows which they take."""
    slot: Places = ((("slot", 0),),)
    either: Places = ((("slot", 0),), (("other", 0),))
    assert [fits([slot] * 3, n) for n in (2, 3, 4)] == [False, True, True]
    assert fits([slot, slot, either, either], 2)
    assert fits([], 0)
    twice: Places = ((("slot", 0), ("slot", 3)),)
    issues = [[plan.issues for plan in plans(ModuloProblem([twice], [], {}, ()), n)][:1] for n in (2, 3, 4)]
    assert issues == [[(0,)], [], [(0,)]]  # in three cycles it meets itself


SLOT: Places = ((("slot", 0),),)


@pytest.mark.parametrize(
    ("edges", "fixed", "late", "start", "wanted"),
    [
        ([Edge(0, 1, 3, 0)], {1: (9, 0)}, [0], None, (6, 9)),  # as late as it may be
        ([Edge(0, 1, 3, 0)], {0: (2, 0)}, [], None, (2, 5)),  # as early as it may be
        ([Edge(0, 1, 3, 0)], {1: (9, 0)}, [], 2, (2, 9)),
        ([Edge(0, 1, 5, 0)], {1: (9, 0)}, [0], None, (3, 9)),  # 4 is the other's slot, modulo 5
        ([Edge(0, 1, 3, 0), Edge(1, 0, 2, 1)], {1: (9, 0)}, [0], None, (6, 9)),
        ([Edge(0, 1, 3, 0), Edge(1, 0, 3, 1)], {1: (9, 0)}, [0], None, None),  # six cycles in an interval of five
        ([Edge(0, 1, 3, 0)], {1: (4, 0)}, [0], 2, None),  # it would have to begin before the start
        ([Edge(0, 1, 3, 0)], {1: (5, 0)}, [0], 2, (2, 5)),
        ([], {0: (1, 0), 1: (6, 0)}, [], None, None),  # both in one slot
        ([Edge(0, 1, 4, 0)], {0: (1, 0), 1: (4, 0)}, [], None, None),  # three cycles apart
        ([Edge(0, 1, 4, 0)], {0: (1, 0), 1: (5, 0)}, [], None, (1, 5)),
    ],
)
def test_others_keep_to_the_windows_that_fixed_tasks_leave(edges, fixed, late, start, wanted):
    found = next(iter(plans(ModuloProblem([SLOT] * 2, edges, fixed, late, start), 5)), None)
    assert (None if found is None else found.issues) == wanted


def test_late_tasks_follow_those_that_wait_for_them():
    """A chain beside a long way to the same end: its last task moves first, so that the one before can follow."""
    chain, long = [Edge(0, 1, 1, 0), Edge(1, 2, 2, 0)], Edge(3, 2, 7, 0)
    for late, wanted in (((), (0, 1, 7, 0)), ((0,), (0, 1, 7, 0)), ((1,), (0, 5, 7, 0)), ((0, 1), (4, 5, 7, 0))):
        found = next(iter(plans(ModuloProblem([FREE] * 4, [*chain, long], {}, late), 9)))
        assert found.issues == wanted, f"late: {late}"
