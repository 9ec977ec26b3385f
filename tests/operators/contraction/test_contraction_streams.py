"""The streams of contractions multiplied by numpy: what shims bring to cores, and where they put C, against einsum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

from bd_patterns import Pattern
from bdforge.design import rtp_addresses
from bdforge.design.sequences import Await, PlannedSequence, Start, Stored, fetch, place
from bdforge.operators.contraction import ContractionPlan, contraction, plan_contraction
from bdforge.operators.contraction.sides import Side
from support.built_designs import small_gemm
from support.differences import same

INT8, TERNARY, ROWS = ("int8", "int8", "int32"), ("int8", "int2", "int32"), "row row row"


@dataclass(frozen=True)
class Case:
    """A contraction on a design of 8 x 16 x 8 tiles, of 2 x 2 cores: which operands are `staged`, `strides` of each."""

    expression: str
    sizes: Mapping[str, int]
    staged: str | None = ""
    design: Mapping[str, Any] = field(default_factory=dict)
    strides: tuple[Sequence[int] | None, ...] = (None, None, None)


def sized(**sizes: int) -> dict[str, int]:
    return sizes


PLAIN = "mk,kn->mn"
CASES = {
    "one tile for each core": Case(PLAIN, sized(m=16, k=16, n=16)),
    "turns of several column steps": Case(PLAIN, sized(m=32, k=32, n=64)),
    "tiles of M and N that move back": Case(PLAIN, sized(m=20, k=32, n=28)),
    "an odd number of tiles": Case(PLAIN, sized(m=24, k=16, n=40)),
    "one tile, twice on each core": Case(PLAIN, sized(m=8, k=16, n=8)),
    "A staged, its last slab moved back": Case(PLAIN, sized(m=16, k=36, n=16), "A"),
    "B staged, its last slab moved back": Case(PLAIN, sized(m=16, k=36, n=16), "B"),
    "all staged, of odd sizes": Case(PLAIN, sized(m=13, k=19, n=9), "ABC"),
    "all staged, less than a tile": Case(PLAIN, sized(m=3, k=5, n=2), "ABC"),
    "C staged": Case(PLAIN, sized(m=16, k=16, n=20), "C"),
    "batches": Case("bmk,bkn->bmn", sized(b=3, m=16, k=32, n=16)),
    "batches of two labels, staged": Case("bmkd,bdkn->mbnd", sized(b=2, d=3, m=9, k=17, n=10), "ABC"),
    "the second input transposed": Case("mk,nk->mn", sized(m=16, k=16, n=16), "B"),
    "both inputs transposed": Case("km,kn->nm", sized(m=24, k=16, n=16), "ABC"),
    "gaps behind lines": Case(PLAIN, sized(m=16, k=16, n=16), strides=([20, 1], [24, 1], [17, 1])),
    "two labels in M": Case("abk,kn->abn", sized(a=4, b=8, k=16, n=16)),
    "two labels in M that no walk joins": Case("akb,kn->bna", sized(a=3, b=5, k=16, n=16), "AC"),
    "two labels in N, one of which moves back": Case("mk,kab->mab", sized(m=16, k=16, a=4, b=20)),
    "two labels in M, one of which moves back": Case("abk,kn->abn", sized(a=4, b=20, k=16, n=16)),
    "two labels in K": Case("mcd,cdn->mn", sized(m=16, c=3, d=16, n=16)),
    "two labels in K, in another order, staged": Case("mcd,dcn->mn", sized(m=16, c=3, d=7, n=16), "AB"),
    "labels of all kinds, staged": Case("aebf,fdec->abcd", sized(a=3, b=4, c=5, d=2, e=3, f=6), "ABC"),
    "slabs deeper than a tile": Case(PLAIN, sized(m=16, k=64, n=24), design={"k_mt": 32}),
    "four core rows": Case(PLAIN, sized(m=40, k=16, n=24), design={"rows": 4, "columns": 4}),
    "more columns than core rows": Case(PLAIN, sized(m=16, k=16, n=40), design={"rows": 2, "columns": 4}),
    "C in parts, with steps of K that cores are not told of": Case(
        PLAIN, sized(m=32, k=64, n=16), design={"m": 16, "rho": 2, "c_in_parts": True, "k_mt": 32}
    ),
    "three core rows, chosen freely": Case(PLAIN, sized(m=50, k=33, n=23), None, {"rows": 3, "columns": 3}),
    "column-major operands": Case(
        "km,nk->nm", sized(m=24, k=32, n=16), design={"layouts": "column column column", "n": 16, "m": 8}
    ),
    "packed B": Case(PLAIN, sized(m=16, k=32, n=24), design={"layouts": "row packed row"}),
    "packed B, filled up": Case(PLAIN, sized(m=16, k=27, n=21), "A", {"layouts": "row packed row"}),
    "ternary B": Case(PLAIN, sized(m=16, k=32, n=70), "AC", {"types": TERNARY, "layouts": "row packed row", "n": 32}),
    "ternary weights of two labels": Case(
        "ak,bck->abc", sized(a=16, k=32, b=5, c=12), None, {"types": TERNARY, "layouts": "row packed row", "n": 32}
    ),
    "a vector times a matrix": Case("k,kn->n", sized(k=32, n=16), "AC"),
    "a matrix times a vector": Case("mk,k->m", sized(m=16, k=32), "BC"),
    "an outer product": Case("m,n->mn", sized(m=16, n=16), "AB"),
    "a sum of products": Case("k,k->", sized(k=20), "ABC"),
    "vectors in batches": Case("bk,bk->b", sized(b=3, k=20), "ABC"),
    "as large as a tile in place": Case("abk,kn->abn", sized(a=2, b=8, k=16, n=16)),
    "chosen freely": Case("adcf,cfbe->adbe", sized(a=3, b=4, c=2, d=5, e=6, f=9), None),
}


def planned(case: Case) -> ContractionPlan:
    facts: dict[str, Any] = {"m": 8, "k": 16, "n": 8, "types": INT8, "layouts": ROWS, **case.design}
    gemm = small_gemm(**facts)
    return plan_contraction(contraction(case.expression, case.sizes, case.strides), gemm, case.staged)


def streams_of(sequence: PlannedSequence) -> dict[tuple[int, int], np.ndarray]:
    """Places in its host buffer of all that passes, by (argument, column), in order."""
    found: dict[tuple[int, int], list[np.ndarray]] = {}
    for task in sequence.tasks():
        for run, bd in product(range(task.runs), task.bds):
            pattern, moved = bd.pattern, 0
            if pattern.rank == 4:
                assert pattern.sizes[0] == task.runs
                pattern, moved = Pattern(pattern.sizes[1:], pattern.strides[1:], pattern.offset), pattern.strides[0]
            found.setdefault((bd.argument, task.column), []).append(pattern.order() + run * moved)
    return {key: np.concatenate(parts) for key, parts in found.items()}


def axes_view(flat: np.ndarray, side: Side) -> np.ndarray:
    """The user's memory with an axis for each label, those that are fused side by side."""
    labels = [member for part in side.axes for member in part.dim.parts]
    strides = [(label.strides[side.tensor] or 0) * flat.itemsize for label in labels]
    return as_strided(flat, [label.size for label in labels], strides)


