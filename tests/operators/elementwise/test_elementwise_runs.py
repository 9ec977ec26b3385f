"""Element-wise designs on the emulated array with their compiled kernels: any length, exact, whatever the schedule."""

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

import ml_dtypes
import numpy as np
import pytest

from bdforge.array.emulator.timed import TimingOptions
from bdforge.devices import device_named
from bdforge.operators import plan, spec_from
from support.differences import same
from support.loaded_arrays import LoadedArray

TILE = 64
DESIGNS: dict[str, dict[str, Any]] = {
    "strix_halo": {"function": "mul", "type": "int8", "narrowing": {"shift": 6}},
    "phoenix": {"function": "relu2_gate", "type": "bf16"},
    "one core": {"function": "add", "type": "bf16", "array": {"rows": 1, "columns": 1}},
    "one operand": {"function": "gelu", "type": "bf16", "array": {"rows": 3, "columns": 2}},
    "a gate": {"function": "silu_gate", "type": "bf16", "array": {"rows": 2, "columns": 1}},
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
NEAR: Mapping[str, Callable[..., np.ndarray]] = {
    "gelu": lambda a: a / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (a + 0.044715 * a**3))),
    "silu_gate": lambda a, b: a / (1 + np.exp(-a)) * b,
}


class LoadedElementwise(LoadedArray):
    """A design whose results are compared with float64's."""

    @property
    def panel(self) -> int:
        return self.plan.tiling.panel

    @property
    def columns(self) -> int:
        return self.plan.tiling.columns

    def exact(self, length: int, seed: int = 0, **options: Any) -> Any:
        """Run the words of a length and compare every element."""
        inputs = self.plan.random(self.problem([length]), seed)
        found, result = self.run([length], inputs, seed=seed, **options)
        reference = self.plan.reference(inputs)["Y"]
        if self.plan.spec.form.function in NEAR:
            wanted = NEAR[self.plan.spec.form.function](*(x.astype(float) for x in inputs.values()))
            assert (abs(found["Y"].astype(float) - wanted) <= 2**-6 * abs(wanted) + 2**-60).all()
            assert (abs(found["Y"].astype(float) - reference.values) <= reference.bound).all()
            return result
        same(found["Y"], self.expected(**inputs), strict=True)
        same(reference.values, found["Y"], strict=True)
        return result

    def expected(self, A: np.ndarray, B: np.ndarray) -> np.ndarray:
        spec = self.plan.spec.form
        wide, function = (A.astype(float), B.astype(float)), EXACT[spec.function]
        if spec.type == "int8":
            return np.clip(np.rint(function(*wide, lambda x: x) / 2**spec.narrowing.shift), -128, 127).astype(np.int8)
        return function(*wide, lambda x: x.astype(ml_dtypes.bfloat16).astype(float)).astype(ml_dtypes.bfloat16)


@cache
def loaded(name: str) -> LoadedElementwise:
    spec = spec_from({"kind": "elementwise", "tile": TILE, **DESIGNS[name]}, "small")
    return LoadedElementwise.of(plan(spec, device_named(name if name in ("strix_halo", "phoenix") else "strix_halo")))


def edges(design: LoadedElementwise) -> list[int]:
    """Lengths around words, tiles, panels, and columns that share them."""
    panel, whole = design.panel, design.panel * design.columns
    near = [n + more for n in (TILE, panel, 3 * panel, whole, 2 * whole + panel) for more in (-1, 0, 1)]
    return [1, 2, 3, 5, *near, panel + 2, panel + 4, 3 * whole + 4]


@pytest.mark.slow
@pytest.mark.parametrize("name", ["strix_halo", "phoenix"])
def test_a_whole_array_is_exact(name):
    design = loaded(name)
    whole = design.panel * design.columns
    for seed, length in enumerate((3, whole + design.panel + 1)):
        design.exact(length, seed, schedule="random", poison=True)


@pytest.mark.daily("one core")
@pytest.mark.parametrize("name", ["one core", "three rows", "one operand", "a gate"])
def test_every_kind_of_edge_is_exact(name):
    design = loaded(name)
    for number, length in enumerate(edges(design)):
        design.exact(length, number, schedule=("in-order", "random")[number % 2], poison=number % 3 == 0)


@pytest.mark.daily("one core")
@pytest.mark.parametrize("name", ["one core", "three rows"])
def test_random_lengths_are_exact(name):
    design, rng = loaded(name), np.random.default_rng(3)
    for number, length in enumerate(rng.integers(1, 5 * design.panel * design.columns, 10)):
        design.exact(int(length), number, schedule="random")


def test_no_order_of_events_changes_a_result():
    design = loaded("three rows")
    for seed in range(5):
        design.exact(5 * design.panel + 12, seed, schedule="random", poison=True)


@pytest.mark.parametrize("name", ["one core", "three rows"])
def test_one_loaded_array_serves_problem_after_problem(name):
    """Odd and even numbers of tiles, and columns that have none: turns go on where the last problem left them."""
    design = loaded(name)
    lengths = [[panels * design.panel] for panels in (1, 2, 3, 1, 6)]
    problems = [(length, design.plan.random(design.problem(length), seed)) for seed, length in enumerate(lengths)]
    for (_, inputs), found in zip(problems, design.run_in_turn(problems), strict=True):
        same(found["Y"], design.expected(**inputs))


def test_a_timed_run_gives_the_same_and_takes_longer_for_more():
    design = loaded("three rows")
    timing = TimingOptions(kernels=design.plan.kernels.cycles)
    runs = [design.exact(panels * design.panel, timing=timing) for panels in (2, 8, 32)]
    seconds = [run.timing.seconds for run in runs]
    assert seconds == sorted(set(seconds))
