"""`bdforge.load`: numpy in, numpy out; and how what was loaded shows itself."""

from xml.etree import ElementTree

import numpy as np
import pytest

import bdforge
from bdforge.design.sequences import SequenceOptions
from bdforge.operators.gemm import GemmProblem
from bdforge.perf import estimate
from bdforge.perf.bounds.case import case_of
from bdforge.runtime import OperandError, first_mismatch
from bdforge.runtime.operand_table import operand_table
from support import scaled_rows
from support.built_designs import build, spec_content
from support.differences import same
from support.gemm_problems import operands, reference
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


@pytest.mark.parametrize("shape", [(32, 16, 64), (1, 5, 3), (45, 52, 70)])
def test_a_loaded_design_is_a_function(small, shape):
    gemm = bdforge.load(small.folder)
    a, weights = operands(*shape)
    got = gemm(a, weights)
    assert got.dtype == np.int32
    same(got, reference(a, weights))


@pytest.mark.parametrize("options", [SequenceOptions("wide"), SequenceOptions(in_flight=1)])
def test_how_runs_wait_can_be_chosen(small, options):
    gemm = bdforge.load(small.folder, sequence=options)
    assert gemm.design.options == options
    a, weights = operands(45, 52, 70)
    same(gemm(a, weights), reference(a, weights))


@pytest.mark.parametrize("rows", [40, 9])
def test_a_prepared_problem_runs_without_copies(small, rows):
    gemm = bdforge.load(small.folder)
    a, weights = operands(rows, 52, 70)
    problem, packed = gemm.prepared(M=rows, K=52, N=70), gemm.pack(weights)
    assert sorted(problem.arrays) == ["A", "C"]
    kept = dict(problem.arrays)
    for given in (a, -a):
        problem.arrays["A"][...] = given
        assert problem(B=packed) is kept["C"]
        same(kept["C"], reference(given, weights))


def test_operands_have_names(small):
    gemm = bdforge.load(small.folder)
    a, weights = operands(4, 8, 32)
    same(gemm(a=a, B=weights), reference(a, weights))
    same(gemm(a, b=gemm.pack(b=weights)), reference(a, weights))
    with pytest.raises(OperandError, match="operand A must be a numpy array, got int"):
        gemm(1, weights)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("got", "expected", "bound", "told"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]], None, None),
        ([[1, 2], [3, 9]], [[1, 2], [3, 4]], None, "C[1, 1] is 9, expected 4"),
        ([[1, 7], [8, 9]], [[1, 2], [3, 4]], None, "C[0, 1] is 7, expected 2; 3 elements are wrong"),
        ([1.0, 2.5], [1.0, 2.0], [0.0, 0.5], None),
        ([1.0, 1.5], [1.0, 2.0], [0.0, 0.5], None),
        ([1.0, 2.5], [1.0, 2.0], [0.0, 0.4375], "C[1] is 2.5, expected 2.0"),
        ([1.0, 1.5], [1.0, 2.0], [0.0, 0.4375], "C[1] is 1.5, expected 2.0"),
        ([float("nan"), 2.0], [1.0, 2.0], [9.0, 9.0], "C[0] is nan, expected 1.0"),
        ([], [], None, None),
    ],
)
def test_the_first_wrong_element_is_told_and_a_bound_is_kept_when_it_is_reached(got, expected, bound, told):
    found = first_mismatch(np.array(got), np.array(expected), None if bound is None else np.array(bound))
    assert (None if found is None else str(found)) == told


def test_a_sequence_is_built_in_for_the_designs_own_problems_only(tmp_path):
    content = spec_content(16, 16, 32) | {"problems": [{"name": "own", "M": 5, "K": 20, "N": 40}]}
    design = build(tmp_path, content)
    (own,) = design.plan.spec.problems
    assert design.built_sequence({"M": 5, "K": 20, "N": 40}) == own.sequence
    assert design.built_sequence({"N": 40, "M": 5, "K": 20}) == own.sequence
    assert design.built_sequence({"M": 5, "K": 20, "N": 41}) is None
    waiting = design.waiting(SequenceOptions("wide"))
    assert waiting.built_sequence({"M": 5, "K": 20, "N": 40}) is None
    assert design.waiting(None) is design


@pytest.mark.slow
def test_what_feeds_an_epilogue_is_packed_with_the_weights(tmp_path):
    fed = spec_content(16, 64, 32, types=("int8", "int2", "bf16"), epilogue={"scale": True, "bias": True})
    built = build(tmp_path, fed)
    gemm, problem = bdforge.load(tmp_path), GemmProblem(20, 100, 40)
    inputs = built.plan.random(problem, 5)
    right = built.plan.reference(inputs)["C"]
    packed = gemm.pack(inputs["B"], column_scales=inputs["column_scales"], bias=inputs["bias"])
    for c in (gemm(**inputs), gemm(inputs["A"], packed, inputs["row_scales"])):
        assert first_mismatch(c, right.values, right.bound) is None
    del inputs["bias"]
    prepared = gemm.prepared(M=20, K=100, N=40)
    prepared.arrays["A"][...] = inputs["A"]
    rows = inputs["row_scales"]
    same(prepared(B=packed), gemm(inputs["A"], packed), "rows whose scales nobody has written: 1")
    prepared.arrays["row_scales"][...] = rows
    same(prepared(B=packed), gemm(inputs["A"], packed, rows))
    plain = built.plan.reference(inputs)["C"]
    assert first_mismatch(gemm(**inputs), plain.values, plain.bound) is None
    assert first_mismatch(gemm(**inputs), right.values, right.bound) is not None
