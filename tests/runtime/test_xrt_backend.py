"""The XRT backend of `bdforge.load` against a made-up pyxrt, and every way in which loading and running can fail."""

import hashlib
import json
import re
import shutil
import sys
import types
import weakref
from enum import Enum
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import emulate
from bdforge.common.messages import warn_once
from bdforge.design.sequences import ProgramError
from bdforge.devices.timing import timing_of
from bdforge.operators import manifest, render
from bdforge.operators.gemm import GemmProblem
from bdforge.runtime import BuildError, OperandError, UseError
from bdforge.runtime.npu import binding
from bdforge.runtime.xrt import NAME_PARTS, NpuError, _check_array, difference, run_words, warn_of_late
from support.differences import same
from support.gemm_problems import operands, reference

ROOT = Path(__file__).resolve().parents[2]


class State(Enum):
    ERT_CMD_STATE_COMPLETED = 4
    ERT_CMD_STATE_ERROR = 5
    ERT_CMD_STATE_TIMEOUT = 8


class Buffer:
    """Host and device each see what was synchronised."""

    host_only, cacheable = "host only", "cacheable"
    made: ClassVar[list[int]] = []

    def __init__(self, device: Any, size: int, flags: str, group: int):
        self.memory, self.flags, self.group, self.device = bytearray(size), flags, group, bytearray(size)
        self.made.append(size)

    def map(self) -> memoryview:
        return memoryview(self.memory)

    def sync(self, direction: str) -> None:
        host, device = memoryview(self.memory), memoryview(self.device)
        to, source = (device, host) if direction == "to device" else (host, device)
        to[:] = source


class Kernel:
    """Runs the stream it is given on the emulated array, as the NPU would."""

    design: ClassVar[Any] = None
    state: ClassVar[State] = State.ERT_CMD_STATE_COMPLETED

    def __init__(self, context: Any, name: str):
        assert name == "MLIR_AIE"

    def group_id(self, argument: int) -> int:
        return 65536 + argument

    def __call__(self, opcode: int, stream: Buffer, words: int, *buffers: Buffer) -> Any:
        assert opcode == 3
        assert stream.flags == Buffer.cacheable
        assert 4 * words == len(stream.device)
        assert [buffer.group for buffer in buffers] == [65539, 65540, 65541]
        arrays = [np.frombuffer(buffer.device, np.uint8) for buffer in buffers]
        instructions = np.frombuffer(stream.device, np.uint32)
        if self.state is State.ERT_CMD_STATE_COMPLETED:
            emulate(render(self.design.plan, []), arrays, self.design.kernels, instructions=instructions)
        return types.SimpleNamespace(wait=lambda milliseconds: self.state)


class Npu:
    """A device, by its name; holds what was registered."""

    name: ClassVar[str] = "NPU Strix Halo"
    registered: ClassVar[list[str]] = []

    def __init__(self, index: int):
        assert index == 0

    def get_info(self, key: str) -> str:
        assert key == "name"
        return self.name

    def register_xclbin(self, xclbin: Any) -> None:
        self.registered.append(xclbin.path)


def image(path: str) -> Any:
    return types.SimpleNamespace(path=path, get_uuid=lambda: "uuid")


@pytest.fixture
def design(small, tmp_path) -> Path:
    """Folder of the small design with an xclbin, as a whole build leaves it."""
    folder = tmp_path / "small"
    shutil.copytree(small.folder, folder)
    (folder / "small.xclbin").write_bytes(b"xclbin2")
    files = {"mlir": small.mlir_file, "host_kernels": small.kernel_library, "xclbin": folder / "small.xclbin"}
    hashes = {role: hashlib.sha256(path.read_bytes()).hexdigest() for role, path in files.items()}
    (folder / "manifest.json").write_text(json.dumps(manifest(small.plan, small.plan.spec.problems, hashes)))
    return folder


