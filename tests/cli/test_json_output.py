"""`--json` of `verify`, `doctor` and `estimate`: what the lines say, in the objects of docs/json.md."""

from pathlib import Path

import pytest

from bdforge.cli.json_output import Examination, ModelledDesign, ModelledProblem, VerifiedDesign
from support.built_designs import ROOT
from support.small_designs import loopback

TUNED = str(ROOT / "designs/gemm_i8_i2_tuned.toml")
ROPE = str(ROOT / "designs/rope_bf16.toml")


@pytest.mark.parametrize(
    "parts", [{}, {"fill": "1 << 20, 32"}, {"fill_acquire": ""}], ids=["good", "beyond", "no lock"]
)
def test_verify_tells_the_same_faults_and_warnings(run, parts):
    Path("design.mlir").write_text(loopback(**parts).replace("1 << 20", str(1 << 20)))
    code, out, err = run("verify", "design.mlir", "--json")
    plain_code, plain_out, plain_err = run("verify", "design.mlir")
    found = VerifiedDesign.model_validate_json(out)
    assert (code, err) == (plain_code, "")
    assert bool(found.faults) == (code != 0) == (not plain_out)
    assert all(text.splitlines()[0] in plain_err for text in (*found.faults, *found.warnings))
    assert found.faults or found.summary in plain_out


def test_doctor_tells_each_part(run):
    code, out, _ = run("doctor", "--json", "--for", "npu")
    plain_code, plain, _ = run("doctor", "--for", "npu")
    parts = Examination.model_validate_json(out).parts
    assert code == plain_code == int(any(part.fails for part in parts))
    assert all(f"{part.name}: {part.detail}" in plain for part in parts)
    assert {part.name for part in parts if part.fails} == set(plain.splitlines()[-1].rpartition(": ")[2].split(", "))


@pytest.mark.parametrize(
    ("design", "shape", "sizes"),
    [(TUNED, "1024x2560x13824", {"M": 1024, "K": 2560, "N": 13824}), (ROPE, "64", {"tokens": 64})],
    ids=["GEMM", "rope"],
)  # fmt: skip
def test_an_estimate_is_the_printed_one(run, design, shape, sizes):
    code, out, _ = run("estimate", design, "--shape", shape, "--json")
    (problem,) = ModelledDesign.model_validate_json(out).problems
    plain = run("estimate", design, "--shape", shape)[1]
    assert code == 0
    assert isinstance(problem, ModelledProblem)
    assert problem.sizes == sizes
    assert f"{problem.time_us:.0f} us (modelled)" in " ".join(plain.split())
    assert f"bound: {problem.bound}" in " ".join(plain.split())
    assert problem.range_us[0] <= problem.time_us <= problem.range_us[1]


def test_json_goes_with_a_design_alone(run):
    code, _, err = run("estimate", TUNED, "--model", "bitnet", "--tokens", "8", "--json")
    assert code == 2
    assert "--json" in err
