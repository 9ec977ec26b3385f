"""What an interactive session shows of our objects: one short line with what matters, no arrays."""

from xml.etree import ElementTree

import numpy as np

import bdforge
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import estimate
from bdforge.perf.bounds.case import case_of
from bdforge.runtime.prepared import operand_table
from support import scaled_rows
from support.built_designs import build, spec_content
from support.small_designs import loopback

PLAN = "small: int8 x int2 -> int32, tile 16x32x32 on 2 x 2 cores of strix_halo"


def test_objects_show_themselves_in_a_line(tmp_path):
    design = build(tmp_path / "built", spec_content(16, 32, 32))
    gemm = bdforge.load(tmp_path / "built")
    assert repr(design.plan) == f"<Plan {PLAN}>"
    assert repr(design) == f"<BuiltDesign small (gemm) for strix_halo, in {tmp_path / 'built'}>"
    assert repr(gemm) == "<Loaded small (gemm) for strix_halo on device emulated, takes A, B>"
    assert repr(gemm.pack(np.zeros((64, 64), np.int8))) == "<Packed B, 64x64, 1024 bytes>"
    assert repr(gemm.prepared(M=3, K=4, N=5)) == "<Prepared 3x4x5 of small: A int8[3, 4], C int32[3, 5]>"
    found = estimate(case_of(design.plan.spec, design.plan.device, GemmProblem(64, 64, 64)))
    assert repr(found).startswith("<Estimate of 64x64x64 on strix_halo: ")
    assert repr(found).endswith(f"TOPS (modelled), bound: {found.bound}>")


def test_a_result_shows_its_arrays_by_type_and_shape():
    a, b = np.arange(96, dtype=np.int32), np.zeros(96, np.int32)
    assert repr(bdforge.emulate(loopback(), [a, b])) == (
        "<Result of a run on int32[96], int32[96]: 1 named buffers, 0 warnings>"
    )


def cells(html: str) -> list[list[str]]:
    """What stands in each line of a table; fails for marks that do not match."""
    lines = ElementTree.fromstring(html).findall("tr")
    return [[cell.text or "" for cell in line] for line in lines]


def test_notebooks_show_operands_as_a_table(small):
    gemm = bdforge.load(small.folder)
    head = ["operand", "", "type", "shape", "order"]
    assert cells(gemm._repr_html_()) == [
        head, ["A", "input", "int8", "M x K", "row by row"], ["B", "input", "int2", "K x N", "row by row"],
        ["C", "output", "int32", "M x N", "row by row"],
    ]  # fmt: skip
    assert cells(gemm.prepared(M=3, K=4, N=5)._repr_html_()) == [
        head, ["A", "input", "int8", "3 x 4", "row by row"], ["C", "output", "int32", "3 x 5", "row by row"],
    ]  # fmt: skip
    named = operand_table("<b> & co", scaled_rows.PROGRAM)
    assert ElementTree.fromstring(named).findtext("caption") == "<b> & co"
    assert cells(named)[3] == ["s", "input, may be missing", "f32", "n", ""]
