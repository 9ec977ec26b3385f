"""Specs of element-wise designs: read back as written, and refused with every reason."""

from pathlib import Path
from typing import Any

import pytest

from bdforge.devices import DEVICES, device_named
from bdforge.operators import OPERATORS, SpecError, load_spec, plan, spec_from
from bdforge.operators.elementwise import ElementwiseSpec

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

WRONG_PLANS = {
    "array.columns = 8, but phoenix has 4": {"array": {"columns": 8}},
    "array.device = npu2, but phoenix is an npu1": {"array": {"device": "npu2"}},
    "stack_bytes = 1000 is not a multiple of 32": {"stack_bytes": 1000},
    "narrowing is of integers": {"type": "bf16", "narrowing": {"shift": 1}},
    "narrowing is of integers; leave it out": {"type": "bf16", "narrowing": {"rounding": "floor"}},
    "a tile, ping: 48 bytes are not a multiple of 32": {"tile": 48},
    "a smaller tile or stack_bytes": {"tile": 16384},
}


@pytest.mark.parametrize("told", WRONG_FILES)
def test_a_file_is_refused_with_the_place(told):
    with pytest.raises(SpecError) as refused:
        spec_from(LEAST | WRONG_FILES[told], "mine", "mine.toml")
    assert f"mine.toml: {told}" in str(refused.value)


@pytest.mark.parametrize("told", WRONG_PLANS)
def test_a_plan_is_refused_with_the_value(told):
    with pytest.raises(SpecError) as refused:
        plan(spec_from(LEAST | WRONG_PLANS[told], "mine"), device_named("phoenix"))
    assert told in str(refused.value)


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
