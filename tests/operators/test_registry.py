"""Operators by their kind: what specs ask for, and what all plans can tell."""

import re
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bdforge.operators
from bdforge.design.manifest import Manifest
from bdforge.devices import DEVICES, device_named
from bdforge.operators import (
    OPERATORS,
    ComposedPlan,
    Expected,
    Problem,
    SpecError,
    gemm,
    load_spec,
    manifest,
    of_own_code,
    operator_of,
    plan,
    plan_of,
    spec_from,
)  # fmt: skip
from support.built_designs import ROOT, spec_content

SPECS = sorted((ROOT / "designs").glob("*.toml"))


@pytest.mark.parametrize("file", SPECS, ids=lambda file: file.stem)
def test_a_spec_says_all_that_its_plan_needs(file):
    spec = load_spec(file)
    operator = operator_of(spec)
    assert spec.name == file.stem
    again = spec_from(spec.content, spec.name)
    assert (again, again.hash) == (spec, spec.hash)
    assert any(operator.fits(spec, device) for device in DEVICES.values())
    for problem in spec.problems:
        assert tuple(problem.sizes) == operator.axes
        assert operator.problem(list(problem.sizes.values())) == problem


ATTENTION = {"kind": "attention", "heads": 2, "kv_heads": 1, "head_dim": 64}
NORM = {"kind": "rows", "function": "rmsnorm", "width": 64}


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (ATTENTION | {"scale": "1"}, "scale: input should be a valid number, got '1'"),
        (ATTENTION | {"heads": True}, "heads: input should be a valid integer, got True"),
        (NORM | {"codes": 1}, "codes: input should be a valid boolean, got 1"),
        (NORM | {"array": {"rows": 2.0}}, "array.rows: input should be a valid integer, got 2.0"),
        (spec_content(16, 16, 32, epilogue={"scale": "true"}), "epilogue.scale: input should be a valid boolean"),
        (NORM | {"problems": {"rows": 1}}, "problems: input should be a valid"),
    ],
)
def test_a_value_of_another_type_is_refused_as_it_stands(content, said: str):
    with pytest.raises(SpecError) as fault:
        spec_from(content, "x", "x.toml")
    assert f"x.toml: {said}" in str(fault.value)
    if "scale" in content:
        assert spec_from(content | {"scale": 1}, "x").facts["scale"] == 1  # whole numbers are numbers


def test_an_unknown_kind_is_told_with_those_there_are():
    with pytest.raises(SpecError, match=r"x.toml: kind: unknown operator 'gem'; there is .*gemm"):
        spec_from({"kind": "gem"}, "x", "x.toml")
    with pytest.raises(SpecError, match=r"pass_through.mlir: is MLIR; .* bdforge verify, show and emulate take this"):
        load_spec(ROOT / "examples" / "pass_through.mlir")
    with pytest.raises(SpecError, match=r"kind: missing; add it; there is .*gemm"):
        spec_from({}, "x")


def test_every_operator_is_found_by_its_kind():
    assert {kind: operator.kind for kind, operator in OPERATORS.items()} == {kind: kind for kind in OPERATORS}
    assert len(OPERATORS) == len({*OPERATORS}) > 0
    with pytest.raises(KeyError, match="contractions"):
        OPERATORS["contractions"]


def package(folder: Path, name: str, entry: str, text: str) -> None:
    """An installed package with an operator, as far as Python's metadata tell."""
    facts = folder / f"{name}-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(f"[bdforge.operators]\n{entry}\n")
    (folder / f"{name}.py").write_text(text)


@pytest.mark.parametrize(
    ("entry", "text", "reason"),
    [
        ("broken_scaled:OPERATOR", "import nowhere", "cannot be imported, mend or uninstall it: ModuleNotFoundError"),
        ("broken_scaled:OPERATOR", "x = 1\nraise ValueError(x)", r"uninstall it: ValueError: 1 \(broken_scaled.py:2\)"),
        ("broken_scaled:OPERATOR", "", "cannot be imported, mend or uninstall it: AttributeError"),
        ("broken_scaled:OPERATOR", "OPERATOR = 1", "of package broken_scaled is no Operator.*; mend or uninstall it"),
        ("bdforge.operators.gemm:OPERATOR", "", "of package broken_scaled is no Operator of this kind"),
    ],
)  # fmt: skip
def test_a_broken_package_is_named_and_breaks_no_other_kind(entry, text, reason, tmp_path, monkeypatch):
    package(tmp_path, "broken_scaled", f"scaled = {entry}", text)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SpecError, match=f"operator scaled: .*{reason}"):
        spec_from({"kind": "scaled"}, "x")
    assert load_spec(SPECS[0]).kind in OPERATORS
    sys.modules.pop("broken_scaled", None)


def test_two_packages_with_one_kind_are_both_named(tmp_path, monkeypatch):
    for name in ("one", "other"):
        package(tmp_path, name, f"scaled = {name}:OPERATOR", "")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(
        SpecError, match="operator scaled: package one, package other have one each; uninstall all but one"
    ):
        OPERATORS["scaled"]


def test_what_others_code_decides_is_known(tmp_path, monkeypatch):
    """A reference of the author's own, or an operator of another package; in a composition, too."""
    halo, example = device_named("strix_halo"), ROOT / "examples" / "documents" / "add_one.toml"
    (tmp_path / "own.toml").write_text(re.sub("(?m)^reference = .*$", "", example.read_text()))
    own, judged = plan(load_spec(SPECS[0]), halo), plan(load_spec(example), halo)
    unjudged = plan(load_spec(tmp_path / "own.toml"), halo)
    assert (of_own_code(own), of_own_code(judged), of_own_code(unjudged)) == (True, False, True)
    for parts, expected in (([own, unjudged], True), ([own, judged], False)):
        spec: Any = SimpleNamespace(content={"designs": dict(enumerate(parts))})
        assert of_own_code(ComposedPlan(spec, halo, lambda name, part: part)) == expected  # type: ignore[arg-type]
    monkeypatch.setattr("bdforge.operators.own_kinds", lambda: ["others"])
    assert not of_own_code(own)


