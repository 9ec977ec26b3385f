"""`bdforge run` to a spec in a built design's place; `bdforge check-run`: any operator against its reference."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from bdforge.cli.commands import app
from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import Plan, Problem, manifest, plan, spec_from
from support.built_designs import ROOT, spec_content
from support.processes import ends

SPEC = ROOT / "designs/gemm_i8_i2_bitnet.toml"


def test_a_spec_that_was_not_built_is_told_how(run):
    code, out, err = run("run", str(SPEC))
    assert (code, out) == (2, "")
    assert "'scons device=strix_halo design=gemm_i8_i2_bitnet host'" in err
    assert err.endswith("then: bdforge run build/strix_halo/gemm_i8_i2_bitnet\n")


@pytest.mark.parametrize("devices", [["strix"], ["krackan", "strix"]])
def test_a_spec_that_was_built_is_told_where(run, devices):
    for device in devices:
        Path(f"build/{device}/gemm_i8_i2_bitnet").mkdir(parents=True)
        Path(f"build/{device}/gemm_i8_i2_bitnet/manifest.json").write_text("{}")
    folders = " or ".join(f"build/{device}/gemm_i8_i2_bitnet" for device in devices)
    assert run("run", str(SPEC))[2].endswith(f"run what was built of it: bdforge run {folders}\n")


def test_a_device_that_the_design_is_for_is_named(run):
    spec = ROOT / "designs/gemm_bf16_bf16_bf16_96x56x96.toml"
    assert "device=phoenix" in run("run", str(spec))[2]


INT8, BF16 = ("int8", "int8", "int32"), ("bf16", "bf16", "f32")
DESIGNS: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "sums": (spec_content(16, 16, 16, types=INT8), {"M": 5, "K": 20, "N": 9}),
    "shifted": (
        spec_content(16, 16, 16, types=("int8", "int8", "int8", "int32"), epilogue={"shift": 5, "relu": True}),
        {"M": 5, "K": 20, "N": 9},
    ),
    "scaled": (
        spec_content(16, 32, 16, types=("int8", "int8", "bf16", "int32"), epilogue={"scale": True, "bias": True}),
        {"M": 17, "K": 40, "N": 33},
    ),
    "floats": (spec_content(16, 16, 16, types=BF16, layouts="row column row"), {"M": 5, "K": 20, "N": 10}),
}


def planned(name: str) -> tuple[Plan, Problem]:
    content, sizes = DESIGNS[name]
    made = plan(spec_from(content, name), device_named("strix_halo"))
    return made, Problem("gemm", sizes)


OTHERS: list[tuple[dict[str, Any], dict[str, int]]] = [
    ({"kind": "elementwise", "function": "mul", "type": "bf16", "tile": 32}, {"length": 70}),
    ({"kind": "elementwise", "function": "add", "type": "int8", "tile": 64}, {"length": 70}),
    (
        {"kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"}, "tile": {"k": 64, "n": 32}},
        {"M": 1, "K": 70, "N": 40},
    ),
]


def written(folder: Path, made: Plan, arrays: dict[str, np.ndarray]) -> list[str]:
    """The words of a check of these arrays; bf16 as 16-bit words, since files have no other."""
    facts = manifest(made, [])
    (folder / "manifest.json").write_text(json.dumps(facts))
    for operand in made.program.operands:
        if operand.name in arrays:
            array = np.ascontiguousarray(arrays[operand.name])
            np.save(folder / operand.name, array.view(np.uint16) if operand.type == "bf16" else array)
    return ["check-run", str(folder / "manifest.json"), str(folder)]


def output_of(made: Plan, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What a faultless array writes: the reference in the output's type."""
    types = {operand.name: TYPES[operand.type].dtype for operand in made.program.operands}
    return {name: found.values.astype(types[name]) for name, found in made.reference(inputs).items()}


def check(folder: Path, made: Plan, problem: Problem) -> None:
    inputs = made.random(problem, 3)
    outputs = output_of(made, inputs)
    words = written(folder, made, {**inputs, **outputs})
    ends(CliRunner().invoke(app, words))
    ((name, found),) = outputs.items()
    wrong = found.copy()
    place = tuple(size - 1 for size in wrong.shape)
    wrong[place] = wrong[place] + 64 if wrong[place] < 60 else wrong[place] - 64
    done = CliRunner().invoke(app, written(folder, made, {**inputs, name: wrong}))
    assert done.exit_code == 1
    assert done.output.startswith(f"{name}[{', '.join(map(str, place))}] is {wrong[place].item()}, expected ")


@pytest.mark.parametrize("name", DESIGNS)
def test_a_gemms_outputs_are_compared_element_by_element(tmp_path: Path, name: str):
    check(tmp_path, *planned(name))


@pytest.mark.daily("content1-sizes1")
@pytest.mark.parametrize(("content", "sizes"), OTHERS)
def test_outputs_of_other_operators_are_compared_too(tmp_path: Path, content: dict[str, Any], sizes: dict[str, int]):
    check(tmp_path, plan(spec_from(content, "other"), device_named("strix_halo")), Problem(content["kind"], sizes))


def test_a_missing_output_and_another_shape_are_told(tmp_path: Path):
    made, problem = planned("sums")
    inputs = made.random(problem, 3)
    done = CliRunner().invoke(app, written(tmp_path, made, inputs))
    assert (done.exit_code, done.output) == (1, "C is missing\n")
    done = CliRunner().invoke(app, written(tmp_path, made, {**inputs, "C": np.zeros((5, 8), np.int32)}))
    assert (done.exit_code, done.output) == (1, "C has shape (5, 8), expected (5, 9)\n")
