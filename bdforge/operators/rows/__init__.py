"""Norms of rows, y = f(x, w) of each row x: what a spec says, its plan for a product, numpy reference and cost.

A core's tile is a row, and the weights w come once for a problem.
"""

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Expected, Operator
from bdforge.operators.rows.norms import (
    PASSES,
    SCALED_SUM,
    SCALED_SUM_CYCLES,
    cycles,
    layer_codes,
    layernorm,
    rms_codes,
    rmsnorm,
    state_vectors,
)
from bdforge.operators.scaled_rows import scaled_loss, scaled_sum
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

KIND = "rows"
_LEAST_NORMAL = 2.0**-126
AXES = ("rows",)
BF16, F32 = TYPES["bf16"], TYPES["f32"]

_NORMS: Mapping[str, tuple[Callable[..., Expected], Callable[..., tuple[Expected, Expected]]]] = {
    "rmsnorm": (rmsnorm, rms_codes),
    "layernorm": (layernorm, layer_codes),
}
"""Of rows, what is held and epsilon: the norm, and its codes with their scales."""

FloatType = Literal["bf16", "f32"]


class RowsForm(StreamForm[RowsProblem]):
    """A design for rows of `width` elements, each in one core, as chunks where a core does not hold them.

    `residual`: of sums of two rows, which are written, too, in the type of X. `residual_scaled`: R counts times S, a
    float for each row, and C, one for all, as sums of a product do. `codes`: int8 with a scale for each row.
    """

    kind: Literal["rows"]
    function: Literal["rmsnorm", "layernorm", "sum"]
    width: Size
    x_type: FloatType = "bf16"
    residual: bool = False
    residual_type: FloatType = "bf16"
    residual_scaled: bool = False
    codes: bool = False
    epsilon: Annotated[float, Field(ge=1e-12, le=1)] = 1e-5


