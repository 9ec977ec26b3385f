"""Norms of rows on the emulated array with their compiled kernels: any number of rows, whatever the schedule."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator.timed import TimingOptions
from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, spec_from
from support.loaded_arrays import LoadedArray

WIDTH, EPSILON = 96, 1e-3
LEAST: dict[str, Any] = {"kind": "rows", "function": "rmsnorm", "width": WIDTH, "epsilon": EPSILON}
DESIGNS = {
    "strix_halo": {},
    "phoenix": {"width": 80},
    "one core": {"array": {"rows": 1, "columns": 1}},
    "one buffer": {"buffers": 1, "array": {"rows": 3, "columns": 2}},
}


@cache
def loaded(name: str) -> LoadedArray:
    product = name if name in ("strix_halo", "phoenix") else "strix_halo"
    return LoadedArray.of(plan(spec_from(LEAST | DESIGNS[name], "small"), device_named(product)))


def check(inputs, found) -> None:
    """As the formula in float64, within two roundings and a little; the reference's bound is no wider."""
    x, w = (inputs[name].astype(float) for name in "XW")
    exact = x * w / np.sqrt((x * x).mean(axis=1) + EPSILON)[:, None]
    assert found["Y"].shape == x.shape
    assert (abs(found["Y"].astype(float) - exact) <= 2.0**-7 * 1.04 * abs(exact) + 2.0**-120).all()


def run(name: str, rows: int, seed: int = 0, **options: Any) -> Any:
    design = loaded(name)
    inputs = design.plan.random(design.problem([rows]), seed)
    found, result = design.run([rows], inputs, seed=seed, **options)
    check(inputs, found)
    reference = design.plan.reference(inputs)["Y"]
    assert (abs(found["Y"].astype(float) - reference.values) <= reference.bound).all()
    return result


@pytest.mark.parametrize("name", ["strix_halo", "phoenix"])
def test_a_whole_array_keeps_to_the_bound(name):
    for seed, rows in enumerate((3, 41)):
        run(name, rows, seed, schedule="random", poison=True)


@pytest.mark.parametrize("name", ["one core", "one buffer"])
def test_every_kind_of_edge_and_order(name):
    for number, rows in enumerate((1, 2, 3, 4, 5, 6, 7, 12, 13, 18, 19)):
        run(name, rows, number, schedule=("in-order", "random")[number % 2], poison=number % 3 == 0)


@pytest.mark.parametrize("name", ["one core", "one buffer"])
def test_one_loaded_array_serves_problem_after_problem_with_other_weights(name):
    design, sizes = loaded(name), [[rows] for rows in (3, 6, 1, 7, 12)]
    problems = [(size, design.plan.random(design.problem(size), seed)) for seed, size in enumerate(sizes)]
    for (_, inputs), found in zip(problems, design.run_in_turn(problems), strict=True):
        check(inputs, found)


def test_rows_of_zeros_and_spikes_keep_to_the_bound():
    design, x = loaded("one buffer"), np.zeros((7, WIDTH))
    x[1], x[2, 5], x[3, :2], x[4], x[5] = 1, 1e4, (-1e-6, 1e-6), np.arange(WIDTH), -1e18
    inputs = design.plan.random(design.problem([7]), 1)
    inputs["X"] = x.astype(inputs["X"].dtype)
    check(inputs, design.run([7], inputs)[0])


def test_more_rows_take_longer():
    timing = TimingOptions(kernels=loaded("one buffer").plan.kernels.cycles)
    seconds = [run("one buffer", rows, timing=timing).timing.seconds for rows in (3, 30, 90)]
    assert seconds == sorted(set(seconds))


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 48}, "width = 48 is no multiple of 32"),
        ({"width": 32800}, "buffers = 1"),
        ({"width": 6144}, "buffers = 1"),
        ({"epsilon": 0}, "epsilon"),
        ({"function": "softmax"}, "rmsnorm"),
        ({"array": {"columns": 9}}, "columns"),
    ],
)
def test_what_no_array_holds_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        plan(spec_from(LEAST | changes, "mine"), device_named("strix_halo"))


def test_the_widest_rows_of_the_page_are_planned():
    for width, buffers in ((6112, 2), (10208, 1)):
        plan(spec_from(LEAST | {"width": width, "buffers": buffers}, "mine"), device_named("strix_halo"))
        with pytest.raises(SpecError):
            plan(spec_from(LEAST | {"width": width + 32, "buffers": buffers}, "mine"), device_named("strix_halo"))
