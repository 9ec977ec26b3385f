"""Element-wise operators y = f(a) or f(a, b): what a spec says, its plan for a product, numpy reference and cost."""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.devices import Device
from bdforge.devices.formats import shifted
from bdforge.devices.limits import BYTE_BITS, CORE
from bdforge.devices.types import TYPES
from bdforge.operators.elementwise.functions import FUNCTIONS
from bdforge.operators.operator_api import Expected, Operator
from bdforge.operators.specs import (
    STACK_BYTES,
    FormSpec,
    PlacedArray,
    ProblemForm,
    Rounding,
    Section,
    Shift,
    Size,
    SpecForm,
    for_array,
    sizes_tried,
)
from bdforge.operators.stream_plan import StreamFunction, StreamPlan, plan_streams
from bdforge.operators.stream_program import LARGEST_LENGTH
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
    array: PlacedArray = PlacedArray()
    narrowing: Narrowing = Narrowing()
    stack_bytes: Size = STACK_BYTES


class ElementwiseSpec(FormSpec[ElementwiseForm]):
    """An element-wise design's spec."""

    kind: ClassVar[str] = KIND
    FORM = ElementwiseForm


def plan_elementwise(spec: ElementwiseSpec, device: Device) -> StreamPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, type_ = spec.form, TYPES[spec.form.type]
    function, columns = FUNCTIONS[form.function], form.array.columns or device.columns
    a, b, y = (TileStream(name, type_) for name in "ABY")
    operands = (a, b)[: function.operands]
    tiling = StreamTiling("length", form.tile, operands, (y,), form.array.rows, columns)
    narrowing = (f"SHIFT={form.narrowing.shift}", f"ROUNDING={form.narrowing.rounding}") if type_.integer else ()
    one = ("OPERANDS=1",) if function.operands == 1 else ()
    defines = (f"FUNCTION={form.function}", f"TILE_ELEMENTS={form.tile}", *one, *narrowing)
    vectors = form.tile * type_.bits // (BYTE_BITS * device.generation.vector_align_bytes)
    cycles = vectors * function.cycles.get(type_.name, 0)  # 0: refused
    computed = StreamFunction({f"elementwise_{type_.code}": cycles}, defines, partial(_reference, form))
    names = ", ".join(x.name.lower() for x in operands)
    what = f"y = {form.function}({names}), {form.type}, tile of {form.tile} elements"
    return plan_streams(spec, device, tiling, computed, what, _reasons(form), "a smaller tile or stack_bytes")


def _reference(form: ElementwiseForm, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
    """Y of the inputs' shape: exact, of bfloat16 where no subnormal occurs, which the device flushes; or near."""
    function, dtype = FUNCTIONS[form.function], TYPES[form.type].dtype
    operands = [inputs[name] for name in "AB"[: function.operands]]
    if not TYPES[form.type].integer:
        return {"Y": function.expected(operands, np.dtype(dtype))}
    exact = function.of(*(x.astype(np.int64) for x in operands), lambda x: x)
    return {"Y": Expected(shifted(exact, form.narrowing.shift, form.narrowing.rounding, dtype).astype(dtype))}


def _reasons(form: ElementwiseForm) -> Iterator[str]:
    if form.type not in FUNCTIONS[form.function].cycles:
        yield f"{form.function} is of {', '.join(FUNCTIONS[form.function].cycles)}, not of {form.type}"
    if not TYPES[form.type].integer and form.narrowing != Narrowing():
        yield "narrowing is of integers; leave it out, bf16 is rounded to nearest even"


def free_numbers(spec: ElementwiseSpec, device: Device) -> dict[str, list[int]]:
    """Elements of a tile, in whole vectors, up to what a core's memory holds."""
    vector = device.generation.vector_align_bytes * BYTE_BITS // TYPES[spec.form.type].bits
    return {"tile": sizes_tried(vector, vector, CORE.memory_bytes // device.generation.vector_align_bytes * vector)}


OPERATOR = Operator(KIND, AXES, ElementwiseSpec.load, plan_elementwise, for_array, free_numbers)
