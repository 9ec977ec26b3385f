"""The published way to a balanced design, step by step (S0, Taka et al.): tiles ranked for a core, then walked.

1. Tiles of one core, symmetric (rho 1), with one buffer of C, by MACs per cycle; the streams of A and B must keep up.
2. The fastest of them on the whole array: computing takes so long, moving what it needs through DRAM so long.
3. Tiles with a larger m·n move less, but are slower in a core. Down the ranking, each tile that makes the longer of the
   two times shorter is a step; the last one is balanced.

Padding, dispatch, runs and requests are no part of it: `estimate` has them, and `bdforge tune` searches with them.
"""

from dataclasses import dataclass

import numpy as np

from bdforge.operators.gemm import GemmProblem
from bdforge.perf.bounds import core_bound as core
from bdforge.perf.bounds import traffic
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.errors import PerfError
from bdforge.perf.tune.legal import legal
from bdforge.perf.tune.space import Candidate, SearchSpace, candidates_of, rows_of_tiles
from bdforge.perf.tune.time_model import Basis, case_at, kernel_of

FIXED = {"rho": (1,), "a_shims": (1,), "c_buffers": (1,)}
"""What a space for `balance` fixes, as the published designs do."""


@dataclass(frozen=True, slots=True)
class RankedTile:
    """A core's tile m x k x n: cycles of a step's kernel and of its streams in, microseconds on the whole array, and
    operations per DRAM byte."""

    m: int
    k: int
    n: int
    kernel_cycles: float
    stream_cycles: float
    compute_us: float
    memory_us: float
    intensity: float

    @property
    def macs_per_cycle(self) -> float:
        return self.m * self.k * self.n / self.kernel_cycles

    @property
    def time_us(self) -> float:
        """The longer of computing and moving, which overlap."""
        return max(self.compute_us, self.memory_us)

    @property
    def bound(self) -> str:
        """What binds on the whole array."""
        return "compute" if self.compute_us >= self.memory_us else "memory"

    def __str__(self) -> str:
        return f"{self.m}x{self.k}x{self.n}"


@dataclass(frozen=True, slots=True)
class Balance:
    """The walk: the ranking of one core, the steps from its first tile to the balanced one, operations per byte at
    which the first tile's computing would take as long as memory, and the m at which it would move that little."""

    ranked: tuple[RankedTile, ...]
    steps: tuple[RankedTile, ...]
    ridge: float
    balanced_m: float


def balance(space: SearchSpace, basis: Basis, problem: GemmProblem) -> Balance:
    """Walk from the fastest tile of one core to the balanced one for a problem.

    PerfError when no tile keeps its kernel busy; ScheduleError where a basis has no kernel.
    """
    tiles = sorted(_tiles(space, basis, problem), key=lambda tile: (-tile.macs_per_cycle, tile.time_us))
    if not tiles:
        raise PerfError(
            "no tile of these types and layouts fits a core and computes as long as its A and B take to come"
        )
    steps = [tiles[0]]
    for tile in tiles:
        if tile.time_us < steps[-1].time_us:
            steps.append(tile)
    first, case = tiles[0], case_at(space, Candidate.of([])._replace(b_layout=0), problem)
    ridge = traffic.ridge(2 * problem.macs / first.compute_us / 1e6, case.timing.dram_gb_s)
    a, b, c = case.element_bytes
    m = traffic.balanced_m(
        first.n, problem.K, a, b, c, rows=space.rows, columns=space.columns, intensity=ridge,
    )  # fmt: skip
    return Balance(tuple(tiles), tuple(steps), ridge, m)


def _tiles(space: SearchSpace, basis: Basis, problem: GemmProblem) -> list[RankedTile]:
    """Every tile that fits a core and whose streams keep up with its kernel."""
    found: list[RankedTile] = []
    for m in rows_of_tiles(space):
        for candidates in candidates_of(space, m):
            one_slice = candidates.at(candidates.k_mt == candidates.k)
            buildable = one_slice.at(legal(space, one_slice))
            if buildable.length:
                found += _timed(space, basis, problem, buildable)
    return found


def _timed(space: SearchSpace, basis: Basis, problem: GemmProblem, c: Candidate) -> list[RankedTile]:
    case = case_at(space, c._replace(b_layout=int(c.b_layout[0])), problem)
    cycles = np.broadcast_to(kernel_of(case, basis).cycles, c.length)
    a, b, _ = case.element_bytes
    found: list[RankedTile] = []
    for m, k, n, kernel in zip(c.m.tolist(), c.k.tolist(), c.n.tolist(), cycles.tolist(), strict=True):
        stream = float(core.stream_in_cycles(m, k, n, a, b, case.timing.stream_bytes_per_cycle))
        if stream <= kernel:
            found.append(_tile(space, case, problem, (m, k, n), (kernel, stream)))
    return found


def _tile(
    space: SearchSpace, case: GemmCase, problem: GemmProblem, sizes: tuple[int, int, int], cycles: tuple[float, float]
) -> RankedTile:
    (m, k, n), (a, b, c), timing = sizes, case.element_bytes, case.timing
    whole, cores = (problem.M, problem.K, problem.N), space.rows * space.columns
    compute = traffic.compute_seconds(*whole, m * k * n / cycles[0], cores, timing.array_hz)
    read = traffic.a_bytes(*whole, a, n, space.columns) + traffic.b_bytes(*whole, b, m, space.rows)
    moved = read + traffic.c_bytes(problem.M, problem.N, c)
    memory = max(traffic.memory_seconds(read, timing.dram_read_gb_s), traffic.memory_seconds(moved, timing.dram_gb_s))
    intensity = traffic.arithmetic_intensity(m, n, problem.K, a, b, c, rows=space.rows, columns=space.columns)
    return RankedTile(m, k, n, *cycles, 1e6 * compute, 1e6 * memory, intensity)
