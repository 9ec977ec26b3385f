"""`bdforge emulate --timing` and `bdforge run --timing`: tables, timelines, and what they refuse."""

import json
from pathlib import Path

import numpy as np
import pytest

from support.built_designs import build, spec_content
from support.timed_designs import to_cores

KERNEL = "def work(x):\n    pass\n"


@pytest.fixture
def design(tmp_path) -> list[str]:
    """A core that calls `work` on three pieces of 200 words."""
    (tmp_path / "cores.mlir").write_text(to_cores(["work"], 200, 3, 2))
    (tmp_path / "kernels.py").write_text(KERNEL)
    np.save(tmp_path / "a.npy", np.zeros(600, np.int32))
    return ["cores.mlir", "--arg", "a.npy", "--kernels", "kernels.py"]


def test_timing_prints_tables_and_writes_a_timeline(run, design):
    code, out, err = run("emulate", *design, "--timing", "--kernel-cycles", "work=5000", "--macs", "1000000",
                             "--timeline", "time.json", "--device", "strix_halo")  # fmt: skip
    assert (code, err) == (0, "wrote time.json\n")
    assert "cores.mlir: time (emulated)" in out
    assert "at 1.8 GHz" in out
    assert "TOPS" in out
    assert "waits for lock core_full" in out
    events = json.loads(Path("time.json").read_text())["traceEvents"]
    assert [e["dur"] for e in events if e["name"] == "work"] == [pytest.approx((5000 + 25) / 1800)] * 3


def test_a_timeline_alone_times_the_run(run, design):
    code, out, err = run("emulate", *design, "--timeline", "time.json")
    assert code == 0
    assert "warning: no cost is known for work" in err
    assert "(emulated)" in out


def test_without_timing_nothing_is_said_of_time(run, design):
    _, out, _ = run("emulate", *design)
    assert "GHz" not in out


@pytest.fixture(scope="module")
def built(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("built")
    build(folder, spec_content(16, 32, 32))
    return folder


@pytest.mark.slow
def test_run_times_a_built_design_with_costs_of_its_kernels(run, built):
    arguments = "run", str(built), "--shape", "32x64x64", "--timing"
    code, out, err = run(*arguments, "--timeline", "gemm.json")
    assert (code, err) == (0, "")
    assert "exact" in out
    assert "32x64x64: time (emulated)" in out
    assert "no cost is known" not in out
    names = {e["name"] for e in json.loads(Path("gemm.json").read_text())["traceEvents"]}
    assert {"mm_i8_i2_i32", "zero_i32", "Patch"} <= names
    slower = run(*arguments, "--kernel", "fitted")[1]
    assert slower != out
