"""Y[r, i] = X[r, i] * w[i] in bfloat16, for any number of rows: what ends an RMS norm.

Each column of the array has one core, which gets w once and then its share of the rows, one after the other.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from pydantic import Field

from bdforge.design import (
    Acquire,
    Advance,
    Allocation,
    Call,
    Channel,
    Core,
    Design,
    Flow,
    Locks,
    Loop,
    Parameters,
    Release,
    Rotation,
    Slots,
    Tile,
    placed,
    rtp_addresses,
)
from bdforge.design.sequences import Axis, Builder, Dim, Expr, Program, any_of, ceildiv, largest, least
from bdforge.devices import FIRST_CORE_ROW, Device
from bdforge.devices.types import TYPES
from bdforge.operators import (
    STACK_BYTES,
    ArraySection,
    Cost,
    Expected,
    FormSpec,
    Kernels,
    Operator,
    Plan,
    Problem,
    ProblemForm,
    Size,
    SpecForm,
    array_reasons,
    design_reasons,
    for_array,
    refuse,
)

KIND = "rowscale"
BF16 = TYPES["bf16"]
MOST_ROWS = 1 << 20
Rows = Annotated[int, Field(ge=1, le=MOST_ROWS, strict=True)]


# The spec: what a design's TOML says.


class RowscaleProblem(ProblemForm):
    """How many rows."""

    rows: Rows


class RowscaleForm(SpecForm[RowscaleProblem]):
    """A design for rows of `width` elements; no `array.columns`: all of the product's."""

    kind: Literal["rowscale"]
    width: Size
    array: ArraySection = ArraySection()
    stack_bytes: Size = STACK_BYTES


class RowscaleSpec(FormSpec[RowscaleForm]):
    """A design's spec."""

    kind = KIND
    FORM = RowscaleForm


# The plan: the array's design, the sequence program of any number of rows, numpy's answer, and what a run costs.