@pytest.fixture
def pyxrt(small, monkeypatch):
    module = types.ModuleType("pyxrt")
    directions = types.SimpleNamespace(XCL_BO_SYNC_BO_TO_DEVICE="to device", XCL_BO_SYNC_BO_FROM_DEVICE="from device")
    vars(module).update(
        device=Npu, xclbin=image, hw_context=lambda device, uuid: None, kernel=Kernel, bo=Buffer,
        ert_cmd_state=State, xclBOSyncDirection=directions, xrt_info_device=types.SimpleNamespace(name="name"),
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pyxrt", module)
    monkeypatch.setattr(Kernel, "design", small)
    monkeypatch.setattr(Npu, "registered", [])
    return module


def test_the_npu_gets_the_same_words_and_gives_the_same_answer(design, pyxrt):
    gemm = bdforge.load(design, device="xrt")
    a, weights = operands(40, 52, 70)
    same(gemm(a, weights), reference(a, weights))


def test_packed_weights_and_buffers_stay_with_the_npu(design, pyxrt, monkeypatch):
    monkeypatch.setattr(Buffer, "made", [])
    gemm = bdforge.load(design, device="xrt")
    a, weights = operands(40, 52, 70)
    packed = gemm.pack(weights)
    assert Buffer.made == [packed.data.nbytes]
    same(gemm.unpack(packed)["B"], weights)
    for _ in range(3):
        same(gemm(a, packed), reference(a, weights))
    assert len(Buffer.made) == 4  # a stream, A and C besides
    same(gemm(-a[:9], packed), reference(-a[:9], weights))
    assert len(Buffer.made) == 7
    same(gemm(a, packed), reference(a, weights))
    assert len(Buffer.made) == 7
    del packed
    kept = gemm._runs.backend._loaded._resident  # type: ignore[attr-defined]
    assert not kept


def test_a_prepared_problem_lies_where_the_npu_reads_and_writes(design, pyxrt, monkeypatch):
    monkeypatch.setattr(Buffer, "made", [])
    gemm = bdforge.load(design, device="xrt")
    a, weights = operands(40, 52, 70)
    packed, problem = gemm.pack(weights), gemm.prepared(M=40, K=52, N=70)
    made = len(Buffer.made)
    c = problem.arrays["C"]
    for rows in (a, -a, a // 3):
        problem.arrays["A"][...] = rows
        assert problem(B=packed) is c
        same(c, reference(rows, weights))
    assert len(Buffer.made) == made + 1  # the stream


def test_contractions_of_equal_sizes_have_streams_of_their_own(design, pyxrt):
    loaded = bdforge.load(design, device="xrt")
    x, y = operands(64, 48, 64)
    for staged in ("B", "AB", "B"):
        got = bdforge.einsum("ab,bc->ac", x, y, on=loaded, staged=staged)
        same(got, reference(x, y))


def test_streams_of_the_sizes_used_last_are_kept(design, pyxrt, monkeypatch):
    monkeypatch.setattr("bdforge.runtime.xrt.STREAMS_MAX", 2)
    gemm = bdforge.load(design, device="xrt")
    for rows in (40, 50, 40, 60):
        a, weights = operands(rows, 52, 70)
        same(gemm(a, weights), reference(a, weights))
    assert [sizes[0] for _, sizes in gemm._runs.backend._streams] == [40, 60]  # type: ignore[attr-defined]


def test_a_closed_npu_runs_no_more_and_what_it_gave_stays(design, pyxrt):
    a, weights = operands(40, 52, 70)
    with bdforge.load(design, device="xrt") as gemm:
        problem, packed = gemm.prepared(M=40, K=52, N=70), gemm.pack(weights)
        problem.arrays["A"][...] = a
        found = problem.submit(B=packed).wait()
        context = weakref.ref(gemm._runs.backend._loaded)  # type: ignore[attr-defined]
    assert context() is None
    same(found, reference(a, weights))
    with pytest.raises(UseError, match="design small was closed"):
        gemm(a, weights)
    gemm.close()


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State.ERT_CMD_STATE_TIMEOUT, "32x16x64 did not end within 10 s; see dmesg"),
        (State.ERT_CMD_STATE_ERROR, "32x16x64 ended as State.ERT_CMD_STATE_ERROR"),
    ],
)
def test_a_run_that_fails_is_reported_and_kept_alive(design, pyxrt, monkeypatch, state, message):
    abandoned: list[Any] = []
    monkeypatch.setattr("bdforge.runtime.xrt._ABANDONED", abandoned)
    gemm = bdforge.load(design, device="xrt")
    gemm(*operands(32, 16, 64))
    monkeypatch.setattr(Kernel, "state", state)
    with pytest.raises(NpuError, match=message):
        gemm(*operands(32, 16, 64))
    ((_, _, buffers, loaded),) = abandoned
    assert [buffer.group for buffer in buffers] == [65539, 65540, 65541]
    assert not loaded._spare, "the NPU may still write to what the next run would take"


