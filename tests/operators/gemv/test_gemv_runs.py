"""GEMV designs on the emulated array: any M, K and N, exact, whatever the schedule."""

import numpy as np
import pytest
from gemv_designs import DESIGNS, INT, LoadedGemv, loaded, plan_of

from bdforge.array.emulator import TimingOptions
from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators.gemv import GemvSpec, plan_gemv
from support.differences import same

RUNS = {"two columns": 4, "one core": 4}
WHOLE_ARRAY_RUNS = 1
TWINS = {"strix halo, bf16", "phoenix"}
"""Whole arrays of which others have product and types: for the sweep."""


def sizes_of(design: LoadedGemv, count: int) -> list[tuple[int, int, int]]:
    """M, K, N of up to three chunks and some more groups than two for each column."""
    rng, tiling, m = np.random.default_rng(11), design.plan.tiling, design.plan.spec.form.tile.m
    most = m, 3 * tiling.k, (2 * tiling.columns + 3) * tiling.group
    return [tuple(int(rng.integers(1, size + 1)) for size in most) for _ in range(count)]  # type: ignore[misc]


@pytest.mark.daily("two columns")
@pytest.mark.parametrize("name", [name for name in DESIGNS if name not in TWINS])
def test_random_sizes_are_exact_in_adversarial_schedules(name):
    design = loaded(name)
    for seed, sizes in enumerate(sizes_of(design, RUNS.get(name, WHOLE_ARRAY_RUNS))):
        design.exact(sizes, seed, schedule=("random", "in-order")[seed % 2], seed=seed, poison=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_more_random_sizes_are_exact(name):
    design = loaded(name)
    for seed, sizes in enumerate(sizes_of(design, 100)):
        design.exact(sizes, seed, schedule="random", seed=seed, poison=True)


EDGES = {
    "one element": (1, 1, 1),
    "one column of W": (2, 17, 1),
    "a chunk less one": (4, 7, 64),
    "a chunk more one": (4, 9, 64),
    "a tile less one": (3, 16, 31),
    "a tile more one": (3, 16, 33),
    "whole groups": (4, 16, 256),
    "whole groups, a row": (1, 16, 256),
    "a group more": (4, 24, 320),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_edge_is_exact(edge):
    loaded("two columns").exact(EDGES[edge], 3, schedule="random", seed=5, poison=True)


@pytest.mark.parametrize(("name", "groups"), [("one core", 300), ("two columns", 800)])
def test_passes_beyond_what_one_task_repeats_are_exact(name, groups):
    """Of two columns, the one with half the channels has nothing to do in the first of several steps."""
    design = loaded(name)
    sizes = 1, 5, groups * design.plan.tiling.group - 3
    sequence = design.plan.sequence(design.problem(sizes))
    assert len({event.index for event in sequence.events}) > 1
    design.exact(sizes, 7)


def test_one_loaded_array_serves_problem_after_problem():
    """Whatever cores let go by."""
    design = loaded("two columns")
    sizes = [(1, 8, 1), (4, 30, 500), (2, 9, 64), (1, 8, 3), (3, 17, 320)]
    problems = [(each, design.random(each, seed)) for seed, each in enumerate(sizes)]
    for (_, inputs), found in zip(problems, design.run_in_turn(problems, schedule="random"), strict=True):
        same(found["C"].astype(np.float64), design.product(inputs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("product", "k", "most"),
    [
        ("strix_halo", 640, 1.3),
        ("phoenix", 640, 1.45),
    ],
)
def test_time_is_little_more_than_that_of_the_bytes(product, k, most):
    """Of BitNet's 2560 x 2560, from the sequence's start: DRAM's port is busy nearly all the time."""
    content = {"kind": "gemv", "types": INT, "tile": {"k": k, "n": 32}}
    plan, problem = plan_gemv(GemvSpec.load(content, "bitnet"), device_named(product)), (1, 2560, 2560)
    design, timing = LoadedGemv.of(plan, dict.fromkeys(plan.kernels.symbols, lambda *_: None)), timing_of(plan.device)
    _, found = design.run(
        problem, plan.random(design.problem(problem), 1), timing=TimingOptions(timing, plan.kernels.cycles)
    )
    assert found.timing is not None
    cost = plan.cost(design.problem(problem))
    port_ns = timing.port_ns(cost.read_bytes, cost.write_bytes)
    assert 1 < timing.cycles_ns(found.timing.cycles) / port_ns < most


def test_compiled_kernels_are_those_of_the_contracts():
    plan = plan_of("one core")
    design = LoadedGemv.of(plan)
    for seed, sizes in enumerate(sizes_of(design, 3)):
        design.exact(sizes, seed)
