"""Element-wise designs on the emulated array with their compiled kernels: any length, exact, whatever the schedule."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.emulator.timed import TimingOptions
from bdforge.design.sequences import fetch, place
from bdforge.devices import device_named, mlir_device_named
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import Operation, Patch
from bdforge.operators import OPERATORS, Plan, plan, spec_from
from bdforge.operators.built import render
from support.built_designs import kernels_of
from support.differences import same

TILE = 64
DESIGNS: dict[str, dict[str, Any]] = {
    "strix_halo": {"function": "mul", "type": "int8", "narrowing": {"shift": 6}},
    "phoenix": {"function": "relu2_gate", "type": "bf16"},
    "one core": {"function": "add", "type": "bf16", "array": {"rows": 1, "columns": 1}},
    "three rows": {
        "function": "relu2_gate",
        "type": "int8",
        "narrowing": {"shift": 13},
        "array": {"rows": 3, "columns": 2},
    },
}
EXACT: Mapping[str, Callable[..., np.ndarray]] = {
    "add": lambda a, b, rounded: rounded(a + b),
    "mul": lambda a, b, rounded: rounded(a * b),
    "relu2_gate": lambda a, b, rounded: rounded(rounded(np.maximum(a, 0) ** 2) * b),
}
"""On float64, which holds sums and products of both types."""


@dataclass(frozen=True)
class Loaded:
    """A design on the array, without any sequence in its MLIR."""

    plan: Plan
    mlir: str
    kernels: Mapping[str, Callable[..., Any]]

    @property
    def panel(self) -> int:
        return TILE * self.plan.spec.form.array.rows

    @property
    def columns(self) -> int:
        return len({tile.column for tile in self.plan.design.tiles})


@cache
def loaded(name: str) -> Loaded:
    spec = spec_from({"kind": "elementwise", "tile": TILE, **DESIGNS[name]}, "small")
    planned = plan(spec, device_named(name if name in ("strix_halo", "phoenix") else "strix_halo"))
    return Loaded(planned, render(planned, []), kernels_of(planned))


def expected(design: Loaded, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    spec = design.plan.spec.form
    wide, function = (a.astype(float), b.astype(float)), EXACT[spec.function]
    if spec.type == "int8":
        return np.clip(np.rint(function(*wide, lambda x: x) / 2**spec.narrowing.shift), -128, 127).astype(np.int8)
    return function(*wide, lambda x: x.astype(ml_dtypes.bfloat16).astype(float)).astype(ml_dtypes.bfloat16)


def run_exactly(design: Loaded, length: int, seed: int = 0, **options: Any) -> Any:
    """Run the words of a length on the loaded array and compare every element; A and B stay as they were."""
    problem = OPERATORS["elementwise"].problem([length])
    inputs, sequence = design.plan.random(problem, seed), design.plan.sequence(problem)
    operands = {operand.name: operand for operand in sequence.program.operands}
    buffers = [np.full(size, 0x55, np.uint8) for size in sequence.argument_bytes]
    for name, array in inputs.items():
        buffers[operands[name].argument][:] = 0
        place(operands[name], sequence.values, array, buffers[operands[name].argument])
    before = [buffer.copy() for buffer in buffers]
    result = emulate(design.mlir, buffers, design.kernels, instructions=sequence.words(), seed=seed, **options)
    assert result.warnings == ()
    a, b = inputs["A"], inputs["B"]
    y = fetch(operands["Y"], sequence.values, buffers[operands["Y"].argument], a.dtype)
    same(y, expected(design, a, b), strict=True)
    same(design.plan.reference(inputs)["Y"].values, y, strict=True)
    assert all((x == y).all() for x, y in zip(buffers[:2], before[:2], strict=True))
    return result


def edges(design: Loaded) -> list[int]:
    """Lengths around words, tiles, panels, and columns that share them."""
    panel, whole = design.panel, design.panel * design.columns
    near = [n + more for n in (TILE, panel, 3 * panel, whole, 2 * whole + panel) for more in (-1, 0, 1)]
    return [1, 2, 3, 5, *near, panel + 2, panel + 4, 3 * whole + 4]


@pytest.mark.parametrize("name", ["strix_halo", "phoenix"])
def test_a_whole_array_is_exact(name):
    design = loaded(name)
    whole = design.panel * design.columns
    for number, length in enumerate((3, design.panel + 4, whole + 1, 2 * whole + design.panel)):
        run_exactly(design, length, number, schedule=("random", "in-order")[number % 2], poison=number % 2 == 0)


@pytest.mark.parametrize("name", ["one core", "three rows"])
def test_every_kind_of_edge_is_exact(name):
    design = loaded(name)
    for number, length in enumerate(edges(design)):
        run_exactly(design, length, number, schedule=("in-order", "random")[number % 2], poison=number % 3 == 0)


@pytest.mark.parametrize("name", ["one core", "three rows"])
def test_random_lengths_are_exact(name):
    design, rng = loaded(name), np.random.default_rng(3)
    for number, length in enumerate(rng.integers(1, 5 * design.panel * design.columns, 10)):
        run_exactly(design, int(length), number, schedule="random")


def test_no_order_of_events_changes_a_result():
    design = loaded("three rows")
    for seed in range(5):
        run_exactly(design, 5 * design.panel + 12, seed, schedule="random", poison=True)


@pytest.mark.parametrize("name", ["one core", "three rows"])
def test_one_loaded_array_serves_problem_after_problem(name):
    """Odd and even numbers of tiles, and columns that have none: turns go on where the last problem left them."""
    design = loaded(name)
    operations, arrays, wanted = [], [], []
    for number, panels in enumerate((1, 2, 3, 1, 6)):
        problem = OPERATORS["elementwise"].problem([panels * design.panel])
        inputs, sequence = design.plan.random(problem, number), design.plan.sequence(problem)
        operations += [_of_arguments(operation, 3 * number) for operation in sequence.operations()]
        arrays += [*inputs.values(), np.zeros_like(inputs["A"])]
        wanted.append(expected(design, *inputs.values()))
    words = encode(operations, mlir_device_named(design.plan.mlir_device))
    emulate(design.mlir, arrays, design.kernels, instructions=words, permissive=["buffer-arguments"])
    for y, exact in zip(arrays[2::3], wanted, strict=True):
        same(y, exact)


def _of_arguments(operation: Operation, first: int) -> Operation:
    return replace(operation, argument=operation.argument + first) if isinstance(operation, Patch) else operation


def test_a_timed_run_gives_the_same_and_takes_longer_for_more():
    design = loaded("three rows")
    timing = TimingOptions(kernels=design.plan.kernels.cycles)
    runs = [run_exactly(design, panels * design.panel, timing=timing) for panels in (2, 8, 32)]
    seconds = [run.timing.seconds for run in runs]
    assert seconds == sorted(set(seconds))
