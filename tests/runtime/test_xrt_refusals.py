"""What `bdforge.load` on the NPU refuses, by one sentence each: machines, devices, manifests and arrays."""

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_pyxrt import Kernel, Npu

import bdforge
from bdforge.design.sequences import ProgramError
from bdforge.devices import DEVICES
from bdforge.runtime import BuildError, OperandError
from bdforge.runtime.npu import binding
from bdforge.runtime.xrt import NAME_PARTS, NpuError, _check_array, run_words
from support.gemm_problems import operands

ROOT = Path(__file__).resolve().parents[2]


def without_a_driver(monkeypatch, folder: Path) -> None:
    """This machine becomes one that has nothing."""
    monkeypatch.setattr("bdforge.runtime.npu.ROOT", folder / "bare")


def test_errors_of_xrt_say_what_was_being_done_and_what_is_missing_first(xrt_design, pyxrt, monkeypatch, tmp_path):
    def refuse(index: int) -> None:
        raise RuntimeError(" No such device with index '0'")

    without_a_driver(monkeypatch, tmp_path)
    monkeypatch.setattr(pyxrt, "device", refuse)
    assert "small.xclbin: kernel driver amdxdna: not loaded; Linux 6.14" in (fault := refusal(NpuError, xrt_design))
    assert "(XRT: No such device with index '0'); bdforge doctor" in fault
    monkeypatch.setattr("bdforge.runtime.xrt.first_missing", lambda: "")
    with pytest.raises(NpuError, match=r"loading .*small.xclbin: No such device with index '0'; bdforge doctor"):
        bdforge.load(xrt_design, device="xrt")


def refusal(kind: type[Exception], folder: Path) -> str:
    """What loading on the NPU says; nothing was handed to the driver and nothing written."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(kind) as caught:
        bdforge.load(folder, device="xrt")
    assert "\n" not in str(caught.value)
    assert Npu.registered == []
    assert sorted(folder.rglob("*")) == before
    return str(caught.value)


def test_without_pyxrt_one_sentence_says_so(xrt_design, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyxrt", None)
    monkeypatch.setattr("bdforge.runtime.npu.machine", lambda root: [binding()])
    fault = refusal(NpuError, xrt_design)
    assert fault.startswith("device=xrt cannot be used: pyxrt: this Python cannot import it; install XRT's Python")
    assert "bdforge doctor" in fault


def test_without_a_driver_that_is_said_before_pyxrt(xrt_design, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyxrt", None)
    without_a_driver(monkeypatch, tmp_path)
    assert refusal(NpuError, xrt_design).startswith("device=xrt cannot be used: kernel driver amdxdna: not loaded; ")


@pytest.mark.parametrize("name", ["NPU Phoenix", ""])
def test_another_device_is_refused_by_name(xrt_design, pyxrt, monkeypatch, name):
    monkeypatch.setattr(Npu, "name", name)
    assert f'design small is for device strix_halo (npu2_2col), this one is "{name}"' in refusal(BuildError, xrt_design)


def test_devices_of_one_array_take_the_same_design(xrt_design, pyxrt, monkeypatch):
    monkeypatch.setattr(Npu, "name", "NPU Krackan 1")
    bdforge.load(xrt_design, device="xrt")
    assert Npu.registered == [str(xrt_design / "small.xclbin")]


@pytest.mark.parametrize(
    ("array", "name", "takes"),
    [
        ("npu1_2col", "NPU Hawk Point", True), ("npu1", "NPU Phoenix", True), ("npu1", "RyzenAI-npu1", True),
        ("npu1", "NPU Strix", False), ("npu2", "NPU Hawk Point", False), ("npu2_1col", "RyzenAI-npu4", True),
        ("npu2", "RyzenAI-npu6", True),
    ],
)  # fmt: skip
def test_an_array_and_its_parts_are_those_of_a_devices_name(array: str, name: str, takes: bool):
    if takes:
        _check_array(array, "mine", name)
        return
    with pytest.raises(BuildError, match=f'mine, this one is "{name}"'):
        _check_array(array, "mine", name)


def test_both_hosts_know_the_same_devices():
    source = (ROOT / "host/src/device.cpp").read_text()
    assert NAME_PARTS.keys() == {device.mlir for device in DEVICES.values()}
    for array, parts in NAME_PARTS.items():
        for part in parts:
            assert f'{{"{part}", "{array}"}}' in " ".join(source.split())


def changed(folder: Path, **members: Any) -> Path:
    """The design with other members in its manifest."""
    file = folder / "manifest.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | members))
    return folder


@pytest.mark.parametrize(
    ("members", "fault"),
    [
        ({"schema": 1}, "its schema is not 3"),
        ({"kind": 3}, "kind: input should be a valid string"),
        ({"spec_hash": "0123456789abcdef"}, "the manifest was built from another spec (0123456789abcdef)"),
        ({"device": "strix_hola"}, "strix_hola"),
        (
            {"problems": [{"name": "", "sequence": "s", "sizes": {"M": 0}}]},
            "problems.0.sizes.M: input should be greater",
        ),
        ({"files": {}}, "files.mlir is missing"),
        ({"files": {"mlir": "small.mlir"}}, "files.mlir: "),
        ({"arguments": [{"name": "A"}]}, "arguments.0.dtype is missing; build the design again"),
    ],
)
def test_a_manifest_that_does_not_fit_is_refused_by_the_member(xrt_design, pyxrt, members, fault):
    assert fault in refusal(BuildError, changed(xrt_design, **members)).replace("Input", "input")


def test_sizes_that_cannot_be_are_refused_before_the_npu_sees_them(xrt_design, pyxrt, monkeypatch):
    gemm = bdforge.load(xrt_design, device="xrt")
    monkeypatch.setattr(Kernel, "__call__", lambda *_: pytest.fail("the NPU was asked"))
    _, weights = operands(32, 16, 64)
    for empty in (np.zeros((0, 16), np.int8), np.zeros((4, 0), np.int8)):
        with pytest.raises(OperandError, match="operand A must be an int8 matrix"):
            gemm(empty, weights)
    deep = np.broadcast_to(np.int8(0), (1, (1 << 20) + 1))
    with pytest.raises(ProgramError, match=r"small: .*: K = 1048577 is outside 1 to 1048576"):
        gemm.packed(np.zeros(1, np.uint8), K=deep.shape[1], N=64)


def test_a_design_in_mlir_for_another_npu_is_refused(pyxrt, monkeypatch):
    monkeypatch.setattr(Npu, "name", "NPU Phoenix")
    with pytest.raises(BuildError, match='the design is for npu2_1col, this one is "NPU Phoenix"'):
        run_words(Path("built.xclbin"), "npu2_1col", "pass_through.mlir", np.zeros(4, np.uint32), [])
    assert Npu.registered == []
