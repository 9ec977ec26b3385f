"""Designs of block floats with machine code in every core: the bits that kernels of the host make, in any schedule."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import load_spec, plan_gemm
from bdforge.perf.assembled.counted_core import core_elfs
from bdforge.runtime import first_mismatch
from support.built_designs import ROOT, possible, small_gemm
from support.differences import same
from support.loaded_arrays import LoadedArray

pytestmark = pytest.mark.slow

PUBLISHED = sorted((ROOT / "designs").glob("gemm_*bfp16_b*.toml"))
SMALL: dict[str, dict[str, Any]] = {
    "blocks": {"types": ("bfp16", "bfp16", "bfp16"), "m": 32, "k": 32, "n": 16, "rho": 2},
    "sums of bf16": {"types": ("bfp16", "bfp16", "bfp16", "bf16"), "m": 32, "k": 16, "n": 32},
    "A of bf16": {"types": ("bf16", "bfp16", "bf16"), "m": 24, "k": 64, "n": 24},
}


def check(plan, seeds) -> None:
    """A rest in all three sizes."""
    tiles = plan.tiling
    problem = possible(plan, tiles.panel_rows - 3, tiles.k_mt + tiles.k - 5, tiles.step_columns - 7)
    design, inputs = LoadedArray.of(plan), plan.random(problem, 3)
    sizes = list(problem.sizes.values())
    wanted = design.run(sizes, inputs)[0]
    (expected,) = plan.reference(inputs).values()
    assert first_mismatch(wanted["C"], expected.values, expected.bound) is None
    elfs = core_elfs(plan, design.mlir)
    for seed in seeds:
        found, _ = design.run(sizes, inputs, elfs=elfs, schedule="random", seed=seed)
        same(found["C"], wanted["C"])


@pytest.mark.parametrize("name", SMALL)
def test_small_tiles_have_the_same_bits(name):
    check(small_gemm(rows=1, columns=1, **SMALL[name]), (5,))


@pytest.mark.parametrize("path", PUBLISHED, ids=lambda path: path.stem)
def test_published_tiles_have_the_same_bits_on_a_corner_of_the_array(path: Path):
    spec = replace(load_spec(path), rows=2, columns=2, problems=())
    check(plan_gemm(spec, device_named("strix_halo")), (5, 6))
