"""Softmax of rows, y = exp(scale (x - max(x))) over its sum; a core's tile is a row."""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Expected, Operator
from bdforge.operators.specs import FormSpec, Size, for_array
from bdforge.operators.stream_mapping import chunk_reasons, in_chunks
from bdforge.operators.stream_plan import (
    RowsProblem,
    StreamForm,
    StreamFunction,
    StreamPlan,
    pass_symbols,
    plan_streams,
    row_defines,
    width_reasons,
)
from bdforge.operators.tile_streams import StreamTiling, TileStream

KIND = "softmax"
AXES = ("rows",)
BF16 = TYPES["bf16"]
_ROUNDINGS, _EXPONENTS, _LEAST = 2.0**-7 + 2.0**-12, 2.0**-14, 2.0**-63  # kernels/aie2p/softmax_bf16.cc
_MASK, _LOWEST = -(2.0**100), 64
"""What numbers below count as, and the exponents below which powers are less than _LEAST whatever they are off."""
_CYCLES, _PASSES = (47, 270), {"largest": (1, 64), "sum": (41, 146), "results": (46, 275)}
"""For a vector, and for a row beside, as assembled for AIE2P; for a vector and a call of the passes over chunks."""
_STATE_VECTORS = 4  # of a row from chunk to chunk (kernels/aie2p/softmax_largest_bf16.cc)


class SoftmaxForm(StreamForm[RowsProblem]):
    """A design for rows of `width` elements, each in one core, as chunks where a core does not hold them."""

    kind: Literal["softmax"]
    width: Size
    scale: Annotated[float, Field(ge=1e-6, le=1e6)] = 1.0


class SoftmaxSpec(FormSpec[SoftmaxForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = SoftmaxForm


def plan_softmax(spec: SoftmaxSpec, device: Device) -> StreamPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, columns = spec.form, spec.form.array.columns or device.columns
    lanes = device.generation.vector_align_bytes // 2
    x, y = (TileStream(name, BF16, (form.width,)) for name in "XY")
    whole = StreamTiling("rows", 1, (x,), (y,), form.array.rows, columns, (), form.buffers)
    tiling = in_chunks(whole, device.part(columns), len(_PASSES), _STATE_VECTORS, lanes, form.stack_bytes)
    vectors, cycles = form.width // tiling.chunks // lanes, {}
    for part, symbol in pass_symbols("softmax", BF16, tiling, _PASSES).items():
        of_vector, of_call = _PASSES.get(part, _CYCLES)
        cycles[symbol] = of_vector * vectors + of_call
    defines = (*row_defines(form.width, tiling), f"FACTOR={form.scale!r}F")
    function = StreamFunction(cycles, defines, lambda inputs: {"Y": _expected(form, inputs)})
    what = f"softmax of {form.scale:g} x, bf16, rows of {form.width} elements"
    cut = chunk_reasons(tiling, device, len(_PASSES), form.width // lanes, form.stack_bytes)
    return plan_streams(spec, device, tiling, function, what, (*width_reasons(form.width, lanes), *cut))


def _expected(form: SoftmaxForm, inputs: Mapping[str, np.ndarray]) -> Expected:
    """In float64, and how far bfloat16 may be off it; X is finite or minus infinity."""
    x = np.maximum(inputs["X"].astype(np.float64), _MASK)
    below = float(np.float32(form.scale)) * (x.max(axis=-1, keepdims=True) - x)
    e = np.exp(-below)
    y = e / e.sum(axis=-1, keepdims=True)
    return Expected(y, y * (_ROUNDINGS + _EXPONENTS * np.minimum(below, _LOWEST)) + _LEAST)


OPERATOR = Operator(KIND, AXES, SoftmaxSpec.load, plan_softmax, for_array)
