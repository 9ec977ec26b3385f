"""The walk to a balanced design: its numbers by hand, and where it ends beside published balanced designs."""

from collections.abc import Sequence

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.types import TYPES
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


@pytest.mark.slow
def test_tiles_of_whole_blocks_are_ranked_by_what_kernel_and_streams_leave(walk):
    rates = [tile.macs_per_cycle for tile in walk.ranked]
    assert rates == sorted(rates, reverse=True)
    assert len({(tile.m, tile.k, tile.n) for tile in walk.ranked}) == len(walk.ranked), "each tile once"
    for tile in walk.ranked:
        assert (tile.m % 16, tile.n % 16) == (0, 0), "blocks of 4 x 4 micro-tiles of 4 x 4"
        assert 4 * tile.stream_cycles == 2 * max(tile.m * tile.k, tile.k * tile.n)
        assert tile.macs_per_cycle == tile.macs / max(tile.kernel_cycles, tile.stream_cycles)


def most_macs(k: int, element_bytes: Sequence[float]) -> int:
    """By brute force: m·n of whole blocks of 16 x 16 that fit 63 KiB with A and B twice and C once."""
    a, b, c = element_bytes
    sides = range(16, 1024, 16)
    return max(m * n for m in sides for n in sides if 2 * m * k * a + 2 * k * n * b + m * n * c <= 63 << 10)


PUBLISHED = [
    ("phoenix", "int8,int8,int8", "64x232x64", "112x112x112 112x104x128"),
    ("phoenix", "int8,int8,int16", "64x216x64", "96x112x96 80x104x128"),
    ("phoenix", "int8,int8,int32", "48x280x48", "80x88x96 64x80x128"),
    ("phoenix", "bf16,bf16,bf16", "64x104x64", "96x56x96 96x48x112"),
    ("krackan", "int8,int8,int8", "64x232x64", "144x72x144"),
    ("krackan", "int8,int8,int16", "64x216x64", "128x72x112 160x64x96"),
    ("krackan", "int8,int8,int32", "48x280x48", "96x64x96 128x56x80"),
    ("krackan", "bf16,bf16,bf16", "48x152x48", "112x48x96 160x40x80"),
]
"""S0's tables 1 to 3: the fastest tile of a core and the balanced ones, of which the walk lacks 160x64x144 alone."""


@pytest.mark.parametrize(
    ("device", "types", "core", "balanced"),
    [
        pytest.param(*row, marks=() if row[:2] == ("krackan", "bf16,bf16,bf16") else pytest.mark.slow)
        for row in PUBLISHED
    ],
)
def test_with_the_published_stack_of_a_kilobyte_the_walk_names_the_published_tiles(device, types, core, balanced):
    space = search_space(
        device_named(device), types, 4096, b_layouts=("column",), fixed=FIXED, stack_bytes=1024
    )  # fmt: skip
    found = balance(space, "fitted", GemmProblem(4096, 4096, 4096))
    assert str(found.ranked[0]) == core
    assert set(balanced.split()) <= {str(tile) for tile in found.walk}
    sizes = [TYPES[name].bytes for name in types.split(",")]
    assert all(tile.m * tile.n == most_macs(tile.k, sizes) for tile in found.walk if str(tile) in balanced)


@pytest.mark.slow
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


def test_a_tile_is_as_slow_as_its_streams(monkeypatch):
    """A of 64 x 64 bf16 takes 64 * 64 * 2 / 4 = 2048 cycles."""
    cycles = np.array([2047.0, 2048.0, 2049.0])
    monkeypatch.setattr(module, "kernel_of", lambda case, basis: KernelCycles(cycles, "made up"))
    three = Candidate.of([(64, 64, 64, 64, 1, 2, 1, 1, 2)] * 3)
    found = module._timed(SPACE, "fitted", PROBLEM, three)
    assert [64**3 / tile.macs_per_cycle for tile in found] == [2048.0, 2048.0, 2049.0]
    assert found[0].compute_us == found[1].compute_us < found[2].compute_us


def test_a_stack_keeps_vectors_aligned():
    with pytest.raises(PerfError, match="a stack of 1000 bytes is no multiple of 32"):
        search_space(device_named("phoenix"), "int8,int8,int8", 4096, stack_bytes=1000)


def tile(k: int, sizes: tuple[int, int], cycles: float, times: tuple[float, float]) -> RankedTile:
    (m, n), (compute_us, memory_us) = sizes, times
    return RankedTile(m, k, n, cycles, 1.0, compute_us, memory_us, 1.0)


def test_the_walk_takes_the_most_macs_of_each_depth_and_only_shorter_times_are_steps(monkeypatch):
    first, deeper = tile(16, (16, 16), 32, (1, 8)), tile(24, (16, 16), 96, (1, 9))
    flat, square, turned = (
        tile(8, sizes, 32, (2, us)) for sizes, us in (((32, 8), 7), ((16, 16), 7.5), ((16, 16), 7.6))
    )
    last, small = tile(4, (32, 16), 64, (7.5, 6)), tile(4, (16, 16), 16, (3, 3))
    monkeypatch.setattr(module, "_tiles", lambda *_: [small, last, turned, square, flat, deeper, first])
    found = balance(SPACE, "fitted", PROBLEM)
    assert found.ranked[0] == first
    assert found.walk == (first, square, last), "of equal MACs the square, then what moves less; nothing deeper"
    assert found.steps == (first, square), "a tile that takes as long as the step before is none"
    assert [each.bound for each in found.walk] == ["memory", "memory", "compute"]
    monkeypatch.setattr(module, "_tiles", lambda *_: [])
    with pytest.raises(PerfError, match="no tile of these types and layouts fits a core"):
        balance(SPACE, "fitted", PROBLEM)
