"""How the shims walk A, B and C of a GEMM of any size: steps, and the transfers in them.

A step is one row panel over many column steps, or many row panels over one column step: as much as one task of each
channel can do. Host buffers keep their true shape: A and C are row- or column-major with `lda` and `ldc` positions from
line to line; B likewise with `ldb`, or packed in the order in which the cores eat it, `[n-tile][K/k][a k x n tile]`.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from bd_patterns.legality import problems
from bd_patterns.pattern import Pattern
from bdforge.devices.limits import GRANULE_BITS, TASK_REPEAT_MAX, TileLimits
from bdforge.operators.gemm.grid import BYTE_BITS, Feed, Grid, Order, Problem, Storage, Tiling, require, size_faults

Operand = Literal["A", "B", "C", "R", "S"]
"""Host buffers. R and S feed an epilogue: numbers for each row panel, and for each n-tile."""


@dataclass(frozen=True, slots=True)
class Transfer:
    """One task of one shim channel.

    The task runs the chain `bds` `runs` times; only C asks for a token. A pattern of four dimensions moves on from run
    to run by its outermost one; others start over. Patterns count elements of the operand's host buffer; bytes for
    packed B. `sources` names the host buffer of each BD where it is not the operand's own.
    """

    operand: Operand
    column: int
    direction: Literal["MM2S", "S2MM"]
    bds: tuple[Pattern, ...]
    element_bits: int
    runs: int
    token: bool
    sources: tuple[Operand, ...] = ()

    def source(self, index: int) -> Operand:
        """The host buffer of BD `index`."""
        return self.sources[index] if self.sources else self.operand


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


_Dims = tuple[tuple[int, ...], tuple[int, ...], int]
"""Sizes, strides and offset of a pattern."""


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
        """Panels that one task can walk: the BDs of A, and of a column-major C, iterate over them."""
        strides = [self.tiling.a.words(self._a_stride())]
        return min(self.max_count, self.limits.iteration_wrap_max) if self._within(strides) else 1

    def _a_stride(self) -> int:
        return _outer_offset(self.tiling.a, "row", self.tiling.panel_rows, self.problem.lda)

    def _b_stride(self) -> int:
        return _outer_offset(self.tiling.b, "column", self.tiling.step_columns, self.problem.ldb)

    def _within(self, strides: Iterable[int]) -> bool:
        return all(stride <= self.limits.step_max for stride in strides)

    def _column_ranges(self) -> Iterator[tuple[int, int]]:
        """(first, count) of the column steps of a panel."""
        steps, most = self.grid.column_steps, self.max_count
        moved = self.grid.n_tiles % self.tiling.columns or self.problem.N % self.tiling.n
        if not self._columns_iterate():
            most = 1
        if self.tiling.b.order == "packed" and not self._fed and not self._c_iterates(0, 2):
            return _ranges(steps, most)
        # All BDs of a chain run equally often, so the step that moved back cannot join the others.
        end = steps - 1 if moved else steps
        return iter([*_ranges(end, min(most, self.limits.iteration_wrap_max)), *((i, 1) for i in range(end, steps))])

    @property
    def _fed(self) -> bool:
        return any(self.tiling.fed_bytes)

    def _columns_iterate(self) -> bool:
        """Whether one BD of B, and of a column-major C, can walk several column steps."""
        b, c = self.tiling.b, self.tiling.c
        c_strides = [c.words(self.tiling.step_columns * self.problem.ldc)] if c.order == "column" else []
        if b.order != "packed":
            return self._within([b.words(self._b_stride()), *c_strides])
        return self.b_inner_bytes > 0 and self._within(
            [self.tiling.columns * self.length_bytes * BYTE_BITS // GRANULE_BITS, *c_strides]
        )

    def _c_iterates(self, panel: int, count: int) -> bool:
        """Whether C's column steps are runs of a task: one BD cannot hold several when a panel's rows need more."""
        if self.tiling.c.order == "column":
            return count > 1
        (_, rows), *more = self.grid.row_groups(panel)
        return count > 1 and (bool(more) or rows // self.tiling.c.block > self.limits.wraps[1])

    def transfers(self, panel: int, panels: int, first: int, count: int) -> tuple[Transfer, ...]:
        """The tasks of a step; those of A come first, since the array can start on them while others are set up."""
        tiling, columns = self.tiling, range(self.tiling.columns)
        packed = tiling.b.order == "packed" and not self._fed
        a, b, c = tiling.a.bits, BYTE_BITS if tiling.b.order == "packed" else tiling.b.bits, tiling.c.bits
        b_runs = panels if packed else panels * count
        c_runs = count if self._c_iterates(panel, count) else 1
        if tiling.c.order == "column":
            c_runs = panels * count
        return (
            *(
                Transfer("A", feed.column, "MM2S", self._a(panel, panels, feed), a, panels * count, False)
                for feed in tiling.feeds()
            ),
            *(
                Transfer("B", j, "MM2S", self._b(panel, panels, first, count, j), b, b_runs, False, self._b_sources)
                for j in columns
            ),
            *(Transfer("C", j, "S2MM", self._c(panel, panels, first, count, j), c, c_runs, True) for j in columns),
        )

    def _a(self, panel: int, panels: int, feed: Feed) -> tuple[Pattern, ...]:
        """A feed's rows of A in slabs, panel by panel."""
        start = self.grid.row_starts(panel)[feed.row] + feed.offset
        slabs = self._slabs(self.tiling.a, "row", start, feed.rows, self.problem.lda, self.grid.a_depth)
        return tuple(_iterated(slab, panels, self._a_stride()) for slab in slabs)

    def _slabs(
        self, storage: Storage, along_depth: Order, start: int, rows: int, leading: int, depth: int
    ) -> list[_Dims]:
        """`rows` rows of A (columns of B) from `start` on, in slabs of k_mt; then the slab that moved back.

        Where lines run along K: `(K/k_mt, k_mt)(rows, ld)(k_mt, 1)`. Otherwise slabs are neighbouring lines:
        `(K, ld)(1)(rows, 1)`. Where dimensions hold it, the second of two
        slabs, moved back, is the first one's repetition.
        """
        k_mt = self.tiling.k_mt
        whole, rest = divmod(depth, k_mt)
        begin = _outer_offset(storage, along_depth, start, leading)
        if storage.order == along_depth:
            line, run, lines = leading * storage.run, k_mt * storage.run, rows // storage.block
            if whole == 1 and rest:
                return [((2, lines, run), (rest * storage.run, line, 1), begin)]
            moved = ((1, lines, run), (0, line, 1), begin + (depth - k_mt) * storage.run)
            slabs = [((whole, lines, run), (run, line, 1), begin)]
        else:
            if whole == 1 and rest and k_mt <= self.limits.wraps[1] and self._within([storage.words(rest * leading)]):
                return [((2, k_mt, rows), (rest * leading, leading, 1), begin)]
            moved = ((k_mt, 1, rows), (leading, 0, 1), begin + (depth - k_mt) * leading)
            slabs = [((whole * k_mt, 1, rows), (leading, 0, 1), begin)]
        return [*slabs, moved] if rest else slabs

    @property
    def _b_sources(self) -> tuple[Operand, ...]:
        return ("B", "R", "S") if self._fed else ()

    def _b(self, panel: int, panels: int, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """The column's n-tiles, column step by column step."""
        if self._fed:
            return self._b_fed(panel, panels, first, count, column)
        if self.tiling.b.order == "packed":
            return self._b_packed(first, count, column)
        start, size = self.grid.tile_column(self.grid.n_tile(first, column)), self.tiling.n
        slabs = self._slabs(self.tiling.b, "column", start, size, self.problem.ldb, self.problem.K)
        return tuple(_iterated(slab, count, self._b_stride()) for slab in slabs)

    def _b_packed(self, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """The column's n-tiles, in bytes: `(count, columns*L)(L/b, b)(b, 1)` with L bytes in a tile; linear for one."""
        length, inner, columns = self.length_bytes, self.b_inner_bytes, self.tiling.columns
        bds = []
        for n_tile, tiles, apart in _runs(lambda step: self.grid.n_tile(step, column), first, count, columns):
            if tiles == 1:
                bds.append(Pattern((length,), (1,), n_tile * length))
                continue
            sizes, strides = (tiles, length // inner, inner), (apart * length, inner, 1)
            bds.append(Pattern(sizes, strides, n_tile * length))
        return tuple(bds)

    def _b_fed(self, panel: int, panels: int, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """An n-tile, the row panel's numbers and the n-tile's, again for each column step or panel; all in bytes."""
        n_tile, columns = self.grid.n_tile(first, column), self.tiling.columns
        by_panel, by_tile = self.tiling.fed_bytes
        return (
            self._bytes(n_tile, self.length_bytes, count, columns),
            self._bytes(panel, by_panel, panels, 1),
            self._bytes(n_tile, by_tile, count, columns),
        )

    def _bytes(self, first: int, length: int, count: int, stride: int) -> Pattern:
        """Stretch `first` of `length` bytes each, moved on by `stride` stretches in each of `count` runs."""
        if count == 1:
            return Pattern((length,), (1,), first * length)
        inner = _inner_bytes(length, self.limits)
        return Pattern((count, 1, length // inner, inner), (stride * length, 0, inner, 1), first * length)

    def _c(self, panel: int, panels: int, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """The column's part of C: `(count, columns*n)(rows, ldc)(n, 1)`, core row 0 first in each column step."""
        grid, tiling, ldc = self.grid, self.tiling, self.problem.ldc * self.tiling.c.run
        if tiling.c.order == "column":
            return self._c_columns(panel, panels, first, count, column)
        groups = grid.row_groups(panel)
        if panels > 1:
            groups = [(panel * tiling.panel_rows, panels * tiling.panel_rows)]
        groups = [(row // tiling.c.block, rows // tiling.c.block) for row, rows in groups]
        n, step, run = tiling.n * tiling.c.run, tiling.step_columns * tiling.c.run, tiling.c.run
        if self._c_iterates(panel, count):
            start = grid.tile_column(grid.n_tile(first, column)) * run
            return tuple(Pattern((count, rows, 1, n), (step, ldc, 0, 1), row * ldc + start) for row, rows in groups)
        return tuple(
            self._c_lines(tiles, lines, line * ldc + start, apart)
            for start, tiles, apart in _runs(
                lambda step: grid.tile_column(grid.n_tile(step, column)) * run, first, count, step
            )
            for line, lines in groups
        )

    def _c_lines(self, tiles: int, lines: int, offset: int, apart: int) -> Pattern:
        """`lines` lines of `tiles` tiles; of one tile when there are more lines than an inner dimension holds."""
        run = self.tiling.c.run
        n, ldc = self.tiling.n * run, self.problem.ldc * run
        if lines > self.limits.wraps[1]:
            return Pattern((lines, 1, n), (ldc, 0, 1), offset)
        return Pattern((tiles, lines, n), (apart, ldc, 1), offset)

    def _c_columns(self, panel: int, panels: int, first: int, count: int, column: int) -> tuple[Pattern, ...]:
        """Column-major C: `(core rows, m)(n, ldc)(m, 1)` for neighbouring tiles, in each column step or panel."""
        m, n, ldc = self.tiling.m, self.tiling.n, self.problem.ldc
        start = self.grid.tile_column(self.grid.n_tile(first, column)) * ldc
        stride = self.tiling.panel_rows if panels > 1 else self.tiling.step_columns * ldc
        groups = [(row, rows // m) for row, rows in self.grid.row_groups(panel)]
        tiles = [((count_m, n, m), (m, ldc, 1), start + row) for row, count_m in groups]
        return tuple(_iterated(tile, panels * count, stride) for tile in tiles)


def _outer_offset(storage: Storage, along_depth: Order, rows: int, leading: int) -> int:
    """Memory elements from an operand's row (A) or column (B) to the one `rows` further on."""
    return rows // storage.block * leading * storage.run if storage.order == along_depth else rows


def _iterated(dims: _Dims, count: int, stride: int) -> Pattern:
    """The pattern, moved on by `stride` in each of `count` runs."""
    sizes, strides, offset = dims
    return Pattern(sizes, strides, offset) if count == 1 else Pattern((count, *sizes), (stride, *strides), offset)


def _runs(start: Callable[[int], int], first: int, count: int, stride: int) -> list[tuple[int, int, int]]:
    """(start, count, stride) of one or two stretches over column steps; only the last start may be off.

    Two steps are one stretch, however far apart.
    """
    begin, last = start(first), start(first + count - 1)
    if count == 2:
        return [(begin, count, last - begin)]
    if last == begin + (count - 1) * stride:
        return [(begin, count, stride)]
    return [(begin, count - 1, stride), (last, 1, stride)]


def _ranges(end: int, most: int) -> Iterator[tuple[int, int]]:
    """(first, count) of ranges that cover 0 to end - 1."""
    return ((first, min(most, end - first)) for first in range(0, end, most))


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
