"""Rotary position embedding of a token's heads by its row of a table of angles.

A core's tile is a token: its `heads` rows of `head_dim`, and `head_dim / 2` cosines and sines, which all heads share.
`rope_table` makes the table.
"""

from collections.abc import Mapping
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Expected, Operator
from bdforge.operators.rope.angles import LinearScaling, Llama3Scaling, rope_table
from bdforge.operators.specs import FormSpec, ProblemForm, Size, for_array
from bdforge.operators.stream_plan import StreamForm, StreamFunction, StreamPlan, plan_streams
from bdforge.operators.stream_program import LARGEST_LENGTH
from bdforge.operators.tile_streams import StreamTiling, TileStream

__all__ = ["OPERATOR", "LinearScaling", "Llama3Scaling", "rope_table"]

KIND = "rope"
AXES = ("tokens",)
BF16 = TYPES["bf16"]
_HALF_ULP, _TERMS, _LEAST = 2.0**-8, 2.0**-16, 2.0**-99  # kernels/aie2p/rope_bf16.cc
_PERIODS = {"halves": 6, "neighbours": 10}
"""Cycles of a head's vector of pairs, and below those of a vector beside, as assembled for AIE2P."""
_VECTOR_CYCLES = 110


class TokensProblem(ProblemForm):
    """How many tokens."""

    tokens: Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class RopeForm(StreamForm[TokensProblem]):
    """A design for tokens of `heads` heads."""

    kind: Literal["rope"]
    heads: Size
    head_dim: Size
    pairs: Literal["halves", "neighbours"] = "halves"


class RopeSpec(FormSpec[RopeForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = RopeForm


def plan_rope(spec: RopeSpec, device: Device) -> StreamPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, columns = spec.form, spec.form.array.columns or device.columns
    head, angles, vector = (form.heads, form.head_dim), (form.head_dim,), device.generation.vector_align_bytes
    x, t, y = TileStream("X", BF16, head), TileStream("T", BF16, angles), TileStream("Y", BF16, head)
    tiling = StreamTiling("tokens", 1, (x, t), (y,), form.array.rows, columns, (), form.buffers)
    neighbours = ("NEIGHBOURS",) if form.pairs == "neighbours" else ()
    defines = (f"HEAD_DIM={form.head_dim}", f"TILE_ELEMENTS={form.heads * form.head_dim}", *neighbours)
    cycles = -(-form.head_dim // vector) * (_PERIODS[form.pairs] * form.heads + _VECTOR_CYCLES)
    function = StreamFunction({f"rope_{BF16.code}": cycles}, defines, lambda inputs: {"Y": _turned(form, inputs)})
    what = f"rotary embeddings of bf16, {form.heads} heads of {form.head_dim}, pairs of {form.pairs}"
    reasons = [f"head_dim = {form.head_dim} is no multiple of {vector}, two vectors"] if form.head_dim % vector else []
    return plan_streams(spec, device, tiling, function, what, reasons)


def _turned(form: RopeForm, inputs: Mapping[str, np.ndarray]) -> Expected:
    """In float64, and how far bfloat16 may be off it; X and T are finite."""
    x, t = (inputs[name].astype(np.float64) for name in ("X", "T"))
    half = form.head_dim // 2
    c, s = t[..., None, :half], t[..., None, half:]
    first, second = (
        (slice(0, half), slice(half, None)) if form.pairs == "halves" else (slice(0, None, 2), slice(1, None, 2))
    )
    a, b = x[..., first], x[..., second]
    exact, terms = np.empty_like(x), np.empty_like(x)
    exact[..., first], exact[..., second] = a * c - b * s, b * c + a * s
    terms[..., first] = terms[..., second] = (np.abs(a) + np.abs(b)) * (np.abs(c) + np.abs(s))
    return Expected(exact, np.abs(exact) * _HALF_ULP + terms * _TERMS + _LEAST)


OPERATOR = Operator(KIND, AXES, RopeSpec.load, plan_rope, for_array)
