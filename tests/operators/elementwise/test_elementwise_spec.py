"""Specs of element-wise designs: read back as written, and refused with every reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bdforge.devices import device_named
from bdforge.devices.types import TYPES
from bdforge.operators import OPERATORS, SpecError, load_spec, plan, spec_from
from bdforge.operators.elementwise import ElementwiseSpec
from support.differences import same

DESIGNS = sorted((Path(__file__).resolve().parents[3] / "designs").glob("*.toml"))
LEAST: dict[str, Any] = {"kind": "elementwise", "function": "mul", "type": "int8", "tile": 64}

ANSWERS: dict[tuple[str, str], tuple[list[float], list[float], list[float]]] = {
    # A, B and Y; of int8 sums and products over 4, ties to even, saturated.
    ("add", "int8"): ([1, 3, 6, -7, 127, -128], [1, 3, 4, 1, 127, -128], [0, 2, 2, -2, 64, -64]),
    ("mul", "int8"): ([1, 3, 6, -7, 127, -128], [2, 2, 3, 2, 127, 127], [0, 2, 4, -4, 127, -128]),
    ("relu2_gate", "int8"): ([1, 3, -6, 5, 0, 100], [2, 2, 3, -2, 127, 127], [0, 4, 0, -12, 0, 127]),
    # 1 + 2^-8 is a tie of bfloat16, which has 8 bits: to even; 1 + 3 2^-8 as well.
    ("add", "bf16"): ([1, 1, -3, 1e38], [2**-8, 3 * 2**-8, 1, 1e38], [1, 1 + 2**-6, -2, 2e38]),
    ("mul", "bf16"): ([1.5, -3, 0, 257], [1.5, 5, -1, 1], [2.25, -15, -0.0, 256]),
    ("relu2_gate", "bf16"): ([-3, 3, -0.0, 1 + 2**-7], [5, -5, -1, 1], [0, -45, -0.0, 1 + 2**-6]),
}  # fmt: skip


@pytest.mark.parametrize(("function", "type_"), ANSWERS)
def test_the_reference_rounds_each_operation_once(function: str, type_: str):
    content = LEAST | {"function": function, "type": type_, "array": {"rows": 1, "columns": 1}}
    one = plan(
        spec_from(content | ({"narrowing": {"shift": 2}} if type_ == "int8" else {}), "mine"), device_named("phoenix")
    )
    a, b, wanted = (np.array(values).astype(TYPES[type_].dtype) for values in ANSWERS[function, type_])
    found = one.reference({"A": a, "B": b})["Y"]
    assert found.bound is None
    same(found.values, wanted, strict=True)
    same(np.signbit(found.values.astype(float)), np.signbit(wanted.astype(float)), "signs")


# To nine digits; GELU in its form with tanh.
NEAR = {
    "silu": ([0, 1, -2, 20, -20], [0, 0.731058579, -0.238405844, 20 - 4.12230724e-8, -4.12230724e-8]),
    "gelu": ([0, 1, -1, 3], [0, 0.841191990, -0.158808009, 2.996362695]),
    "silu_gate": ([0, 1, -2], [0, 2.193175736, -0.715217531]),
    "gelu_gate": ([1, -1], [2.523575972, -0.476424028]),
}


@pytest.mark.parametrize("function", NEAR)
def test_near_functions_have_a_bound_of_some_roundings(function: str):
    content = LEAST | {"function": function, "type": "bf16", "tile": 32, "array": {"rows": 1, "columns": 1}}
    given, wanted = NEAR[function]
    a = np.array(given).astype(TYPES["bf16"].dtype)
    found = plan(spec_from(content, "mine"), device_named("phoenix")).reference({"A": a, "B": np.full_like(a, 3)})["Y"]
    assert found.bound is not None
    np.testing.assert_allclose(found.values.astype(float), wanted, rtol=3e-8, atol=1e-15)
    roundings = 2 + function.endswith("gate")
    least = abs(np.array(wanted)) * roundings * 2**-8
    assert (found.bound >= least * 0.999).all()
    assert (found.bound <= least * 1.6 + 2**-110).all()


def test_random_operands_have_every_value_of_their_type():
    least = LEAST | {"array": {"rows": 1, "columns": 1}}
    for type_, ends in (("int8", (-128, 127)), ("bf16", None)):
        one = plan(spec_from(least | {"type": type_}, "mine"), device_named("strix_halo"))
        inputs = one.random(OPERATORS["elementwise"].problem([5000]), 1)
        assert [(name, array.shape, array.dtype) for name, array in inputs.items()] == [
            (name, (5000,), TYPES[type_].dtype) for name in "AB"
        ]
        for array in inputs.values():
            wide = array.astype(float)
            assert (wide.min(), wide.max()) == ends if ends else abs(wide.mean()) < 0.1 > abs(wide.std() - 1)
        assert (inputs["A"] != inputs["B"]).any()


@pytest.mark.parametrize(("length", "tiles"), [(1, 1), (1024, 1), (1025, 2), (2048, 2), (2049, 3)])
def test_the_busiest_core_has_what_does_not_go_round(length: int, tiles: int):
    """Panels of 4 x 128 on two columns; vectors of 64 int8, each one cycle of mul."""
    small = plan(spec_from(LEAST | {"tile": 128, "array": {"columns": 2}}, "mine"), device_named("strix_halo"))
    assert small.cost(OPERATORS["elementwise"].problem([length])).core_cycles == tiles * 2


def test_every_reason_is_told_at_once():
    content = LEAST | {"array": {"columns": 8}, "stack_bytes": 1000, "type": "bf16", "narrowing": {"shift": 1}}
    with pytest.raises(SpecError) as refused:
        plan(spec_from(content, "mine"), device_named("phoenix"))
    assert len(str(refused.value).splitlines()) == 3


def test_a_run_costs_what_it_moves_and_the_busiest_core_computes():
    """Nine panels of 4 x 128 int8 on four columns: the first has three, of which each core computes a tile each."""
    small = plan(spec_from(LEAST | {"tile": 128, "function": "relu2_gate"}, "mine"), device_named("phoenix"))
    cost = small.cost(OPERATORS["elementwise"].problem([9 * 512]))
    assert (cost.operations, cost.read_bytes, cost.write_bytes) == (4608, 9216, 4608)
    assert (cost.channel_bytes, cost.run_bytes) == (3 * 512, 2 * 512)
    assert cost.core_cycles == 3 * (128 // 32) * 3
    assert small.kernels.cycles == {"elementwise_i8": 12}


@pytest.mark.parametrize("product", ["strix_halo", "phoenix"])  # other products have these arrays
def test_designs_use_every_core_of_every_array(product):
    specs = [spec for spec in map(load_spec, DESIGNS) if isinstance(spec, ElementwiseSpec)]
    assert {spec.form.type for spec in specs} == {"bf16", "int8"}
    device = device_named(product)
    for spec in specs:
        assert OPERATORS["elementwise"].fits(spec, device)
        cores = [tile for tile in plan(spec, device).design.tiles if tile.core]
        assert len(cores) == device.columns * device.core_rows
