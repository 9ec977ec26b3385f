"""What the threads of a process share: loaded designs, prepared problems, kernels, programs of cores, files."""

import shutil
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from threading import Event, Thread
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import emulate
from bdforge.common.files import write_whole
from bdforge.core.exact.translated_program import TranslatedProgram, _translation
from bdforge.core.isa.elf import program_of
from bdforge.design.sequences import PlannedSequence, planned
from bdforge.runtime import Loaded, OperandError, UseError
from bdforge.runtime.loading import Emulated
from support import machine_code_designs
from support.differences import same
from support.idle_backend import IdleBackend
from support.machine_code_designs import gemm_elf, gemm_text
from support.scaled_rows import DEVICE, PROGRAM, arrays, design_of
from support.threads import together

THREADS, GENERATION = 4, "aie2p"
PLAN = planned(PROGRAM, {"m": 6, "n": 8}, DEVICE)


def operands(seed: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    return rng.integers(-128, 128, (20, 24), np.int8), rng.integers(-1, 2, (24, 40), np.int8)


def test_calls_of_one_loaded_design_are_each_threads_own(small):
    gemm = bdforge.load(small.folder)
    given = [operands(seed) for seed in range(THREADS)]
    for (a, b), c in zip(given, together(lambda pair: gemm(*pair), given), strict=True):
        same(c, a.astype(np.int32) @ b, "C")


class Slow(IdleBackend):
    """A backend whose runs take a while; `most` of them at a time."""

    def __init__(self) -> None:
        self.entered, self.leave, self.now, self.most = Event(), Event(), 0, 0

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        self.now += 1
        self.most = max(self.most, self.now)
        self.entered.set()
        Event().wait(0.002)
        self.leave.wait(5)
        self.now -= 1
        return ()

    def close(self) -> None:
        self.most = -1


def rows() -> tuple[Loaded, Slow]:
    """A program as a function, by a device that waits."""
    device = Slow()
    return Loaded(design_of(), device), device


def refused(work: Any) -> list[str]:
    """The UseError of some work, in this thread."""
    try:
        work()
    except UseError as error:
        return [str(error)]
    return []


def test_a_prepared_problem_belongs_to_one_thread_until_it_ends_or_another_takes_it():
    function, device = rows()
    device.leave.set()
    packed = function.pack(arrays()["B"], np.ones(8, np.float32))
    problem = function.prepared(m=6, n=8)
    assert not refused(lambda: problem(B=packed))
    (told,) = together(lambda _: refused(lambda: problem(B=packed)), [0])[0]
    assert "the prepared problem 6x8 of rows belongs to MainThread" in told
    assert together(lambda _: refused(lambda: problem.take()(B=packed)), [0]) == [[]]
    assert not refused(lambda: problem(B=packed)), "the thread that took it has ended"


@pytest.mark.parametrize("prepared", [False, True])
def test_submitted_runs_come_one_after_the_other_and_give_what_calls_give(prepared: bool):
    function, device = rows()
    packed = function.pack(arrays()["B"], np.ones(8, np.float32))
    problem = function.prepared(m=6, n=8)
    pending = problem.submit(B=packed) if prepared else function.submit(arrays()["A"], packed)
    assert device.entered.wait(5)
    assert (pending.done, repr(pending)) == (False, "<Pending 6x8 of rows: under way>")
    assert "has not ended" in "".join(refused(lambda: pending.wait(0.001)))
    assert len(refused(problem.take)) == prepared
    second = function.submit(arrays()["A"], packed)
    device.leave.set()
    same(pending.wait(5), np.zeros(8, np.int32), "Y")
    same(second.wait(), np.zeros(8, np.int32), "Y")
    assert (repr(pending), device.most) == ("<Pending 6x8 of rows: done>", 1)
    problem.take()


def test_faults_of_a_submitted_run_are_raised_where_it_is_awaited():
    function, device = rows()
    problem = function.prepared(m=6, n=8)
    with pytest.raises(OperandError, match="operand B of 6x8 is not given"):
        problem.submit()
    device.run = lambda *given: 1 / 0  # type: ignore[assignment]
    pending = problem.submit(B=function.pack(arrays()["B"], np.ones(8, np.float32)))
    with pytest.raises(ZeroDivisionError):
        pending.wait()
    assert repr(pending) == "<Pending 6x8 of rows: failed>"
    problem.take()


def test_what_was_closed_runs_no_more_and_closing_waits_for_what_runs():
    function, device = rows()
    packed = function.pack(arrays()["B"], np.ones(8, np.float32))
    with function, function.prepared(m=6, n=8) as problem:
        kept = function.prepared(m=6, n=8)
        pending = problem.submit(B=packed)
        device.leave.set()
    assert pending.done
    assert device.most == -1
    function.close()
    for work in (
        lambda: function(arrays()["A"], packed), lambda: kept(B=packed), lambda: function.prepared(m=6, n=8),
        lambda: function.pack(arrays()["B"]), function.ready, lambda: function.submit(arrays()["A"], packed),
        lambda: kept.submit(B=packed),
    ):  # fmt: skip
        assert refused(work) == ["design rows was closed; load it again"]
    for work in (
        lambda: problem(B=packed),
        lambda: problem.submit(B=packed),
        problem.take,
        lambda: problem.current("A"),
    ):
        assert refused(work) == ["the prepared problem 6x8 of rows was closed; prepare it again"]
    assert repr(problem) == "<Prepared 6x8 of rows: closed>"


def test_a_prepared_problem_in_a_run_is_not_taken():
    function, device = rows()
    packed, problem = function.pack(arrays()["B"], np.ones(8, np.float32)), function.prepared(m=6, n=8)
    other = Thread(target=lambda: problem.take()(B=packed), name="other")
    other.start()
    assert device.entered.wait(5)
    assert "6x8 of rows is in a run of other" in "".join(refused(problem.take))
    device.leave.set()
    other.join()


def test_an_array_is_loaded_once_and_moves_for_one_thread_at_a_time(small):
    made: list[Any] = []
    real = small.resident()
    inside = Slow()
    inside.leave.set()

    def load() -> Any:
        Event().wait(0.01)
        made.append(1)
        return real

    def run(operations: Any) -> None:
        inside.run(PLAN, (), 1.0)

    assert real._machine
    real._machine.run = run
    array = Emulated(SimpleNamespace(resident=load))  # type: ignore[arg-type]
    words = small.sequence({"M": 4, "K": 16, "N": 32})
    together(lambda _: array.run(words, [np.zeros(4 * 32, np.int32)] * 3, 1.0), range(THREADS))
    assert (len(made), inside.most) == (1, 1)


def test_cores_of_arrays_in_several_threads_share_a_translated_program(monkeypatch):
    """Every array reaches the same bundles first at about the same time, of a program that nobody has run."""
    program, inside = program_of(gemm_elf(GENERATION)), Slow()
    text, real = gemm_text("npu2", 1, "%core = aie.core(%tile) { aie.end }"), TranslatedProgram.translate
    inside.leave.set()

    def translate(self: TranslatedProgram, pc: int) -> None:
        real(self, pc)
        inside.run(PLAN, (), 1.0)

    def run(seed: int) -> None:
        given, expected = machine_code_designs.operands(GENERATION, 1, seed)
        emulate(text, given, elfs={(0, 2): program})
        same(given[2], expected, "C")

    _translation.cache_clear()
    monkeypatch.setattr(TranslatedProgram, "translate", translate)
    together(run, range(2))
    assert inside.most == 1


def test_a_file_that_threads_write_is_what_one_of_them_wrote(tmp_path: Path):
    path, size = tmp_path / "file", 1 << 16
    for _ in range(20):
        together(lambda letter: write_whole(path, letter * size), "abcd")
        content = path.read_text()
        assert content == content[0] * size
        assert [*tmp_path.iterdir()] == [path]


def test_contractions_of_a_folder_load_it_once(small, tmp_path: Path, monkeypatch):
    folder = shutil.copytree(small.folder, tmp_path / "own")  # other tests may have loaded theirs
    made: list[Loaded] = []
    module = import_module("bdforge.models.tensors.einsum")

    def load(*given: Any) -> Loaded:
        made.append(bdforge.load(*given))
        return made[-1]

    monkeypatch.setattr(module, "load", load)
    given = [operands(seed) for seed in range(THREADS)]
    found = together(lambda pair: bdforge.einsum("ij,jk->ik", *pair, on=folder), given)
    for (a, b), c in zip(given, found, strict=True):
        same(c, a.astype(np.int32) @ b, "C")
    assert len(made) == 1
