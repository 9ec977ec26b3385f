"""`bdforge.load`: numpy in, numpy out; the XRT backend against a made-up pyxrt."""

import sys
import types
from enum import Enum
from typing import Any, ClassVar

import numpy as np
import pytest

import bdforge
from bdforge.emulator import ArgumentError, emulate
from bdforge.plan import render
from bdforge.runtime import BuildError, reference
from bdforge.runtime.xrt import NpuError


def operands(m: int, k: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(11)
    return rng.integers(-128, 128, (m, k), np.int8), rng.integers(-1, 2, (k, n), np.int8)


@pytest.mark.parametrize("shape", [(32, 16, 64), (1, 5, 3), (45, 52, 70)])
def test_a_loaded_design_is_a_function(small, shape):
    gemm = bdforge.load(small.folder)
    a, weights = operands(*shape)
    got = gemm(a, weights)
    assert got.dtype == np.int32
    np.testing.assert_array_equal(got, reference(a, weights))


def test_weights_are_packed_once_for_many_calls(small):
    gemm = bdforge.load(small.folder, device="emulator")
    a, weights = operands(40, 48, 64)
    packed = gemm.pack(weights)
    for rows in (40, 3):
        np.testing.assert_array_equal(gemm(a[:rows], packed), reference(a[:rows], weights))


def test_shapes_that_do_not_fit_are_refused(small):
    gemm = bdforge.load(small.folder)
    a, weights = operands(4, 8, 32)
    with pytest.raises(ArgumentError, match="a is 4 x 8, but weights are 9 x 32"):
        gemm(a, np.zeros((9, 32), np.int8))
    with pytest.raises(ArgumentError, match="weights must be an int8 matrix, got float32"):
        gemm(a, weights.astype(np.float32))


def test_the_device_comes_from_the_argument_then_the_variable(small, monkeypatch):
    monkeypatch.setenv("BDFORGE_DEVICE", "abacus")
    with pytest.raises(BuildError, match="device 'abacus' is unknown; choose emulator or xrt"):
        bdforge.load(small.folder)
    assert bdforge.load(small.folder, device="emulator")
    with pytest.raises(BuildError, match="device 'loom' is unknown"):
        bdforge.load(small.folder, device="loom")


def test_without_pyxrt_one_sentence_says_so(small, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyxrt", None)
    with pytest.raises(NpuError, match=r"device=xrt needs pyxrt: .*bdforge doctor"):
        bdforge.load(small.folder, device="xrt")


class State(Enum):
    ERT_CMD_STATE_COMPLETED = 4
    ERT_CMD_STATE_ERROR = 5
    ERT_CMD_STATE_TIMEOUT = 8


class Buffer:
    host_only, cacheable = "host only", "cacheable"

    def __init__(self, device: Any, size: int, flags: str, group: int):
        self.memory, self.flags, self.group, self.synced = bytearray(size), flags, group, []

    def map(self) -> memoryview:
        return memoryview(self.memory)

    def sync(self, direction: str) -> None:
        self.synced.append(direction)


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
        assert 4 * words == len(stream.memory)
        assert [buffer.group for buffer in buffers] == [65539, 65540, 65541]
        assert all(buffer.synced == ["to device"] for buffer in (stream, *buffers))
        arrays = [np.frombuffer(buffer.memory, np.uint8) for buffer in buffers]
        instructions = np.frombuffer(stream.memory, np.uint32)
        if self.state is State.ERT_CMD_STATE_COMPLETED:
            emulate(render(self.design.plan, []), arrays, self.design.kernels, instructions=instructions)
        return types.SimpleNamespace(wait=lambda milliseconds: self.state)


def nothing(*arguments: Any) -> Any:
    return types.SimpleNamespace(register_xclbin=lambda x: None, get_uuid=lambda: "uuid")


@pytest.fixture
def pyxrt(small, monkeypatch, tmp_path):
    module = types.ModuleType("pyxrt")
    directions = types.SimpleNamespace(XCL_BO_SYNC_BO_TO_DEVICE="to device", XCL_BO_SYNC_BO_FROM_DEVICE="from device")
    vars(module).update(
        device=nothing, xclbin=nothing, hw_context=nothing, kernel=Kernel, bo=Buffer,
        ert_cmd_state=State, xclBOSyncDirection=directions,
    )  # fmt: skip
    monkeypatch.setitem(sys.modules, "pyxrt", module)
    monkeypatch.setattr(Kernel, "design", small)
    xclbin = small.folder / "small.xclbin"
    xclbin.write_bytes(b"xclbin2")
    yield module
    xclbin.unlink()


def test_the_npu_gets_the_same_words_and_gives_the_same_answer(small, pyxrt):
    gemm = bdforge.load(small.folder, device="xrt")
    a, weights = operands(40, 52, 70)
    np.testing.assert_array_equal(gemm(a, weights), reference(a, weights))


@pytest.mark.parametrize(
    ("state", "message"),
    [
        (State.ERT_CMD_STATE_TIMEOUT, "32x16x64 did not end within 10 s; see dmesg"),
        (State.ERT_CMD_STATE_ERROR, "32x16x64 ended as State.ERT_CMD_STATE_ERROR"),
    ],
)
def test_a_run_that_fails_is_reported_and_kept_alive(small, pyxrt, monkeypatch, state, message):
    monkeypatch.setattr(Kernel, "state", state)
    with pytest.raises(NpuError, match=message):
        bdforge.load(small.folder, device="xrt")(*operands(32, 16, 64))


def test_errors_of_xrt_say_what_was_being_done(small, pyxrt, monkeypatch):
    def refuse(index: int) -> None:
        raise RuntimeError(" No such device with index '0'")

    monkeypatch.setattr(pyxrt, "device", refuse)
    with pytest.raises(NpuError, match=r"loading .*small.xclbin: No such device with index '0'; bdforge doctor"):
        bdforge.load(small.folder, device="xrt")


def test_a_missing_xclbin_says_how_to_build_it(small, pyxrt):
    xclbin = small.folder / "small.xclbin"
    content = xclbin.read_bytes()
    xclbin.unlink()
    with pytest.raises(BuildError, match="scons device=strix_halo"):
        bdforge.load(small.folder, device="xrt")
    xclbin.write_bytes(content)
