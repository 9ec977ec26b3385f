"""Transposes on the emulated array, of compiled kernels and of machine code: any size, whatever the schedule."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators import SpecError, operator_of, plan, spec_from
from bdforge.perf.assembled.counted_core import core_elfs
from support.differences import same
from support.loaded_arrays import LoadedArray

SMALL = {"rows": 4, "columns": 2}
DESIGNS: dict[str, dict[str, Any]] = {
    "strix_halo": {"type": "bf16", "tile": {"m": 16, "n": 8}},
    "phoenix": {"type": "int8", "tile": {"m": 8, "n": 16}},
    "bytes": {"type": "int8", "tile": {"m": 16, "n": 24}, "array": SMALL},
    "halves": {"type": "bf16", "tile": {"m": 24, "n": 16}, "array": SMALL, "buffers": 1},
    "words": {"type": "f32", "tile": {"m": 8, "n": 4}, "array": {"rows": 1, "columns": 3}},
}
SHAPES = ((1, 1), (1, 70), (16, 96), (47, 130), (129, 97))


@cache
def loaded(name: str) -> LoadedArray:
    product = name if name in ("strix_halo", "phoenix") else "strix_halo"
    return LoadedArray.of(plan(spec_from({"kind": "transpose"} | DESIGNS[name], "small"), device_named(product)))


def check(name: str, shape: tuple[int, int], number: int, **options: Any) -> None:
    """Bits of elements, whatever they mean."""
    design = loaded(name)
    inputs = design.plan.random(design.problem(shape), number)
    how = ("in-order", "random")[number % 2]
    found, _ = design.run(shape, inputs, seed=number, schedule=how, poison=number % 3 == 0, **options)
    unsigned = f"u{inputs['X'].dtype.itemsize}"
    assert found["Y"].shape == shape[::-1]
    same(found["Y"].view(unsigned), np.ascontiguousarray(inputs["X"].T).view(unsigned))
    same(design.plan.reference(inputs)["Y"].values.astype(found["Y"].dtype).view(unsigned), found["Y"].view(unsigned))


def one_daily(daily: str) -> list[Any]:
    """The designs of which the sweep alone runs all but one."""
    names = ("bytes", "halves", "words")
    return [pytest.param(name, marks=() if name == daily else pytest.mark.slow) for name in names]


@pytest.mark.slow
@pytest.mark.parametrize("name", one_daily("words"))
def test_every_edge_is_turned(name):
    for number, shape in enumerate(SHAPES):
        check(name, shape, number)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "shape"), [("strix_halo", (300, 70)), ("phoenix", (71, 130))])
def test_a_whole_array_turns(name, shape):
    check(name, shape, 1)


def test_more_tiles_than_a_task_has_runs():
    check("words", (8 * (3 * 64 + 5) + 3, 9), 1)


@pytest.mark.slow
@pytest.mark.parametrize("name", one_daily("halves"))
def test_machine_code_turns(name):
    design = loaded(name)
    check(name, (33, 65), 1, elfs=core_elfs(design.plan, design.mlir))


@pytest.mark.parametrize(
    ("changes", "sizes", "said"),
    [
        ({"tile": {"m": 12, "n": 8}}, (1, 1), "tile.m = 12 is no multiple of 8"),
        ({"tile": {"m": 128, "n": 128}}, (1, 1), "buffers = 1, a smaller tile"),
        ({}, (1, 200_000), "N = 200000 is above 131072: a BD's step of 16 lines; split N"),
        ({}, (40_000, 40_000), "M x N = 40000 x 40000 take 1600000000 elements"),
        ({}, (3, 131_073), "N = 131073 is above"),
        ({"tile": {"m": 8, "n": 8}}, (32_760, 32_760), "M x N = 32760 x 32760 take .* steps, above 4096"),
    ],
)
def test_what_no_array_holds_is_refused(changes, sizes, said):
    spec = spec_from({"kind": "transpose"} | DESIGNS["strix_halo"] | changes, "mine")
    with pytest.raises(SpecError, match=said):
        plan(spec, device_named("strix_halo")).sequence(operator_of(spec).problem(sizes))
