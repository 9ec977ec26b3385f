"""Prepared problems as one list: what runs by a call each leave, on the emulated array and on a made-up NPU."""

import re
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
from bdforge.runtime.prepared import held
from bdforge.runtime.xrt import NpuError
from support.built_designs import ROOT
from support.differences import same
from support.gemm_problems import operands, reference
from support.scaled_rows import arrays, design_of
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
    for problem, _, expected in made[:2]:
        same(problem.current("C"), expected, "C of a submission that had ended")
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


def reading(*types: str, place: int = 0, moved: int = 0, direction: Any = "in") -> Program:
    """Operands U, V of n elements in one buffer, from element `place` on; `moved` more are moved of the last one."""
    build = Builder(["n"], 1)
    n = build.parameter("n")
    buffer = build.argument("B", "i32", 32, place + n * len(types) + moved)
    for number, type_ in enumerate(types):
        more = moved if number + 1 == len(types) else 0
        build.operand(
            "UV"[number], buffer, direction, type_, 32, [(n, n, None, False)], [(0, n + more, 1, 1)],
            offset=place + number * n,
        )  # fmt: skip
    return build.program


def test_a_problem_of_another_design_reads_what_the_first_one_leaves():
    function, device = loaded(in_place())
    other = Loaded(design_of(reading("int32")), function)
    first = function.prepared(n=4)
    second = other.beside(first, {"U": "Z"}, n=4)
    assert np.shares_memory(first.arrays["Z"], second.arrays["U"])
    assert other.run_batch([(first, {}), (second, {}), (first, {})]) == 1
    assert [buffers[0] is device.runs[0][2][0] for _, _, buffers in device.runs] == [True, True, True]
    assert [len(buffers) for _, _, buffers in device.runs] == [2, 1, 2]
    with first, pytest.raises(UseError, match="4 of rows is in a run of MainThread"), held([first]):
        second()
    same(other.beside(function.prepared(n=6), {"U": "X"}, n=6).arrays["U"], np.zeros(6, np.int32), "U")


ELSEWHERE: list[tuple[Program, dict[str, str], int, str]] = [
    (reading("int32"), {"U": "W"}, 4, "4 of rows has no memory of its own for operand W; it has some for X, Z, Y"),
    (reading("int32"), {"T": "X"}, 4, "4 of rows has no memory of its own for operand T; it has some for U"),
    (reading("int32"), {"U": "X"}, 5, "B of 5 takes 20 bytes, and has 16 in the memory of the problem prepared before"),
    (
        reading("int32"),
        {"U": "X"},
        3,
        "where 4 of rows has X: it is int32[3] from byte 0 on, that one int32[4] from",
    ),
    (
        reading("f32"),
        {"U": "X"},
        4,
        "does not lie where 4 of rows has X: it is f32[4] from byte 0 on, that one int32",
    ),
    (reading("int32", place=1), {"U": "X"}, 3, "it is int32[3] from byte 4 on, that one int32[4] from byte 0 on; give"),
    (reading("int32", "int32"), {"U": "X"}, 2, "operand U of 2 of rows does not lie where 4 of rows has X"),
    (reading("int32", moved=1, direction="out"), {"U": "X"}, 3, "does not lie where 4 of rows has X"),
]


@pytest.mark.parametrize(("program", "operands_", "n", "says"), ELSEWHERE)
def test_what_lies_otherwise_is_refused(program: Program, operands_: dict[str, str], n: int, says: str):
    function, _ = loaded(in_place())
    with pytest.raises(OperandError, match=re.escape(says)):
        Loaded(design_of(program), function).beside(function.prepared(n=4), operands_, n=n)


def test_places_that_only_one_of_two_designs_has_are_refused():
    """V stands where the first one has nothing by name; of Z more than it has is written; U is on another array."""
    function, device = loaded(reading("int32", "int32"))
    two, one = (Loaded(design_of(reading(*["int32"] * n)), function) for n in (2, 1))
    first = function.prepared(n=2)
    with pytest.raises(OperandError, match="operand V of 2 of rows lies in one buffer with others that are to stand"):
        two.beside(first, {"U": "U"}, n=2)
    assert np.shares_memory(two.beside(first, {"U": "U", "V": "V"}, n=2).arrays["V"], first.arrays["V"])
    with pytest.raises(OperandError, match="operand U of 2 of rows does not lie where 2 of rows has V"):
        two.beside(first, {"U": "V", "V": "U"}, n=2)
    for direction, refused in (("in", False), ("out", True)):
        wide = Loaded(design_of(reading("int32", moved=1, direction=direction)), function)
        if not refused:
            wide.beside(first, {"U": "U"}, n=2)
            continue
        with pytest.raises(OperandError, match="operand U of 2 of rows is written with rows behind it, where 2 of"):
            wide.beside(first, {"U": "U"}, n=2)
    with pytest.raises(OperandError, match="it is 2 of rows, which is not loaded on the array of rows; load designs"):
        Loaded(one.design, device).beside(first, {"U": "U"}, n=2)


def test_copies_are_no_place_for_another_design():
    function, _ = loaded(narrow())
    with pytest.raises(OperandError, match="it is a copy of what numpy cannot show, that one a copy of what numpy"):
        Loaded(design_of(narrow()), function).beside(function.prepared(n=4), {"X": "Y"}, n=4)


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
    (
        None,
        mixed,
        "^run 1 of 1: it is 6x8 of rows, which is not loaded on the array of rows; load designs of one image",
    ),
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
