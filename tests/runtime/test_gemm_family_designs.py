"""The named designs of `designs/`, with their true tiles on a corner of the array."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from bdforge.devices import DEVICES
from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSpec, load_spec, plan_gemm
from bdforge.runtime import first_mismatch
from support.built_designs import ROOT, kernels_of, possible
from support.family_oracle import check, random_data
from support.family_runs import run
from support.loaded_arrays import LoadedArray

PRODUCTS = {"npu1": "phoenix", "npu2": "strix_halo"}
DESIGNS = sorted((ROOT / "designs").glob("gemm_*.toml"))
TWINS = {
    "gemm_i8_i2_tuned", "gemm_i8_i8_i8_144x72x144", "gemm_i8_i8_i16_96x112x96", "gemm_i8_i8_i32_80x88x96",
    "gemm_bf16_bf16_bf16_112x48x96", "gemm_bf16_bf16_f32_64x64x64", "gemm_bf16_bfp16_bf16_64x88x64",
    "gemm_bfp16_bfp16_bfp16_96x128x64", "gemm_bfp16_bfp16_bfp16_96x64x128", "gemm_i8_i2_qkv",
}  # fmt: skip
"""Of another design's types and ways, with another tile: for the sweep."""
each_design = pytest.mark.parametrize(
    "path", [pytest.param(p, id=p.stem, marks=pytest.mark.slow if p.stem in TWINS else ()) for p in DESIGNS]
)


def plan_of(spec: GemmSpec) -> GemmPlan:
    return plan_gemm(spec, DEVICES[PRODUCTS[spec.array or "npu2"]])


def corner(path: Path) -> GemmPlan:
    """The design on two columns of two cores each, or one where both shims bring a row's A."""
    spec = load_spec(path)
    outputs = tuple(replace(one, columns=spec.c_columns * i) for i, one in enumerate(spec.outputs, start=1))
    return plan_of(replace(spec, rows=2 // spec.buffers.a_shims, columns=2, outputs=outputs, problems=()))


def exact(plan: GemmPlan, problem: GemmProblem, **options) -> None:
    data = random_data(plan, problem, 3)
    c = run(plan, problem, data, kernels_of(plan), **options)
    assert not check(plan, data, c)


@pytest.mark.daily("gemm_i8_i2_bitnet")
@each_design
def test_a_named_design_is_right_on_a_corner_of_the_array(path):
    """Two slabs and a rest of K, ragged M and N."""
    plan = corner(path)
    tiles = plan.tiling
    problem = possible(plan, tiles.panel_rows - 3, tiles.k_mt + tiles.k - 5, tiles.step_columns - 7)
    if plan.spec.epilogue.gate == "none" and not plan.spec.outputs:
        exact(plan, problem, schedule="random", seed=4)
        return
    inputs = plan.random(problem, 3)
    found = LoadedArray.of(plan).run(list(problem.sizes.values()), inputs, schedule="random", seed=4)[0]
    for name, expected in plan.reference(inputs).items():
        assert first_mismatch(found[name], expected.values, expected.bound) is None


@pytest.mark.parametrize("path", [p for p in DESIGNS if re.search(r"_\d+x\d+x\d+", p.stem)], ids=lambda path: path.stem)
def test_a_published_tile_says_what_it_is_in_its_name(path):
    spec = load_spec(path)
    codes = {"int8": "i8", "int16": "i16", "int32": "i32", "int4": "i4"}
    types = "_".join(codes.get(name, name) for name in (spec.a, spec.b, spec.c))
    tile, rho = spec.tile, spec.buffers.rho
    assert spec.name == f"gemm_{types}_{tile.m}x{tile.k}x{tile.n}" + (f"_rho{rho}" if rho > 1 else "")
    assert spec.array in PRODUCTS
    assert spec.problems
