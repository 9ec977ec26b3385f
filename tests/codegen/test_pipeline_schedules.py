"""Schedules of blocks hold what they promise: dependences, units, registers; walks and loops have tests of kernels."""

from collections.abc import Mapping

import pytest

from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, Value, dependences, files, places
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import BlockRegion, MatrixProduct
from bdforge.core.codegen.pipeline.register_colouring import Life, coloured, lives
from bdforge.core.codegen.pipeline.steady_block import Scheduled, scheduled
from bdforge.core.codegen.pipeline.tile_cover import covers
from bdforge.core.isa import load
from bdforge.core.isa.modulo import Edge, ModuloProblem, late_plans

REGIONS = [
    BlockRegion(MatrixProduct("aie2p", "i2", 4, 32, 40, 32), 4, 1, (0, 1), (0, 4)),
    BlockRegion(MatrixProduct("aie2p", "i2", 4, 16, 64, 32), 2, 2, (0, 1), (0, 2)),
    BlockRegion(MatrixProduct("aie2p", "i8", 4, 32, 56, 32, turns_a=True), 2, 2, (0, 2), (0, 2)),
    BlockRegion(MatrixProduct("aie2p", "i4", 2, 24, 24, 16), 1, 2, (0, 3), (0, 1)),
    BlockRegion(MatrixProduct("aie2", "i8", 1, 16, 40, 32), 2, 2, (0, 2), (0, 2)),
]


@pytest.fixture(params=REGIONS, ids=lambda r: f"{r.product.generation}-{r.product.weights}-{r.rows}x{r.columns}")
def block(request) -> Scheduled:
    return scheduled(request.param)


@pytest.mark.daily("aie2-i8-2x2", "aie2p-i8-2x2", "aie2p-i4-1x2")
def test_blocks_keep_all_distances_to_themselves_and_to_the_next_one(block):
    isa = load(block.region.product.generation)
    assert block.period >= block.interval * block.region.product.steps
    for edge in dependences(isa, block.ops):
        apart = block.issues[edge.later] + block.period * edge.distance - block.issues[edge.earlier]
        assert apart >= edge.delay, (block.ops[edge.earlier], block.ops[edge.later])


@pytest.mark.daily("aie2p-i2-2x2", "aie2p-i8-2x2", "aie2p-i4-1x2", "aie2-i8-2x2")
def test_blocks_share_no_unit_and_no_bank(block):
    taken = set()
    for op, issue, choice in zip(block.ops, block.issues, block.choices, strict=True):
        for unit, cycle in places(block.region.product.generation, op, not block.conflicts)[choice]:
            cell = unit, (issue + cycle) % block.period
            assert cell not in taken, (op, cell)
            taken.add(cell)


def clashes(found: list[Life], period: int, colours: Mapping[Value, int]) -> list[tuple[Value, Value]]:
    """Pairs of values that meet in one register, cycle by cycle."""
    taken: dict[tuple[int, int], Value] = {}
    wrong = []
    for life in found:
        for cycle in range(life.start, life.end):
            other = taken.setdefault((colours[life.value], cycle % period), life.value)
            if other != life.value:
                wrong.append((other, life.value))
    return wrong


def test_values_meet_in_no_register(block):
    found = lives(load(block.region.product.generation), block.ops, block.issues)
    assert set(block.registers.values()) <= set(block.region.registers)
    assert not clashes(found, block.period, block.registers)


def test_arcs_on_a_circle_are_coloured_with_as_many_registers_as_meet():
    arcs = [Life(("a", 0), 0, 4), Life(("b", 0), 3, 7), Life(("c", 0), 5, 9), Life(("d", 0), 8, 11)]
    colours = coloured(arcs, 10, range(2))
    assert colours is not None
    assert not clashes(arcs, 10, colours)
    assert coloured(arcs, 10, range(1)) is None
    assert clashes(arcs, 10, dict.fromkeys(colours, 0)) != []
    assert coloured([Life(("a", 0), 0, 12)], 10, range(3)) is None  # it meets itself


def test_tasks_of_late_plans_come_as_shortly_before_their_users_as_is_free():
    free, busy = ((("slot", 0),),), ((("port", 2),),)
    edges = [Edge(0, 2, 7, 0), Edge(1, 2, 2, 0), Edge(3, 2, 2, 0)]
    problem = ModuloProblem([free, busy, ((("unit", 0),),), busy], edges, {}, ())
    a, b, user, c = next(iter(late_plans(problem, 3))).issues
    assert user - a == 7
    assert sorted((user - b, user - c)) == [2, 3]  # one of the two that share a port waits


def test_halves_of_a_pair_and_parts_of_an_accumulator_are_read_after_they_are_written():
    values = {name: (name, 0) for name in ("p", "a", "b")}
    texts = ["vconv.bf16.fp32 x{p.0}, cml{a}", "vconv.bf16.fp32 x{p.1}, cmh{a}", "vmul.f dm{b}, y{p}, y2, r0"]
    ops = [DataflowOp(text, (text,), values) for text in ("vlda bmhh{a}, [p0], #64", *texts)]
    found = {(edge.earlier, edge.later): edge.delay for edge in dependences(load("aie2p"), ops) if edge.distance == 0}
    assert found == {(0, 2): 7, (1, 3): 2, (2, 3): 2}
    assert files(ops) == {("p", 0): "y", ("a", 0): "dm", ("b", 0): "dm"}
    assert ops[1].text(0, {("p", 0): 3, ("a", 0): 1}) == "vconv.bf16.fp32 x6, cml1"


def test_every_tile_is_covered_once():
    for m, n in ((8, 32), (40, 64), (88, 96)):
        for regions in covers(MatrixProduct("aie2p", "i8", 4, m, 16, n)):
            tiles = [
                (r.down[0] + i, r.across[0] + j)
                for r in regions
                for i in range(r.down[1] * r.rows)
                for j in range(r.across[1] * r.columns)
            ]
            assert sorted(tiles) == [(i, j) for i in range(m // 8) for j in range(n // 8)]


def test_a_block_that_walks_in_too_many_ways_is_refused():
    walks = [PointerWalk(f"p{i}", (0, 64), ((2, 1000 + 64 * i), (3, 64), (4, 4096))) for i in range(5)]
    with pytest.raises(CodegenError, match="more ways than a core has registers for steps"):
        Steppers(range(-512, 449), 64).walks(walks)