class RowsSpec(FormSpec[RowsForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = RowsForm


def _tiling(form: RowsForm, columns: int) -> StreamTiling:
    x, total = (TileStream(name, TYPES[form.x_type], (form.width,)) for name in ("X", "Sum"))
    r = TileStream("R", TYPES[form.residual_type], (form.width,))
    w, b, y = (TileStream(name, BF16, (form.width,)) for name in ("W", "B", "Y"))
    coded = TileStream("Y", TYPES["int8"], (form.width,)), TileStream("Scale", F32)
    held, normed = {"rmsnorm": (w,), "layernorm": (w, b), "sum": ()}[form.function], coded if form.codes else (y,)
    normed = () if form.function == "sum" else normed
    inputs, sums = ((x, r), (total,)) if form.residual else ((x,), ())
    if not form.residual_scaled:
        joined = form.residual and len(held) == len(normed) == 2  # kernels take six arrays at most
        return StreamTiling(
            "rows", 1, inputs, (*sums, *normed), form.array.rows, columns, held, form.buffers, joined=joined
        )
    s, c = TileStream("S", F32), TileStream("C", F32, (1,))
    norm = tuple(one.name for one in (total, *held, *normed))
    calls = (("X", "R", "S", "C", "Sum"), norm)[: 1 + bool(normed)]
    inputs, held = (*inputs, s), (*held, c)
    return StreamTiling(
        "rows", 1, inputs, (*sums, *normed), form.array.rows, columns, held, form.buffers, shared=(s,), calls=calls
    )


def _formula(form: RowsForm) -> str:
    """As comments of the text have it."""
    added = "sum = x + r s c" if form.residual_scaled else "sum = x + r"
    if form.function == "sum":
        return added
    made = "y, scale = codes of " if form.codes else "y = "
    bias, total = ", b" if form.function == "layernorm" else "", f"{added}, " if form.residual else ""
    return f"{total}{made}{form.function}({'sum' if form.residual else 'x'}, w{bias})"


def plan_rows(spec: RowsSpec, device: Device) -> StreamPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, lanes = spec.form, device.generation.vector_align_bytes // 2
    whole, passes = _tiling(form, form.array.columns or device.columns), PASSES.get((form.function, form.codes), ("",))
    unit, kept = 2 * lanes if form.codes else lanes, state_vectors(form.function, form.codes)
    tiling = in_chunks(whole, device.part(whole.columns), len(passes), kept, unit, form.stack_bytes)
    what = f"{_formula(form)}, x {form.x_type}, rows of {form.width} elements"
    function = StreamFunction(_calls(form, tiling, lanes), _defines(form, tiling), partial(_reference, form))
    smaller = "buffers = 1, a smaller width or stack_bytes"
    cut = chunk_reasons(tiling, device, len(passes), form.width // unit, form.stack_bytes)
    return plan_streams(spec, device, tiling, function, what, (*_reasons(form, lanes), *cut), smaller)


def _calls(form: RowsForm, tiling: StreamTiling, lanes: int) -> dict[str, int]:
    """Kernels' symbols, and cycles of a call."""
    vectors, found = form.width // tiling.chunks // lanes, {}
    if form.residual_scaled:
        of_vector, of_call = SCALED_SUM_CYCLES
        found[SCALED_SUM] = of_vector * vectors + of_call
    if form.function == "sum":
        return found
    summed = form.residual_type if form.residual and not form.residual_scaled else ""
    for part, symbol in pass_symbols(form.function, BF16, tiling, PASSES[form.function, form.codes]).items():
        of_vector, of_call = cycles(form.function, part, summed, form.codes, form.x_type)
        found[symbol] = of_vector * vectors + of_call
    return found


def _defines(form: RowsForm, tiling: StreamTiling) -> tuple[str, ...]:
    given = {
        "RESIDUAL": form.residual and not form.residual_scaled, "CODES": form.codes,
        "X_F32": form.x_type == "f32", "RESIDUAL_F32": form.residual_type == "f32",
    }  # fmt: skip
    options = (f"{name}=1" for name, there in given.items() if there)
    return (*row_defines(form.width, tiling), f"EPSILON={form.epsilon!r}F", *options)


def _reference(form: RowsForm, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
    """What `norms` says of a row, or of the sum of two, rounded. Inputs are finite, so are sums of squares."""
    given = {name: array.astype(np.float64) for name, array in inputs.items()}
    found, x = {}, given["X"]
    if form.residual:
        x = _sum(form, inputs).astype(TYPES[form.x_type].dtype).astype(np.float64)
        lost = np.where(np.abs(x) < _LEAST_NORMAL, _LEAST_NORMAL, 0.0)  # some devices flush them
        if form.residual_scaled:
            lost = lost + scaled_loss(x, given["R"], given["S"], given["C"])
        found["Sum"] = Expected(x, lost)
    if form.function == "sum":
        return found
    norm, coded = _NORMS[form.function]
    weights = [given[name] for name in "WB" if name in given]
    if form.codes:
        y, scale = coded(x, *weights, form.epsilon)
        return found | {"Y": y, "Scale": scale}
    return found | {"Y": norm(x, *weights, form.epsilon)}


def _sum(form: RowsForm, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
    """In float32, of which Sum is the nearest in its type."""
    if form.residual_scaled:
        return scaled_sum(*(inputs[name] for name in ("X", "R", "S", "C")))
    return (inputs["X"].astype(np.float64) + inputs["R"].astype(np.float64)).astype(np.float32)


def _reasons(form: RowsForm, lanes: int) -> Iterator[str]:
    yield from width_reasons(form.width, lanes)
    if form.codes and form.width % (2 * lanes):
        yield f"width = {form.width} is no multiple of {2 * lanes}, a vector of int8 codes"
    if form.codes and form.function == "sum":
        yield "codes are of norms, not of sum; leave them out, or quantise its rows"
    if form.residual_type != "bf16" and not form.residual:
        yield f"residual_type = {form.residual_type!r} without residual; add residual = true"
    if form.residual_scaled and not (form.residual and form.residual_type == "bf16"):
        yield "residual_scaled is of a residual of bf16; add residual = true, and leave residual_type out"
    if form.function == "sum" and not form.residual_scaled:
        yield "sum is of a residual that is scaled; add residual_scaled = true, or use kind = 'elementwise', add"


OPERATOR = Operator(KIND, AXES, RowsSpec.load, plan_rows, for_array)
