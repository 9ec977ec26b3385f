"""Element-wise operators y = f(a) or f(a, b): what a spec says, its plan for a product, numpy reference and cost."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.design import Design, rtp_addresses
from bdforge.design.sequences import Program
from bdforge.devices import Device
from bdforge.devices.formats import shifted
from bdforge.devices.limits import BYTE_BITS, CORE
from bdforge.devices.types import TYPES, ElementType
from bdforge.operators.elementwise.functions import FUNCTIONS, Function
from bdforge.operators.operator_api import Cost, Expected, Kernels, Operator, Plan
from bdforge.operators.specs import (
    STACK_BYTES,
    ArraySection,
    FormSpec,
    Problem,
    ProblemForm,
    Rounding,
    Section,
    Shift,
    Size,
    SpecForm,
    array_reasons,
    design_reasons,
    for_array,
    refuse,
    sizes_tried,
    stack_reasons,
)
from bdforge.operators.stream_mapping import map_streams
from bdforge.operators.stream_program import LARGEST_LENGTH, StreamProgram
from bdforge.operators.tile_streams import StreamTiling, TileStream

KIND = "elementwise"
AXES = ("length",)


class Narrowing(Section):
    """int8 results are f / 2^shift, rounded as `rounding` says and saturated."""

    shift: Shift = 0
    rounding: Rounding = "conv_even"


class LengthProblem(ProblemForm):
    """Elements of each operand."""

    length: Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class ElementwiseForm(SpecForm[LengthProblem]):
    """An element-wise design. Cores take `tile` elements at a time; no `columns`: all of the product's."""

    kind: Literal["elementwise"]
    function: Literal["add", "mul", "relu2_gate", "silu", "gelu", "silu_gate", "gelu_gate"]
    type: Literal["int8", "bf16"]
    tile: Size
    array: ArraySection = ArraySection()
    narrowing: Narrowing = Narrowing()
    stack_bytes: Size = STACK_BYTES


class ElementwiseSpec(FormSpec[ElementwiseForm]):
    """An element-wise design's spec."""

    kind: ClassVar[str] = KIND
    FORM = ElementwiseForm


@dataclass(frozen=True, repr=False)
class ElementwisePlan(Plan):
    """Every number of an element-wise design."""

    spec: ElementwiseSpec
    device: Device
    design: Design
    tiling: StreamTiling

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any length."""
        return StreamProgram(self.tiling, rtp_addresses(self.design), self.spec.sequence.steps).program()

    @property
    def kernels(self) -> Kernels:
        """The one function of a tile."""
        symbol, spec = _symbol(self.type), self.spec.form
        shift, rounding = spec.narrowing.shift, spec.narrowing.rounding
        narrowing = (f"SHIFT={shift}", f"ROUNDING={rounding}") if self.type.integer else ()
        one = ("OPERANDS=1",) if self.function.operands == 1 else ()
        defines = (f"FUNCTION={spec.function}", f"TILE_ELEMENTS={spec.tile}", *one, *narrowing)
        return Kernels.ours([symbol], defines, {symbol: self._cycles})

    @property
    def type(self) -> ElementType:
        """Of all operands."""
        return TYPES[self.spec.form.type]

    @property
    def function(self) -> Function:
        """What is computed."""
        return FUNCTIONS[self.spec.form.function]

    @property
    def _cycles(self) -> int:
        vectors = self.tiling.tile * self.type.bits // (BYTE_BITS * self.device.generation.vector_align_bytes)
        return vectors * self.function.cycles[self.type.name]

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Y of the inputs' shape: exact, of bfloat16 where no subnormal occurs, which the device flushes; or near."""
        narrowing, dtype = self.spec.form.narrowing, self.type.dtype
        operands = [inputs[stream.name] for stream in self.tiling.inputs]
        if not self.type.integer:
            return {"Y": self.function.expected(operands, np.dtype(dtype))}
        exact = self.function.of(*(x.astype(np.int64) for x in operands), lambda x: x)
        return {"Y": Expected(shifted(exact, narrowing.shift, narrowing.rounding, dtype).astype(dtype))}

    def cost(self, problem: Problem) -> Cost:
        """What a run moves, and the cycles of the first column's cores, which have the most tiles."""
        sequence = self.sequence(problem)
        tiles = -(-sequence.elements[0] // (self.tiling.panel * self.tiling.columns))
        return Cost.of(sequence, problem.sizes["length"], tiles * self._cycles)


def _symbol(type_: ElementType) -> str:
    return f"elementwise_{type_.code}"


def plan_elementwise(spec: ElementwiseSpec, device: Device) -> ElementwisePlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form = spec.form
    type_, columns = TYPES[form.type], form.array.columns or device.columns
    a, b, y = (TileStream(name, type_) for name in "ABY")
    operands = (a, b)[: FUNCTIONS[form.function].operands]
    tiling = StreamTiling("length", form.tile, operands, (y,), form.array.rows, columns)
    refuse(spec, _reasons(form, tiling, device))
    comment = (
        f"{spec.name}: y = {form.function}({', '.join(x.name.lower() for x in operands)}), {form.type}, "
        f"tile of {form.tile} elements, {tiling.rows} x {tiling.columns} cores (rows x columns)."
    )
    array = device.part(tiling.columns)
    design = map_streams(spec.name, array, tiling, _symbol(type_), form.stack_bytes, comment)
    refuse(spec, design_reasons(design, {"memory": "a smaller tile or stack_bytes"}))
    return ElementwisePlan(spec, device, design, tiling)


def _reasons(form: ElementwiseForm, tiling: StreamTiling, device: Device) -> Iterator[str]:
    yield from array_reasons(form.array.device, tiling.rows, tiling.columns, device)
    yield from stack_reasons("stack_bytes", form.stack_bytes, device)
    if form.type not in FUNCTIONS[form.function].cycles:
        yield f"{form.function} is of {', '.join(FUNCTIONS[form.function].cycles)}, not of {form.type}"
    if not TYPES[form.type].integer and form.narrowing != Narrowing():
        yield "narrowing is of integers; leave it out, bf16 is rounded to nearest even"


def free_numbers(spec: ElementwiseSpec, device: Device) -> dict[str, list[int]]:
    """Elements of a tile, in whole vectors, up to what a core's memory holds."""
    vector = device.generation.vector_align_bytes * BYTE_BITS // TYPES[spec.form.type].bits
    return {"tile": sizes_tried(vector, vector, CORE.memory_bytes // device.generation.vector_align_bytes * vector)}


OPERATOR = Operator(KIND, AXES, ElementwiseSpec.load, plan_elementwise, for_array, free_numbers)
