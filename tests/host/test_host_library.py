"""The C++ library: its own cases, its C API, and what it shares with Python."""

import json
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
from library_builds import (
    ROOT,
    built,
    edit_manifest,
    replace_kernels,
    run,
    small_design,
    small_plan,
    unit_cases,
    write_manifest,
)

from bdforge.devices import device_named
from bdforge.operators.gemm import plan_gemm, sequence, spec_from
from bdforge.runtime.npu import HEAP_BYTES, machine
from support.built_designs import spec_content

OTHERS: dict[str, dict] = {"columns": {"layouts": "row packed column"}, "blocks": {"types": ("bfp16",) * 3}}
"""Designs of which cases need the manifests alone."""
RESIZED = {"a_of_1_row": (0, 0), "c_of_1_row": (2, 0), "c_of_1_column": (2, 1)}
"""Operand and axis whose size is 1, whatever is asked for."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("designs")
    image = small_design(folder / "small")
    for name in ("changed", "endless"):
        shutil.copytree(image.parent, folder / name)
    replace_kernels(folder / "endless", small_plan(), "for (;;) pause();")
    for name, (operand, axis) in RESIZED.items():
        path = shutil.copytree(image.parent, folder / name) / "manifest.json"
        sequence_facts = json.loads(path.read_text())["sequence"]
        program = sequence_facts["program"]
        program["operands"][operand]["axes"][axis]["size"] = len(program["values"])
        program["values"].append(1)
        edit_manifest(path.parent, sequence=sequence_facts)
    for name, more in OTHERS.items():
        spec = spec_from(spec_content(16, 32, 32, **more), name)
        write_manifest(folder / name, plan_gemm(spec, device_named("strix_halo")))
    (folder / "words.bin").write_bytes(np.asarray(sequence(small_plan(), 64, 64, 128).words(), "<u4").tobytes())
    return folder


GROUPS = (
    "json", "files", "limits", "manifest", "design", "gemm", "job", "memory", "machine", "emulated", "wire",
    "own_server", "xrt", "heap", "energy", "execution", "status", "blocks", "cli",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("group", GROUPS)
def test_the_librarys_cases_pass_under_sanitizers(data: Path, group: str):
    done = run(unit_cases(), data, group)
    assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


@pytest.mark.slow
def test_the_librarys_cases_pass_under_all_checks_of_undefined_behaviour(data: Path):
    program = ROOT / "build" / "test-host" / "undefined" / "host" / "tests" / "unit"
    built(program.parents[2], str(program), "xrt=none", "sanitize=undefined")
    for group in GROUPS:
        done = run(program, data, group)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout + done.stderr


def test_every_call_of_the_c_api_works_from_c(build: Path, data: Path):
    done = run(build / "tests" / "c_program", data / "small" / "small.xclbin", "emulated")
    assert (done.returncode, done.stderr) == (0, "")
    assert "every call works" in done.stdout


def test_no_call_of_the_c_api_mixes_threads(build: Path, data: Path):
    done = run(build / "tests" / "c_threads", data / "small" / "small.xclbin", "emulated")
    assert (done.returncode, done.stdout, done.stderr) == (0, "no thread got another's\n", "")


@pytest.mark.slow
def test_threads_that_share_handles_do_not_race(data: Path):
    folder = ROOT / "build" / "test-host" / "threads"
    built(folder, str(folder / "host" / "tests" / "c_threads"), "xrt=none", "sanitize=thread")
    done = run(folder / "host" / "tests" / "c_threads", data / "small" / "small.xclbin", "emulated")
    assert (done.returncode, done.stderr) == (0, "")


def test_the_library_and_the_doctor_give_the_same_advice(tmp_path: Path):
    source = (Path(__file__).parents[2] / "host/src/device.cpp").read_text()
    sentences = re.sub(r'"\s*"', "", source)  # literals of several lines
    found = {finding.name: finding.remedy for finding in machine(tmp_path)}
    for name in ("kernel driver amdxdna", "NPU device node", "access to the NPU"):
        assert found[name] in sentences
    assert f"rlim_t{{{HEAP_BYTES >> 20}}} << 20" in source