def test_a_run_waits_as_long_as_it_was_told_and_reads_only_its_output_back(design, pyxrt, monkeypatch):
    waited, read = [], []

    def called(kernel: Kernel, *words: Any) -> Any:
        wait = real_call(kernel, *words).wait
        return types.SimpleNamespace(wait=lambda milliseconds: waited.append(milliseconds) or wait(milliseconds))

    def synchronised(buffer: Buffer, direction: str) -> None:
        read.extend([buffer.group] if direction == "from device" else [])
        real_sync(buffer, direction)

    real_call, real_sync = Kernel.__call__, Buffer.sync
    monkeypatch.setattr(Kernel, "__call__", called)
    monkeypatch.setattr(Buffer, "sync", synchronised)
    gemm = bdforge.load(design, device="xrt")
    gemm.timeout_seconds = 2.5
    gemm(*operands(32, 16, 64))
    assert (waited, read) == ([2500], [65541])


def test_the_buffers_that_were_not_used_for_longest_go_first(design, pyxrt, monkeypatch):
    """Of A, B and C, B has one size; five are kept, so those of 50 rows make room for those of 60."""
    monkeypatch.setattr("bdforge.runtime.xrt.SPARE_MAX", 5)
    gemm = bdforge.load(design, device="xrt")
    for rows in (40, 50, 40, 60):
        gemm(*operands(rows, 52, 70))
    monkeypatch.setattr(Buffer, "made", [])
    gemm(*operands(40, 52, 70))
    assert Buffer.made == []


def test_errors_of_xrt_say_what_was_being_done(design, pyxrt, monkeypatch):
    def refuse(index: int) -> None:
        raise RuntimeError(" No such device with index '0'")

    monkeypatch.setattr("bdforge.runtime.xrt.first_missing", lambda: "")
    monkeypatch.setattr(pyxrt, "device", refuse)
    with pytest.raises(NpuError, match=r"loading .*small.xclbin: No such device with index '0'; bdforge doctor"):
        bdforge.load(design, device="xrt")


def without_a_driver(monkeypatch, folder: Path) -> None:
    """This machine becomes one that has nothing."""
    monkeypatch.setattr("bdforge.runtime.npu.ROOT", folder / "bare")


def test_errors_of_xrt_begin_with_what_is_missing_first(design, pyxrt, monkeypatch, tmp_path):
    def refuse(index: int) -> None:
        raise RuntimeError("No such device with index '0'")

    without_a_driver(monkeypatch, tmp_path)
    monkeypatch.setattr(pyxrt, "device", refuse)
    assert "small.xclbin: kernel driver amdxdna: not loaded; Linux 6.14" in (fault := refusal(NpuError, design))
    assert "(XRT: No such device with index '0'); bdforge doctor" in fault


