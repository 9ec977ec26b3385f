"""Rotary position embedding of a token's heads by its row of a table of angles.

A core's tile is a token: its `heads` rows of `head_dim`, and `head_dim / 2` cosines and sines, which all heads share.
`rope_table` makes the table. Heads may go to several arrays, some of them as they are: queries, keys and values of one
product, which may count times a scale of the token and one of each array's matrix.
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from bdforge.devices import Device
from bdforge.devices.types import TYPES
from bdforge.operators.operator_api import Expected, Operator
from bdforge.operators.rope.angles import LinearScaling, Llama3Scaling, rope_table
from bdforge.operators.specs import FormSpec, ProblemForm, Section, Size, for_array
from bdforge.operators.stream_mapping import in_chunks, on_fewer_rows
from bdforge.operators.stream_plan import StreamForm, StreamFunction, StreamPlan, plan_streams
from bdforge.operators.stream_program import LARGEST_LENGTH
from bdforge.operators.tile_streams import StreamTiling, TileStream

__all__ = ["OPERATOR", "LinearScaling", "Llama3Scaling", "rope_table"]

KIND = "rope"
AXES = ("tokens",)
BF16, F32 = TYPES["bf16"], TYPES["f32"]
_HALF_ULP, _TERMS, _LEAST = 2.0**-8, 2.0**-16, 2.0**-99  # kernels/aie2p/rope_bf16.cc
_SCALED_TERMS = 2.0**-90  # of terms and scales: smaller ones may count as 0
_CYCLES = {
    ("halves", False): (6, 110, 0), ("neighbours", False): (10, 110, 0),
    ("halves", True): (35, 41, 70), ("neighbours", True): (41, 40, 71),
}  # fmt: skip
"""By pairs and whether there are scales: of a head's vector of pairs, and beside it for a vector of angles and for an
array of heads, as assembled for AIE2P."""
_TAKEN = ("x", "t", "s", "c", "y")


class TokensProblem(ProblemForm):
    """How many tokens."""

    tokens: Annotated[int, Field(ge=1, le=LARGEST_LENGTH, strict=True)]


class HeadsOutput(Section):
    """An array of its own for the next `heads` heads; those that are not `turned` stay as they are."""

    name: Annotated[str, Field(pattern="^[A-Za-z_][A-Za-z0-9_]*$")]
    heads: Size
    turned: Annotated[bool, Field(strict=True)] = True


class RopeForm(StreamForm[TokensProblem]):
    """A design for tokens of `heads` heads, which go to `outputs`; none: to one, Y.

    `scaled`: they count times S, a float for each token, and C, one for each output, as sums of a product do.
    """

    kind: Literal["rope"]
    heads: Size
    head_dim: Size
    pairs: Literal["halves", "neighbours"] = "halves"
    outputs: tuple[HeadsOutput, ...] = ()
    scaled: Annotated[bool, Field(strict=True)] = False

    @property
    def made(self) -> tuple[HeadsOutput, ...]:
        """Arrays in their order."""
        return self.outputs or (HeadsOutput(name="Y", heads=self.heads),)


class RopeSpec(FormSpec[RopeForm]):
    """A design's spec."""

    kind: ClassVar[str] = KIND
    FORM = RopeForm


