"""What a loaded design hands to its device and gives back: a device that keeps what it gets stands for the array."""

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import TimingOptions
from bdforge.design.sequences import Builder, PlannedSequence, Program, planned
from bdforge.design.sequences.buffers import outputs_of
from bdforge.runtime import Loaded, OperandError
from bdforge.runtime.loading import backend_for
from bdforge.runtime.run import run
from support.differences import same
from support.idle_backend import IdleBackend
from support.scaled_rows import DEVICE, PROGRAM, arrays, design_of


class Recorder(IdleBackend):
    """Writes 10, 11, ... into the outputs of a run, by their arguments."""

    def __init__(self) -> None:
        self.runs: list[tuple[str, float, list[np.ndarray]]] = []
        self.placed: list[tuple[int, int]] = []
        self.synchronised: list[tuple[str, int]] = []

    def run(self, planned: PlannedSequence, buffers: Sequence[np.ndarray], timeout_seconds: float) -> tuple[str, ...]:
        self.runs.append((planned.shape, timeout_seconds, list(buffers)))
        for number, operand in enumerate(outputs_of(planned.program)):
            buffers[operand.argument].reshape(-1)[...] = 10 + number
        return ()

    def resident(self, argument: int, buffer: np.ndarray) -> np.ndarray:
        self.placed.append((argument, buffer.nbytes))
        return buffer

    def send(self, buffer: np.ndarray) -> None:
        self.synchronised.append(("to", buffer.nbytes))

    def receive(self, buffer: np.ndarray) -> None:
        self.synchronised.append(("from", buffer.nbytes))


def loaded(program: Program = PROGRAM) -> tuple[Loaded, Recorder]:
    """A program as a function, and what its device was given."""
    recorder = Recorder()
    return Loaded(design_of(program), recorder), recorder


def test_a_call_hands_over_every_buffer_and_waits_ten_seconds():
    rows, device = loaded()
    given = arrays()
    found = rows(given["A"], given["B"])
    same(found, np.full(8, 10, np.int32), "Y")
    ((shape, seconds, buffers),) = device.runs
    assert (shape, seconds, rows.timeout_seconds) == ("6x8", 10.0, 10.0)
    same(buffers[0].reshape(6, 8), given["A"], "A")
    assert np.shares_memory(buffers[1], given["B"])
    same(buffers[2], np.full(8, 2, np.float32), "s, which is not given")
    rows.timeout_seconds = 0.5
    rows.prepared(m=3, n=8)(B=rows.pack(given["B"], np.ones(8, np.float32)))
    rows(**given, s=None)  # type: ignore[arg-type]
    assert [(shape, seconds) for shape, seconds, _ in device.runs[1:]] == [("3x8", 0.5), ("6x8", 0.5)]
    same(device.runs[2][2][2], np.full(8, 2, np.float32), "s, which is None")


def test_a_device_is_told_what_stays():
    """Packed operands, and those of a prepared problem that are written between runs, or by them."""
    rows, device = loaded()
    packed = rows.pack(**{name: array for name, array in arrays().items() if name == "B"}, S=np.ones(8, np.float32))
    assert (packed.names, packed.sizes, sorted(packed.buffers)) == (("B", "s"), {"n": 8}, [1, 2])
    assert device.placed == [(1, 64), (2, 32)]
    problem = rows.prepared(m=6, n=8)
    assert device.placed[2:] == [(0, 48), (3, 32)]
    assert sorted(problem.arrays) == ["A", "Y"]
    assert problem(B=packed) is problem.arrays["Y"]
    again = rows.packed(np.zeros(64, np.uint8), n=8)
    assert (again.names, again.sizes, list(again.buffers)) == (("B",), {"n": 8}, [1])


def test_memory_is_synchronised_where_the_host_looks_at_it():
    """A has 48 bytes, Y 32: nothing that nobody looks at is sent or fetched, and what is kept always is."""
    rows, device = loaded()
    packed = rows.pack(**{name: array for name, array in arrays().items() if name == "B"}, S=np.ones(8, np.float32))
    problem = rows.prepared(m=6, n=8)

    def synchronised(looks: Any = lambda: None) -> list[tuple[str, int]]:
        device.synchronised = []
        rows.run_batch([(problem, {"B": packed})] * 2)
        looks()
        return device.synchronised

    assert synchronised() == []
    assert synchronised(lambda: (problem.current("Y"), problem.current("Y"))) == [("from", 32)]
    problem.current("A", written=True)[...] = 1
    assert synchronised() == [("to", 48)]
    assert synchronised() == []
    same(problem.arrays["A"], np.ones((6, 8), np.int8), "A")
    assert synchronised() == [("to", 48)]
    _ = problem.arrays["Y"]
    assert synchronised() == [("to", 48), ("to", 32), ("from", 32)]
    with pytest.raises(OperandError, match="6x8 of rows has no memory of its own for operand B; it has some for A, Y"):
        problem.current("B")


@pytest.mark.parametrize("outputs", [1, 2, 3])
def test_one_output_is_an_array_and_several_are_named(outputs: int):
    build = Builder(["n"], 1)
    n = build.parameter("n")
    for name, direction in [("A", "in"), *((f"Y{i}", "out") for i in range(outputs))]:
        along = [(n, n, None, False)]
        build.operand(name, build.argument(name, "i32", 32, n), direction, "int32", 32, along, [(0, n, 1, 1)])
    function, _ = loaded(build.program)
    wanted = {f"Y{i}": np.full(5, 10 + i, np.int32) for i in range(outputs)}
    problem = function.prepared(n=5)
    for found in (function(np.zeros(5, np.int32)), problem()):
        same(found, wanted["Y0"] if outputs == 1 else wanted, f"{outputs} outputs")


