"""The sequence program of transposes: any size on the one loaded array."""

from bdforge.design import RtpAddresses
from bdforge.design.sequences import Axis, Builder, Dim, Expr, Program, all_of, any_of, ceildiv, largest, least
from bdforge.devices.limits import GRANULE_BITS, SHIM
from bdforge.operators.stream_program import LARGEST_LENGTH
from bdforge.operators.tile_streams import StreamTiling

_RUNS = SHIM.iteration_wrap_max
"""Tiles, one below the other, of a task."""
_MOST_STEPS = 4096
"""Of a sequence."""


class TransposeProgram:
    """Writes the program. A *strip* of X is as wide as a column's tiles side by side; columns share its rows.

    The last tiles of strips, and the last strip, move back, so that they end with X: what they cover twice is turned
    twice. Matrices whose lines are no whole words, or that are smaller than a tile of each core, are staged.
    """

    def __init__(
        self, tiling: StreamTiling, tile: tuple[int, int], cores: tuple[RtpAddresses, ...], in_flight: int,
        first_column: int = 0,
    ):  # fmt: skip
        self.tiling, self.cores = tiling, cores
        self.build = Builder(["M", "N"], in_flight, first_column=first_column)
        self.m, self.n = tile
        self.across = self.n * tiling.rows
        self.sizes = [self.build.parameter(name) for name in ("M", "N")]
        type_ = tiling.inputs[0].type
        granule, least_sizes = GRANULE_BITS // type_.bits, (self.m, self.across)
        self.walked = [
            largest(ceildiv(size, granule) * granule, one) for size, one in zip(self.sizes, least_sizes, strict=True)
        ]
        self.staged = any_of(*(~w.equals(size) for w, size in zip(self.walked, self.sizes, strict=True)))
        rows, columns = self.walked
        self.down, self.strips = rows // self.m, columns // self.across
        self.moved_down, self.moved_strip = ~(rows % self.m).equals(0), ~(columns % self.across).equals(0)
        self.used = least(self.down, tiling.columns)
        self.step_max = SHIM.step_max * GRANULE_BITS // type_.bits

    def program(self) -> Program:
        build, (rows, columns) = self.build, self.walked
        for name, size in zip("MN", self.sizes, strict=True):
            build.require(
                ~any_of(size < 1, size > LARGEST_LENGTH), f"{name} = {{}} is outside 1 to {LARGEST_LENGTH}", size
            )
        grown = f"M x N = {{}} x {{}} take {{}} elements in whole words and tiles, above {LARGEST_LENGTH}"
        build.require(~(rows * columns > LARGEST_LENGTH), grown, *self.sizes, rows * columns)
        most, (m, n) = self.step_max // self.m, self.sizes
        build.require(~(columns > most), f"N = {{}} is above {most}: a BD's step of {self.m} lines; split N", n)
        build.require(~(rows > self.step_max), f"M = {{}} is above {self.step_max}, a BD's step; split M", m)
        steps = self.strips * ceildiv(self.down, self.tiling.columns * _RUNS)
        many = f"M x N = {{}} x {{}} take {{}} steps, above {_MOST_STEPS}, some MB of instructions: use larger tiles"
        build.require(~(steps > _MOST_STEPS), many, *self.sizes, steps)
        for stream, axes, way in ((self.tiling.inputs[0], (0, 1), "in"), (self.tiling.outputs[0], (1, 0), "out")):
            type_, (lines, line) = stream.type, (self.walked[axis] for axis in axes)
            argument = build.argument(stream.name, type_.memory, type_.bits, rows * columns)
            build.operand(
                stream.name, argument, way, type_.name, type_.bits,
                [Axis(self.sizes[axis], self.walked[axis]) for axis in axes],
                [Dim(0, lines, stride=line), Dim(1, line)], staged=self.staged,
            )  # fmt: skip
        with build.loop(self.strips, "strip") as strip:
            self.strip(strip * self.across, strip)
        with build.when(self.moved_strip):
            self.strip(columns - self.across)
        return build.program

    def share(self, column: int) -> tuple[Expr, Expr]:
        """(first tile from above, tiles) of a column: the first ones take what is left over."""
        columns = self.tiling.columns
        each, rest = self.down // columns, self.down % columns
        return each * column + least(rest, column), each + (rest > column)

    def start(self) -> None:
        """The number of its tiles to each core that has a share."""
        for core in self.cores:
            _, count = self.share(core.column)
            tiles = count + all_of(self.moved_down, self.used.equals(core.column + 1))
            with self.build.when(count > 0):
                strips = self.strips + self.moved_strip
                self.build.set_parameters(core.parameters, {0: tiles * strips}, core.go)

    def strip(self, left: Expr, number: Expr | None = None) -> None:
        """All tiles of a strip that begins at a column of X: up to 64 of a column at a time, then what moved back."""
        build, shares = self.build, [self.share(column) for column in range(self.tiling.columns)]
        with build.loop(ceildiv(shares[0][1], _RUNS), "stretch") as stretch:
            counts = [least(largest(count - stretch * _RUNS, 0), _RUNS) for _, count in shares]
            busy = sum((count > 0 for count in counts), build.constant(0))
            with build.step([("S2MM", 0, 0, busy)], "stretch {} on {} columns", (stretch, busy)):
                if number is not None:
                    with build.when(all_of(number.equals(0), stretch.equals(0))):
                        self.start()
                for column, (count, (above, _)) in enumerate(zip(counts, shares, strict=True)):
                    with build.when(count > 0):
                        self.turn(column, (above + stretch * _RUNS) * self.m, left, count)
        last = self.used - 1
        with build.when(self.moved_down), build.step([("S2MM", 0, last, 1)], "the last tiles, moved back"):
            self.turn(last, self.walked[0] - self.m, left, 1)

    def turn(self, column: Expr | int, above: Expr, left: Expr, tiles: Expr | int) -> None:
        """A column's tiles side by side from a place of X on, and those below."""
        build, m, n, rows, (lines, line) = self.build, self.m, self.n, self.tiling.rows, self.walked
        x = build.bd(0, above * line + left, (rows, m, n), (n, line, 1), runs=(tiles, line * m))
        y = build.bd(1, left * lines + above, (rows * n, m), (lines, 1), runs=(tiles, m))
        build.task("MM2S", 0, column, x, runs=tiles)
        build.task("S2MM", 0, column, y, runs=tiles, token=True)
