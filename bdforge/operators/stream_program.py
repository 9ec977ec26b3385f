"""The sequence program of operators on streams: any number of positions on the one loaded array."""

from collections.abc import Iterator
from math import gcd, lcm, prod
from typing import Any, NamedTuple

from bdforge.design import RtpAddresses
from bdforge.design.sequences import Axis, Builder, Dim, Expr, Program, all_of, any_of, ceildiv, largest, least
from bdforge.design.sequences.sequence_program import ProgramBd
from bdforge.devices.limits import GRANULE_BITS, SHIM
from bdforge.operators.tile_streams import HOLD, StreamTiling, TileStream

LARGEST_LENGTH = 1 << 30
"""Elements of an operand: a BD counts its words in 32 bits."""
_RUNS = SHIM.iteration_wrap_max
"""Panels of a task whose streams take turns: a BD moves on from run to run by its iteration."""


class _Place(NamedTuple):
    """Where a stream stands: its argument, an offset in that one's elements, and how many of them are one of its."""

    argument: int
    offset: Expr
    scale: int


class StreamProgram:
    """Writes the program. Columns take as many panels each, but for one, one behind the other.

    The last panel moves back, so that it ends with the operands: what it covers twice is computed twice, with one
    result. Operands of no whole words, or of less than a panel, are staged. Where no streams take turns a problem is
    one step, whose tasks are one run each; else a step is up to 64 panels of a column, and the last panel its own.
    """

    def __init__(self, tiling: StreamTiling, cores: tuple[RtpAddresses, ...], in_flight: int, first_column: int = 0):
        self.tiling, self.cores = tiling, cores
        self.build = Builder([tiling.axis], in_flight, first_column=first_column)
        self.size = self.build.parameter(tiling.axis)
        streams = (*tiling.inputs, *tiling.outputs)
        self.most = LARGEST_LENGTH // max(stream.elements for stream in streams)
        granule = lcm(*(GRANULE_BITS // gcd(GRANULE_BITS, s.elements * s.type.bits) for s in streams))
        self.staged = any_of(~(self.size % granule).equals(0), self.size < tiling.panel)
        self.walked = largest(ceildiv(self.size, granule) * granule, tiling.panel)
        self.moves = ~(self.walked % tiling.panel).equals(0)
        self.shared = self.walked // tiling.panel if tiling.in_turn else ceildiv(self.walked, tiling.panel)
        self.used = least(self.shared, tiling.columns)
        self.places: dict[TileStream, _Place] = {}

    def program(self) -> Program:
        build, n, tiling = self.build, self.size, self.tiling
        build.require(~any_of(n < 1, n > self.most), f"{tiling.axis} = {{}} is outside 1 to {self.most}", n)
        for streams in tiling.arguments:
            self.argument(streams)
        (self.steps if tiling.in_turn else self.step)()
        return build.program

    def argument(self, streams: tuple[TileStream, ...]) -> None:
        """An operand as it lies, or a staged copy with zeros behind; of several copies, one behind the other."""
        unit, kept = min((s.type for s in streams), key=lambda type_: type_.bits), streams[0] in self.tiling.held
        scales = [stream.type.bits // unit.bits for stream in streams]
        sizes = [s.elements * scale * (1 if kept else self.walked) for s, scale in zip(streams, scales, strict=True)]
        name, offset = "_".join(stream.name for stream in streams), self.build.constant(0)
        argument = self.build.argument(name, unit.memory, unit.bits, sum(sizes, offset))
        for stream, scale, size in zip(streams, scales, sizes, strict=True):
            self.places[stream] = _Place(argument, offset, scale)
            self.operand(stream, argument, offset // scale, (0 if kept else self.staged) if streams == (stream,) else 1)
            offset = offset + size

    def operand(self, stream: TileStream, argument: int, offset: Expr, staged: Expr | int) -> None:
        """An operand from an element of its argument on."""
        type_, shape, tiling = stream.type, stream.shape, self.tiling
        axes = [] if stream in tiling.held else [Axis(self.size, self.walked)]
        dims = [Dim(0, self.walked, stride=stream.elements)] if axes else []
        dims += [Dim(len(axes) + at, size, stride=prod(shape[at + 1 :])) for at, size in enumerate(shape)]
        way = "out" if stream in tiling.outputs else "in"
        axes += map(Axis, shape)
        self.build.operand(
            stream.name, argument, way, type_.name, type_.bits, axes, dims, staged=staged, offset=offset,
            parallel=way == "in" and stream not in tiling.held,
        )  # fmt: skip

    def bd(self, stream: TileStream, place: Expr | int, elements: Expr | int, **options: Any) -> ProgramBd | None:
        """A BD for so many elements of a stream from a position on; a run of it moves on by as many."""
        held = self.places[stream]
        first, size = held.offset + place * (stream.elements * held.scale), elements * held.scale
        if "runs" in options:
            options["runs"] = options["runs"], size
        return self.build.bd(held.argument, first, (size,), (1,), **options)

    def share(self, column: int) -> tuple[Expr, Expr]:
        """(first panel, panels) of a column: the first ones take what is left over."""
        columns = self.tiling.columns
        each, rest = self.shared // columns, self.shared % columns
        return each * column + least(rest, column), each + (rest > column)

    def moved(self, column: int) -> Expr:
        """1 where the last panel moved back, and is the column's."""
        return all_of(self.moves, self.used.equals(column + 1))

    def start(self) -> None:
        """What is held once, and the number of its tiles, to each core that has a share."""
        build, columns = self.build, range(self.tiling.columns)
        for stream in () if self.tiling.repeats else self.tiling.held:
            for column in columns:
                with build.when(self.share(column)[1] > 0):
                    build.task("MM2S", HOLD, column, self.bd(stream, 0, stream.elements))
        for core in self.cores:
            _, panels = self.share(core.column)
            tiles = panels + self.moved(core.column) if self.tiling.in_turn else panels
            with build.when(panels > 0):
                build.set_parameters(core.parameters, {0: tiles}, core.go)

    def step(self) -> None:
        """All of a problem at once."""
        with self.build.step([("S2MM", 0, 0, self.used)], "{} panels on {} columns", (self.shared, self.used)):
            for way, channel, (stream,) in self.channels():
                if way == "S2MM":
                    self.start()
                self.run(way, channel, stream)

    def run(self, way: str, channel: int, stream: TileStream) -> None:
        """Each column's run of a stream: its panels as they lie, then the one that moved back."""
        build, panel, elements = self.build, self.tiling.panel, stream.elements
        for column in range(self.tiling.columns):
            first, count = self.share(column)
            moved = self.moved(column)
            straight = count - moved
            run = self.bd(stream, first * panel, straight * panel * elements, when=straight > 0)
            last = self.bd(stream, self.walked - panel, panel * elements, when=moved)
            with build.when(count > 0):
                build.task(way, channel, column, run, last, token=way == "S2MM")

    def steps(self) -> None:
        """So many panels of each column at a time, and at last the one that moved back."""
        build, shares = self.build, [self.share(column) for column in range(self.tiling.columns)]
        with build.loop(ceildiv(shares[0][1], _RUNS), "stretch") as stretch:
            counts = [least(largest(count - stretch * _RUNS, 0), _RUNS) for _, count in shares]
            busy = sum((count > 0 for count in counts), build.constant(0))
            with build.step([("S2MM", 0, 0, busy)], "stretch {} on {} columns", (stretch, busy)):
                for part in self.channels():
                    if part[0] == "S2MM":
                        with build.when(stretch.equals(0)):
                            self.start()
                    for column, (count, (first, _)) in enumerate(zip(counts, shares, strict=True)):
                        with build.when(count > 0):
                            self.turns(*part, column, (first + stretch * _RUNS) * self.tiling.panel, count)
        last = self.used - 1
        with build.when(self.moves), build.step([("S2MM", 0, last, 1)], "the last panel, moved back"):
            for part in self.channels():
                self.turns(*part, last, self.walked - self.tiling.panel, 1)

    def channels(self) -> Iterator[tuple[str, int, tuple[TileStream, ...]]]:
        """(direction, channel, streams that take turns on it) of shims, but for what comes once."""
        yield from (("MM2S", *fed) for fed in self.tiling.fed)
        if self.tiling.repeats:
            yield "MM2S", HOLD, self.tiling.held
        yield "S2MM", 0, self.tiling.outputs

    def turns(
        self,
        way: str,
        channel: int,
        streams: tuple[TileStream, ...],
        column: Expr | int,
        place: Expr,
        panels: Expr | int,
    ) -> None:
        """A panel of each stream in turn, `panels` times from position `place` on; what is held as often."""
        chain = [
            self.bd(stream, 0, stream.elements)
            if stream in self.tiling.held
            else self.bd(stream, place, self.tiling.elements(stream) * self.tiling.rows, runs=panels)
            for stream in streams
        ]
        self.build.task(way, channel, column, *chain, runs=panels, token=way == "S2MM")
