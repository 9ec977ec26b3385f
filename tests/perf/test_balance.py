"""The walk to a balanced design: its numbers by hand, and where it ends beside published balanced designs."""

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators.gemm import GemmProblem
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.rates import KernelCycles
from bdforge.perf.tune import balanced_tiles as module
from bdforge.perf.tune.balanced_tiles import FIXED, RankedTile, balance
from bdforge.perf.tune.space import Candidate, search_space

SPACE = search_space(device_named("phoenix"), "bf16,bf16,bf16", 4032, b_layouts=("column",), fixed=FIXED)

PROBLEM = GemmProblem(4224, 4032, 4224)


@pytest.fixture(scope="module")
def walk():
    return balance(SPACE, "fitted", PROBLEM)


def test_tiles_are_ranked_by_macs_per_cycle_and_streams_keep_up(walk):
    rates = [tile.macs_per_cycle for tile in walk.ranked]
    assert rates == sorted(rates, reverse=True)
    assert len({(tile.m, tile.k, tile.n) for tile in walk.ranked}) == len(walk.ranked), "each tile once"
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


def test_reads_have_a_bandwidth_of_their_own():
    """On strix_halo reads alone get 55.5 GB/s of the port's 67.4, so they bind where C is small beside A and B."""
    space = search_space(device_named("strix_halo"), "bf16,bf16,bf16", 4096, b_layouts=("column",), fixed=FIXED)
    problem = GemmProblem(4096, 4096, 4096)
    tile = balance(space, "fitted", problem).ranked[0]
    read, c = 2 * problem.macs * (1 / (8 * tile.n) + 1 / (4 * tile.m)), 2 * problem.M * problem.N
    assert read / 55.5 > (read + c) / 67.4, "reads bind"
    assert tile.memory_us == pytest.approx(read / 55.5e3)


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
    assert walk.ridge == pytest.approx(2 * macs / first.compute_us * 1e6 / (timing_of("phoenix").dram_gb_s * 1e9))


def test_a_stream_may_take_as_long_as_its_kernel_but_no_longer(monkeypatch):
    """A of 64 x 64 bf16 takes 64 * 64 * 2 / 4 = 2048 cycles."""
    cycles = np.array([2047.0, 2048.0, 2049.0])
    monkeypatch.setattr(module, "kernel_of", lambda case, basis: KernelCycles(cycles, "made up"))
    three = Candidate.of([(64, 64, 64, 64, 1, 2, 1, 1, 2)] * 3)
    assert [tile.kernel_cycles for tile in module._timed(SPACE, "fitted", PROBLEM, three)] == [2048.0, 2049.0]


def tile(cycles: float, compute_us: float, memory_us: float) -> RankedTile:
    return RankedTile(4, 8, 4, cycles, 1.0, compute_us, memory_us, 1.0)


def test_only_shorter_times_are_steps_and_of_equal_rates_the_shorter_time_comes_first(monkeypatch):
    longer, first, equal, last = tile(10, 1, 9), tile(10, 1, 8), tile(20, 8, 2), tile(30, 7, 7)
    monkeypatch.setattr(module, "_tiles", lambda *_: [last, equal, longer, first])
    found = balance(SPACE, "fitted", PROBLEM)
    assert found.ranked == (first, longer, equal, last)
    assert found.steps == (first, last), "a tile that takes as long as the step before is none"
    assert [each.bound for each in found.ranked] == ["memory", "memory", "compute", "compute"]
    monkeypatch.setattr(module, "_tiles", lambda *_: [])
    with pytest.raises(PerfError, match="no tile of these types and layouts fits a core and computes as long as"):
        balance(SPACE, "fitted", PROBLEM)
