"""Specs of element-wise designs: read back as written, and refused with every reason."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from bdforge.devices import DEVICES, device_named
from bdforge.devices.types import TYPES
from bdforge.operators import OPERATORS, SpecError, load_spec, plan, spec_from
from bdforge.operators.elementwise import ElementwiseSpec
from support.differences import same

DESIGNS = sorted((Path(__file__).resolve().parents[3] / "designs").glob("*.toml"))
LEAST: dict[str, Any] = {"kind": "elementwise", "function": "mul", "type": "int8", "tile": 64}

WRONG_FILES = {
    "function: input should be 'add', 'mul' or 'relu2_gate'": {"function": "sub"},
    "type: input should be 'int8' or 'bf16'": {"type": "f32"},
    "tile: input should be greater than or equal to 1": {"tile": 0},
    "tile: input should be a valid integer": {"tile": 64.0},
    "narrowing.shift: input should be less than or equal to 31": {"narrowing": {"shift": 32}},
    "narrowing.rounding: input should be": {"narrowing": {"rounding": "up"}},
    "problems.0.length: input should be greater than or equal to 1": {"problems": [{"length": 0}]},
    "problems.0.length: missing": {"problems": [{"M": 4}]},
    "layouts: unexpected key": {"layouts": {"a": "row"}},
    "sequence.wait = 'never' is unknown": {"sequence": {"wait": "never"}},
}


@pytest.mark.parametrize("told", WRONG_FILES)
def test_a_file_is_refused_with_the_place(told):
    with pytest.raises(SpecError) as refused:
        spec_from(LEAST | WRONG_FILES[told], "mine", "mine.toml")
    assert f"mine.toml: {told}" in str(refused.value)


CHECKS: dict[str, tuple[str, list[dict[str, Any]], list[dict[str, Any]]]] = {
    # by what is said: the product, those that are taken, those that are refused.
    "array.columns = 5, but phoenix has 4": ("phoenix", [{"array": {"columns": 4}}], [{"array": {"columns": 5}}]),
    "but strix_halo is an npu2": ("strix_halo", [{"array": {"device": "npu2"}}], [{"array": {"device": "npu1"}}]),
    "is not a multiple of 64; the buffers": ("strix_halo", [{"stack_bytes": 1088}], [{"stack_bytes": 1056}]),
    "is not a multiple of 32; the buffers": ("phoenix", [{"stack_bytes": 1056}], [{"stack_bytes": 1040}]),
    "bytes are not a multiple of 64; use a larger tile": (
        "strix_halo", [{"tile": 128}, {"tile": 32, "type": "bf16"}], [{"tile": 96}, {"tile": 48, "type": "bf16"}],
    ),
    "bytes are not a multiple of 32; use a larger tile": (
        "phoenix", [{"tile": 96}, {"tile": 16, "type": "bf16"}], [{"tile": 112}, {"tile": 24, "type": "bf16"}],
    ),
    "narrowing is of integers; leave it out": (
        "phoenix",
        [{"narrowing": {"shift": 1}}, {"narrowing": {"rounding": "ceil"}}, {"type": "bf16", "narrowing": {"shift": 0}}],
        [{"type": "bf16", "narrowing": {"shift": 1}}, {"type": "bf16", "narrowing": {"rounding": "floor"}}],
    ),
    # 6 tiles, 4096 bytes of stack and 64 of parameters in 65536.
    "a smaller tile or stack_bytes": ("strix_halo", [{"tile": 10176}], [{"tile": 10240}]),
}  # fmt: skip


@pytest.mark.parametrize("said", CHECKS)
def test_a_check_takes_the_last_and_refuses_the_next(said: str):
    product, taken, refused = CHECKS[said]
    least = LEAST | {"array": {"rows": 1, "columns": 1}}
    for case in taken:
        assert plan(spec_from(least | case, "mine"), device_named(product)).device.name == product
    for case in refused:
        with pytest.raises(SpecError) as caught:
            plan(spec_from(least | case, "mine"), device_named(product))
        assert said in str(caught.value), f"{case} is refused"


@pytest.mark.parametrize(("content", "wanted"), [
    ({}, "elementwise_i8 FUNCTION=mul TILE_ELEMENTS=64 SHIFT=0 ROUNDING=conv_even"),
    (
        {"narrowing": {"shift": 9, "rounding": "floor"}},
        "elementwise_i8 FUNCTION=mul TILE_ELEMENTS=64 SHIFT=9 ROUNDING=floor",
    ),
    ({"type": "bf16", "function": "add", "tile": 96}, "elementwise_bf16 FUNCTION=add TILE_ELEMENTS=96"),
])  # fmt: skip
def test_cores_call_one_function_with_what_the_spec_says(content: dict[str, Any], wanted: str):
    least = LEAST | {"array": {"rows": 1, "columns": 1}}
    kernels = plan(spec_from(least | content, "mine"), device_named("strix_halo")).kernels
    assert " ".join((*kernels.symbols, *kernels.defines)) == wanted
    assert kernels.sources == (f"kernels/aie2p/{kernels.symbols[0]}.cc",)


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


@pytest.mark.parametrize(("array", "products"), [
    ({}, "phoenix strix_halo"), ({"columns": 4}, "phoenix strix_halo"), ({"columns": 5}, "strix_halo"),
    ({"device": "npu1"}, "phoenix"), ({"device": "npu2", "columns": 1}, "strix_halo"),
    ({"device": "npu1", "columns": 5}, ""),
])  # fmt: skip
def test_a_design_is_for_products_with_its_array_and_columns(array: dict[str, Any], products: str):
    gemv = {"kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"}, "tile": {"k": 64, "n": 32}}
    for content in (LEAST, gemv):
        spec = spec_from(content | {"array": array}, "mine")
        named = [name for name in ("phoenix", "strix_halo") if OPERATORS[spec.kind].fits(spec, device_named(name))]
        assert " ".join(named) == products


def test_every_reason_is_told_at_once():
    content = LEAST | {"array": {"columns": 8}, "stack_bytes": 1000, "type": "bf16", "narrowing": {"shift": 1}}
    with pytest.raises(SpecError) as refused:
        plan(spec_from(content, "mine"), device_named("phoenix"))
    assert len(str(refused.value).splitlines()) == 3


def test_content_is_read_back():
    content = LEAST | {"array": {"rows": 2, "columns": 3, "device": "npu1"}, "problems": [{"name": "x", "length": 7}]}
    spec = spec_from(content, "mine")
    again = spec_from(spec.content, "mine")
    assert (again, again.hash) == (spec, spec.hash)
    assert str(spec.problems[0]) == "7"


def test_only_what_configures_the_array_is_in_the_hash():
    plain = spec_from(LEAST, "mine").hash
    assert spec_from(LEAST | {"problems": [{"length": 7}], "sequence": {"wait": "wide"}}, "mine").hash == plain
    others = [{"function": "add"}, {"tile": 128}, {"narrowing": {"shift": 1}}, {"array": {"columns": 4}}]
    assert len({plain, *(spec_from(LEAST | other, "mine").hash for other in others)}) == 5


def test_a_run_costs_what_it_moves_and_the_busiest_core_computes():
    """Nine panels of 4 x 128 int8 on four columns: the first has three, of which each core computes a tile each."""
    small = plan(spec_from(LEAST | {"tile": 128, "function": "relu2_gate"}, "mine"), device_named("phoenix"))
    cost = small.cost(OPERATORS["elementwise"].problem([9 * 512]))
    assert (cost.operations, cost.read_bytes, cost.write_bytes) == (4608, 9216, 4608)
    assert (cost.channel_bytes, cost.run_bytes) == (3 * 512, 2 * 512)
    assert cost.core_cycles == 3 * (128 // 32) * 3
    assert small.kernels.cycles == {"elementwise_i8": 12}


@pytest.mark.parametrize("product", DEVICES)
def test_designs_use_every_core_of_every_product(product):
    specs = [spec for spec in map(load_spec, DESIGNS) if isinstance(spec, ElementwiseSpec)]
    assert {spec.form.type for spec in specs} == {"bf16", "int8"}
    device = device_named(product)
    for spec in specs:
        assert OPERATORS["elementwise"].fits(spec, device)
        cores = [tile for tile in plan(spec, device).design.tiles if tile.core]
        assert len(cores) == device.columns * device.core_rows
