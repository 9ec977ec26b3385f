"""Prepared problems as one list: what runs by a call each leave, on the emulated array and on a made-up NPU."""

import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_up_pyxrt import Buffer, Kernel, Run, State
from test_loaded_functions import loaded, narrow

import bdforge
from bdforge.array.emulator import EmulationError
from bdforge.design.sequences import Builder, Program
from bdforge.devices.timing import RUNLIST_COMMANDS_MAX
from bdforge.runtime import Loaded, OperandError, PackedOperands, Prepared, UseError
from bdforge.runtime.xrt import NpuError
from support.built_designs import ROOT
from support.differences import same
from support.gemm_problems import operands, reference
from support.scaled_rows import arrays
from support.threads import together

SIZES = {"M": 7, "K": 20, "N": 33}


def problems(gemm: Loaded, count: int) -> list[tuple[Prepared, dict[str, PackedOperands], np.ndarray]]:
    """Problems with other operands each, and what they make."""
    found = []
    for seed in range(count):
        a, weights = operands(*SIZES.values())
        a = np.roll(a, seed, 0) - np.int8(seed)
        problem = gemm.prepared(**SIZES)
        problem.arrays["A"][...] = a
        found.append((problem, {"B": gemm.pack(np.roll(weights, seed, 1))}, reference(a, np.roll(weights, seed, 1))))
    return found


def runs(made: Sequence[tuple[Prepared, dict[str, PackedOperands], np.ndarray]]) -> list[Any]:
    return [(problem, packed) for problem, packed, _ in made]


def check(made: Sequence[tuple[Prepared, Any, np.ndarray]]) -> None:
    for number, (problem, _, expected) in enumerate(made):
        same(problem.arrays["C"], expected, f"C of run {number + 1}")


def test_a_list_makes_what_calls_make(small):
    gemm = bdforge.load(small.folder)
    made = problems(gemm, 3)
    assert gemm.run_batch(runs(made)) == 1
    check(made)


@pytest.mark.parametrize(("count", "parts"), [(1, [1]), (24, [24]), (25, [24, 1]), (50, [24, 24, 2])])
def test_an_npu_gets_24_runs_at_a_time_and_one_stream(xrt_design, pyxrt, monkeypatch, count: int, parts: list[int]):
    monkeypatch.setattr(Kernel, "__call__", idle)
    gemm = bdforge.load(xrt_design, device="xrt")
    (one,) = problems(gemm, 1)
    monkeypatch.setattr(Buffer, "made", [])
    assert gemm.run_batch(runs([one] * count)) == len(parts)
    assert [len(part) for part in pyxrt.lists] == parts
    assert len(Buffer.made) == 1, "the stream, once; all else was there"
    assert len({id(run.given[1]) for part in pyxrt.lists for run in part}) == 1


def idle(kernel: Kernel, *given: Any) -> Any:
    return types.SimpleNamespace(wait=lambda milliseconds: State.ERT_CMD_STATE_COMPLETED)


def test_an_npu_makes_of_a_list_what_calls_make(xrt_design, pyxrt, monkeypatch):
    monkeypatch.setattr("bdforge.runtime.xrt.RUNLIST_COMMANDS_MAX", 2)
    gemm = bdforge.load(xrt_design, device="xrt")
    made = problems(gemm, 3)
    gemm.run_batch(runs(made))
    check(made)
    assert [len(part) for part in pyxrt.lists] == [2, 1]


def test_what_another_design_packed_has_a_buffer_for_each_run(xrt_design, small, pyxrt):
    """It does not lie in this NPU's memory, so each run needs a copy, and none the one of another."""
    gemm, other = bdforge.load(xrt_design, device="xrt"), bdforge.load(small.folder)
    made = [(problem, {"B": other.pack(gemm.unpack(packed["B"])["B"])}, c) for problem, packed, c in problems(gemm, 2)]
    gemm.run_batch(runs(made))
    check(made)


@pytest.mark.parametrize(
    ("state", "says"),
    [
        (State.ERT_CMD_STATE_ERROR, "run 4 of 5, 7x20x33, ended as State.ERT_CMD_STATE_ERROR, and those behind it did"),
        (None, r"one of runs 3 to 4 of 5, 7x20x33 failed, and those behind it did not run \(XRT: runlist failed exec"),
    ],
)
def test_a_run_that_fails_on_an_npu_is_named_and_ends_the_list(xrt_design, pyxrt, monkeypatch, state, says: str):
    abandoned: list[Any] = []
    monkeypatch.setattr("bdforge.runtime.xrt._ABANDONED", abandoned)
    monkeypatch.setattr("bdforge.runtime.xrt.RUNLIST_COMMANDS_MAX", 2)
    gemm = bdforge.load(xrt_design, device="xrt")
    made = problems(gemm, 5)
    monkeypatch.setattr(Run, "ends", [State.ERT_CMD_STATE_COMPLETED] * 3 + [state])
    with pytest.raises(NpuError, match=says):
        gemm.run_batch(runs(made))
    assert [len(part) for part in pyxrt.lists] == [2, 2], "the last one was never submitted"
    assert len(abandoned) == 1
    monkeypatch.setattr(Run, "ends", [])
    gemm.run_batch(runs(made))
    check(made)


