"""Element-wise operators y = f(a, b): what a spec says, its plan for a product, numpy reference and cost."""

from collections.abc import Callable, Iterator, Mapping
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
from bdforge.operators.elementwise.mapping import LARGEST_LENGTH, ElementwiseProgram, ElementwiseTiling, map_elementwise
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

KIND = "elementwise"
AXES = ("length",)


@dataclass(frozen=True, slots=True)
class Function:
    """f by its name in specs: exact on int64, and on bfloat16 with `round_` after each operation.

    Cycles are a core's for one vector of each type, as many as the busiest slot of the kernel's loop has on AIE2P.
    """

    of: Callable[[np.ndarray, np.ndarray, Callable[[np.ndarray], np.ndarray]], np.ndarray]
    bf16_cycles: int
    int8_cycles: int


FUNCTIONS: Mapping[str, Function] = {
    "add": Function(lambda a, b, round_: round_(a + b), 2, 2),
    "mul": Function(lambda a, b, round_: round_(a * b), 1, 1),
    "relu2_gate": Function(lambda a, b, round_: round_(round_(np.where(np.signbit(a), 0, a) ** 2) * b), 2, 3),
}
"""Functions by name; relu2_gate is BitNet's relu(a)^2 * b."""


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
    function: Literal["add", "mul", "relu2_gate"]
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
    tiling: ElementwiseTiling

    @cached_property
    def program(self) -> Program:  # type: ignore[override]
        """The runtime sequence of any length."""
        return ElementwiseProgram(self.tiling, rtp_addresses(self.design), self.spec.sequence.steps).program()

    @property
    def kernels(self) -> Kernels:
        """The one function of a tile."""
        symbol, spec = _symbol(self.tiling.type), self.spec.form
        shift, rounding = spec.narrowing.shift, spec.narrowing.rounding
        narrowing = (f"SHIFT={shift}", f"ROUNDING={rounding}") if self.tiling.type.integer else ()
        defines = (f"FUNCTION={spec.function}", f"TILE_ELEMENTS={spec.tile}", *narrowing)
        return Kernels.ours([symbol], defines, {symbol: self._cycles})

    @property
    def _cycles(self) -> int:
        function, type_ = FUNCTIONS[self.spec.form.function], self.tiling.type
        vectors = self.tiling.tile * type_.bits // (BYTE_BITS * self.device.generation.vector_align_bytes)
        return vectors * (function.int8_cycles if type_.integer else function.bf16_cycles)

    def reference(self, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
        """Y of the inputs' shape, exact. Of bfloat16 that is so where no subnormal occurs, which the device flushes."""
        form, dtype = self.spec.form, self.tiling.type.dtype
        function, narrowing = FUNCTIONS[form.function].of, form.narrowing
        a, b = inputs["A"], inputs["B"]
        if self.tiling.type.integer:
            exact = function(a.astype(np.int64), b.astype(np.int64), lambda x: x)
            return {"Y": Expected(shifted(exact, narrowing.shift, narrowing.rounding, dtype).astype(dtype))}
        with np.errstate(over="ignore", invalid="ignore"):  # as IEEE 754 has it
            y = function(a.astype(np.float32), b.astype(np.float32), lambda x: x.astype(dtype).astype(np.float32))
            return {"Y": Expected(y.astype(dtype))}

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
    tiling = ElementwiseTiling(TYPES[form.type], form.tile, form.array.rows, form.array.columns or device.columns)
    refuse(spec, _reasons(form, tiling, device))
    comment = (
        f"{spec.name}: y = {form.function}(a, b), {form.type}, tile of {form.tile} elements, "
        f"{tiling.rows} x {tiling.columns} cores (rows x columns)."
    )
    array = device.part(tiling.columns)
    design = map_elementwise(spec.name, array, tiling, _symbol(tiling.type), form.stack_bytes, comment)
    refuse(spec, design_reasons(design, {"memory": "a smaller tile or stack_bytes"}))
    return ElementwisePlan(spec, device, design, tiling)


def _reasons(form: ElementwiseForm, tiling: ElementwiseTiling, device: Device) -> Iterator[str]:
    yield from array_reasons(form.array.device, tiling.rows, tiling.columns, device)
    yield from stack_reasons("stack_bytes", form.stack_bytes, device)
    if not tiling.type.integer and form.narrowing != Narrowing():
        yield "narrowing is of integers; leave it out, bf16 is rounded to nearest even"


def free_numbers(spec: ElementwiseSpec, device: Device) -> dict[str, list[int]]:
    """Elements of a tile, in whole vectors, up to what a core's memory holds."""
    vector = device.generation.vector_align_bytes * BYTE_BITS // TYPES[spec.form.type].bits
    return {"tile": sizes_tried(vector, vector, CORE.memory_bytes // device.generation.vector_align_bytes * vector)}


OPERATOR = Operator(KIND, AXES, ElementwiseSpec.load, plan_elementwise, for_array, free_numbers)
