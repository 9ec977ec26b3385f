"""llm.c's linear layers on the array, and the example that trains a small GPT-2 with them."""

import re
from pathlib import Path

import numpy as np
import pytest
from library_builds import ROOT, c_program, run, small_design, unit_cases

from bdforge.devices import device_named
from bdforge.operators.gemm import plan_gemm, spec_from
from support.built_designs import spec_content

LETTERS = {"r": "row", "c": "column", "p": "packed"}
STEPS = 20
BOUND = 2.0**-8
"""Of a loss, relative: half a unit of bf16's last place, which is how far each factor of a product may be off."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Designs of bf16 by their layouts of A, B, C, and one of C in bf16; `small` is none of bf16."""
    folder = tmp_path_factory.mktemp("designs")
    small_design(folder / "small")
    for name in ("rcr", "rrr", "crr", "cpc_bf16"):
        layouts = " ".join(LETTERS[letter] for letter in name[:3])
        types = ("bf16", "bf16", "bf16" if name.endswith("bf16") else "f32", "f32")
        content = spec_content(16, 16, 16, types=types, layouts=layouts, k_mt=32)
        small_design(folder / name, plan_gemm(spec_from(content, name), device_named("phoenix")))
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("group", ["copies", "floats", "llmc"])
def test_floats_are_multiplied_on_the_array(data: Path, group: str):
    done = run(unit_cases(), data, group)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def told(name: str, sizes: str) -> str:
    return f"bdforge: {name} {sizes} on the processor: "


@pytest.mark.slow
def test_the_processor_says_once_what_it_computes_and_why(data: Path):
    done = run(unit_cases(), data, "llmc_fallback")
    assert done.returncode == 0, done.stdout + done.stderr
    why = "no design was given; call bdforge_llmc_start with one"
    assert done.stderr.splitlines() == [
        told("matmul_forward", "21 x 10 x 20") + why,
        told("matmul_backward, dinp", "21 x 20 x 10") + why,
        told("matmul_backward, dweight", "20 x 21 x 10") + why,
        "bdforge: C is 0; nothing was computed",
    ]


@pytest.mark.slow
def test_a_device_that_fails_is_named_and_left_alone(data: Path):
    done = run(unit_cases(), data, "llmc_failure")
    assert done.returncode == 0, done.stdout + done.stderr
    first, *rest = done.stderr.splitlines()
    assert first == told("matmul_forward", "21 x 10 x 20") + "the device ended the run with ERROR"
    assert [line.partition(": ")[2].partition(" on the processor: ")[0] for line in rest] == [
        "matmul_backward, dinp 21 x 20 x 10", "matmul_backward, dweight 20 x 21 x 10", "matmul_forward 21 x 10 x 20",
    ]  # fmt: skip
    assert all(line.endswith(": the device failed before: the device ended the run with ERROR") for line in rest)


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example's program, linked as llm.c would be."""
    return c_program(tmp_path_factory.mktemp("gpt2"), *sorted((ROOT / "examples/gpt2").glob("*.c")))


def losses(text: str) -> np.ndarray:
    return np.array([float(loss) for loss in re.findall(r"^step \d+: loss (\S+)$", text, re.MULTILINE)])


@pytest.mark.slow  # daily its products and gradients are held
def test_a_small_gpt2_learns_on_the_array_as_it_does_on_the_processor(example: Path, data: Path):
    processor = run(example, ROOT / "LICENSE")
    array = run(example, ROOT / "LICENSE", data / "rcr" / "rcr.xclbin", "-d", "emulated")
    assert (processor.returncode, array.returncode, array.stderr) == (0, 0, "")
    assert "each step: 0 products on the device in 0 submissions, 27 on the processor" in processor.stdout
    assert array.stdout.splitlines()[-1] == (
        "each step: 27 products on the device in 18 submissions, 0 on the processor; 18 weights copied"
    )
    wanted, found = losses(processor.stdout), losses(array.stdout)
    assert wanted.shape == found.shape == (STEPS,)
    assert wanted[0] == pytest.approx(np.log(128), rel=0.02)  # knows nothing yet
    assert wanted[-5:].mean() < wanted[0] - 0.6
    assert 0 < np.abs(found / wanted - 1).max() < BOUND


def test_the_example_names_what_it_cannot_use(example: Path, data: Path, tmp_path: Path):
    for words, said in (
        ((), "train: usage: "),
        ((tmp_path / "no",), "cannot be read"),
        ((ROOT / "LICENSE", tmp_path / "no.xclbin", "-d", "emulated"), "manifest.json"),
        ((ROOT / "LICENSE", data / "small" / "small.xclbin", "-d", "emulated"), "computes int8 x int2 -> int32"),
    ):
        done = run(example, *words)
        assert done.returncode == 2
        assert said in done.stderr