def test_a_run_that_fails_on_the_emulated_array_is_named(small, monkeypatch):
    gemm = bdforge.load(small.folder)
    made, device = problems(gemm, 3), gemm._runs.backend
    real, count = device.run, iter(range(9))

    def run(*given: Any) -> Any:
        if next(count) == 1:
            raise EmulationError("the DMA is stuck")
        return real(*given)

    monkeypatch.setattr(device, "run", run)
    with pytest.raises(EmulationError, match=r"^run 2 of 3: the DMA is stuck$"):
        gemm.run_batch(runs(made))
    same(made[0][0].arrays["C"], made[0][2], "C of the run before")
    assert not made[2][0].arrays["C"].any(), "no run behind it"
    gemm.run_batch(runs(made))
    check(made)


def in_place() -> Program:
    """Y in a buffer of its own of X, and Z where X is: three operands, two buffers; and a weight."""
    build = Builder(["n"], 1)
    n = build.parameter("n")
    state, own = build.argument("S", "i32", 32, n), build.argument("Y", "i32", 32, n)
    for name, place, direction in (("X", state, "in"), ("Z", state, "out"), ("Y", own, "out")):
        build.operand(name, place, direction, "int32", 32, [(n, n, None, False)], [(0, n, 1, 1)])
    return build.program


def test_problems_beside_each_other_share_all_but_what_is_named():
    function, device = loaded(in_place())
    first = function.prepared(n=4)
    second = first.beside("Y")
    assert np.shares_memory(first.arrays["X"], second.arrays["Z"])
    assert not np.shares_memory(first.arrays["Y"], second.arrays["Y"])
    assert list(second.arrays) == list(first.arrays)
    assert function.run_batch([(first, {}), (second, {}), (first, {})]) == 1
    assert len({id(buffers[0]) for _, _, buffers in device.runs}) == 1
    assert [buffers[1] is device.runs[0][2][1] for _, _, buffers in device.runs] == [True, False, True]
    with first, pytest.raises(OperandError, match="has no memory of its own for operand W; it has some for X, Z, Y"):
        first.beside("Y", "W")
    function.run_batch([(second, {})])
    with pytest.raises(UseError, match="the prepared problem 4 of rows was closed; prepare it again"):
        function.run_batch([(second, {}), (first, {})])
    second.take()


def test_copies_are_shared_too():
    function, device = loaded(narrow())
    first = function.prepared(n=4)
    second = first.beside("Y")
    second.arrays["X"][...] = [1, -2, 3, -8]
    function.run_batch([(first, {}), (second, {})])
    for _, _, buffers in device.runs:
        same(buffers[0].view(np.uint8), [0xE1, 0x83], "bytes of X")
    for problem in (first, second):
        same(problem.arrays["Y"], np.array([-6, 0, -6, 0], np.int8), "Y")
    assert first.arrays["Y"] is not second.arrays["Y"]


def narrow_in_place() -> Program:
    build = Builder(["n"], 1)
    n = build.parameter("n")
    place = build.argument("X", "i8", 8, n // 2)
    for name, direction in (("X", "in"), ("Y", "out")):
        build.operand(name, place, direction, "int4", 4, [(n, n, None, False)], [(0, n, 1, 1)])
    return build.program


def mixed(function: Loaded) -> list[Any]:
    return [(loaded()[0].prepared(m=6, n=8), {})]


REFUSED: list[tuple[Callable[[], Program] | None, Callable[[Loaded], list[Any]], str]] = [
    (None, lambda function: [], "^a batch of rows needs at least one run$"),
    (None, mixed, "^run 1 of 1: it is 6x8 of rows, not of the design rows that was loaded for this batch$"),
    (
        None,
        lambda function: [(function.prepared(m=6, n=8), {})] * 2,
        "^run 1 of 2: operand B of 6x8 is not given; pack",
    ),
    (
        narrow_in_place,
        lambda f: [(f.prepared(n=4), {})],
        "run 1 of 1: 4 of rows writes the buffer in which X is",
    ),
]


@pytest.mark.parametrize(("program", "listed", "says"), REFUSED)
def test_lists_that_would_not_run_as_calls_are_refused(program, listed: Callable[[Loaded], list[Any]], says: str):
    function, device = loaded() if program is None else loaded(program())
    with pytest.raises(OperandError, match=says):
        function.run_batch(listed(function))
    assert not device.runs


def test_a_list_belongs_to_the_thread_of_its_problems():
    function, device = loaded()
    packed = function.pack(arrays()["B"], np.ones(8, np.float32))
    listed = [(function.prepared(m=6, n=8), {"B": packed})] * 2

    def elsewhere(_: int) -> str:
        with pytest.raises(UseError) as caught:
            function.run_batch(listed)
        return str(caught.value)

    assert "belongs to MainThread" in together(elsewhere, [0])[0]
    assert not device.runs
    together(lambda _: (listed[0][0].take(), function.run_batch(listed)), [0])
    assert len(device.runs) == 2


def test_hosts_of_both_languages_submit_as_many():
    text = Path(ROOT / "host" / "src" / "backend.hpp").read_text()
    assert f"chain_commands = {RUNLIST_COMMANDS_MAX};" in text