@dataclass(frozen=True, slots=True, repr=False)
class RowscalePlan(Plan):
    """A spec, planned for a product."""

    spec: RowscaleSpec
    device: Device
    design: Design

    @property
    def program(self) -> Program:
        """The runtime sequence of any number of rows."""
        return rowscale_program(self.design, self.spec.form.width, self.spec.sequence.steps)

    @property
    def kernels(self) -> Kernels:
        """bdforge's own product of two tiles; of a C++ file beside this one, `Kernels` with its whole path."""
        defines = ("FUNCTION=mul", f"TILE_ELEMENTS={self.spec.form.width}")
        return Kernels.ours([KERNEL], defines, {KERNEL: self._cycles})

    @property
    def _cycles(self) -> int:
        return self.spec.form.width * 2 // self.device.generation.vector_align_bytes  # one product of vectors a cycle

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Y, exact: a product of two bfloat16 is exact in float32, and rounded once."""
        x, w = (inputs[name].astype(np.float32) for name in ("X", "w"))
        return {"Y": Expected((x * w).astype(BF16.dtype))}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of the core with the most rows."""
        rows = problem.sizes["rows"]
        most = -(-rows // sum(tile.core is not None for tile in self.design.tiles))
        return Cost.of(self.sequence(problem), rows * self.spec.form.width, most * self._cycles)


def plan_rowscale(spec: RowscaleSpec, device: Device) -> RowscalePlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, columns = spec.form, spec.form.array.columns or device.columns
    refuse(spec, _reasons(form, columns, device))
    design = map_rowscale(spec.name, device.part(columns), form.width, columns, form.stack_bytes)
    refuse(spec, design_reasons(design, {"memory": "a smaller width or stack_bytes"}))
    return RowscalePlan(spec, device, design)


def _reasons(form: RowscaleForm, columns: int, device: Device) -> Iterator[str]:
    yield from array_reasons(form.array.device, 1, columns, device)
    lanes = device.generation.vector_align_bytes // 2
    if form.width % lanes:
        yield f"width = {form.width} is no multiple of {lanes}, a vector of bfloat16"


# The mapping: how bytes go.

KERNEL = "elementwise_bf16"
X, W, Y = range(3)
"""Arguments."""


def map_rowscale(name: str, device: str, width: int, columns: int, stack_bytes: int) -> Design:
    """The design for the array that MLIR calls `device`: in each column a shim and a core, without a memtile."""
    shims = [Tile.shim(c) for c in range(columns)]
    cores = [_core(c, width, stack_bytes, f"{name}.o") for c in range(columns)]
    pairs = list(zip(shims, cores, strict=True))
    flows = [Flow(shim.dma(i), (core.dma(i),), "X and w") for shim, core in pairs for i in range(2)]
    flows += [Flow(core.dma(0), (shim.dma(0),), "Y") for shim, core in pairs]
    channels = (("x", "MM2S", 0), ("w", "MM2S", 1), ("y", "S2MM", 0))
    names = tuple(Allocation(f"{x}_{shim.column}", shim, way, i) for shim in shims for x, way, i in channels)
    comment = f"{name}: Y = X * w, bf16, rows of {width} elements, {columns} cores."
    return placed(Design(name, device, (*shims, *cores), tuple(flows), names, comments=(comment,)))


def _core(column: int, width: int, stack_bytes: int, link_with: str) -> Tile:
    """A core: for each problem it takes w, multiplies its rows, and gives w's place back."""
    locks = Locks(f"core_{column}_{FIRST_CORE_ROW}")
    x, y = (Slots.of(locks, name, width, BF16, f"row of {name.upper()}") for name in "xy")
    w = Slots.of(locks, "w", width, BF16, "weights", count=1)
    parameters, turn = Parameters.of(locks, "rows", ["rows"]), Rotation("turn")
    row = (
        *(Acquire(x.full), Acquire(y.free)),
        Call(KERNEL, (turn.of(x.buffers), w.buffers[0], turn.of(y.buffers))),
        *(Release(x.free), Release(y.full), Advance(turn)),
    )
    body = (parameters.problems(Acquire(w.full), Loop("rows", row, "row"), Release(w.free)),)
    channels = (
        Channel("S2MM", 0, x.fill(), "X in"),
        Channel("S2MM", 1, w.fill(), "w in"),
        Channel("MM2S", 0, y.send(), "Y out"),
    )
    core = Core(body, stack_bytes, link_with)
    return Tile.holding(locks, column, FIRST_CORE_ROW, (x, w, y), channels, core, parameters.buffer)


def rowscale_program(design: Design, width: int, in_flight: int) -> Program:
    """The sequence program: one step, in which each column has a run of rows. With few rows the last ones have none."""
    cores = rtp_addresses(design)
    build = Builder(["rows"], in_flight)
    rows = build.parameter("rows")
    build.require(~any_of(rows < 1, rows > MOST_ROWS), f"rows = {{}} is outside 1 to {MOST_ROWS}", rows)
    each = ceildiv(rows, len(cores))
    for name, direction, axes in (("X", "in", [rows, width]), ("w", "in", [width]), ("Y", "out", [rows, width])):
        elements: Expr | int = rows * width if len(axes) == 2 else width
        argument = build.argument(name, BF16.memory, BF16.bits, elements)
        dims = [Dim(axis, size, stride=width if axis < len(axes) - 1 else 1) for axis, size in enumerate(axes)]
        where = [Axis(size) for size in axes]
        build.operand(name, argument, direction, BF16.name, BF16.bits, where, dims, staged=0)
    with build.step([("S2MM", 0, 0, ceildiv(rows, each))], "{} rows, {} for a core", (rows, each)):
        for core in cores:
            first = each * core.column
            count = largest(least(each, rows - first), 0)
            with build.when(count > 0):
                build.task("MM2S", 1, core.column, build.bd(W, 0, (width,), (1,)))
                build.task("MM2S", 0, core.column, build.bd(X, first * width, (count * width,), (1,)))
                build.set_parameters(core.parameters, {0: count}, core.go)
                build.task("S2MM", 0, core.column, build.bd(Y, first * width, (count * width,), (1,)), token=True)
    return build.program


OPERATOR = Operator(KIND, ("rows",), RowscaleSpec.load, plan_rowscale, for_array)