def test_shapes_have_as_many_sizes_as_the_operator_has_axes():
    with pytest.raises(SpecError, match="16x32 has 2 sizes; gemm takes 3: MxKxN"):
        OPERATORS["gemm"].problem([16, 32])
    with pytest.raises(SpecError, match="1x2x3x4 has 4 sizes; gemv takes 3: MxKxN"):
        OPERATORS["gemv"].problem([1, 2, 3, 4])
    with pytest.raises(SpecError, match="1x2 has 2 sizes; elementwise takes 1: length"):
        OPERATORS["elementwise"].problem([1, 2])
    with pytest.raises(SpecError, match="1x2: contraction takes no sizes, they stand in the design"):
        OPERATORS["contraction"].problem([1, 2])
    assert OPERATORS["elementwise"].problem([9], "named") == Problem("elementwise", {"length": 9})


def test_problems_are_their_sizes():
    named, plain = gemm.GemmProblem(1, 2, 3, "layer"), Problem("gemm", {"M": 1, "K": 2, "N": 3})
    assert named == plain
    assert len({named, plain}) == 1
    assert (str(plain), plain.sequence) == ("1x2x3", "gemm_1x2x3")
    assert plain != Problem("gemv", plain.sizes)


def test_a_plan_tells_what_a_run_moves():
    """A 32 x 32 x 64 GEMM on 2 x 2 cores of 16 x 16 x 32: each core one tile, each operand once."""
    small = plan(spec_from(spec_content(16, 16, 32), "small"), device_named("strix_halo"))
    cost = small.cost(Problem("gemm", {"M": 32, "K": 32, "N": 64}))
    a_bytes, b_bytes, c_bytes = 32 * 32, 32 * 64 // 4, 4 * 32 * 64
    assert (cost.read_bytes, cost.write_bytes, cost.operations) == (a_bytes + b_bytes, c_bytes, 32 * 32 * 64)
    assert (cost.channel_bytes, cost.run_bytes) == (c_bytes // 2, 16)
    assert cost.core_cycles == 16 * 32 * 32 / 512
    sequence = small.sequence(Problem("gemm", {"M": 32, "K": 32, "N": 64}))
    assert sequence.argument_bytes == [a_bytes, b_bytes, c_bytes]


LEAST = {"kind": "elementwise", "function": "add", "type": "int8", "tile": 64, "array": {"rows": 1, "columns": 1}}


@pytest.mark.parametrize(
    ("length", "padding"), [(64, "none"), (65, "A, B, Y staged"), (63, "A, B, Y staged"), (68, "none")]
)
def test_padding_names_the_operands_that_are_staged(length: int, padding: str):
    one = plan(spec_from(LEAST, "one"), device_named("strix_halo"))
    found = one.sequence(Problem("elementwise", {"length": length}))
    assert (one.padding(found), one.note(found)) == (padding, f"one for length = {length}")
    assert (one.summary, repr(one)) == ("one on strix_halo", "<Plan one on strix_halo>")


@pytest.mark.parametrize("wait", ["column", "wide"])
def test_a_manifest_says_what_was_planned(wait: str):
    """Problems that are equal are listed once; of files those that were made, and the two that always are."""
    content = spec_content(16, 16, 32, columns=4, sequence={"wait": wait}) | {
        "problems": [{"M": 1, "K": 2, "N": 3, "name": "x"}, {"M": 1, "K": 2, "N": 3, "name": "again"}]
    }
    small = plan(spec_from(content, "small"), device_named("hawk_point"))
    found = manifest(small, small.spec.problems, {"elf": "0" * 64})
    assert found["problems"] == [{"name": "x", "sequence": "gemm_1x2x3", "sizes": {"M": 1, "K": 2, "N": 3}}]
    assert {role: file["sha256"] for role, file in found["files"].items()} == {
        "mlir": "", "host_kernels": "", "elf": "0" * 64,
    }  # fmt: skip
    assert (found["device"], found["mlir_device"], found["sequence"]["wide"]) == ("hawk_point", "npu1", wait == "wide")
    assert [(x["name"], x["dtype"], x["layout"]) for x in found["arguments"]] == [
        ("A", "int8", "row-major"), ("B", "int2", "packed tile by tile, n-tile by n-tile"), ("C", "int32", "row-major"),
    ]  # fmt: skip
    assert found["kernels"] == ["mm_i8_i2_i32", "zero_i32", "unscale_i32"]
    assert plan_of(Manifest.model_validate(found)).device is small.device


def test_what_an_operators_author_mistakes_is_said_when_it_is_planned_or_compared(monkeypatch):
    spec, device = load_spec(ROOT / "designs" / "add_i8.toml"), device_named("strix_halo")
    planned = plan(spec, device)
    monkeypatch.setattr(type(planned), "reference", lambda self, inputs: {"Z": Expected(np.zeros(1))})
    with pytest.raises(SpecError, match="add_i8: its reference gives Z; there is Y"):
        planned.expected({})
    operator = replace(OPERATORS[spec.kind], axes=("M",))
    monkeypatch.setattr(bdforge.operators, "OPERATORS", {spec.kind: operator})
    with pytest.raises(SpecError, match="has the sizes M, its sequence program the sizes length; name the same"):
        plan(spec, device)