def labels_of(side: Side) -> str:
    """A letter for each; a kind that the user has no label of, such as (M), is its own."""
    return "".join(member.name.strip("()") for part in side.axes for member in part.dim.parts)


def tiles_of_a(stream: np.ndarray, plan: ContractionPlan) -> np.ndarray:
    """[tiles in slabs] of m x k_mt."""
    tile, order = plan.gemm.tiling, plan.gemm.spec.layouts.a
    shape = (tile.k_mt, tile.m) if order == "column" else (tile.m, tile.k_mt)
    found = stream.reshape(-1, *shape)
    return found.swapaxes(1, 2) if order == "column" else found


def tiles_of_b(stream: np.ndarray, plan: ContractionPlan) -> np.ndarray:
    """[tiles in slabs] of k_mt x n; packed ones as docs/operators/gemm.md has them."""
    tile, order, t = plan.gemm.tiling, plan.gemm.spec.layouts.b, plan.gemm.kernel.t
    if order != "packed":
        shape = (tile.n, tile.k_mt) if order == "column" else (tile.k_mt, tile.n)
        found = stream.reshape(-1, *shape)
        return found.swapaxes(1, 2) if order == "column" else found
    if plan.gemm.spec.b == "int2":
        codes = stream.view(np.uint8).reshape(-1, tile.n // (4 * t), tile.k, t)
        fields = np.stack([(codes >> 2 * field & 3).astype(np.int8) - 1 for field in range(4)], axis=-2)
        found = fields.transpose(0, 2, 1, 3, 4).reshape(-1, tile.k, tile.n)
    else:
        found = stream.reshape(-1, tile.n // t, tile.k, t).swapaxes(1, 2).reshape(-1, tile.k, tile.n)
    return found.reshape(-1, tile.k_mt, tile.n)


def parameters_of(plan: ContractionPlan, sequence: PlannedSequence) -> tuple[int, int]:
    """(steps of K, tiles of C) that every core is told, at the start."""
    started = [event for event in sequence.events if isinstance(event, Start)]
    stored = [[item for item in event.items if isinstance(item, Stored)] for event in started]
    assert [bool(items) for items in stored] == [True] + [False] * (len(started) - 1)
    items = stored[0]
    words = {item.address + 4 * i: value for item in items for i, value in enumerate(item.values)}
    told = {(words[core.parameters], words[core.parameters + 4]) for core in rtp_addresses(plan.design)}
    assert len(told) == 1
    return told.pop()


def memory_of(plan: ContractionPlan) -> list[np.ndarray]:
    """Random inputs as they lie in the user's memory."""
    rng = np.random.default_rng(7)
    ranges = ((-128, 128), (-1, 2) if plan.gemm.spec.b == "int2" else (-128, 128))
    dims = plan.choice.contraction.dims
    extents = [1 + sum((dim.size - 1) * (dim.strides[tensor] or 0) for dim in dims) for tensor in range(2)]
    return [rng.integers(*ends, size).astype(np.int8) for ends, size in zip(ranges, extents, strict=True)]


def buffers_of(sequence: PlannedSequence, plan: ContractionPlan, user: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Host buffers: staged copies, or the user's memory as it is."""
    buffers = [np.zeros(size, np.uint8) for size in sequence.argument_bytes]
    for side, flat in zip(plan.sides, user, strict=False):
        if side.staged:
            array = axes_view(flat, side).reshape([part.dim.size for part in side.axes])
            place(sequence.program.operands[side.tensor], sequence.values, array, buffers[side.tensor])
        else:
            buffers[side.tensor][:] = flat.view(np.uint8)
    return buffers


def multiply(plan: ContractionPlan, sequence: PlannedSequence, buffers: Sequence[np.ndarray]) -> None:
    """What the cores do with the streams: so many tiles of C, each of so many steps of K."""
    spec, tile, streams = plan.gemm.spec, plan.gemm.tiling, streams_of(sequence)
    a, b, c = (buffer.view(type_) for buffer, type_ in zip(buffers, (np.int8, np.int8, np.int32), strict=True))
    left = [tiles_of_a(a[streams[0, tile.a_column(row)]], plan) for row in range(spec.rows)]
    right = [tiles_of_b(b[streams[1, column]], plan) for column in range(spec.columns)]
    depth, count = parameters_of(plan, sequence)
    slabs = (depth + 2 * spec.buffers.c_in_parts) * tile.k // tile.k_mt
    assert {len(tiles) for tiles in (*left, *right)} == {count * slabs}
    for column in range(spec.columns):
        made = []
        for number, row in product(range(count), range(spec.rows)):
            at = slice(number * slabs, (number + 1) * slabs)
            one = (left[row][at].astype(np.int64) @ right[column][at]).sum(axis=0)
            made.append((one.T if spec.layouts.c == "column" else one).ravel())
        c[streams[2, column]] = np.concatenate(made)


@pytest.mark.parametrize("name", CASES)
def test_what_passes_the_cores_is_the_contraction(name: str):
    case = CASES[name]
    plan = planned(case)
    if case.staged is not None:
        packed = {"B"} if plan.gemm.spec.layouts.b == "packed" else set()
        assert {side.name for side in plan.sides if side.staged} == set(case.staged) | packed
    sequence, user = plan.sequence(plan.problem), memory_of(plan)
    waits = [wait for event in sequence.events if isinstance(event, Await) for wait in event.waits]
    assert sum(wait.columns for wait in waits) == plan.gemm.spec.columns * plan.choice.mapped.steps
    buffers = buffers_of(sequence, plan, user)
    multiply(plan, sequence, buffers)
    views, side = [axes_view(flat, side) for flat, side in zip(user, plan.sides, strict=False)], plan.sides[2]
    got = fetch(sequence.program.operands[2], sequence.values, buffers[2], np.dtype(np.int32))
    expression = f"{labels_of(plan.sides[0])},{labels_of(plan.sides[1])}->{labels_of(side)}"
    want = np.einsum(expression, *(view.astype(np.int64) for view in views)).reshape(got.shape)
    same(got, want, "C of the streams")
    shapes = [[part.dim.size for part in side.axes] for side in plan.sides]
    arrays = {name: view.reshape(shape) for name, view, shape in zip("AB", views, shapes, strict=False)}
    same(plan.reference(arrays)["C"].values, want, "the plan's reference")
