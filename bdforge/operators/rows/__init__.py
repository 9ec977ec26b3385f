"""Operators on rows, y = f(x, w) of each row x: what a spec says, its plan for a product, numpy reference and cost.

The mapping is that of element-wise operators; a core's tile is a row, and the weights w come once for a problem.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.design import Design, rtp_addresses
from bdforge.design.sequences import Program
from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import (
    STACK_BYTES,
    ArraySection,
    FormSpec,
    Problem,
    ProblemForm,
    Size,
    SpecForm,
    array_reasons,
    design_reasons,
    for_array,
    refuse,
    stack_reasons,
)
from bdforge.operators.stream_mapping import map_streams
from bdforge.operators.stream_program import LARGEST_LENGTH, StreamProgram
from bdforge.operators.tile_streams import StreamTiling, TileStream

KIND = "rows"
AXES = ("rows",)
BF16 = TYPES["bf16"]
_ROUNDINGS = 2.0**-7 + 2.0**-12  # kernels/aie2p/rmsnorm_bf16.cc: two roundings to bfloat16, and the root
_LEAST = 2.0**-125  # what may be lost where numbers near the least normal one become 0
_ROOT_CYCLES = 250  # of the sum's lanes and the inverse root, as they stand in the kernel


class RowsProblem(ProblemForm):
    """How many rows."""

    rows: Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class RowsForm(SpecForm[RowsProblem]):
    """A design for rows of `width` elements, each in one core; no `columns`: all of the product's."""

    kind: Literal["rows"]
    function: Literal["rmsnorm"]
    width: Size
    epsilon: Annotated[float, Field(ge=1e-12, le=1)] = 1e-5
    buffers: Literal[1, 2] = 2
    array: ArraySection = ArraySection()
    stack_bytes: Size = STACK_BYTES


class RowsSpec(FormSpec[RowsForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = RowsForm


@dataclass(frozen=True, repr=False)
class RowsPlan(Plan):
    """Every number of a design for rows."""

    spec: RowsSpec
    device: Device
    design: Design
    tiling: StreamTiling

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any number of rows."""
        return StreamProgram(self.tiling, rtp_addresses(self.design), self.spec.sequence.steps).program()

    @property
    def kernels(self) -> Kernels:
        """The one function of a row."""
        symbol, form = _symbol(self.spec.form), self.spec.form
        return Kernels.ours(
            [symbol], (f"TILE_ELEMENTS={form.width}", f"EPSILON={form.epsilon!r}F"), {symbol: self._cycles}
        )

    @property
    def _cycles(self) -> int:
        """Two passes, of 1 and 2 cycles for a vector, as many as the busiest slots have on AIE2P."""
        return 3 * self.spec.form.width // _lanes(self.device) + _ROOT_CYCLES

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Y in float64, and how far bfloat16 may be off it. X and W are finite, so are sums of squares."""
        x, w = (inputs[name].astype(np.float64) for name in ("X", "W"))
        exact = x / np.sqrt((x**2).mean(axis=-1, keepdims=True) + self.spec.form.epsilon) * w
        return {"Y": Expected(exact, np.abs(exact) * _ROUNDINGS + _LEAST)}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of the first column's cores, which have the most rows."""
        rows = problem.sizes["rows"]
        most = -(-rows // (self.tiling.rows * self.tiling.columns))
        return Cost.of(self.sequence(problem), rows * self.spec.form.width, most * self._cycles)


def _symbol(form: RowsForm) -> str:
    return f"{form.function}_{BF16.code}"


def _lanes(device: Device) -> int:
    return device.generation.vector_align_bytes // 2


def plan_rows(spec: RowsSpec, device: Device) -> RowsPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, columns = spec.form, spec.form.array.columns or device.columns
    x, w, y = (TileStream(name, BF16, (form.width,)) for name in "XWY")
    tiling = StreamTiling("rows", 1, (x,), (y,), form.array.rows, columns, (w,), form.buffers)
    refuse(spec, _reasons(form, tiling, device))
    comment = (
        f"{spec.name}: y = {form.function}(x, w), bf16, rows of {form.width} elements, "
        f"{tiling.rows} x {tiling.columns} cores (rows x columns)."
    )
    array = device.part(tiling.columns)
    design = map_streams(spec.name, array, tiling, _symbol(form), form.stack_bytes, comment)
    refuse(spec, design_reasons(design, {"memory": "buffers = 1, a smaller width or stack_bytes"}))
    return RowsPlan(spec, device, design, tiling)


def _reasons(form: RowsForm, tiling: StreamTiling, device: Device) -> Iterator[str]:
    yield from array_reasons(form.array.device, tiling.rows, tiling.columns, device)
    yield from stack_reasons("stack_bytes", form.stack_bytes, device)
    if form.width % _lanes(device):
        yield f"width = {form.width} is no multiple of {_lanes(device)}, a vector of bfloat16"


OPERATOR = Operator(KIND, AXES, RowsSpec.load, plan_rows, for_array)
