"""The walk to a balanced design: its numbers by hand, and where it ends beside published balanced designs."""

import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators.gemm import Problem
from bdforge.perf.tune.balance import FIXED, balance
from bdforge.perf.tune.space import search_space

PROBLEM = Problem(4224, 4032, 4224)


@pytest.fixture(scope="module")
def walk():
    space = search_space(device_named("phoenix"), "bf16,bf16,bf16", PROBLEM.K, b_layouts=("column",), fixed=FIXED)
    return balance(space, "fitted", PROBLEM)


def test_tiles_are_ranked_by_macs_per_cycle_and_streams_keep_up(walk):
    rates = [tile.macs_per_cycle for tile in walk.ranked]
    assert rates == sorted(rates, reverse=True)
    assert all(tile.stream_cycles <= tile.kernel_cycles for tile in walk.ranked)
    assert all(4 * tile.stream_cycles == 2 * max(tile.m * tile.k, tile.k * tile.n) for tile in walk.ranked)


def test_figures_of_a_tile_by_hand(walk):
    tile, timing = walk.ranked[0], timing_of("phoenix")
    macs, cores = PROBLEM.macs, 4 * 4
    assert tile.compute_us == pytest.approx(macs / tile.macs_per_cycle / cores / timing.array_hz * 1e6)
    a, b = 2 * macs / (4 * tile.n), 2 * macs / (4 * tile.m)  # each panel of the other operand reads it once more
    c = 2 * PROBLEM.M * PROBLEM.N
    seconds = max((a + b) / timing.dram_read_gb_s, (a + b + c) / timing.dram_gb_s) / 1e9
    assert tile.memory_us == pytest.approx(seconds * 1e6)
    assert tile.intensity == pytest.approx(2 * macs / (a + b + c))


def test_every_step_is_shorter_and_the_last_is_the_shortest_of_all(walk):
    times = [tile.time_us for tile in walk.steps]
    assert times == sorted(times, reverse=True)
    assert walk.steps[0] == walk.ranked[0]
    assert times[-1] == min(tile.time_us for tile in walk.ranked)
    assert walk.steps[0].bound == "memory"
    assert walk.steps[-1].time_us < 0.75 * walk.steps[0].time_us


def test_the_walk_ends_near_the_published_balanced_tile(walk):
    moved = 2 / (96 * 4) + 2 / (96 * 4) + 2 / PROBLEM.K  # 96 x 56 x 96: S0's table 2, bf16 on XDNA
    assert walk.steps[-1].intensity == pytest.approx(2 / moved, rel=0.1)
    assert walk.steps[0].intensity < 0.7 * 2 / moved


def test_the_balanced_m_reaches_the_ridge(walk):
    first = walk.ranked[0]
    macs = PROBLEM.macs
    moved = 2 * macs / (4 * first.n) + 2 * macs / (4 * walk.balanced_m) + 2 * PROBLEM.M * PROBLEM.N
    assert 2 * macs / moved == pytest.approx(walk.ridge)
