"""The XRT backend of `bdforge.load` against a made-up pyxrt: words, buffers, what stays and what fails."""

import re
import types
import weakref
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from made_up_pyxrt import Buffer, Kernel, Npu, State

import bdforge
from bdforge.array.emulator import emulate
from bdforge.common.messages import warn_once
from bdforge.core.isa.meaning import approximated
from bdforge.devices.timing import timing_of
from bdforge.operators.gemm import GemmProblem
from bdforge.runtime import UseError
from bdforge.runtime.xrt import NpuError, difference, warn_of_late
from support.differences import same
from support.gemm_problems import operands, reference

ROOT = Path(__file__).resolve().parents[2]


def test_packed_weights_and_buffers_stay_with_the_npu(xrt_design, pyxrt, monkeypatch):
    monkeypatch.setattr(Buffer, "made", [])
    gemm = bdforge.load(xrt_design, device="xrt")
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
    assert not len(gemm._runs.backend._residents)  # type: ignore[attr-defined]


def test_a_prepared_problem_lies_where_the_npu_reads_and_writes(xrt_design, pyxrt, monkeypatch):
    monkeypatch.setattr(Buffer, "made", [])
    gemm = bdforge.load(xrt_design, device="xrt")
    a, weights = operands(40, 52, 70)
    packed, problem = gemm.pack(weights), gemm.prepared(M=40, K=52, N=70)
    made = len(Buffer.made)
    c = problem.arrays["C"]
    for rows in (a, -a, a // 3):
        problem.arrays["A"][...] = rows
        assert problem(B=packed) is c
        same(c, reference(rows, weights))
    assert len(Buffer.made) == made + 1  # the stream


def test_what_an_npu_made_is_read_after_it_was_given_back(xrt_design, pyxrt):
    gemm, (a, weights) = bdforge.load(xrt_design, device="xrt"), operands(40, 52, 70)
    packed, problem = gemm.pack(weights), gemm.prepared(M=40, K=52, N=70)
    problem.current("A", written=True)[...] = a
    gemm.run_batch([(problem, {"B": packed})])
    gemm.close()
    same(problem.current("C"), reference(a, weights))


def test_contractions_of_equal_sizes_have_streams_of_their_own(xrt_design, pyxrt):
    loaded = bdforge.load(xrt_design, device="xrt")
    x, y = operands(64, 48, 64)
    for staged in ("B", "AB", "B"):
        got = bdforge.einsum("ab,bc->ac", x, y, on=loaded, staged=staged)
        same(got, reference(x, y))


def test_streams_of_the_sizes_used_last_are_kept(xrt_design, pyxrt, monkeypatch):
    monkeypatch.setattr("bdforge.runtime.xrt.STREAMS_MAX", 2)
    gemm = bdforge.load(xrt_design, device="xrt")
    for rows in (40, 50, 40, 60):
        a, weights = operands(rows, 52, 70)
        same(gemm(a, weights), reference(a, weights))
    assert [sizes[0] for _, sizes in gemm._runs.backend._streams] == [40, 60]  # type: ignore[attr-defined]


def test_a_closed_npu_runs_no_more_and_what_it_gave_stays(xrt_design, pyxrt):
    a, weights = operands(40, 52, 70)
    with bdforge.load(xrt_design, device="xrt") as gemm:
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
def test_a_run_that_fails_is_reported_and_kept_alive(xrt_design, pyxrt, monkeypatch, state, message):
    abandoned: list[Any] = []
    monkeypatch.setattr("bdforge.runtime.xrt._ABANDONED", abandoned)
    gemm = bdforge.load(xrt_design, device="xrt")
    gemm(*operands(32, 16, 64))
    monkeypatch.setattr(Kernel, "state", state)
    with pytest.raises(NpuError, match=message):
        gemm(*operands(32, 16, 64))
    ((_, _, buffers, loaded),) = abandoned
    assert [buffer.group for buffer in buffers] == [65539, 65540, 65541]
    assert not loaded._spare, "the NPU may still write to what the next run would take"


def test_a_run_waits_as_long_as_it_was_told_and_reads_only_its_output_back(xrt_design, pyxrt, monkeypatch):
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
    gemm = bdforge.load(xrt_design, device="xrt")
    gemm.timeout_seconds = 2.5
    gemm(*operands(32, 16, 64))
    assert (waited, read) == ([2500], [65541])


def test_the_buffers_that_were_not_used_for_longest_go_first(xrt_design, pyxrt, monkeypatch):
    """Of A, B and C, B has one size; five are kept, so those of 50 rows make room for those of 60."""
    monkeypatch.setattr("bdforge.runtime.xrt.SPARE_MAX", 5)
    gemm = bdforge.load(xrt_design, device="xrt")
    for rows in (40, 50, 40, 60):
        gemm(*operands(rows, 52, 70))
    monkeypatch.setattr(Buffer, "made", [])
    gemm(*operands(40, 52, 70))
    assert Buffer.made == []


def test_problems_that_differ_in_their_last_size_have_streams_of_their_own(xrt_design, pyxrt):
    gemm = bdforge.load(xrt_design, device="xrt")
    for sizes in ((32, 16, 64), (32, 16, 32), (32, 48, 32)):
        a, weights = operands(*sizes)
        same(gemm(a, weights), reference(a, weights), f"{sizes}")


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


@pytest.mark.slow
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


@pytest.mark.parametrize(("off", "differs"), [(0.015, False), (0.017, True)])
def test_floats_may_differ_by_what_approximations_may_be_off(off, differs):
    emulated, tanh = np.array([0.5, -0.25], np.float32), [row for row in approximated() if row.form == "VTANH"]
    measured = emulated + np.float32(off)
    assert bool(difference([emulated], [measured], tanh)) == differs
    assert difference([emulated], [measured]).startswith("host buffer 0, element 0 is ")
    assert difference([np.array([1])], [np.array([2])], tanh)
