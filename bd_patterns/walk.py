"""How the shims walk A, B and C of a GEMM of any size: steps, and the transfers in them.

A step is one row panel over many column steps, or many row panels over one column step: as much as one task of each
channel can do. Host buffers keep their true shape: A is row-major, `lda` elements between rows; C likewise with `ldc`;
B is packed in the order in which the cores eat it, `[n-tile][K/k][bytes of a k x n tile]`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bd_patterns.granules import GRANULE_BITS
from bd_patterns.grid import BYTE_BITS, Grid, Problem, Tiling, require, size_faults
from bd_patterns.legality import problems
from bd_patterns.pattern import Pattern
from bdforge.devices.limits import TASK_REPEAT_MAX, TileLimits

Operand = Literal["A", "B", "C"]


@dataclass(frozen=True, slots=True)
class Transfer:
    """One task of one shim channel.

    The task runs the chain `bds` `runs` times; only C asks for a token. A pattern of four dimensions moves on from run
    to run by its outermost one; others start over. Patterns count elements of the operand's host buffer, bytes for B.
    """

    operand: Operand
    column: int
    direction: Literal["MM2S", "S2MM"]
    bds: tuple[Pattern, ...]
    element_bits: int
    runs: int
    token: bool


@dataclass(frozen=True, slots=True)
class Step:
    """`panels` row panels from `panel` over `count` column steps from `first`; at least one of the two counts is 1."""

    index: int
    panel: int
    panels: int
    first: int
    count: int
    transfers: tuple[Transfer, ...]

    def of(self, operand: Operand) -> tuple[Transfer, ...]:
        """The transfers of one operand, by column."""
        return tuple(t for t in self.transfers if t.operand == operand)


def walk(tiling: Tiling, problem: Problem, limits: TileLimits, *, max_count: int = TASK_REPEAT_MAX) -> tuple[Step, ...]:
    """Every step in order, each of at most `max_count` panels or column steps.

    Goes panel by panel over all columns, or column step by column step over all panels: whichever needs fewer steps
    under `limits`, the shim's. WalkError lists every reason why the problem cannot be walked.
    """
    require([*size_faults(tiling, problem), *_count_faults(max_count)], tiling, problem)
    shims = _Shims(Grid(tiling, problem), limits, max_count)
    steps = tuple(Step(i, *area, shims.transfers(*area)) for i, area in enumerate(shims.areas()))
    require(_bd_faults(steps, limits), tiling, problem)
    return steps


_Area = tuple[int, int, int, int]
"""What a step covers: panel, panels, first column step, count."""


class _Shims:
    """Divides a grid into steps and makes their transfers."""

    def __init__(self, grid: Grid, limits: TileLimits, max_count: int):
        self.grid, self.tiling, self.problem, self.limits = grid, grid.tiling, grid.problem, limits
        self.length_bytes = self.tiling.b_tile_bytes(grid.depth)
        self.b_inner_bytes = _inner_bytes(self.length_bytes, limits)
        self.max_count = min(max_count, TASK_REPEAT_MAX)

    def areas(self) -> list[_Area]:
        """The steps: whole panels in the order that needs fewer of them, then the panel that moved back."""
        whole = self.problem.M // self.tiling.panel_rows
        wide = list(self._column_ranges())
        panel_ranges = list(_ranges(whole, self._most_panels()))
        steps = self.grid.column_steps
        areas = [(panel, 1, *columns) for panel in range(whole) for columns in wide]
        if steps * len(panel_ranges) < len(areas):
            areas = [(*panels, step, 1) for step in range(steps) for panels in panel_ranges]
        return [*areas, *((panel, 1, *columns) for panel in range(whole, self.grid.panels) for columns in wide)]

    def _most_panels(self) -> int:
        """Panels that one task of A can walk: its BDs iterate over them."""
        stride = _granules(self.tiling.panel_rows * self.problem.lda, self.tiling.a_bits)
        return min(self.max_count, self.limits.iteration_wrap_max) if stride <= self.limits.step_max else 1

    def _column_ranges(self) -> Iterator[tuple[int, int]]:
        """(first, count) of the column steps of a panel."""
        steps, most = self.grid.column_steps, self.max_count
        moved = self.grid.n_tiles % self.tiling.columns or self.problem.N % self.tiling.n
        if not self._b_repeats():
            most = 1
        if not self._c_iterates(0, 2):
            return _ranges(steps, most)
        # All BDs of a chain run equally often, so the step that moved back cannot join the others.
        end = steps - 1 if moved else steps
        return iter([*_ranges(end, min(most, self.limits.iteration_wrap_max)), *((i, 1) for i in range(end, steps))])

    def _b_repeats(self) -> bool:
        """Whether one BD can hold the same array column's n-tiles of several column steps."""
        stride = _granules(self.tiling.columns * self.length_bytes, BYTE_BITS)
        return self.b_inner_bytes > 0 and stride <= self.limits.step_max

    def _c_iterates(self, panel: int, count: int) -> bool:
        """Whether C's column steps are runs of a task: one BD cannot hold several when a panel's rows need more."""
        (_, rows), *more = self.grid.row_groups(panel)
        return count > 1 and (bool(more) or rows > self.limits.wraps[1])

    def transfers(self, panel: int, panels: int, first: int, count: int) -> tuple[Transfer, ...]:
        """The tasks of a step; those of A come first, since the array can start on them while others are set up."""
        tiling, columns = self.tiling, range(self.tiling.columns)
        c_runs = count if self._c_iterates(panel, count) else 1
        a, b, c = tiling.a_bits, BYTE_BITS, tiling.c_bits
        return (
            *(
                Transfer("A", tiling.a_column(i), "MM2S", self._a(panel, panels, i), a, panels * count, False)
                for i in range(tiling.rows)
            ),
            *(Transfer("B", j, "MM2S", self._b(first, count, j), b, panels, False) for j in columns),
            *(Transfer("C", j, "S2MM", self._c(panel, panels, first, count, j), c, c_runs, True) for j in columns),
        )

    def _a(self, panel: int, panels: int, row: int) -> tuple[Pattern, ...]:
        """Core row `row`'s rows of A in slabs: `(K/k_mt, k_mt)(m, lda)(k_mt, 1)`, then the slab that moved back."""
        m, k_mt, lda = self.tiling.m, self.tiling.k_mt, self.problem.lda
        start = self.grid.row_starts(panel)[row] * lda
        whole, rest = divmod(self.problem.K, k_mt)
        slabs = [((whole, m, k_mt), (k_mt, lda, 1), start)]
        if rest:
            slabs.append(((1, m, k_mt), (0, lda, 1), start + self.problem.K - k_mt))
        if panels == 1:
            return tuple(Pattern(*slab) for slab in slabs)
        stride = self.tiling.panel_rows * lda
        return tuple(Pattern((panels, *sizes), (stride, *strides), at) for sizes, strides, at in slabs)

    def _b(self, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """The column's n-tiles, in bytes: `(count, columns*L)(L/b, b)(b, 1)` with L bytes in a tile; linear for one."""
        length, inner, columns = self.length_bytes, self.b_inner_bytes, self.tiling.columns
        bds = []
        for n_tile, tiles in _runs(lambda step: self.grid.n_tile(step, column), first, count, columns):
            if tiles == 1:
                bds.append(Pattern((length,), (1,), n_tile * length))
                continue
            sizes, strides = (tiles, length // inner, inner), (columns * length, inner, 1)
            bds.append(Pattern(sizes, strides, n_tile * length))
        return tuple(bds)

    def _c(self, panel: int, panels: int, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """The column's part of C: `(count, columns*n)(rows, ldc)(n, 1)`, core row 0 first in each column step."""
        grid, tiling, ldc = self.grid, self.tiling, self.problem.ldc
        groups = grid.row_groups(panel)
        if panels > 1:
            groups = [(panel * tiling.panel_rows, panels * tiling.panel_rows)]
        if self._c_iterates(panel, count):
            start = grid.tile_column(grid.n_tile(first, column))
            strides = (tiling.step_columns, ldc, 0, 1)
            return tuple(Pattern((count, rows, 1, tiling.n), strides, row * ldc + start) for row, rows in groups)
        return tuple(
            self._c_rows(tiles, rows, row * ldc + start)
            for start, tiles in _runs(
                lambda step: grid.tile_column(grid.n_tile(step, column)), first, count, tiling.step_columns
            )
            for row, rows in groups
        )

    def _c_rows(self, tiles: int, rows: int, offset: int) -> Pattern:
        """`rows` rows of `tiles` tiles; of one tile when there are more rows than an inner dimension holds."""
        n, ldc = self.tiling.n, self.problem.ldc
        if rows > self.limits.wraps[1]:
            return Pattern((rows, 1, n), (ldc, 0, 1), offset)
        return Pattern((tiles, rows, n), (self.tiling.step_columns, ldc, 1), offset)


def _runs(start: Callable[[int], int], first: int, count: int, stride: int) -> list[tuple[int, int]]:
    """(start, count) of one or two stretches of equal stride over column steps; only the last start may be off."""
    begin, last = start(first), start(first + count - 1)
    if last == begin + (count - 1) * stride:
        return [(begin, count)]
    return [(begin, count - 1), (last, 1)]


def _ranges(end: int, most: int) -> Iterator[tuple[int, int]]:
    """(first, count) of ranges that cover 0 to end - 1."""
    return ((first, min(most, end - first)) for first in range(0, end, most))


def _granules(elements: int, element_bits: int) -> int:
    return elements * element_bits // GRANULE_BITS


def _inner_bytes(length: int, limits: TileLimits) -> int:
    """The longest inner run that splits `length` bytes into two wraps; 0 when none does."""
    word_bytes = GRANULE_BITS // BYTE_BITS
    words = length // word_bytes
    fitting = (w for w in range(limits.wraps[0], 0, -1) if words % w == 0 and words // w <= limits.wraps[1])
    return word_bytes * next(fitting, 0)


def _bd_faults(steps: Iterable[Step], limits: TileLimits) -> list[str]:
    """Every reason why a BD is not legal; BDs that differ in whole granules are judged once."""
    judged: set[tuple[Operand, tuple[int, ...], tuple[int, ...], int]] = set()
    faults: dict[str, None] = {}
    for transfer in (t for step in steps for t in step.transfers):
        for bd in transfer.bds:
            key = (transfer.operand, bd.sizes, bd.strides, bd.offset * transfer.element_bits % GRANULE_BITS)
            if key not in judged:
                judged.add(key)
                found = problems(bd, limits, transfer.element_bits, static=False)
                faults |= {f"{transfer.operand}: {fault}": None for fault in found}
    return list(faults)


def _count_faults(max_count: int) -> list[str]:
    return [f"max_count = {max_count} is below 1"] if max_count < 1 else []
