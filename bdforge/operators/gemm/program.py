"""The sequence program of a GEMM design: how the shims walk A, B and C of any size, in steps of tasks.

A step is one row panel over many column steps, or many row panels over one column step: as much as one task of each
channel can do. Host buffers keep their true shape: A and C are row- or column-major with `lda` and `ldc` positions from
line to line; B likewise with `ldb`, or packed in the order in which the cores eat it, `[n-tile][K/k][a k x n tile]`.
docs/operators/gemm_sequences.md explains the walk. Parameters are the problem's M, K, N and lda, ldb, ldc as the user
has them; where several arrays take C's columns, one for each of those stands for ldc.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from bdforge.design.sequences import Builder, Expr, Program, all_of, any_of, ceildiv, divisor, largest, least, select
from bdforge.design.sequences.expressions import Operand
from bdforge.design.sequences.sequence_program import ProgramBd
from bdforge.devices.limits import BYTE_BITS, GRANULE_BYTES, TASK_QUEUE_ENTRIES, TASK_REPEAT_MAX
from bdforge.operators.gemm.core_tiles import K_STEPS, OUTPUT_TILES, fixed_steps
from bdforge.operators.gemm.grid import Feed, Storage, Tiling
from bdforge.operators.gemm.mapping import MappedGemm
from bdforge.operators.gemm.operands import A, B, C, Operands, R, S, operand_name
from bdforge.operators.gemm.spec import AXES
from bdforge.operators.gemm.stages import Stages, operand_axes
from bdforge.operators.specs import LARGEST_SIZE


@dataclass(frozen=True, slots=True)
class Area:
    """What a step covers: `panels` row panels, `count` column steps; at least one of the two is 1."""

    panel: Expr
    panels: Expr
    first: Expr
    count: Expr

    @property
    def last(self) -> Expr:
        """The last column step."""
        return self.first if self.count.constant == 1 else self.first + self.count - 1


@dataclass(frozen=True, slots=True)
class Destination:
    """An array of C: which argument, positions from line to line, and the n-tiles whose columns it holds, None: all."""

    argument: int
    leading: Expr
    n_tiles: range | None = None


@dataclass(frozen=True, slots=True)
class Groups:
    """Tiles of a panel, neighbours joined: for each core row whether a group begins there, its first row, its rows."""

    begins: tuple[Expr, ...]
    starts: tuple[Expr, ...]
    rows: tuple[Expr, ...]

    @property
    def several(self) -> Expr:
        return any_of(*self.begins[1:])


class GemmProgram:
    """How the shims walk a problem; every panel of B comes from DRAM for each row panel of A."""

    in_flight_max = TASK_QUEUE_ENTRIES

    def __init__(self, plan: MappedGemm):
        self.plan, self.tiling, self.limits = plan, plan.tiling, plan.limits
        parameters = (*AXES, *(f"ld{name}" for name in operand_axes(plan.tiling)))
        self.build = Builder(parameters, plan.spec.sequence.steps, self.in_flight_max)
        self.named = self.build.named
        self.stages = Stages(self.build, plan.tiling, plan.limits)
        self.M, self.K, self.N = self.stages.sizes
        self.lda, self.ldb, *leading = (
            self.named(f"ld{name}_walked", each)
            for name, each in zip(self.stages.axes_of, self.stages.leading, strict=True)
        )
        self.destinations = tuple(_destinations(plan.tiling, leading))
        tiling, stages = self.tiling, self.stages
        self.panels, self.whole = stages.panels, self.named("whole_panels", self.M // tiling.panel_rows)
        self.depth, self.n_tiles, self.steps = stages.depth, stages.n_tiles, stages.steps
        self.b_bytes = self.depth * tiling.b_row_bits // BYTE_BITS
        if tiling.b.order == "packed":
            self.named("n_tile_bytes", self.b_bytes)
        self.b_inner = self.named("b_inner", self.inner_bytes(self.b_bytes))
        self.packed, self.fed = tiling.b.order == "packed", any(tiling.fed_bytes)
        self.a_stride = _outer_offset(tiling.a, "row", tiling.panel_rows, self.lda)
        self.b_stride = _outer_offset(tiling.b, "column", tiling.step_columns, self.ldb)

    def program(self) -> Program:
        self.stages.require(LARGEST_SIZE, self.plan.kernel.depth_limit)
        self.arguments()
        Operands(self.stages, self.plan).add(self.panels, self.depth, self.n_tiles)
        self.areas()
        return self.build.program

    def arguments(self) -> None:
        elements = [*self.stages.elements]
        if self.packed:
            elements[B] = self.n_tiles * self.b_bytes
        for argument, (name, count) in enumerate(zip(self.stages.axes_of, elements, strict=True)):
            store, type_ = self.stages.storage(name), self.plan.memory[min(argument, C)]
            note = "packed tile by tile, n-tile by n-tile" if store.order == "packed" else f"{store.order}-major"
            bits = BYTE_BITS if store.order == "packed" else store.bits
            self.build.argument(operand_name(name), type_, bits, count, note)
        if self.fed:
            by_panel, by_tile = self.tiling.fed_bytes
            self.build.argument("R", "i8", BYTE_BITS, self.panels * by_panel, "for row panels")
            self.build.argument("S", "i8", BYTE_BITS, self.n_tiles * by_tile, "for n-tiles")

    # Where tiles lie.

    def row_start(self, panel: Expr, row: Operand) -> Expr:
        """First row of a core row's tile. The last panel moves back as a whole; a single one tile by tile."""
        m, whole = self.tiling.m, self.tiling.panel_rows
        single, moved = least(row * m, self.M - m), least(panel * whole, self.M - whole) + row * m
        return select(whole > self.M, self.named(f"single{row}" if isinstance(row, int) else "single", single), moved)

    def groups(self, panel: Expr) -> Groups:
        """The tiles of a panel with neighbours joined."""
        rows, m = range(self.tiling.rows), self.tiling.m
        starts = tuple(self.named(f"row{row}", self.row_start(panel, row)) for row in rows)
        alone = (~starts[row].equals(starts[row - 1] + m) for row in rows[1:])
        apart = (self.build.constant(1), *(self.named(f"apart{row}", e) for row, e in enumerate(alone, start=1)))
        lengths = tuple(self.named(f"rows{row}", self.joined(apart, row)) for row in rows)
        return Groups(apart, starts, lengths)

    def joined(self, apart: Sequence[Expr], row: int) -> Expr:
        """Rows of the tiles from core row `row` on that follow one another."""
        m = self.tiling.m
        behind = range(row + 1, self.tiling.rows)
        more = (m * all_of(*(~apart[j] for j in behind[: i + 1])) for i in range(len(behind)))
        return sum(more, self.build.constant(m))

    def n_tile(self, step: Expr, column: Operand) -> Expr:
        """The n-tile of an array column. The last step moves back as a whole; a single one repeats its last tile."""
        columns, tiles = self.tiling.columns, self.n_tiles
        return least(least(step * columns, largest(tiles - columns, 0)) + column, tiles - 1)

    def tile_column(self, n_tile: Expr) -> Expr:
        """First column of an n-tile in C; the last tile moves back."""
        return least(n_tile * self.tiling.n, self.N - self.tiling.n)

    def near(self, storage: Storage, stride: Expr) -> Expr:
        """Whether a BD can step so many memory elements."""
        return storage.words(stride) <= self.limits.step_max  # type: ignore[arg-type]

    def inner_bytes(self, length: Expr | int) -> Expr:
        """The longest inner run that splits `length` bytes into two wraps; 0 when none does."""
        words = length // GRANULE_BYTES + self.build.constant(0)
        inner = divisor(words, self.limits.wraps[0])
        return select(ceildiv(words, largest(inner, 1)) <= self.limits.wraps[1], inner * GRANULE_BYTES, 0)

    # Which part of the problem each step covers.

    def areas(self) -> None:
        """Whole panels in the order that needs fewer steps, then the panel that moved back."""
        most, (wide, ranges) = self.most_panels(), self.column_ranges()
        self.named("most_panels", most)
        self.named("ranges", wide)
        blocks = self.named("blocks", ceildiv(self.whole, most))
        tall = self.named("tall", self.steps * blocks < self.whole * wide)
        tall_steps = self.named("tall_steps", select(tall, self.steps * blocks, 0))
        rest = self.named("wide_steps", select(tall, self.panels - self.whole, self.panels) * wide)
        with self.build.loop(tall_steps + rest, "step") as index:
            is_tall = self.named("is_tall", index < tall_steps)
            later = self.named("later", largest(index - tall_steps, 0))
            block, divisor_ = index % largest(blocks, 1), largest(blocks, 1)
            self.named("block_panel", block * most)
            first, count = ranges(later % wide)
            panel = select(tall, self.whole, 0) + later // wide
            area = Area(
                self.named("panel", select(is_tall, block * most, panel)),
                self.named("step_panels", select(is_tall, least(most, self.whole - block * most), 1)),
                self.named("first", select(is_tall, index // divisor_, first)),
                self.named("count", select(is_tall, 1, count)),
            )
            self.step(index, area)

    def most_panels(self) -> Expr:
        """Panels that one task can walk: the BDs of A, and of a column-major C, iterate over them."""
        return select(self.near(self.tiling.a, self.a_stride), self.limits.iteration_wrap_max, 1)

    def column_ranges(self):
        """How many ranges of column steps a panel has, and (first, count) of a range by its number."""
        iterate = self.columns_iterate()
        alone = self.c_iterates(self.groups(self.build.constant(0)), self.build.constant(2))
        single = self.named("alone", any_of(alone, int(self.fed or not self.packed)))
        # All BDs of a chain run equally often, so the step that moved back cannot join the others.
        off = any_of(~(self.n_tiles % self.tiling.columns).equals(0), ~(self.N % self.tiling.n).equals(0))
        end = self.steps - all_of(single, off)
        most = select(iterate, select(single, self.limits.iteration_wrap_max, TASK_REPEAT_MAX), 1)
        if len(self.destinations) > 1:  # nor can BDs of several arrays run equally often
            most = select(alone, 1, most)
        whole = ceildiv(end, most)

        def ranges(number: Expr) -> tuple[Expr, Expr]:
            last = self.named("last_range", number >= whole)
            return select(last, end, number * most), select(last, 1, least(most, end - number * most))

        for name, value in (("end", end), ("range_steps", most), ("whole_ranges", whole)):
            self.named(name, value)
        return whole + self.steps - end, ranges

    def columns_iterate(self) -> Expr:
        """Whether one BD of B, and of a column-major C, can walk several column steps."""
        b, c, columns = self.tiling.b, self.tiling.c, self.tiling.columns
        strides = [self.tiling.step_columns * to.leading for to in self.destinations]
        lines = [self.near(c, stride) for stride in strides] if c.order == "column" else []
        if not self.packed:
            return all_of(self.near(b, self.b_stride), *lines)
        return all_of(self.b_inner > 0, columns * self.b_bytes // GRANULE_BYTES <= self.limits.step_max, *lines)

    def c_iterates(self, groups: Groups, count: Expr) -> Expr:
        """Whether C's column steps are runs of a task: one BD cannot hold several when a panel's rows need more."""
        if self.tiling.c.order == "column":
            return count > 1
        long = groups.rows[0] // self.tiling.c.block > self.limits.wraps[1]
        return all_of(count > 1, any_of(groups.several, long))

    # The tasks of a step.

    def step(self, index: Expr, area: Area) -> None:
        """Those of A come first: the array can start on them while others are set up. C's tokens end the step."""
        note = "{} row panels from panel {} on, {} column steps from step {} on"
        numbers = (area.panels, area.panel, area.count, area.first)
        with self.build.step([(*self.plan.channels[C], 0, self.tiling.columns)], note, numbers):
            for column, row, part in self.feeds():
                self.task(A, column, self.a(area, row, part), area.panels * area.count)
            with self.build.loop(self.tiling.columns, "column") as column:
                runs = area.panels if self.packed and not self.fed else area.panels * area.count
                self.task(B, column, self.b(area, column), runs)
            # Behind A and B: their data come while the controller writes some 96 parameters and locks.
            with self.build.when(index.equals(0)):
                self.release()
            groups = self.groups(area.panel)
            with self.build.loop(self.tiling.columns, "column") as column:
                self.task(C, column, *self.c(area, groups, column), token=True)

    def task(
        self, argument: int, column: Operand, bds: Sequence[ProgramBd | None], runs: Expr, token: bool = False
    ) -> None:
        self.build.task(*self.plan.channels[argument], column, *bds, runs=runs, token=token)

    def release(self) -> None:
        """Every core's parameters, then the lock that says that they are there."""
        steps = self.depth // self.tiling.k - fixed_steps(self.plan.spec)
        for core in self.plan.cores:
            words = {K_STEPS: steps, OUTPUT_TILES: self.panels * self.steps}
            self.build.set_parameters(core.parameters, words, core.go)

    def feeds(self) -> Iterator[tuple[Operand, Operand, Feed]]:
        """What the shims bring of A with its column and core row, in a loop where these are evenly apart."""
        feeds, parts = self.tiling.feeds(), self.tiling.a_shims
        first, turns = feeds[:parts], len(feeds) // parts
        columns, rows = (b - a for a, b in zip(feeds[0][:2], feeds[parts % len(feeds)][:2], strict=True))
        turned = [(f.column + t * columns, f.row + t * rows, *f[2:]) for t in range(turns) for f in first]
        if turns == 1 or turned != feeds:
            yield from ((feed.column, feed.row, feed) for feed in feeds)
            return
        with self.build.loop(turns, "feed") as turn:
            yield from ((turn * columns + feed.column, turn * rows + feed.row, feed) for feed in first)

    def a(self, area: Area, row: Operand, feed: Feed) -> list[ProgramBd | None]:
        """A feed's rows of A in slabs, panel by panel."""
        start = self.named("a_row", self.row_start(area.panel, row)) + feed.offset
        depth = select(self.stages.a_in_slabs, self.depth, self.K)
        return self.slabs(A, "row", start, feed.rows, self.lda, depth, (area.panels, self.a_stride))

    def slabs(
        self, argument: int, along_depth: str, start: Expr, rows: int, leading: Expr, depth: Expr, runs: tuple
    ) -> list[ProgramBd | None]:
        """`rows` rows of A (columns of B) from `start` on, in slabs of k_mt; then the slab that moved back.

        Where lines run along K: `(K/k_mt, k_mt)(rows, ld)(k_mt, 1)`. Otherwise slabs are neighbouring lines:
        `(K, ld)(1)(rows, 1)`. Where dimensions hold it, the second of two slabs, moved back, is the first one's
        repetition.
        """
        storage: Storage = (self.tiling.a, self.tiling.b)[argument]
        k_mt = self.tiling.k_mt
        begin = self.named("slab", _outer_offset(storage, along_depth, start, leading))
        whole, rest = self.named("slabs", depth // k_mt), depth % k_mt
        self.named("slab_moves", rest > 0)
        two = self.named("two_slabs", all_of(whole.equals(1), rest > 0))
        if storage.order == along_depth:
            line, run, lines = leading * storage.run, k_mt * storage.run, rows // storage.block
            sizes = (select(two, 2, whole), lines, run)
            strides = (select(two, rest * storage.run, run), line, 1)
            moved = (1, lines, run), (0, line, 1), begin + (depth - k_mt) * storage.run
        else:
            two = all_of(two, int(k_mt <= self.limits.wraps[1]), self.near(storage, rest * leading))
            sizes = (select(two, 2, whole * k_mt), select(two, k_mt, 1), rows)
            strides = (select(two, rest * leading, leading), select(two, leading, 0), 1)
            moved = (k_mt, 1, rows), (leading, 0, 1), begin + (depth - k_mt) * leading
        return [
            self.build.bd(argument, begin, sizes, strides, runs),
            self.build.bd(argument, moved[2], moved[0], moved[1], runs, when=all_of(rest > 0, ~two)),
        ]

    def b(self, area: Area, column: Operand) -> list[ProgramBd | None]:
        """The column's n-tiles, column step by column step."""
        if self.fed:
            return self.b_fed(area, column)
        if self.packed:
            return self.b_packed(area, column)
        start = self.tile_column(self.n_tile(area.first, column))
        runs = area.count, self.b_stride
        return self.slabs(B, "column", start, self.tiling.n, self.ldb, self.K, runs)

    def b_packed(self, area: Area, column: Operand) -> list[ProgramBd | None]:
        """The column's n-tiles, in bytes: `(count, columns*L)(L/b, b)(b, 1)` with L bytes in a tile; linear for one."""
        length, inner = self.b_bytes, largest(self.b_inner, 1)
        begin = self.named("n_tile", self.n_tile(area.first, column))
        last = self.named("last_n_tile", self.n_tile(area.last, column))
        tiles, apart, one = self.stretch(begin, last, area.count, self.tiling.columns)
        sizes, strides = (tiles, length // inner, inner), (apart * length, inner, 1)
        return [
            self.build.bd(B, begin * length, (length,), (1,), when=tiles.equals(1)),
            self.build.bd(B, begin * length, sizes, strides, when=~tiles.equals(1)),
            self.build.bd(B, last * length, (length,), (1,), when=~one),
        ]

    def stretch(self, begin: Expr, last: Expr, count: Expr, stride: int) -> tuple[Expr, Expr, Expr]:
        """Tiles of the first stretch of `count` column steps, how far they are apart, whether the last one is of it.

        Only the last start may be off; two steps are one stretch, however far apart.
        """
        if count.constant == 1:
            return count, self.build.constant(stride), count
        one = self.named("in_one", any_of(count.equals(2), last.equals(begin + (count - 1) * stride)))
        tiles, apart = select(one, count, count - 1), select(count.equals(2), last - begin, stride)
        return self.named("tiles", tiles), self.named("apart", apart), one

    def b_fed(self, area: Area, column: Operand) -> list[ProgramBd | None]:
        """An n-tile, the row panel's numbers and the n-tile's, again for each column step or panel; all in bytes."""
        n_tile, columns = self.named("n_tile", self.n_tile(area.first, column)), self.tiling.columns
        by_panel, by_tile = self.tiling.fed_bytes
        return [
            *self.bytes(B, n_tile, self.b_bytes, area.count, columns),
            *self.bytes(R, area.panel, by_panel, area.panels, 1),
            *self.bytes(S, n_tile, by_tile, area.count, columns),
        ]

    def bytes(self, argument: int, first: Expr, length: Expr | int, count: Expr, stride: int) -> list[ProgramBd | None]:
        """Stretch `first` of `length` bytes each, moved on by `stride` stretches in each of `count` runs."""
        inner = largest(self.inner_bytes(length), 1)
        sizes, strides = (1, ceildiv(length, inner), inner), (0, inner, 1)
        runs = (count, stride * length)
        return [
            self.build.bd(argument, first * length, (length,), (1,), when=count.equals(1)),
            self.build.bd(argument, first * length, sizes, strides, runs, when=~count.equals(1)),
        ]

    def c(self, area: Area, groups: Groups, column: Operand) -> tuple[list[ProgramBd | None], Expr]:
        """The column's part of C, core row 0 first in each column step, and the runs of its task."""
        parts = [(to, *self.steps_to(area, column, to)) for to in self.destinations]
        if self.tiling.c.order == "column":
            bds = [bd for part in parts for bd in self.c_columns(groups, column, *part)]
            return bds, area.panels * area.count
        iterates = self.named("iterates", self.c_iterates(groups, area.count))
        bds = [bd for part in parts for bd in self.c_rows(groups, iterates, column, *part)]
        return bds, select(iterates, area.count, 1)

    def steps_to(self, area: Area, column: Operand, to: Destination) -> tuple[Area, Operand]:
        """The column steps in which a column's n-tile goes to an array, which follow one another; whether any does."""
        if to.n_tiles is None:
            return area, 1
        if area.count.constant == 1:
            n_tile = self.n_tile(area.first, column)
            return area, self.named("there", all_of(n_tile >= to.n_tiles.start, n_tile < to.n_tiles.stop))
        first, end = (
            largest(area.first, least(self.steps_before(n_tile, column), area.first + area.count))
            for n_tile in (to.n_tiles.start, to.n_tiles.stop)
        )
        return replace(area, first=first, count=end - first), self.named("there", end > first)

    def steps_before(self, n_tile: int, column: Operand) -> Expr:
        """Column steps in which a column's n-tile is one before `n_tile`; only the last step may have moved back."""
        whole = least(ceildiv(largest(n_tile - column, 0), self.tiling.columns), self.steps - 1)
        return whole + (self.n_tile(self.steps - 1, column) < n_tile)

    def c_rows(
        self, groups: Groups, iterates: Expr, column: Operand, to: Destination, area: Area, there: Operand
    ) -> list[ProgramBd | None]:
        """`(count, columns*n)(rows, ldc)(n, 1)`; lines of one tile, iterating, when a BD cannot hold several."""
        store = self.tiling.c
        n, step, ldc = self.tiling.n * store.run, self.tiling.step_columns * store.run, to.leading * store.run
        begin, last = (
            self.named(name, self.c_column(at, column, to) * store.run)
            for name, at in (("begin", area.first), ("last", area.last))
        )
        tiles, apart, one = self.stretch(begin, last, area.count, step)
        runs = select(iterates, area.count, 1), step

        def bd(
            row: int, start: Expr, tiles: Expr | int, apart: Expr | int, when: Operand, runs=None
        ) -> ProgramBd | None:
            line, lines = groups.starts[row] // store.block, groups.rows[row] * area.panels // store.block
            self.named(f"lines{row}", lines)
            single = self.named(f"long{row}", any_of(lines > self.limits.wraps[1], iterates))
            sizes = (select(single, lines, tiles), select(single, 1, lines), n)
            strides = (select(single, ldc, apart), select(single, 0, ldc), 1)
            return self.build.bd(
                to.argument, line * ldc + start, sizes, strides, runs, all_of(groups.begins[row], when)
            )

        rows, second = range(self.tiling.rows), self.named("another", all_of(~iterates, ~one, there))
        return [
            *(bd(row, begin, tiles, apart, there, runs) for row in rows),
            *(bd(row, last, 1, step, second) for row in rows),
        ]

    def c_column(self, step: Expr, column: Operand, to: Destination) -> Expr:
        """First column of a column's n-tile in its array."""
        before = 0 if to.n_tiles is None else to.n_tiles.start * self.tiling.n
        return self.tile_column(self.n_tile(step, column)) - before

    def c_columns(
        self, groups: Groups, column: Operand, to: Destination, area: Area, there: Operand
    ) -> list[ProgramBd | None]:
        """Column-major C: `(core rows, m)(n, ldc)(m, 1)` for neighbouring tiles, in each column step or panel."""
        m, n, ldc = self.tiling.m, self.tiling.n, to.leading
        start = self.c_column(area.first, column, to) * ldc
        stride = select(area.panels > 1, self.tiling.panel_rows, self.tiling.step_columns * ldc)
        runs = area.panels * area.count, stride
        return [
            self.build.bd(to.argument, start + first, (rows // m, n, m), (m, ldc, 1), runs, all_of(begins, there))
            for begins, first, rows in zip(groups.begins, groups.starts, groups.rows, strict=True)
        ]


def _destinations(tiling: Tiling, leading: Sequence[Expr]) -> Iterator[Destination]:
    """C, or the arrays that take its columns."""
    if not tiling.outputs:
        yield Destination(C, leading[0])
    begin = 0
    for i, (one, each) in enumerate(zip(tiling.outputs, leading, strict=False)):
        end = begin + one.columns // tiling.n
        yield Destination(C + i, each, range(begin, end))
        begin = end


def _outer_offset(storage: Storage, along_depth: str, rows: Expr | int, leading: Expr) -> Expr:
    """Memory elements from an operand's row (A) or column (B) to the one `rows` further on."""
    if storage.order == along_depth:
        return leading * storage.run * (rows // storage.block)
    return leading * 0 + rows
