"""Rows in another type on the emulated array with their compiled kernels: any number of rows, whatever the schedule."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, spec_from
from bdforge.operators.convert import ConvertSpec, plan_convert
from bdforge.perf.assembled.counted_core import core_elfs
from support.differences import same
from support.loaded_arrays import LoadedArray

FUNCTIONS = (
    "quantise", "scale_int32", "f32_to_bf16", "int8_to_bf16", "bf16_to_f32", "dequantise", "quantise_f32",
    "dequantise_int32",
)  # fmt: skip
PLACES = {
    "strix_halo": {"width": 128, "array": {"columns": 2}},
    "phoenix": {"width": 96, "array": {"rows": 3, "columns": 2}},
    "one core": {"width": 64, "array": {"rows": 1, "columns": 1}, "buffers": 1},
    "in chunks": {"width": 768, "array": {"rows": 4, "columns": 1}, "stack_bytes": 62464},
    "phoenix in chunks": {"width": 288, "array": {"rows": 3, "columns": 2}, "buffers": 1, "stack_bytes": 64768},
}
"""Those in chunks leave cores room for some vectors."""


@cache
def loaded(function: str, place: str) -> LoadedArray:
    product = "phoenix" if place.startswith("phoenix") else "strix_halo"
    spec = {"kind": "convert", "function": function} | PLACES[place]
    return LoadedArray.of(plan(spec_from(spec, "small"), device_named(product)))


def run(function: str, place: str, rows: int, seed: int, **options: Any) -> None:
    design = loaded(function, place)
    inputs = design.plan.random(design.problem([rows]), seed)
    if inputs["X"].dtype.kind != "i":
        inputs["X"][::3] *= 100
        inputs["X"][0] = 0
    found, _ = design.run([rows], inputs, seed=seed, **options)
    for name, wanted in design.plan.reference(inputs).items():
        bound = 0 if wanted.bound is None else wanted.bound
        assert (abs(found[name].astype(float) - wanted.values.astype(float)) <= bound).all()
    if function in ("dequantise_int32", "scale_int32"):
        exact = inputs["X"].astype(float) * inputs["S"].astype(float)[:, None] * inputs["C"].astype(float)
        off = 2.0**-8 * 1.001 if function == "dequantise_int32" else 2.0**-20
        assert (abs(found["Y"].astype(float) - exact) <= off * abs(exact)).all()
    if function.startswith("quantise"):
        x, scale = inputs["X"].astype(float), found["S"].astype(float)[:, None]
        assert (abs(found["Y"] * scale - x) <= 0.5001 * scale).all()
        assert (abs(found["Y"]).max(axis=1) == np.where(scale[:, 0] > 0, 127, 0)).all()


@pytest.mark.daily("quantise")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_of_every_kind_of_edge_and_order(function):
    for number, (place, rows) in enumerate((("strix_halo", 19), ("phoenix", 13), ("one core", 5))):
        run(function, place, rows, number, schedule=("random", "in-order")[number % 2], poison=number < 2)


@pytest.mark.daily("dequantise")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_rows_that_no_core_holds_come_in_chunks(function):
    for number, (place, rows) in enumerate((("in chunks", 13), ("phoenix in chunks", 7), ("in chunks", 1))):
        assert loaded(function, place).plan.tiling.chunks > 1
        run(function, place, rows, number, schedule=("random", "in-order")[number % 2], poison=number < 2)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("product", ["strix_halo", "phoenix"])
def test_rows_of_16384_are_planned(product, function):
    spec = ConvertSpec.load({"kind": "convert", "function": function, "width": 16384}, "wide", "wide")
    tiling = plan_convert(spec, device_named(product)).tiling
    assert (tiling.chunks > 1, tiling.rows) == (True, 2 if function == "scale_int32" else 4)


def test_many_panels_of_codes_and_scales_in_turn():
    run("quantise", "one core", 141, 3, schedule="random")


CHUNKED = PLACES["in chunks"]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("function", "changes"),
    [
        ("dequantise_int32", {}), ("scale_int32", {}), ("quantise_f32", {}), ("quantise", CHUNKED),
        ("quantise_f32", CHUNKED), ("dequantise_int32", CHUNKED), ("dequantise", CHUNKED),
    ],
)  # fmt: skip
def test_machine_code_has_the_bits_of_compiled_kernels_in_any_order(function, changes):
    content = {"kind": "convert", "function": function, "width": 192, "array": {"columns": 1}} | changes
    design = LoadedArray.of(plan(spec_from(content, "m"), device_named("strix_halo")))
    elfs = core_elfs(design.plan, design.mlir)
    for rows, schedule in ((3, "in-order"), (13, "random")):
        inputs = design.plan.random(design.problem([rows]), rows)
        least = -(2**31) if inputs["X"].dtype.itemsize == 4 else -128
        inputs["X"][-1] = np.where(np.arange(content["width"]) % 2, least, 0)
        inputs.get("C", np.zeros(2))[..., :2] = 0
        wanted, _ = design.run([rows], inputs)
        found, _ = design.run([rows], inputs, elfs=elfs, schedule=schedule, seed=rows, poison=True)
        for name, reference in design.plan.reference(inputs).items():
            same(found[name].view(np.uint8), wanted[name].view(np.uint8))
            bound = 0 if reference.bound is None else reference.bound
            assert (abs(found[name].astype(float) - reference.values) <= bound).all()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"width": 96}, "width = 96 is no multiple of 64, a vector of int8"),
        ({"width": 20480, "stack_bytes": 65408}, "buffers = 1"),
        (
            {"function": "dequantise", "width": 16448},
            "is 257 vectors: a core holds no whole row, and DMAs walk no chunks",
        ),
        ({"function": "halve"}, "quantise"),
    ],
)
def test_what_no_array_holds_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        plan(
            spec_from({"kind": "convert", "function": "quantise", "width": 64} | changes, "m"),
            device_named("strix_halo"),
        )
