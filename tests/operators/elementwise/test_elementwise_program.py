"""What the shims are told for any length: every element goes through once or, where a panel moved back, twice alike."""

import numpy as np
import pytest

from bdforge.design import rtp_addresses
from bdforge.design.sequences import Start, Stored
from bdforge.devices import device_named
from bdforge.devices.registers import split_address
from bdforge.operators import OPERATORS
from bdforge.operators.elementwise import ElementwiseSpec, plan_elementwise
from bdforge.operators.stream_plan import StreamPlan
from bdforge.operators.stream_program import LARGEST_LENGTH

LEAST = {"kind": "elementwise", "function": "add"}
CASES = {
    "strix_halo": ("strix_halo", {"type": "bf16", "tile": 1024}),
    "phoenix": ("phoenix", {"type": "int8", "tile": 2048}),
    "one core": ("strix_halo", {"type": "int8", "tile": 64, "array": {"rows": 1, "columns": 1}}),
    "2 x 3": ("phoenix", {"type": "bf16", "tile": 32, "array": {"rows": 2, "columns": 3}}),
}


def planned(name: str) -> StreamPlan:
    product, content = CASES[name]
    return plan_elementwise(ElementwiseSpec.load(LEAST | content, "small"), device_named(product))


def runs_of(plan: StreamPlan, length: int) -> tuple[dict[tuple[int, str], list[tuple[int, int]]], dict[int, int], int]:
    """(first, elements) of each run, by argument and column; tiles by column, as cores are told; elements walked."""
    sequence = plan.sequence(OPERATORS["elementwise"].problem([length]))
    found: dict = {}
    for task in sequence.tasks():
        assert (task.runs, task.token) == (1, task.direction == "S2MM")
        for bd in task.bds:
            assert bd.pattern.is_linear
            found.setdefault((task.column, "ABY"[bd.argument]), []).append((bd.pattern.offset, bd.pattern.sizes[0]))
    stored = [item for e in sequence.events if isinstance(e, Start) for item in e.items if isinstance(item, Stored)]
    told = {core.parameters for core in rtp_addresses(plan.design)}
    tiles: dict[int, set[int]] = {}
    for item in stored:
        if item.address in told:
            tiles.setdefault(split_address(item.address)[0], set()).update(item.values)
    assert all(len(values) == 1 for values in tiles.values())
    return found, {column: values.pop() for column, values in tiles.items()}, sequence.elements[0]


def lengths(plan: StreamPlan) -> list[int]:
    panel, columns, rng = plan.tiling.panel, plan.tiling.columns, np.random.default_rng(5)
    near = [panel * n + more for n in (1, 2, columns, columns + 1, 5 * columns - 1) for more in (-1, 0, 1, 4)]
    return [1, 2, 3, 7, *near, *map(int, 2 ** rng.uniform(0, 30, 60)), LARGEST_LENGTH - 1, LARGEST_LENGTH]


@pytest.mark.parametrize("name", CASES)
def test_every_length_is_covered_within_its_bounds(name):
    plan = planned(name)
    panel, bits = plan.tiling.panel, plan.tiling.inputs[0].type.bits
    for length in lengths(plan):
        found, tiles, walked = runs_of(plan, length)
        columns = sorted({column for column, _ in found})
        assert columns == list(range(min(-(-walked // panel), plan.tiling.columns)))
        assert max(tiles.values()) - min(tiles.values()) <= 1
        reached = 0
        for column in columns:
            runs = found[column, "Y"]
            assert found[column, "A"] == found[column, "B"] == runs
            assert sum(count for _, count in runs) == tiles[column] * panel
            for first, count in runs:
                assert reached - panel < first <= reached
                assert first * bits % 32 == count * bits % 32 == count % panel == 0
                reached = first + count
        assert reached == walked
        # No more is walked than whole words and a panel need.
        assert walked == max(-(-length * bits // 32) * 32 // bits, panel)


@pytest.mark.parametrize("name", CASES)
def test_operands_are_staged_only_where_they_must_be(name):
    plan = planned(name)
    words = 32 // plan.tiling.inputs[0].type.bits
    for length in lengths(plan):
        sequence = plan.sequence(OPERATORS["elementwise"].problem([length]))
        staged = {bool(sequence.values[operand.staged]) for operand in sequence.program.operands}
        assert staged == {length % words != 0 or length < plan.tiling.panel}


def test_a_stream_does_not_grow_with_its_length():
    plan = planned("strix_halo")
    sizes = [
        len(plan.sequence(OPERATORS["elementwise"].problem([length])).words()) for length in (1 << 16, 1 << 22, 1 << 30)
    ]
    assert len(set(sizes)) == 1
