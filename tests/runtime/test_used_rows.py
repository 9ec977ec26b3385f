"""Tiles of which only some rows hold data: memtiles make the zeros, and no host pads a problem of few rows."""

import pytest

from bdforge.operators.gemm import GemmProblem, GemmSequence
from bdforge.runtime import first_mismatch, run
from support.built_designs import TERNARY, build, spec_content

INT8 = ("int8", "int8", "int32")
SCALED = {"scale": True, "bias": True}


@pytest.mark.parametrize(
    ("content", "device", "sizes"),
    [
        (spec_content(8, 16, 32, types=INT8, layouts="row row row", rows=1, m_used=1), "strix_halo", (1, 80, 64)),
        (spec_content(8, 16, 32, types=TERNARY, k_mt=32, m_used=3), "strix_halo", (7, 76, 100)),
        (spec_content(8, 64, 32, types=("int8", "int2", "bf16"), m_used=5, epilogue=SCALED), "strix_halo", (6, 64, 40)),
        (spec_content(4, 16, 32, types=INT8, layouts="row column row", rows=1, m_used=1), "phoenix", (3, 32, 64)),
    ],
    ids=["one row", "three of eight", "scaled", "AIE2"],
)
def test_problems_of_few_rows_need_no_staging(tmp_path, content, device, sizes):
    design, problem = build(tmp_path, content, device=device), GemmProblem(*sizes)
    inputs = design.plan.random(problem, 7)
    done = run(design, inputs)
    right = design.plan.reference(inputs)["C"]
    assert first_mismatch(done.outputs["C"], right.values, right.bound) is None
    staging = GemmSequence.of(design.plan, done.sequence).staging
    assert staging.a is None
    assert staging.c is None
    assert "const_pad_after" in design.mlir
