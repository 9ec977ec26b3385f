"""Runs a design on the emulated array and in the slow interpreter, and compares all memory."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np

import bdforge
from bdforge.array.emulator import EmulationError, Result
from bdforge.array.emulator.scheduler import STEP_BUDGET
from bdforge.array.mlir import MlirError
from oracle.array_design import Call, Design, statements
from oracle.array_text import mlir
from oracle.random_designs import random_design
from oracle.shrinking import Effort, shrunk
from oracle.slow_array import TURNS, Outcome, SlowArray
from support.differences import difference

DTYPES = {"i8": np.int8, "i16": np.int16, "i32": np.int32}


@dataclass(frozen=True, slots=True)
class Emulated:
    """What is left of a run on the emulated array."""

    result: Result
    memory: dict[str, bytes]


def kernel(call: Call):
    """The external function of one call, for the emulated array."""

    def run(source: np.ndarray, target: np.ndarray, value: int) -> None:
        repeated = np.resize(source.reshape(-1).astype(np.int64), target.size)
        target.reshape(-1)[:] = (repeated * call.factor + int(value)).astype(target.dtype)

    return run


def kernels(design: Design) -> dict:
    """Every external function that the design's cores call."""
    calls = (s for core in design.cores for s in statements(core.body))
    return {s.kernel: kernel(s) for s in calls if isinstance(s, Call)}


def mode_of(seed: int) -> dict:
    """How a seed's design runs: in order, by an adversary, or refusing reads of memory that nobody wrote.

    The interpreter translates addresses of any number of arguments, and has no firmware that spoils a memtile's word.
    """
    mode = ({}, {"schedule": "random", "seed": seed}, {"poison": True})[seed % 3]
    return {**mode, "permissive": ["buffer-arguments", "memtile-word"]}


def emulated(design: Design, seed: int = 0, form: Callable[[str], str] = str, budget: int = STEP_BUDGET) -> Emulated:
    """The design's text, in another form of it, on the emulated array, in the mode of the seed."""
    arrays = {a.name: np.array(a.values, DTYPES[a.element]) for a in design.arguments}
    result = bdforge.emulate(form(mlir(design)), list(arrays.values()), kernels(design), budget=budget, **mode_of(seed))
    memory = {name: array.tobytes() for name, array in arrays.items()}
    return Emulated(result, memory | {b.name: result.buffers[b.name].tobytes() for b in design.buffers})


def interpreted(
    design: Design, seed: int, fifo_words: int = 1, effort: Effort | None = None
) -> tuple[Outcome, dict[str, bytes]]:
    """The design in the slow interpreter; the narrowest FIFOs stop most designs that could stop."""
    turns = TURNS if effort is None else min(effort.turns, TURNS)
    array = SlowArray(design, seed, fifo_words, turns)
    outcome = array.run()
    if effort is not None:
        effort.turns -= turns - array.turns
    return outcome, {name: bytes(memory) for name, memory in array.memory.items()}


def initial_memory(design: Design) -> dict[str, bytes]:
    return {name: bytes(memory) for name, memory in SlowArray(design).memory.items()}


def is_vacuous(design: Design, memory: dict[str, bytes]) -> bool:
    """Whether a run left a result array, or without any of them all of memory, as it was."""
    before = initial_memory(design)
    results = [a.name for a in design.arguments if a.name.startswith("arg_s2mm")]
    if results:
        return any(memory[name] == before[name] for name in results)
    return memory == before


@dataclass(frozen=True, slots=True)
class Expected:
    """A design that ends and changes something, and all memory after it."""

    design: Design
    memory: dict[str, bytes]


def expected_of(seed: int) -> Expected:
    """The design of a seed with its result; one that stops or changes nothing is replaced."""
    for attempt in range(50):
        design = random_design(seed + attempt * 1_000_003)
        outcome, memory = interpreted(design, seed)
        if outcome is Outcome.DONE and not is_vacuous(design, memory):
            return Expected(design, memory)
    raise AssertionError(f"seed {seed} gives no design that ends")


def disagreement(design: Design, memory: dict[str, bytes], seed: int = 0, budget: int = STEP_BUDGET) -> str:
    """What the emulated array does otherwise, one line each; empty when it agrees."""
    try:
        actual = emulated(design, seed, budget=budget).memory
    except (EmulationError, MlirError) as error:
        return f"{type(error).__name__}: {error}"
    return difference({name: actual[name] for name in memory}, memory)


def kind_of(text: str) -> str:
    """What stands before a disagreement's first colon, where that names a fault; else what differs is memory."""
    head = text.partition(":")[0]
    return head if head.isidentifier() and head[:1].isupper() else "memory" if text else ""


def still_disagrees(design: Design, effort: Effort, seed: int, kind: str) -> bool:
    """Whether a smaller design ends in the interpreter, yet in this other way on the emulated array."""
    try:
        outcome, memory = interpreted(design, seed, effort=effort)
        if outcome is not Outcome.DONE or memory == initial_memory(design):
            return False
        return kind_of(disagreement(design, memory, seed, TURNS)) == kind
    except (KeyError, AssertionError, StopIteration, IndexError):  # a part that others need is gone
        return False


def explanation(seed: int, expected: Expected, text: str) -> str:
    """Seed, disagreement, whether the interpreter's result depends on its schedule, and a small design as text."""
    others = {str(interpreted(expected.design, s, w)) for s, w in ((seed, 1), (seed + 1, 1), (seed + 2, 16))}
    stable = "independent of the schedule" if len(others) == 1 else "DEPENDENT on the schedule"
    design, fails = expected.design, partial(still_disagrees, seed=seed, kind=kind_of(text))
    if fails(design, Effort()):
        design = shrunk(design, fails)
    found = f"the expected result is {stable}\nsmallest design found:\n{mlir(design)}"
    return f"seed {seed}, mode {mode_of(seed)}: {text}\n{found}"
