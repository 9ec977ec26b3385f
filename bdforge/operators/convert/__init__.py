"""Rows in another type: int8 codes with a scale for each row, numbers of such codes, casts; a core's tile is a row."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Literal

import numpy as np

from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Expected, Operator
from bdforge.operators.specs import FormSpec, Size, for_array
from bdforge.operators.stream_mapping import chunk_reasons, in_chunks
from bdforge.operators.stream_plan import RowsProblem, StreamForm, StreamFunction, StreamPlan, plan_streams
from bdforge.operators.tile_streams import StreamTiling, TileStream

KIND = "convert"
AXES = ("rows",)
Arrays = Mapping[str, np.ndarray]
_LEAST = 2.0**-100  # of a row's largest number, that it has a scale; kernels/aie2p/quantise_bf16.cc
_HALF = 127 * 2.0**-20  # of codes: where either neighbour is right
_NUMBER = 2.0**-8 + 2.0**-13  # of itself, a number of a code: kernels/aie2p/dequantise_i8.cc
_SCALE = 2.0**-22  # of a row of floats: kernels/aie2p/quantise_f32.cc
_FLOAT_PRODUCT = 2.0**-20  # of itself, a product of three floats: kernels/aie2p/dequantise_i32.cc
_PRODUCT = 2.0**-8 + 2.0**-19  # the same, rounded to bfloat16
_LEAST_PART = 2.0**-122  # of a float's parts and their products, which may become 0
_STATE_VECTORS = 2  # of a row from chunk to chunk (kernels/aie2p/quantise_largest_{bf16,f32}.cc)
_LEAST_NUMBER = 128 * _LEAST  # of a scale that counts as 0


class ConvertForm(StreamForm[RowsProblem]):
    """A design for rows of `width` elements, each in one core, as chunks where a core does not hold them."""

    kind: Literal["convert"]
    function: Literal[
        "quantise", "quantise_f32", "dequantise", "dequantise_int32", "scale_int32", "bf16_to_f32", "f32_to_bf16",
        "int8_to_bf16",
    ]  # fmt: skip
    width: Size


class ConvertSpec(FormSpec[ConvertForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = ConvertForm


@dataclass(frozen=True, slots=True)
class _Conversion:
    """The kernel, operands by name and type (S is one for a row, or held one for all), cycles of a vector of 16-bit
    lanes and of a row. `order`: as the kernel takes them, if not that of the arguments; `defines` are its options.
    `passes`: over a row that comes in chunks, with cycles of each; none: chunks are as rows of their own.

    Cycles are those of machine code on AIE2P.
    """

    symbol: str
    inputs: Mapping[str, str]
    outputs: Mapping[str, str]
    cycles: tuple[int, int]
    reference: Callable[[Arrays], dict[str, Expected]]
    held: Mapping[str, str] = field(default_factory=dict)
    order: str = ""
    defines: tuple[str, ...] = ()
    passes: Mapping[str, tuple[int, int]] = field(default_factory=dict)


def _quantised(inputs: Arrays) -> dict[str, Expected]:
    x = inputs["X"].astype(np.float64)
    largest = np.abs(x).max(axis=-1, keepdims=True)
    largest = np.where(largest < _LEAST, 0, largest)
    exact = np.divide(x * 127, largest, out=np.zeros_like(x), where=largest > 0)
    near = np.abs(np.abs(exact) % 1 - 0.5) <= _HALF
    codes = np.rint(exact)
    return {
        "Y": Expected(np.where(near, exact, codes), np.where(near, 0.5 + _HALF, 0)),
        "S": Expected((largest[..., 0] / 127).astype(np.float32)),
    }


def _quantised_floats(inputs: Arrays) -> dict[str, Expected]:
    found = _quantised(inputs)
    scale = found["S"].values.astype(np.float64)
    return found | {"S": Expected(scale, scale * _SCALE)}


def _scaled_sums(off: float, inputs: Arrays) -> dict[str, Expected]:
    x, row, columns = (inputs[name].astype(np.float64) for name in "XSC")
    row = row[..., None]
    exact = x * row * columns
    lost = _LEAST_PART * (1 + np.abs(x)) * (1 + np.abs(row) + np.abs(columns))
    return {"Y": Expected(exact, np.abs(exact) * off + lost)}


def _numbers(inputs: Arrays) -> dict[str, Expected]:
    exact = inputs["X"].astype(np.float64) * inputs["S"].astype(np.float64)[..., None]
    return {"Y": Expected(exact, np.abs(exact) * _NUMBER + _LEAST_NUMBER)}


def _cast(name: str) -> Callable[[Arrays], dict[str, Expected]]:
    return lambda inputs: {"Y": Expected(inputs["X"].astype(TYPES[name].dtype))}


_CONVERSIONS: Mapping[str, _Conversion] = {
    "quantise": _Conversion(
        "quantise_bf16", {"X": "bf16"}, {"Y": "int8", "S": "f32"}, (6, 272), _quantised,
        passes={"largest": (2, 25), "results": (4, 267)},
    ),
    "quantise_f32": _Conversion(
        "quantise_f32", {"X": "f32"}, {"Y": "int8", "S": "f32"}, (22, 313), _quantised_floats,
        passes={"largest": (4, 51), "results": (18, 295)},
    ),
    "dequantise_int32": _Conversion(
        "dequantise_i32", {"X": "int32", "S": "f32"}, {"Y": "bf16"}, (41, 125), partial(_scaled_sums, _PRODUCT),
        {"C": "f32"},
    ),
    "scale_int32": _Conversion(
        "dequantise_i32", {"X": "int32", "C": "f32"}, {"Y": "f32"}, (41, 126), partial(_scaled_sums, _FLOAT_PRODUCT),
        {"S": "f32"}, "XSCY", ("Y_F32=1",),
    ),
    "dequantise": _Conversion("dequantise_i8", {"X": "int8", "S": "f32"}, {"Y": "bf16"}, (18, 74), _numbers),
    "bf16_to_f32": _Conversion("cast_bf16_f32", {"X": "bf16"}, {"Y": "f32"}, (2, 15), _cast("f32")),
    "f32_to_bf16": _Conversion("cast_f32_bf16", {"X": "f32"}, {"Y": "bf16"}, (2, 12), _cast("bf16")),
    "int8_to_bf16": _Conversion("cast_i8_bf16", {"X": "int8"}, {"Y": "bf16"}, (12, 31), _cast("bf16")),
}  # fmt: skip


def plan_convert(spec: ConvertSpec, device: Device) -> StreamPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, columns = spec.form, spec.form.array.columns or device.columns
    found, vector = _CONVERSIONS[form.function], device.generation.vector_align_bytes
    inputs, outputs = (_streams(some, form.width) for some in (found.inputs, found.outputs))
    held = _streams(found.held, form.width, (1,))
    calls, shared = (tuple(found.order),) * bool(found.order), tuple(s for s in inputs if s.elements == 1)
    whole = StreamTiling(
        "rows", 1, inputs, outputs, form.array.rows, columns, held, form.buffers, shared=shared, calls=calls
    )
    passes, part = found.passes or {"": found.cycles}, device.part(columns)
    tiling = in_chunks(whole, part, len(passes), _STATE_VECTORS * (len(passes) > 1), vector, form.stack_bytes)
    cut = chunk_reasons(tiling, device, len(passes), form.width // vector, form.stack_bytes)
    reasons = [f"width = {form.width} is no multiple of {vector}, a vector of int8"] if form.width % vector else cut
    what = f"{form.function} of rows of {form.width} elements"
    return plan_streams(spec, device, tiling, _function(found, tiling, form.width, vector), what, reasons)


def _function(found: _Conversion, tiling: StreamTiling, width: int, vector: int) -> StreamFunction:
    """The kernel of rows or of chunks, or those of passes over chunks."""
    kernel, _, type_ = found.symbol.partition("_")
    cycles = {found.symbol: found.cycles}
    if tiling.passes > 1:
        cycles = {f"{kernel}_{name}_{type_}": of_pass for name, of_pass in found.passes.items()}
    vectors = width // tiling.chunks * 2 // vector
    counted = {symbol: of_vector * vectors + of_call for symbol, (of_vector, of_call) in cycles.items()}
    return StreamFunction(counted, (f"TILE_ELEMENTS={width // tiling.chunks}", *found.defines), found.reference)


def _streams(operands: Mapping[str, str], width: int, scale: tuple[int, ...] = ()) -> tuple[TileStream, ...]:
    """By name; S is of the shape `scale`."""
    return tuple(TileStream(name, TYPES[type_], scale if name == "S" else (width,)) for name, type_ in operands.items())


OPERATOR = Operator(KIND, AXES, ConvertSpec.load, plan_convert, for_array)