def plan_rope(spec: RopeSpec, device: Device) -> StreamPlan:
    """Plan `spec` for `device`; SpecError lists every reason why it cannot be built."""
    form, vector = spec.form, device.generation.vector_align_bytes
    whole = _tiling(form, form.array.columns or device.columns)
    tiling = on_fewer_rows(whole)
    if len(form.made) == 1:
        tiling = in_chunks(whole, device.part(whole.columns), 1, 0, form.head_dim, form.stack_bytes)
    of_vector, of_angles, of_output = _CYCLES[form.pairs, form.scaled]
    heads, outputs = sum(one.heads for one in form.made) // tiling.chunks, len(form.made)
    cycles = -(-form.head_dim // vector) * (of_vector * heads + of_angles * outputs) + of_output * outputs
    defines = _defines(form, tiling.chunks)
    function = StreamFunction({f"rope_{BF16.code}": cycles}, defines, partial(_reference, form))
    what = f"rotary embeddings of bf16, {form.heads} heads of {form.head_dim}, pairs of {form.pairs}"
    if form.scaled:
        what += ", times scales"
    return plan_streams(spec, device, tiling, function, what, _reasons(form, vector))


def _tiling(form: RopeForm, columns: int) -> StreamTiling:
    x, t = TileStream("X", BF16, (form.heads, form.head_dim)), TileStream("T", BF16, (form.head_dim,))
    s, c = (TileStream("S", F32),) * form.scaled, (TileStream("C", F32, (len(form.made),)),) * form.scaled
    made = tuple(TileStream(one.name, BF16, (one.heads, form.head_dim)) for one in form.made)
    shared = t, *s
    return StreamTiling(
        "tokens", 1, (x, *shared), made, form.array.rows, columns, c, form.buffers, shared=shared, joined=True
    )


def _defines(form: RopeForm, chunks: int) -> tuple[str, ...]:
    found = [f"HEAD_DIM={form.head_dim}", f"TILE_ELEMENTS={form.heads * form.head_dim // chunks}"]
    found += ["NEIGHBOURS"] * (form.pairs == "neighbours") + ["SCALED"] * form.scaled
    if form.outputs:
        heads, turned = (
            [str(int(x)) for x in some]
            for some in zip(*((one.heads // chunks, one.turned) for one in form.outputs), strict=True)
        )
        found += [f"OUTPUT_HEADS={','.join(heads)}", f"TURNED={','.join(turned)}"]
    return tuple(found)


def _reasons(form: RopeForm, vector: int) -> Iterator[str]:
    if form.head_dim % vector:
        yield f"head_dim = {form.head_dim} is no multiple of {vector}, two vectors"
    names = [one.name for one in form.outputs]
    if taken := [name for i, name in enumerate(names) if name in names[:i] or name.lower() in _TAKEN]:
        yield f"outputs: {taken[0]} is the name of another array; use another one"
    if names and (total := sum(one.heads for one in form.outputs)) != form.heads:
        yield f"outputs: they have {total} heads together; heads = {form.heads}"


def _reference(form: RopeForm, inputs: Mapping[str, np.ndarray]) -> dict[str, Expected]:
    """Each array's heads in float64, and how far bfloat16 may be off them; X, T, S and C are finite."""
    found, first = {}, 0
    for number, one in enumerate(form.made):
        x, t = inputs["X"][:, first : first + one.heads].astype(np.float64), inputs["T"].astype(np.float64)
        exact, terms = turned(
            x, t if one.turned else t * 0 + (np.arange(form.head_dim) < form.head_dim // 2), form.pairs
        )
        least = _LEAST
        if form.scaled:
            s, c = inputs["S"].astype(np.float64)[:, None, None], float(inputs["C"][number])
            least = _SCALED_TERMS * (1 + np.abs(s) + abs(c)) * (1 + terms)
            exact, terms = exact * s * c, terms * np.abs(s * c)
        found[one.name] = Expected(exact, np.abs(exact) * _HALF_ULP + terms * _TERMS + least)
        first += one.heads
    return found


def turned(x: np.ndarray, t: np.ndarray, pairs: str) -> tuple[np.ndarray, np.ndarray]:
    """Heads turned by rows of a table, and the sum of the magnitudes of what each is a sum of."""
    half = x.shape[-1] // 2
    c, s = t[..., None, :half], t[..., None, half:]
    first, second = (slice(0, half), slice(half, None)) if pairs == "halves" else (slice(0, None, 2), slice(1, None, 2))
    a, b = x[..., first], x[..., second]
    exact, terms = np.empty_like(x), np.empty_like(x)
    exact[..., first], exact[..., second] = a * c - b * s, b * c + a * s
    terms[..., first] = terms[..., second] = (np.abs(a) + np.abs(b)) * (np.abs(c) + np.abs(s))
    return exact, terms


OPERATOR = Operator(KIND, AXES, RopeSpec.load, plan_rope, for_array)
