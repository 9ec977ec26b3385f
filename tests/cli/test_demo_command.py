"""`bdforge demo` on one core; on all of them, from a wheel without a compiler: tests/build/test_wheel.py."""

import re
from dataclasses import replace

import pytest

from bdforge.cli import demo
from bdforge.operators import load_spec
from bdforge.operators.gemm import GemmProblem, GemmSpec
from bdforge.runtime import ElementMismatch

LINES = ("design", "checks", "programs", "emulated", "silicon")


def one_core(path) -> GemmSpec:
    spec = load_spec(path)
    assert isinstance(spec, GemmSpec)
    return replace(spec, rows=1, columns=1, tile=replace(spec.tile, m=16, n=32))


@pytest.fixture
def small(monkeypatch):
    monkeypatch.setattr(demo, "load_spec", one_core)
    monkeypatch.setattr(demo, "LAYER", GemmProblem(20, 256, 40))


@pytest.mark.daily("False")
@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("compiler", [True, False])
def test_the_demo_tells_each_step_and_where_to_go(run, monkeypatch, compiler: bool):
    if not compiler:
        monkeypatch.setattr(demo, "library", lambda: None)
        monkeypatch.setattr(demo, "SMALL", GemmProblem(16, 64, 32))
    code, out, err = run("demo")
    assert (code, err) == (0, "")
    title, *told = out.splitlines()
    assert title.endswith(
        ", 20x256x40, for strix_halo: no NPU needed" if compiler else ", 16x64x32, for strix_halo: no NPU needed"
    )
    assert tuple(line.split()[0] for line in told[: len(LINES)]) == LINES
    assert f"all {800 if compiler else 512} elements equal numpy's" in out
    assert re.search(r"20x256x40: \d+ us, .* \(modelled\)", out)
    assert max(map(len, out.splitlines())) <= 80
    assert len(re.findall(r"^  bdforge \w+ ", out, re.MULTILINE)) == 3
    assert "\x1b" not in out


@pytest.mark.usefixtures("small")
def test_a_wrong_element_is_one_sentence(run, monkeypatch):
    monkeypatch.setattr(demo, "first_mismatch", lambda *_, name: ElementMismatch(name, (1, 2), 3, 4, 1))
    code, _, err = run("demo")
    assert code == 1
    assert err == "bdforge: gemm_i8_i2_bitnet: C[1, 2] is 3, expected 4; please report it\n"


@pytest.mark.usefixtures("small")
def test_a_kernel_without_machine_code_is_one_sentence(run, monkeypatch):
    monkeypatch.setattr(demo, "cpp_only", lambda *_: {"mm": "in C++ alone"})
    code, _, err = run("demo", "--device", "phoenix")
    assert code == 2
    assert err == "bdforge: bdforge has no machine code of mm for phoenix (in C++ alone); choose another --device\n"
