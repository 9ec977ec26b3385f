"""Softmax of rows on the emulated array with its compiled kernels: any number of rows, whatever the schedule."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, spec_from
from bdforge.operators.softmax import SoftmaxSpec, plan_softmax
from support.loaded_arrays import LoadedArray

WIDTH, SCALE = 96, 0.25
LEAST: dict[str, Any] = {"kind": "softmax", "width": WIDTH, "scale": SCALE}
DESIGNS = {
    "strix_halo": {},
    "phoenix": {"width": 80},
    "one core": {"array": {"rows": 1, "columns": 1}},
    "one buffer": {"buffers": 1, "array": {"rows": 3, "columns": 2}},
    "in chunks": {"width": 480, "stack_bytes": 64000, "array": {"rows": 4, "columns": 2}},
}


@cache
def loaded(name: str) -> LoadedArray:
    product = name if name in ("strix_halo", "phoenix") else "strix_halo"
    return LoadedArray.of(plan(spec_from(LEAST | DESIGNS[name], "small"), device_named(product)))


def check(x: np.ndarray, found: np.ndarray) -> None:
    """As the formula in float64, row by row; masked elements are 0, rows of them alone uniform."""
    assert found.shape == x.shape
    for row, y in zip(x.astype(float), found.astype(float), strict=True):
        row = np.zeros_like(row) if np.isneginf(row).all() else row
        e = np.exp(SCALE * (row - row.max()))
        assert (abs(y - e / e.sum()) <= 2.0**-7 * 1.2 * e / e.sum() + 1e-9).all()
        assert not y[np.isneginf(row)].any()


def run(name: str, rows: int, seed: int = 0, **options: Any) -> None:
    design = loaded(name)
    inputs = design.plan.random(design.problem([rows]), seed)
    inputs["X"][::2] *= 8
    inputs["X"][::3, ::5] = -np.inf
    found, _ = design.run([rows], inputs, seed=seed, **options)
    check(inputs["X"], found["Y"])
    reference = design.plan.reference(inputs)["Y"]
    assert (abs(found["Y"].astype(float) - reference.values) <= reference.bound).all()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "rows"), [("strix_halo", 41), ("phoenix", 19)])
def test_a_whole_array_keeps_to_the_bound(name, rows):
    run(name, rows, 1, schedule="random", poison=True)


@pytest.mark.daily("one core")
@pytest.mark.parametrize("name", ["one core", "one buffer", "in chunks"])
def test_every_kind_of_edge_and_order(name):
    for number, rows in enumerate((1, 13) if name == "in chunks" else (1, 2, 3, 5, 6, 7, 13)):
        run(name, rows, number, schedule=("in-order", "random")[number % 2], poison=number % 3 == 0)


def test_hostile_rows_keep_to_the_bound():
    design, x = loaded("one buffer"), np.zeros((8, WIDTH))
    x[1], x[2, 5], x[3, -1], x[4], x[5], x[6, 1:] = 1, 3e4, 3e38, -np.inf, -3e38, -np.inf
    inputs = design.plan.random(design.problem([8]), 1)
    inputs["X"] = x.astype(inputs["X"].dtype)
    check(inputs["X"], design.run([8], inputs)[0]["Y"])


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 48}, "width = 48 is no multiple of 32"),
        ({"width": 32800}, "width = 32800 is above 32768"),
        ({"scale": 0}, "scale"),
        ({"array": {"columns": 9}}, "columns"),
    ],
)
def test_what_no_array_holds_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        plan(spec_from(LEAST | changes, "mine"), device_named("strix_halo"))


@pytest.mark.parametrize("product", ["strix_halo", "phoenix"])
def test_rows_of_32768_fit_all_cores(product):
    spec = SoftmaxSpec.load(LEAST | {"width": 32768}, "mine", "mine")
    tiling = plan_softmax(spec, device_named(product)).tiling
    assert (tiling.rows, tiling.columns, tiling.chunks) == (4, device_named(product).columns, 8)