def refusal(kind: type[Exception], folder: Path) -> str:
    """What loading on the NPU says; nothing was handed to the driver and nothing written."""
    before = sorted(folder.rglob("*"))
    with pytest.raises(kind) as caught:
        bdforge.load(folder, device="xrt")
    assert "\n" not in str(caught.value)
    assert Npu.registered == []
    assert sorted(folder.rglob("*")) == before
    return str(caught.value)


def test_without_pyxrt_one_sentence_says_so(design, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyxrt", None)
    monkeypatch.setattr("bdforge.runtime.npu.machine", lambda root: [binding()])
    fault = refusal(NpuError, design)
    assert fault.startswith("device=xrt cannot be used: pyxrt: this Python cannot import it; install XRT's Python")
    assert "bdforge doctor" in fault


def test_without_a_driver_that_is_said_before_pyxrt(design, monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "pyxrt", None)
    without_a_driver(monkeypatch, tmp_path)
    assert refusal(NpuError, design).startswith("device=xrt cannot be used: kernel driver amdxdna: not loaded; ")


@pytest.mark.parametrize("name", ["NPU Phoenix", ""])
def test_another_device_is_refused_by_name(design, pyxrt, monkeypatch, name):
    monkeypatch.setattr(Npu, "name", name)
    assert f'design small is for device strix_halo (npu2_2col), this one is "{name}"' in refusal(BuildError, design)


def test_devices_of_one_array_take_the_same_design(design, pyxrt, monkeypatch):
    monkeypatch.setattr(Npu, "name", "NPU Krackan 1")
    bdforge.load(design, device="xrt")
    assert Npu.registered == [str(design / "small.xclbin")]


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


def test_problems_that_differ_in_their_last_size_have_streams_of_their_own(design, pyxrt):
    gemm = bdforge.load(design, device="xrt")
    for sizes in ((32, 16, 64), (32, 16, 32), (32, 48, 32)):
        a, weights = operands(*sizes)
        same(gemm(a, weights), reference(a, weights), f"{sizes}")


def test_both_hosts_know_the_same_devices():
    source = (ROOT / "host/src/device.cpp").read_text()
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
def test_a_manifest_that_does_not_fit_is_refused_by_the_member(design, pyxrt, members, fault):
    assert fault in refusal(BuildError, changed(design, **members)).replace("Input", "input")


def test_sizes_that_cannot_be_are_refused_before_the_npu_sees_them(design, pyxrt, monkeypatch):
    gemm = bdforge.load(design, device="xrt")
    monkeypatch.setattr(Kernel, "__call__", lambda *_: pytest.fail("the NPU was asked"))
    _, weights = operands(32, 16, 64)
    for empty in (np.zeros((0, 16), np.int8), np.zeros((4, 0), np.int8)):
        with pytest.raises(OperandError, match="operand A must be an int8 matrix"):
            gemm(empty, weights)
    deep = np.broadcast_to(np.int8(0), (1, (1 << 20) + 1))
    with pytest.raises(ProgramError, match=r"small: .*: K = 1048577 is outside 1 to 1048576"):
        gemm.packed(np.zeros(1, np.uint8), K=deep.shape[1], N=64)


def test_weights_that_are_cut_short_are_refused(design, pyxrt, tmp_path):
    gemm = bdforge.load(design, device="xrt")
    a, weights = operands(32, 16, 64)
    gemm.pack(weights).data.tofile(tmp_path / "w.packed")
    data = np.fromfile(tmp_path / "w.packed", np.uint8)
    same(gemm(a, gemm.packed(data, K=16, N=64)), reference(a, weights))
    with pytest.raises(
        OperandError, match="packed B of K = 16, N = 64 takes 256 bytes, got 255; the file is truncated"
    ):
        gemm(a, gemm.packed(data[:-1], K=16, N=64))


class AnyKernel(Kernel):
    """Runs a stream on a design in MLIR, and adds `error` to what it writes last."""

    text: ClassVar[str] = ""
    error: ClassVar[int] = 0

    def __call__(self, opcode: int, stream: Buffer, words: int, *buffers: Buffer) -> Any:
        assert (opcode, 4 * words) == (3, len(stream.device))
        arrays = [np.frombuffer(buffer.device, np.int32) for buffer in buffers]
        emulate(self.text, arrays, instructions=np.frombuffer(stream.device, np.uint32))
        arrays[-1][7] += self.error
        return types.SimpleNamespace(wait=lambda milliseconds: self.state)


@pytest.mark.parametrize(("error", "code"), [(0, 0), (3, 1)])
def test_a_design_in_mlir_is_compared_with_the_npu(run, pyxrt, monkeypatch, error, code):
    design = ROOT / "examples" / "pass_through.mlir"
    monkeypatch.setattr(AnyKernel, "text", design.read_text())
    monkeypatch.setattr(AnyKernel, "error", error)
    monkeypatch.setattr(pyxrt, "kernel", AnyKernel)
    np.save("from.npy", np.arange(4096, dtype=np.int32))
    np.save("to.npy", np.zeros(4096, np.int32))
    found, out, err = run("emulate", str(design), "--arg", "from.npy", "--arg", "to.npy", "--xclbin", "built.xclbin")
    assert found == code
    assert Npu.registered == ["built.xclbin"]
    if code:
        wrong = "element 7 is 10 on the NPU and 7 emulated; 1 of 4096 elements differ"
        assert err == f"built.xclbin: host buffer 1, {wrong}\n"
    else:
        assert out.endswith("built.xclbin: ended on the NPU, every element as emulated\n")


def test_a_design_in_mlir_for_another_npu_is_refused(pyxrt, monkeypatch):
    monkeypatch.setattr(Npu, "name", "NPU Phoenix")
    with pytest.raises(BuildError, match='the design is for npu2_1col, this one is "NPU Phoenix"'):
        run_words(Path("built.xclbin"), "npu2_1col", "pass_through.mlir", np.zeros(4, np.uint32), [])
    assert Npu.registered == []


def test_the_npu_is_not_asked_in_silence_for_what_its_driver_may_end(small, caplog):
    planned = small.plan.sequence(GemmProblem(1 << 18, 1 << 15, 1 << 11))
    warn_once.cache_clear()
    warn_of_late(planned, small.device)
    assert re.search(r"262144x32768x2048: its transfers alone take .* s \(modelled\), more than 2 s", caplog.text)


@pytest.mark.parametrize(("above", "warns"), [(0, True), (1e-9, False)])
def test_the_time_after_which_a_driver_ends_a_job_is_itself_too_long(
    small, monkeypatch, caplog, above: float, warns: bool
):
    planned = small.plan.sequence(GemmProblem(64, 64, 64))
    moved = planned.traffic()
    limit = timing_of(small.device).port_ns(moved.read_bytes, moved.write_bytes) / 1e9 + above
    monkeypatch.setattr("bdforge.runtime.xrt.JOB_TIMEOUT_SECONDS", limit)
    warn_once.cache_clear()
    warn_of_late(planned, small.device)
    assert len(caplog.records) == warns


@pytest.mark.parametrize(
    ("emulated", "measured", "told"),
    [
        ([[1, 2], [3, 4]], [[1, 2], [3, 4]], ""),
        (
            [[1, 2], [3, 4]],
            [[1, 2], [3, 5]],
            "host buffer 1, element 1 is 5 on the NPU and 4 emulated; 1 of 2 elements",
        ),
        ([[1, 2], [3, 4]], [[256, 0], [9, 9]], "host buffer 0, element 0 is 256 on the NPU and 1 emulated; 2 of 2"),
        ([[], [1 << 24]], [[], [0]], "host buffer 1, element 0 is 0 on the NPU and 16777216 emulated; 1 of 1"),
    ],
)
def test_the_first_element_that_differs_is_told_with_both_values(emulated, measured, told):
    found = difference([np.array(each, np.int32) for each in emulated], [np.array(each, np.int32) for each in measured])
    assert found.startswith(told)
    assert bool(found) == bool(told)
