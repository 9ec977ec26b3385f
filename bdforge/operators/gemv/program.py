"""The sequence program of a GEMV design: C (M x N) = A (M x K) W (K x N) of any K and N, M up to the design's rows.

W is packed once, group by group: `[K/k][tiles of the group][k x n, in the order of the kernel]`. Columns take runs of
groups, so that DRAM is read in long stretches, one after the other. N is filled with zeros to whole groups, at least
one for each column, K to whole chunks of k. A is staged, chunk by chunk.
"""

from collections.abc import Callable

from bdforge.design import RtpAddresses
from bdforge.design.sequences import Axis, Builder, Dim, Expr, Program, any_of, ceildiv, divisor, largest, least
from bdforge.devices.limits import BYTE_BITS, GRANULE_BYTES, SHIM, TASK_REPEAT_MAX
from bdforge.operators.gemv.mapping import A_SHIM_CHANNEL, BETWEEN, C_SHIM_CHANNEL, CHUNKS, IDLE, TILES, GemvTiling
from bdforge.operators.specs import LARGEST_SIZE

AXES = ("M", "K", "N")
A, W, C = range(3)
"""Arguments."""


class GemvProgram:
    """Writes the program that serves every problem of a mapped design; `rows` of A and C may be the user's."""

    def __init__(
        self, cores: tuple[RtpAddresses, ...], tiling: GemvTiling, rows: int, in_flight: int, first_column: int = 0
    ):
        self.cores, self.tiling, self.rows = cores, tiling, rows
        self.build = Builder(AXES, in_flight, first_column=first_column)
        self.M, self.K, self.N = (self.build.parameter(axis) for axis in AXES)
        self.chunks = ceildiv(self.K, tiling.k)
        self.tile_bytes = tiling.weights.tile_bytes
        self.chunk_bytes = tiling.rows * self.tile_bytes
        self.group_bytes = self.chunks * self.chunk_bytes
        self.steps, self.firsts, self.groups = self.shares(ceildiv(self.N, tiling.group))
        self.passes = largest(*self.steps)
        self.between = [
            (self.passes - steps) // steps if tiling.lags(column) else self.build.constant(0)
            for column, steps in enumerate(self.steps)
        ]
        self.columns = self.groups * tiling.group

    def program(self) -> Program:
        """The whole program."""
        self.require()
        self.operands()
        with self.build.loop(ceildiv(self.passes, TASK_REPEAT_MAX)) as index:
            self.stretch(index)
        return self.build.program

    def shares(self, wanted: Expr) -> tuple[list[Expr], list[Expr], Expr]:
        """Groups of each column, the first of them, and all groups.

        Channels bring about equal parts of W; one of column 0's is A's.
        """
        others = self.tiling.columns - 1
        if not others:
            return [wanted], [self.build.constant(0)], wanted
        first = largest(wanted // (1 + self.tiling.channels * others), 1)
        rest = largest(wanted - first, others)
        each, more = rest // others, rest % others
        steps = [first, *(each + (more > i) for i in range(others))]
        firsts = [self.build.constant(0), *(first + i * each + least(more, i) for i in range(others))]
        return steps, firsts, first + rest

    def require(self) -> None:
        """Refuse sizes that are out of range, too many rows, and sums that could overflow."""
        kernel = self.tiling.kernel
        for axis, size in zip(AXES, (self.M, self.K, self.N), strict=True):
            outside = any_of(size < 1, size > LARGEST_SIZE)
            self.build.require(~outside, f"{axis} = {{}} is outside 1 to {LARGEST_SIZE}", size)
        self.build.require(self.rows >= self.M, f"M = {{}} is above tile.m = {self.rows}, the rows at a time", self.M)
        deep = f"K = {{}} could overflow {kernel.multiply}'s sums; at most {kernel.depth_limit}"
        self.build.require(kernel.depth_limit >= self.K, deep, self.K)

    # What lies where in DRAM.

    def operands(self) -> None:
        """A and W are always the host's own copies; C is, unless whole rows and groups of it are wanted. One row of A
        lies as it does anywhere."""
        build, tiling = self.build, self.tiling
        a, w, c, lines, k = tiling.kernel.a, tiling.w, tiling.c, tiling.lines, tiling.k
        rows, depth, columns = Axis(self.M, lines), Axis(self.K, self.chunks * k), Axis(self.N, self.columns)
        build.argument("A", a.memory, a.bits, self.chunks * (lines * k), "rows in chunks of K")
        build.argument("W", "i8", BYTE_BITS, self.groups * self.group_bytes, "packed, as streams bring it")
        build.argument("C", c.memory, c.bits, lines * self.columns, "row-major")
        chunked = [Dim(1, self.chunks, k, lines * k), Dim(0, lines, 1, k), Dim(1, k)]
        one_row = [Dim(0, 1, 1, self.chunks * k), Dim(1, self.chunks * k)]
        build.operand("A", A, "in", a.name, a.bits, [rows, depth], one_row if lines == 1 else chunked)
        build.operand("W", W, "in", w.name, w.bits, [depth, columns], self.packed(), **tiling.weights.values())
        other = any_of(~self.M.equals(lines), ~self.N.equals(self.columns))
        wanted = [Dim(0, lines, 1, self.columns), Dim(1, self.columns)]
        build.operand("C", C, "out", c.name, c.bits, [rows, columns], wanted, staged=other)

    def packed(self) -> list[Dim]:
        """Loops over W: groups, chunks, tiles of a group, then a tile as the kernel reads it."""
        rows, k, n = self.tiling.rows, self.tiling.k, self.tiling.n
        return [
            Dim(1, self.groups, rows * n, self.chunks * (rows * k * n)),
            Dim(0, self.chunks, k, rows * k * n),
            Dim(1, rows, n, k * n),
            *self.tiling.weights.loops(),
        ]

    # What the shims do.

    def stretch(self, index: Expr) -> None:
        """As many passes of A as one task can repeat, and what columns do meanwhile. C's tokens end it."""
        begin = index * TASK_REPEAT_MAX
        end = least(begin + TASK_REPEAT_MAX, self.passes)
        parts = [self.part(column, begin, end) for column in range(self.tiling.columns)]
        # Columns that do not lag miss one pass at most.
        busy = parts[0][1] > 0 if self.tiling.lags(0) else self.build.constant(1)
        awaits = [("S2MM", C_SHIM_CHANNEL, 1 - busy, busy + (self.tiling.columns - 1))]
        with self.build.step(awaits, "passes {} to {} of A", (begin, end - 1)):
            a = self.build.bd(A, 0, (self.chunks * (self.tiling.lines * self.tiling.k),), (1,))
            self.build.task("MM2S", A_SHIM_CHANNEL, 0, a, runs=end - begin)
            self.tasks(self.weights, parts, busy)
            with self.build.when(index.equals(0)):
                self.release()
            self.tasks(self.results, parts, busy)

    def idle(self, column: int) -> Expr:
        """Passes that a column's cores let go by at first: those that none of its tiles has before it."""
        return self.passes - self.steps[column] * (1 + self.between[column])

    def part(self, column: int, begin: Expr, end: Expr) -> tuple[Expr, Expr]:
        """(first group, groups) of a column's that end in passes `begin` to `end` - 1."""
        first, after = (largest(at - self.idle(column), 0) // (1 + self.between[column]) for at in (begin, end))
        return first, after - first

    def tasks(self, task: Callable[[int, Expr, Expr], None], parts: list[tuple[Expr, Expr]], busy: Expr) -> None:
        """`task` of every column that takes part."""
        for column, (first, count) in enumerate(parts):
            with self.build.when(busy if column == 0 else 1):
                task(column, self.firsts[column] + first, count)

    def weights(self, column: int, group: Expr, count: Expr) -> None:
        """A column's groups: one stretch, or by two channels, each with the tiles of its cores of every chunk."""
        build, start = self.build, group * self.group_bytes
        for channel, rows in self.tiling.feeds(column):
            if len(rows) == self.tiling.rows:
                bd = build.bd(W, start, (count * self.group_bytes,), (1,))
            else:
                run = len(rows) * self.tile_bytes
                inner = GRANULE_BYTES * (divisor(run // GRANULE_BYTES, SHIM.wraps[0]).constant or 1)
                sizes, strides = (count * self.chunks, run // inner, inner), (self.chunk_bytes, inner, 1)
                bd = build.bd(W, start + rows.start * self.tile_bytes, sizes, strides)
            build.task("MM2S", channel, column, bd)

    def results(self, column: int, group: Expr, count: Expr) -> None:
        """A column's tiles of C, line by line of each."""
        build, tiling = self.build, self.tiling
        start, tiles = group * tiling.group, count * tiling.rows
        if tiling.lines == 1:
            bd = build.bd(C, start, (tiles * tiling.n,), (1,))
        else:
            bd = build.bd(C, start, (tiles, tiling.lines, tiling.n), (tiling.n, self.columns, 1))
        build.task("S2MM", C_SHIM_CHANNEL, column, bd, token=True)

    def release(self) -> None:
        """Every core's parameters, then the lock that says that they are there."""
        for column, parameters, go in self.cores:
            words = {TILES: self.steps[column], IDLE: self.idle(column), CHUNKS: self.chunks}
            words |= {BETWEEN: self.between[column]} if self.tiling.lags(column) else {}
            self.build.set_parameters(parameters, words, go)