def narrow() -> Program:
    """Y from X, both of 4-bit codes in bytes, which numpy has no arrays of."""
    build = Builder(["n"], 1)
    n = build.parameter("n")
    for name, direction in (("X", "in"), ("Y", "out")):
        place = build.argument(name, "i8", 8, n // 2)
        build.operand(name, place, direction, "int4", 4, [(n, n, None, False)], [(0, n, 1, 1)], missing=3)
    return build.program


def test_a_prepared_problem_copies_what_numpy_cannot_show():
    """Codes of 10 in both halves of Y's bytes are 0 and 10 - 16 by turns of 4 bits: 0x0A holds -6, then 0."""
    function, device = loaded(narrow())
    problem = function.prepared(n=4)
    same(problem.arrays, {name: np.full(4, 3, np.int8) for name in "XY"}, "arrays that nobody has written")
    problem.arrays["X"][...] = [1, -2, 3, -8]
    kept = problem.arrays["Y"]
    assert problem() is kept
    same(device.runs[0][2][0].view(np.uint8), [0xE1, 0x83], "bytes of X")
    same(kept, np.array([-6, 0, -6, 0], np.int8), "Y")


@pytest.mark.parametrize(
    ("given", "named", "said"),
    [
        (3, {"s": 1}, "takes no operand s here"),
        (4, {}, "4 arrays were given; design rows takes A, B, s here"), (2, {"b": 1}, "takes no operand b here"),
        (4, {"s": 1}, "takes no operand s here"), (0, {"Y": 1}, "takes no operand Y here; it takes A, B, s"),
    ],
)  # fmt: skip
def test_operands_are_bound_once_each(given: int, named: dict, said: str):
    function, device = loaded()
    known = arrays() | {"s": np.ones(8, np.float32)}
    extra = {name: known["B" if name in "bB" else "s"] for name in named}
    with pytest.raises(OperandError, match=said):
        function(*[*known.values(), known["s"]][:given], **extra)
    assert device.runs == []


@pytest.mark.parametrize(
    ("device", "variable", "used"),
    [
        (None, None, "Emulated"), (None, "", "Emulated"), ("", "", "Emulated"), ("emulated", "abacus", "Emulated"),
        (None, "emulated", "Emulated"), (None, "abacus", "abacus"), ("loom", "emulated", "loom"),
    ],
)  # fmt: skip
def test_a_device_is_the_arguments_then_the_variables_then_the_emulator(device, variable, used: str):
    design: Any = SimpleNamespace(folder=Path())
    environ = {} if variable is None else {"BDFORGE_DEVICE": variable}
    try:
        found = type(backend_for(design, device, environ)).__name__
    except ValueError as error:
        found = str(error).split("'")[1]
    assert found == used


def test_the_emulated_array_is_loaded_once_and_gets_words_and_buffers():
    """With the first run, or when it is wished; warnings come back, and buffers that stay are themselves."""
    told: list[Any] = []
    array = SimpleNamespace(run=lambda *given: told.append(given) or ("slow",))
    design: Any = SimpleNamespace(resident=lambda: told.append("loaded") or array)
    plan, buffers = planned(PROGRAM, {"m": 6, "n": 8}, DEVICE), [np.zeros(3, np.int8)]
    device = backend_for(design, "emulated")
    assert device.resident(0, buffers[0]) is buffers[0]
    assert told == []
    device.ready()
    assert told == ["loaded"]
    assert device.run(plan, buffers, 9.0) == ("slow",)
    ((words, given),) = told[1:]
    assert words.tolist() == plan.words().tolist()
    assert given is buffers


@pytest.mark.parametrize("name", ["built in", None])
def test_a_run_hands_all_to_the_emulated_array_and_gives_all_back(monkeypatch, name: str | None):
    """A sequence that is built in is named, others bring their words; warnings, report and trace come back."""
    options, given, told = TimingOptions(), arrays(), {}
    design: Any = SimpleNamespace(
        program=PROGRAM, mlir="text", mlir_file=Path("a.mlir"), kernels={"zero": print}, booted=b"image",
        sequence=lambda sizes: planned(PROGRAM, sizes, DEVICE), built_sequence=lambda sizes: name, permissive=["stack"],
    )  # fmt: skip

    def emulated(*words: Any, **named: Any) -> Any:
        told.update(dict(zip(("text", "buffers", "kernels", "name"), words, strict=True)), **named)
        words[1][3][...] = range(8)
        return SimpleNamespace(warnings=("slow",), timing="report", trace="events")

    monkeypatch.setattr(sys.modules[run.__module__], "emulate", emulated)
    for timing, poison in ((None, False), (options, True)):
        found = run(design, given, timing, poison=poison) if poison else run(design, given, timing)
        words = told.pop("instructions")
        assert words is None if name else words.tolist() == found.sequence.words().tolist()
        same(told.pop("buffers")[0].reshape(6, 8), given["A"], "A")
        assert told == {
            "text": "text", "kernels": {"zero": print}, "name": name, "file": "a.mlir", "timing": timing,
            "poison": poison, "image": b"image", "permissive": ["stack"],
        }  # fmt: skip
        same(found.outputs, {"Y": np.arange(8, dtype=np.int32)}, "outputs")
        assert (found.sequence.shape, found.warnings, found.timing, found.trace) == (
            "6x8", ("slow",), "report", "events",
        )  # fmt: skip
        assert found.seconds > 0
