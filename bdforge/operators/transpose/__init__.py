"""Transposes, Y[j, i] = X[i, j] of matrices of any size: what a spec says, its plan for a product, numpy and cost.

A core's tile is `m` x `n` elements. Memtiles deal it in square blocks, of which a core turns each, and put the turned
ones in their places; shims walk tiles in DRAM.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from bd_patterns import Pattern
from bdforge.design.sequences import Program
from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Cost, Expected, Operator
from bdforge.operators.specs import FormSpec, Problem, ProblemForm, Section, Size, for_array
from bdforge.operators.stream_plan import StreamForm, StreamFunction, StreamPlan, plan_streams
from bdforge.operators.stream_program import LARGEST_LENGTH
from bdforge.operators.tile_streams import StreamTiling, TileStream
from bdforge.operators.transpose.program import TransposeProgram

KIND = "transpose"
AXES = ("M", "N")
_EDGES = {8: 8, 16: 8, 32: 4}
"""Rows and columns of a block that a core turns in one or two registers, by bits of elements."""
_BLOCK_CYCLES, _CALL_CYCLES = {8: 2, 16: 3, 32: 2}, 14
"""Of machine code on AIE2P, for a block and for a call beside."""
_Extent = Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class TransposeProblem(ProblemForm):
    """Rows and columns of X."""

    M: _Extent
    N: _Extent


class TileExtents(Section):
    """Rows and columns of X in a core's tile."""

    m: Size
    n: Size


class TransposeForm(StreamForm[TransposeProblem]):
    """A design for elements of a type, which is as good as any other of its width."""

    kind: Literal["transpose"]
    type: Literal["int8", "bf16", "int32", "f32"]
    tile: TileExtents


class TransposeSpec(FormSpec[TransposeForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = TransposeForm


@dataclass(frozen=True, repr=False)
class TransposePlan(StreamPlan):
    """Every number of a design."""

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any size."""
        tile, array, steps = self.spec.form.tile, self.spec.form.array, self.spec.sequence.steps
        cores = array.cores(self.design)
        return TransposeProgram(self.tiling, (tile.m, tile.n), cores, steps, array.first_column).program()

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of the first column's cores, which have the most tiles."""
        tile, rows, columns = self.spec.form.tile, *problem.sizes.values()
        down, across = -(-rows // tile.m), -(-columns // (tile.n * self.tiling.rows))
        tiles = -(-down // self.tiling.columns) * across
        return Cost.of(self.sequence(problem), rows * columns, tiles * sum(self.function.cycles.values()))


def plan_transpose(spec: TransposeSpec, device: Device) -> TransposePlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, type_ = spec.form, TYPES[spec.form.type]
    m, n, edge, columns = form.tile.m, form.tile.n, _EDGES[type_.bits], form.array.columns or device.columns
    blocks = n // edge or 1, m // edge or 1, edge, edge
    x = TileStream("X", type_, walk=Pattern(blocks, (edge, edge * n, n, 1)))
    y = TileStream("Y", type_, walk=Pattern(blocks, (edge * m, edge, m, 1)))
    tiling = StreamTiling("length", m * n, (x,), (y,), form.array.rows, columns, (), form.buffers)
    cycles = _BLOCK_CYCLES[type_.bits] * (m * n // edge**2) + _CALL_CYCLES
    function = StreamFunction(
        {f"transpose_i{type_.bits}": cycles}, (f"TILE_ELEMENTS={m * n}",), lambda given: {"Y": Expected(given["X"].T)}
    )
    what = f"transpose, {form.type}, tiles of {m} x {n}"
    made = plan_streams(
        spec, device, tiling, function, what, _reasons(form, edge), "buffers = 1, a smaller tile or stack_bytes"
    )
    return TransposePlan(made.spec, made.device, made.design, made.tiling, made.function)


def _reasons(form: TransposeForm, edge: int) -> Iterator[str]:
    for name, size in (("m", form.tile.m), ("n", form.tile.n)):
        if size % edge:
            yield f"tile.{name} = {size} is no multiple of {edge}, an edge of the blocks that cores turn"


OPERATOR = Operator(KIND, AXES, TransposeSpec.load, plan_transpose, for_array)
