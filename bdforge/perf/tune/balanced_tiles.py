"""The published way to a balanced design, step by step (S0, Taka et al.): tiles ranked for a core, then walked.

1. Tiles of one core, symmetric (rho 1), with one buffer of C, by MACs per cycle; one whose A or B takes longer to come
   than its kernel works is as slow as they are. Tiles are whole blocks of mlir-aie's kernels, since edges are slower.
2. The fastest of them on the whole array: computing takes so long, moving what it needs through DRAM so long.
3. From its depth down, the tile with the most MACs of each k: of equals that with the least of A and B, then the one
   that moves least. The lower k, the larger m·n: it moves less, and is slower in a core. Each that makes the longer of
   the two times shorter is a step; the last one is balanced.

Of the publication's 24 tiles 23 are the walk's at their k (`bdforge reproduce taka-tiles`); which of two neighbours is
the fastest it measured. Padding, dispatch, runs and requests are no part of it: `estimate` has them, and `bdforge tune`
searches with them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.operators.gemm import GemmProblem
from bdforge.perf.bounds import core_bound as core
from bdforge.perf.bounds import traffic
from bdforge.perf.bounds.case import GemmCase
from bdforge.perf.errors import PerfError
from bdforge.perf.kernels.kernel_cost import mlir_aie_blocking
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
    def macs(self) -> int:
        return self.m * self.k * self.n

    @property
    def macs_per_cycle(self) -> float:
        """Of a core, whose kernel and streams overlap."""
        return self.macs / max(self.kernel_cycles, self.stream_cycles)

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
    """The ranking of one core, the `walk` from its first tile down, by k, the `steps` of it to the balanced one,
    operations per byte at which the first tile's computing would take as long as memory, and the m at which it would
    move that little."""

    ranked: tuple[RankedTile, ...]
    walk: tuple[RankedTile, ...]
    steps: tuple[RankedTile, ...]
    ridge: float
    balanced_m: float


def balance(space: SearchSpace, basis: Basis, problem: GemmProblem) -> Balance:
    """Walk from the fastest tile of one core to the balanced one for a problem.

    PerfError when no tile fits; ScheduleError where a basis has no kernel.
    """
    tiles = sorted(_tiles(space, basis, problem), key=lambda tile: (-tile.macs_per_cycle, -tile.macs, tile.time_us))
    if not tiles:
        raise PerfError("no tile of these types and layouts fits a core")
    walk, steps = [tiles[0], *_walk(tiles, tiles[0].k)], [tiles[0]]
    for tile in walk:
        if tile.time_us < steps[-1].time_us:
            steps.append(tile)
    first, case = tiles[0], case_at(space, Candidate.of([])._replace(b_layout=0), problem)
    ridge = traffic.ridge(2 * problem.macs / first.compute_us / 1e6, case.timing.dram_gb_s)
    a, b, c = case.element_bytes
    m = traffic.balanced_m(
        first.n, problem.K, a, b, c, rows=space.rows, columns=space.columns, intensity=ridge,
    )  # fmt: skip
    return Balance(tuple(tiles), tuple(dict.fromkeys(walk)), tuple(steps), ridge, m)


def _walk(tiles: Sequence[RankedTile], deepest: int) -> Iterator[RankedTile]:
    """From a depth down, the tile of each k with the most MACs."""
    by_depth: dict[int, list[RankedTile]] = {}
    for tile in tiles:
        by_depth.setdefault(tile.k, []).append(tile)
    for k in sorted((k for k in by_depth if k <= deepest), reverse=True):
        yield min(by_depth[k], key=lambda tile: (-tile.macs, tile.m + tile.n, tile.memory_us, tile.m))


def _tiles(space: SearchSpace, basis: Basis, problem: GemmProblem) -> list[RankedTile]:
    """Every tile of whole blocks that fits a core."""
    found, (rows, columns) = [], _block(space)
    for m in rows_of_tiles(space):
        for candidates in candidates_of(space, m):
            whole = (candidates.m % rows == 0) & (candidates.n % columns == 0)
            one_slice = candidates.at(whole & (candidates.k_mt == candidates.k))
            buildable = one_slice.at(legal(space, one_slice))
            if buildable.length:
                found += _timed(space, basis, problem, buildable)
    return found


def _block(space: SearchSpace) -> tuple[int, int]:
    """Rows and columns of C in a block of mlir-aie's kernels."""
    rows, columns = mlir_aie_blocking(space.device.generation, space.a)
    return rows * space.kernel.r, columns * space.kernel.t


def _timed(space: SearchSpace, basis: Basis, problem: GemmProblem, c: Candidate) -> list[RankedTile]:
    case = case_at(space, c._replace(b_layout=int(c.b_layout[0])), problem)
    cycles = np.broadcast_to(kernel_of(case, basis).cycles, c.length)
    a, b, _ = case.element_bytes
    found: list[RankedTile] = []
    for m, k, n, kernel in zip(c.m.tolist(), c.k.tolist(), c.n.tolist(), cycles.tolist(), strict=True):
        stream = float(core.stream_in_cycles(m, k, n, a, b, case.timing.stream_bytes_per_cycle))
        found.append(_tile(space, case, problem, (m, k, n), (kernel, stream)))
    return found


def _tile(
    space: SearchSpace, case: GemmCase, problem: GemmProblem, sizes: tuple[int, int, int], cycles: tuple[float, float]
) -> RankedTile:
    (m, k, n), (a, b, c), timing = sizes, case.element_bytes, case.timing
    whole, cores = (problem.M, problem.K, problem.N), space.rows * space.columns
    compute = traffic.compute_seconds(*whole, m * k * n / max(cycles), cores, timing.array_hz)
    read = traffic.a_bytes(*whole, a, n, space.columns) + traffic.b_bytes(*whole, b, m, space.rows)
    moved = read + traffic.c_bytes(problem.M, problem.N, c)
    memory = max(traffic.memory_seconds(read, timing.dram_read_gb_s), traffic.memory_seconds(moved, timing.dram_gb_s))
    intensity = traffic.arithmetic_intensity(m, n, problem.K, a, b, c, rows=space.rows, columns=space.columns)
    return RankedTile(m, k, n, *cycles, 1e6 * compute, 1e6 * memory, intensity)
