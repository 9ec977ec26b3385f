"""What an interactive session shows of our objects: one short line with what matters, no arrays."""

import numpy as np

import bdforge
from bdforge.operators.gemm import Problem
from bdforge.perf import estimate
from bdforge.perf.bounds.case import case_of
from support.built_designs import build, spec_content
from support.small_designs import loopback

PLAN = "small: int8 x int2 -> int32, tile 16x32x32 on 2 x 2 cores of strix_halo"


def test_objects_show_themselves_in_a_line(tmp_path):
    design = build(tmp_path / "built", spec_content(16, 32, 32))
    gemm = bdforge.load(tmp_path / "built")
    assert repr(design.plan) == f"<Plan {PLAN}>"
    assert repr(design) == f"<BuiltDesign small (gemm) for strix_halo, in {tmp_path / 'built'}>"
    assert repr(gemm) == "<Loaded small (gemm) for strix_halo by the emulator, takes A, B>"
    assert repr(gemm.pack(np.zeros((64, 64), np.int8))) == "<Packed B, 64x64, 1024 bytes>"
    found = estimate(case_of(design.plan.spec, design.plan.device, Problem(64, 64, 64)))
    assert repr(found).startswith("<Estimate of 64x64x64 on strix_halo: ")
    assert repr(found).endswith(f"TOPS (modelled), bound: {found.bound}>")


def test_a_result_shows_its_arrays_by_type_and_shape():
    a, b = np.arange(96, dtype=np.int32), np.zeros(96, np.int32)
    assert repr(bdforge.emulate(loopback(), [a, b])) == (
        "<Result of a run on int32[96], int32[96]: 1 named buffers, 0 warnings>"
    )
