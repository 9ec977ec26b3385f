"""Plans of operators on streams: all of an operator but its spec, its streams and what its kernel computes."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import Field

from bdforge.design import Design
from bdforge.design.sequences import Program
from bdforge.devices import Device
from bdforge.devices.types import ElementType
from bdforge.operators.operator_api import Cost, Expected, Kernels, Plan
from bdforge.operators.specs import (
    STACK_BYTES,
    WHOLE,
    FormSpec,
    PlacedArray,
    Problem,
    ProblemForm,
    ProblemT,
    Size,
    SpecForm,
    design_reasons,
    refuse,
    stack_reasons,
)
from bdforge.operators.stream_mapping import map_streams
from bdforge.operators.stream_program import LARGEST_LENGTH, StreamProgram
from bdforge.operators.tile_streams import StreamTiling


class RowsProblem(ProblemForm):
    """How many rows."""

    rows: Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class StreamForm(SpecForm[ProblemT]):
    """What all designs say of cores that hold `buffers` tiles of a stream; no `columns`: all of the product's.

    `apart`: each array is an argument of its own, as in a composition that has them in several buffers; those of more
    than five run there alone.
    """

    buffers: Annotated[Literal[1, 2], WHOLE] = 2
    apart: Annotated[bool, Field(strict=True)] = False
    array: PlacedArray = PlacedArray()
    stack_bytes: Size = STACK_BYTES


@dataclass(frozen=True, slots=True)
class StreamFunction:
    """What cores compute of a tile: kernels' symbols, one for each pass, with cycles of a call as modelled, their
    options, and numpy's answer."""

    cycles: Mapping[str, int]
    defines: tuple[str, ...]
    reference: Callable[[Mapping[str, np.ndarray]], dict[str, Expected]]


@dataclass(frozen=True, repr=False)
class StreamPlan(Plan):
    """Every number of a design on streams."""

    spec: Any
    device: Device
    design: Design
    tiling: StreamTiling
    function: StreamFunction

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any size."""
        array, steps = self.spec.form.array, self.spec.sequence.steps
        return StreamProgram(self.tiling, array.cores(self.design), steps, array.first_column).program()

    @property
    def kernels(self) -> Kernels:
        """The functions of a tile."""
        return Kernels.ours(self.function.cycles, self.function.defines, self.function.cycles)

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """As the function has it."""
        return self.function.reference(inputs)

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of the first column's cores, which have the most tiles."""
        positions = problem.sizes[self.tiling.axis]
        tiles = -(-positions // (self.tiling.panel * self.tiling.columns))
        elements = positions * max(stream.elements for stream in self.tiling.outputs)
        of_tile = self.tiling.chunks * sum(self.function.cycles.values())
        return Cost.of(self.sequence(problem), elements, tiles * of_tile)


WIDEST = 32768
"""Elements of rows whose sums have bounds."""


def width_reasons(width: int, lanes: int) -> Iterator[str]:
    """Why kernels take no rows of so many elements of bfloat16."""
    if width % lanes:
        yield f"width = {width} is no multiple of {lanes}, a vector of bfloat16"
    if width > WIDEST:
        yield f"width = {width} is above {WIDEST}, for which sums have bounds; split rows"


def pass_symbols(function: str, type_: ElementType, tiling: StreamTiling, passes: Iterable[str]) -> dict[str, str]:
    """A row operator's kernels by the passes over a row in chunks; by "" the one of a whole row."""
    if tiling.chunks == 1:
        return {"": f"{function}_{type_.code}"}
    return {part: f"{function}_{part}_{type_.code}" for part in passes}


def row_defines(width: int, tiling: StreamTiling) -> tuple[str, ...]:
    """What kernels are told of a row of so many elements, or of a chunk of one."""
    row = (f"ROW_ELEMENTS={width}",) if tiling.chunks > 1 else ()
    return (f"TILE_ELEMENTS={width // tiling.chunks}", *row)


def plan_streams(
    spec: FormSpec[Any],
    device: Device,
    tiling: StreamTiling,
    function: StreamFunction,
    what: str,
    reasons: Iterable[str] = (),
    smaller: str = "buffers = 1, a smaller tile or stack_bytes",
) -> StreamPlan:
    """A spec's plan; SpecError lists `reasons` and all others why it cannot be built.

    `what` heads the text; `smaller`: what to try where memory is too small.
    """
    form = spec.form
    tiling = replace(tiling, apart=isinstance(form, StreamForm) and form.apart)
    refuse(
        spec,
        [
            *form.array.reasons(tiling.rows, tiling.columns, device),
            *stack_reasons("stack_bytes", form.stack_bytes, device),
            *reasons,
        ],
    )
    if tiling.chunks > 1:
        what += f" in {tiling.chunks} chunks"
    comment = f"{spec.name}: {what}, {tiling.rows} x {tiling.columns} cores (rows x columns)."
    part = form.array.part(tiling.columns, device)
    mapped = map_streams(spec.name, part, tiling, tuple(function.cycles), form.stack_bytes, comment)
    design = form.array.arranged(mapped)
    refuse(spec, design_reasons(design, {"memory": smaller}))
    return StreamPlan(spec, device, design, tiling, function)
