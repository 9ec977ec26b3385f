"""Slabs that leave memtiles whole, since slices would take more BDs than there are: their order, and what they make."""

from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bdforge.operators.gemm import GemmPlan, SpecError
from bdforge.operators.gemm.slabs import leave_whole
from support.built_designs import build, small_gemm, spec_content
from support.differences import same
from support.gemm_problems import run_gemm

INT8 = ("int8", "int8", "int32", "int32")
BF16 = ("bf16", "bf16", "bf16", "f32")
SLICES = 14
"""Of slabs of a small design: 12 fill the BDs of a memtile's even channels, or of its odd ones."""


def channel(plan: GemmPlan, tile: str, name: str) -> tuple[Any, ...]:
    """BDs of a tile's channel."""
    found = next(one for one in plan.design.tiles if one.name == tile)
    return next(c.bds for c in found.channels if f"{c.direction} {c.index}" == name)


def deep(layouts: str, **changes: Any) -> dict[str, Any]:
    k = changes.get("k", 16)
    return {"types": INT8, "layouts": layouts, "rows": 1, "columns": 1, "k_mt": SLICES * k} | changes


@pytest.mark.parametrize("a", ["row", "column"])
@pytest.mark.parametrize("b", ["row", "column", "packed"])
def test_a_core_gets_the_micro_tiles_that_slices_would_bring(a, b):
    """What a core's buffer holds after each slice, by the positions in the slab that it came from."""
    plan, sliced = (small_gemm(**deep(f"{a} {b} row") | {"k_mt": depth * 16}) for depth in (SLICES, 2))
    assert (leave_whole(plan.spec, plan.kernel), leave_whole(sliced.spec, sliced.kernel)) == (True, False)
    for x, out, into, size in (("a", "MM2S 1", "S2MM 0", 16), ("b", "MM2S 0", "S2MM 1", 32)):
        (sent, _), (written, _) = channel(plan, "mem_0", out), channel(plan, "core_0_2", into)
        if x == "b" and b == "packed":
            assert sent.linear
            continue
        lines = getattr(plan.spec.layouts, x) == ("row" if x == "a" else "column")
        slab = np.arange(size * SLICES * 16)
        matrix = slab.reshape(size, -1) if lines else slab.reshape(-1, size).T
        arrived = slab[sent.pattern.order()].reshape(SLICES, -1)
        tiles = np.empty_like(arrived)
        tiles[:, written.pattern.order()] = arrived
        micro = 8
        for number, found in enumerate(tiles):
            part = matrix[:, 16 * number : 16 * (number + 1)]
            wanted = part.reshape(size // micro, micro, 2, 8).transpose(0, 2, 1, 3)
            if not lines:  # those of memory across K are each transposed, and lie block by block alike
                wanted = wanted.transpose(0, 1, 3, 2)
            same(found, wanted.ravel(), f"{x}, slice {number}")


def test_one_bd_and_one_turn_of_the_lock_for_each_buffer():
    plan = small_gemm(**deep("row column row"))
    memtile = next(tile for tile in plan.design.tiles if tile.name == "mem_0")
    for name in ("S2MM 0", "S2MM 1", "MM2S 0", "MM2S 1"):
        bds = channel(plan, "mem_0", name)
        assert [bd.acquire.count for bd in bds] == [1, 1], name
        assert [bd.release.count for bd in bds] == [1, 1], name
    assert {lock.init for lock in memtile.locks if "a0" in lock.name or "mem_0_b" in lock.name} == {2, 0}


@pytest.mark.parametrize(
    ("layouts", "changes"),
    [
        ("row row row", {"m": 16, "rho": 2}), ("row column row", {"columns": 2, "a_shims": 2}),
        ("row packed row", {"types": ("bfp16", "bfp16", "f32"), "k": 32}),
    ],
)  # fmt: skip
def test_parts_of_a_and_two_shims_and_block_floats_take_slices(layouts, changes):
    with pytest.raises(SpecError, match="BDs for channels that share BD"):
        small_gemm(**deep(layouts, **changes))


def test_parts_of_a_that_lies_across_k_come_one_after_the_other():
    assert channel(small_gemm(**deep("column row row", rho=2)), "mem_0", "MM2S 1")[0].pattern.sizes[0] == SLICES


def test_the_last_published_depth_can_be_planned():
    """Fig. 6 of Taka et al. ends at 560, of which no more fit 512 KiB."""
    sizes = {"rows": 4, "columns": 4, "stack_bytes": 1024, "c_memtile_buffers": 1}
    facts: dict[str, Any] = {"types": 4 * ("bf16",), "layouts": "row column row", "device": "phoenix"} | sizes
    plan = small_gemm(96, 56, 96, k_mt=560, **facts)
    assert leave_whole(plan.spec, plan.kernel)
    balanced = small_gemm(96, 56, 96, k_mt=224, **facts)
    assert not leave_whole(balanced.spec, balanced.kernel)
    with pytest.raises(SpecError, match="bytes of 524288"):
        small_gemm(96, 56, 96, k_mt=616, **facts)


CASES = [
    ("strix_halo", "row column row", INT8, {}),
    pytest.param("strix_halo", "column row column", INT8, {"rho": 2}, marks=pytest.mark.slow),
    ("phoenix", "row packed row", ("int8", "int2", "int32"), {}),
    pytest.param("phoenix", "row column row", BF16, {"rows": 2, "columns": 2, "k": 8}, marks=pytest.mark.slow),
]


@pytest.mark.daily("strix_halo-row column row-types0-changes0")
@pytest.mark.parametrize(("device", "layouts", "types", "changes"), CASES)
def test_products_of_whole_slabs_are_numpys(tmp_path: Path, device, layouts, types, changes):
    """Two slabs deep, more panels than buffers of any kind."""
    content = spec_content(16, **dict[str, Any](n=32) | {"k": 16} | deep(layouts, types=types, **changes))
    design = build(tmp_path, content, device=device)
    assert leave_whole(design.plan.spec, design.plan.kernel)
    depth = 2 * design.plan.spec.buffers.k_mt
    M, N = 3 * 16 * content["array"]["rows"], 2 * 32 * content["array"]["columns"]
    rng = np.random.default_rng(7)
    a, b = rng.integers(-1, 2, (M, depth)), rng.integers(-1, 2, (depth, N))  # sums that bfloat16 holds
    dtype = ml_dtypes.bfloat16 if types == BF16 else np.int8
    found = run_gemm(design, a.astype(dtype), b.astype(dtype))
    same(np.asarray(found.outputs["C"]).astype(np.int64), a @ b, layouts)
