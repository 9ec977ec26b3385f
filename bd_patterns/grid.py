"""Where the tiles of a GEMM of any size lie.

The mapping is output-stationary: core (row i, column j) holds one m x n tile of C and sees all of K before the next.
A *row panel* is rows * m rows of A and C, a *column step* is columns * n columns of B and C.

Nothing is padded. Where a dimension is no multiple of its tile, the last tile *moves back* until it ends with the
matrix: elements that two tiles cover are computed twice, with the same result.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from bd_patterns.granules import GRANULE_BITS

BYTE_BITS = 8


class WalkError(ValueError):
    """A problem that the tiles cannot walk; the message lists every reason."""


@dataclass(frozen=True, slots=True)
class Tiling:
    """A core's tile m x k x n, the depth k_mt of a memtile's slab, the array, and the operands' element widths."""

    m: int
    k: int
    n: int
    k_mt: int
    rows: int = 4
    columns: int = 8
    a_bits: int = 8
    b_bits: int = 2
    c_bits: int = 32

    @property
    def panel_rows(self) -> int:
        """Rows of A and C in one row panel."""
        return self.rows * self.m

    @property
    def step_columns(self) -> int:
        """Columns of B and C in one column step."""
        return self.columns * self.n

    @property
    def a_granule(self) -> int:
        """Elements of A that one DMA granule holds: rows and depths must be multiples of it."""
        return max(GRANULE_BITS // self.a_bits, 1)

    @property
    def c_granule(self) -> int:
        """Elements of C that one DMA granule holds."""
        return max(GRANULE_BITS // self.c_bits, 1)

    def a_column(self, row: int) -> int:
        """The array column whose shim feeds A to core row `row`: 0, 2, 4, 6 for four rows and eight columns."""
        return row * (self.columns // self.rows)

    def b_tile_bytes(self, depth: int) -> int:
        """Bytes of one n-tile of packed B that is `depth` deep."""
        return depth * self.n * self.b_bits // BYTE_BITS


@dataclass(frozen=True, slots=True)
class Problem:
    """Sizes M, K, N, and the elements from one row to the next in A (`lda`) and C (`ldc`)."""

    M: int
    K: int
    N: int
    lda: int
    ldc: int


@dataclass(frozen=True, slots=True)
class Grid:
    """Where the tiles of a problem lie, and where the last ones moved back to."""

    tiling: Tiling
    problem: Problem

    @property
    def panels(self) -> int:
        """Row panels."""
        return -(-self.problem.M // self.tiling.panel_rows)

    @property
    def slabs(self) -> int:
        """Slabs of A in one panel."""
        return -(-self.problem.K // self.tiling.k_mt)

    @property
    def depth(self) -> int:
        """Rows of packed B: whole slabs. Those that two slabs cover have weight 0 in the second."""
        return self.slabs * self.tiling.k_mt

    @property
    def n_tiles(self) -> int:
        """Tiles of packed B along N."""
        return -(-self.problem.N // self.tiling.n)

    @property
    def column_steps(self) -> int:
        """Column steps, each of one n-tile for each column of the array."""
        return -(-self.n_tiles // self.tiling.columns)

    def row_starts(self, panel: int) -> list[int]:
        """First row of each core row's tile. The last panel moves back as a whole; a single one tile by tile."""
        m, rows, M = self.tiling.m, self.tiling.rows, self.problem.M
        if self.tiling.panel_rows > M:
            return [min(row * m, M - m) for row in range(rows)]
        first = min(panel * self.tiling.panel_rows, M - self.tiling.panel_rows)
        return [first + row * m for row in range(rows)]

    def row_groups(self, panel: int) -> list[tuple[int, int]]:
        """(first row, rows) of the tiles of a panel, in the order of core rows, neighbours joined."""
        groups: list[tuple[int, int]] = []
        for start in self.row_starts(panel):
            if groups and sum(groups[-1]) == start:
                groups[-1] = (groups[-1][0], groups[-1][1] + self.tiling.m)
            else:
                groups.append((start, self.tiling.m))
        return groups

    def n_tile(self, step: int, column: int) -> int:
        """The n-tile of an array column in a column step. The last step moves back as a whole; a single one repeats."""
        columns, tiles = self.tiling.columns, self.n_tiles
        return min(min(step * columns, max(tiles - columns, 0)) + column, tiles - 1)

    def tile_column(self, n_tile: int) -> int:
        """First column of an n-tile in C; the last tile moves back."""
        return min(n_tile * self.tiling.n, self.problem.N - self.tiling.n)


class RuntimeParameters(NamedTuple):
    """The two 32-bit words that every core reads when a GEMM starts."""

    k_steps: int
    output_tiles: int


def runtime_parameters(tiling: Tiling, problem: Problem) -> RuntimeParameters:
    """`K/k` in whole slabs, and the tiles of C that each core makes; WalkError as `walk`."""
    require(size_faults(tiling, problem), tiling, problem)
    grid = Grid(tiling, problem)
    return RuntimeParameters(grid.depth // tiling.k, grid.panels * grid.column_steps)


def size_faults(tiling: Tiling, problem: Problem) -> list[str]:
    """Every reason why sizes and leading dimensions cannot be walked."""
    small = [
        f"{name} = {value} is below 1"
        for source in (tiling, problem)
        for name in source.__slots__
        if (value := getattr(source, name)) < 1
    ]
    return small or [*_tile_faults(tiling), *_problem_faults(tiling, problem), *_granule_faults(tiling, problem)]


def _tile_faults(tiling: Tiling) -> Iterator[str]:
    if tiling.k_mt % tiling.k:
        yield f"k_mt = {tiling.k_mt} is no multiple of k = {tiling.k}"
    if tiling.columns % tiling.rows:
        yield f"columns = {tiling.columns} is no multiple of rows = {tiling.rows}"
    tile_bits = tiling.k * tiling.n * tiling.b_bits
    if tile_bits % GRANULE_BITS:
        yield f"a tile of B has k * n * b_bits = {tile_bits} bit, no multiple of {GRANULE_BITS} bit; enlarge k or n"


def _problem_faults(tiling: Tiling, problem: Problem) -> Iterator[str]:
    for name, tile_name in (("M", "m"), ("K", "k_mt"), ("N", "n")):
        size, tile = getattr(problem, name), getattr(tiling, tile_name)
        if size < tile:
            yield f"{name} = {size} is below {tile_name} = {tile}; stage the operand in a larger buffer"
    if problem.lda < problem.K:
        yield f"lda = {problem.lda} is below K = {problem.K}; rows of A would overlap"
    if problem.ldc < problem.N:
        yield f"ldc = {problem.ldc} is below N = {problem.N}; rows of C would overlap"


def _granule_faults(tiling: Tiling, problem: Problem) -> Iterator[str]:
    for name, size, granule, bits in (
        ("K", problem.K, tiling.a_granule, tiling.a_bits),
        ("lda", problem.lda, tiling.a_granule, tiling.a_bits),
        ("N", problem.N, tiling.c_granule, tiling.c_bits),
        ("ldc", problem.ldc, tiling.c_granule, tiling.c_bits),
    ):
        if size % granule:
            yield (
                f"{name} = {size} is no multiple of {granule}; a DMA moves {GRANULE_BITS} bit at a time and the "
                f"elements have {bits}: stage the operand in a buffer whose rows start at whole words"
            )


def require(faults: list[str], tiling: Tiling, problem: Problem) -> None:
    """WalkError with all `faults`, if there are any."""
    if faults:
        raise WalkError("\n  - ".join([f"{problem} cannot be walked with {tiling}:", *faults]))
