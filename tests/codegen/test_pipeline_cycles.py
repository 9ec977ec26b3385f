"""Pieces of pipelined kernels by hand: sizes of micro-tiles, walks, cycles behind a set-up, loops, old values."""

import random
from itertools import product

import pytest

from bdforge.core import isa
from bdforge.core.codegen.basic_block import AssemblyOp, Cycle, bundle_lines
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.cycle_trace import after_setup, declare_old, ended, is_free, returning, trace
from bdforge.core.codegen.pipeline.dataflow import DataflowOp, dependences
from bdforge.core.codegen.pipeline.loop_folding import SHORTEST, folded, lines
from bdforge.core.codegen.pipeline.pipelined_function import spread
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.product import AIE2, AIE2_FLOATS, AIE2P, BlockRegion, MatrixProduct
from bdforge.core.codegen.pipeline.tile_cover import expected_by_shape, expected_cycles
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.hazards import check_source

AIE2P_ISA = isa.load("aie2p")


def region(generation: str, weights: str, rows: int, columns: int, **more) -> BlockRegion:
    return BlockRegion(MatrixProduct(generation, weights, 4, 64, 64, 64, **more), rows, columns)


EXPECTED = {  # kind of B, tile, best shape: 70 cycles around each region, and its blocks' steps, accesses or masks
    ("aie2p", "i8", 16, 64, 16): ((2, 2), 70 + 8 * 4), ("aie2p", "i8", 16, 8, 16): ((2, 2), 70 + 2 * 2 * 4),
    ("aie2p", "i8", 8, 8, 8): ((1, 1), 70 + 4), ("aie2p", "i8", 16, 64, 8): ((2, 1), 70 + 8 * 2),
    ("aie2p", "i2", 32, 64, 32): ((4, 1), 70 + 4 * 8 * 4), ("aie2p", "i2", 8, 64, 32): ((1, 2), 70 + 2 * (8 * 4 + 4)),
    ("aie2", "i4", 16, 64, 32): ((2, 2), 70 + 4 * (8 * 4 + 4 * 4) // 2),
}  # fmt: skip


@pytest.mark.parametrize("case", EXPECTED, ids=str)
def test_what_a_call_takes_is_told_by_the_busiest_of_steps_and_accesses(case):
    shape, cycles = EXPECTED[case]
    generation, weights, *tile = case
    product_ = MatrixProduct(generation, weights, 4, *tile)
    assert expected_cycles(product_) == cycles
    by_shape = expected_by_shape(product_)
    assert by_shape[shape] == cycles
    assert list(by_shape.values()) == sorted(by_shape.values(), reverse=True)


@pytest.mark.parametrize(
    ("columns", "down", "share"),
    [(2, 1, 1.0), (2, 2, 1 - 1024 / 16384), (16, 2, 0.5), (16, 4, 0.375), (32, 2, 0.0), (32, 1, 1.0), (64, 3, 0.0)],
)
def test_blocks_that_go_down_meet_in_a_bank_as_far_as_their_rows_are_apart(columns, down, share):
    """A row of blocks has 2 x `columns` micro-tiles of 256 bytes, a bank 16 KiB; the last goes back to the first."""
    p = MatrixProduct("aie2p", "i8", 4, 16 * down, 8, 8 * columns)
    assert BlockRegion(p, 2, 1, (0, down), downwards=True).same_bank == share
    assert BlockRegion(p, 2, 1, (0, down)).same_bank == 1


@pytest.mark.parametrize(
    ("vectors", "low", "high", "step"), [(AIE2P, -512, 448, 64), (AIE2, -256, 224, 32), (AIE2_FLOATS, -256, 224, 32)]
)
def test_steps_are_immediates_up_to_what_every_access_takes(vectors, low, high, step):
    """Of AIE2P 4 bits signed in units of 64 bytes less one at the top, of AIE2 in units of 32."""
    made = Steppers(vectors.small, vectors.access)
    assert [made.step(size) for size in (low, high, step, 0)] == [f"#{low}", f"#{high}", f"#{step}", "#0"]
    registers = [made.step(size) for size in (low - step, high + step, step // 2)]
    assert made.constants == dict(zip(registers, (low - step, high + step, step // 2), strict=True))
    assert made.step(high + step) == registers[1]  # the same constant, the same register
    register = "x0" if vectors.access == 64 else "wl0"
    for mnemonic in (f"vlda {register}", f"vldb {register}", f"vst {register}"):
        text = "\n".join(f"{mnemonic}, [p0], #{size}" for size in (low, high))
        assert assemble(text, vectors.generation).code, mnemonic


@pytest.mark.parametrize(
    ("offsets", "loops", "turns"),
    [
        ((0, 64), (), []),
        ((0, 64), ((3, 128),), [(3, 64)]),
        ((0,), ((2, 1000), (3, 64)), [(3, 64), (2, 1000 - 128)]),
        ((0,), ((2, 192), (3, 64)), [(6, 64)]),
        ((0, 64), ((5, 7), (1, 9)), [(5, 7 - 64)]),
        ((0, 32), ((2, 5000), (3, 600), (4, 64)), [(4, 32), (3, 600 - 32 - 192), (2, 5000 - 32 - 192 - 1200)]),
    ],
)
def test_steps_from_block_to_block_undo_what_inner_loops_went(offsets, loops, turns):
    """Equal ones are one kind of step, of as many passes as both have together."""
    assert PointerWalk("p0", offsets, loops).turns() == turns


def test_a_walk_of_three_dimensions_counts_in_two_units():
    made = Steppers(range(-512, 449), 64)
    (steps,) = made.walks([PointerWalk("p0", (0, 64), ((2, 5000), (3, 600), (4, 128)))])
    assert steps == ["#64", "d0_3d"]
    inner, middle, outer = 128 - 64, 600 - 64 - 3 * 128, 5000 - 64 - 3 * 128 - 2 * 600
    counters = {"dj0": inner, "dn0": 3, "dc0": 0, "dj4": middle, "dn4": 2, "dc4": 0}
    assert made.constants == {**counters, "m0": outer}
    with pytest.raises(CodegenError, match="4 kinds of steps, more than a 3D walk has"):
        made.walks([PointerWalk("p1", (0,), ((2, 9), (2, 70), (2, 800), (2, 64)))])


def cycle(*texts: str) -> Cycle:
    return Cycle([AssemblyOp(text) for text in texts])


def test_writes_of_one_register_land_in_their_order():
    """A load lands at stage 7, a copy at 2: the copy waits 6 cycles, the load may begin 4 before."""
    texts = ("vlda x0, [p0, #0]", "vmov x0, x1", "vlda x0, [p1, #0]")
    found = {
        (e.earlier, e.later, e.distance): e.delay for e in dependences(AIE2P_ISA, [DataflowOp(t, (t,)) for t in texts])
    }
    assert (found[0, 1, 0], found[1, 2, 0], found[2, 0, 1]) == (7 - 2 + 1, 2 - 7 + 1, 1)


def test_blocks_follow_each_other_by_the_period():
    issues = [(0, AssemblyOp("mova r1, #1")), (3, AssemblyOp("mova r2, #2"))]
    texts = [found.texts for found in trace(issues, 2, 3)]
    one, two = ("mova r1, #1",), ("mova r2, #2",)
    assert texts == [one, (), one, two, one, two, (), two]


def sizes(isa_, slots: set[str]) -> set[int]:
    """Bytes of all bundles that hold these slots, the others filled with NOPs."""
    return {fmt.size for fmt in isa_.formats.values() if fmt.slots >= slots}


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_bundles_are_padded_with_the_fewest_bytes_and_no_cycle(generation):
    """To a multiple of 16 together, against trying all sizes; the last bundle of a hardware loop has 16 by itself."""
    isa_, rng = isa.load(generation), random.Random(6)
    texts = {"lda": "lda r1, [p0, #0]", "alu": "add r2, r3, r4", "mv": "mov r5, r6", "st": "st r7, [p1, #0]"}
    for _ in range(25):
        used = [rng.sample(sorted(texts), rng.choice([0, 1, 1, 2, 3])) for _ in range(rng.choice([1, 2, 3, 4]))]
        cycles = [cycle(*(texts[slot] for slot in slots)) for slots in used]
        totals = [sum(chosen) for chosen in product(*(sizes(isa_, set(slots)) for slots in used))]
        made = assemble("\n".join(bundle_lines(isa_, cycles)), generation)
        assert len(made.code[0][1]) == min(total for total in totals if total % 16 == 0), used
        assert len(made.sources) == len(cycles)
        whole = assemble("\n".join(bundle_lines(isa_, cycles, whole_last=True)), generation)
        assert len(whole.code[0][1]) % 16 == 0
        assert len(whole.code[0][1]) - max(whole.sources) == 16, used


def hazards(cycles) -> bool:
    return bool(
        check_source(assemble("\n".join([*bundle_lines(AIE2P_ISA, cycles), *["nop"] * 12]) + "\ndone", "aie2p"))
    )


@pytest.mark.parametrize(
    ("setup", "then", "shift"),
    [
        (["mova r1, #5"], "add r2, r1, r1", 1),
        (["lda r1, [p0, #0]"], "add r2, r1, r1", 7),
        (["vlda x0, [p0, #0]"], "vmov x0, x1", 6),
        (["st r1, [p0, #0]"], "mova r1, #5", 1),
        (["mova r1, #5"], "mova r3, #5", 1),
        (["mova r1, #5"], "movx r3, #5", 0),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else str(value),
)
def test_cycles_come_as_near_to_a_set_up_as_the_checker_allows(setup, then, shift):
    """A bundle that reads what was set, lands behind it, overwrites what is read, or takes its slot."""
    joined = after_setup(AIE2P_ISA, [AssemblyOp(text) for text in setup], [cycle(then)])
    assert [(at, text) for at, found in enumerate(joined) for text in found.texts if text == then] == [(shift, then)]
    assert not hazards(joined)


def test_reads_and_writes_before_what_is_under_way_are_declared():
    found = [cycle("vlda x0, [p0, #0]"), cycle(), cycle("vmov x1, x0"), cycle("vmov x0, x2"), cycle(), cycle(), cycle()]
    found += [cycle("vmov x3, x0"), cycle("vmov x3, x0")]
    declare_old(AIE2P_ISA, found)
    halves = {"wl0", "wh0"}
    assert [one.old for one in found] == [set(), set(), halves, halves, set(), set(), set(), set(), set()]
    text = lines(AIE2P_ISA, folded(AIE2P_ISA, found, SHORTEST, "f.blocks", "r7"))
    assert [line.strip() for line in text if ".old" in line] == [".old x0"] * 2
    late = [cycle("vlda x0, [p0, #0]"), *(cycle() for _ in range(5)), cycle("vmov x1, x0"), cycle("vmov x1, x0")]
    declare_old(AIE2P_ISA, late)
    assert [one.old for one in late[-2:]] == [halves, set()]


@pytest.mark.parametrize("counter", ["r7", "lc"])
@pytest.mark.parametrize("times", [2, 3, 7])
def test_loops_run_as_often_as_the_cycles_repeat(times, counter):
    """Folded or not, the same instructions issue as often."""
    cycles = [cycle() for _ in range(12)] + trace(
        [(0, AssemblyOp("vmov x1, x2")), (1, AssemblyOp("vmov x3, x4"))], 8, times
    )
    pieces = folded(AIE2P_ISA, cycles, 8, "f.blocks", counter)
    assert sum(len(piece.cycles) * piece.passes for piece in pieces) == len(cycles)
    issued = [text for piece in pieces for found in piece.cycles * piece.passes for text in found.texts]
    assert (issued.count("vmov x1, x2"), issued.count("vmov x3, x4")) == (times, times)
    loops = [piece for piece in pieces if piece.passes > 1]
    for loop in loops:
        count = f"#{loop.passes}"
        assert any(count in text for found in pieces[0].cycles for text in found.texts)
        if counter == "r7":  # the branch's five delay slots end the body
            assert [at for at, found in enumerate(loop.cycles) if "jnz r7, #f.blocks" in found.texts] == [8 - 6]
    assert [loop.passes for loop in loops] == [times]


def test_a_function_returns_when_all_has_landed():
    """A load lands after seven cycles, a store is written after its fifth; five delay slots follow the return."""
    for text, length in (("vlda x0, [p0, #0]", 7), ("vst x0, [p0, #0]", 5), ("mova r1, #1", 1)):
        found = [cycle(text)]
        ended(AIE2P_ISA, found)
        assert len(found) == length, text
        found = [cycle(text)]
        returning(AIE2P_ISA, found)
        at = [i for i, one in enumerate(found) if "ret" in one.texts]
        assert (at, len(found)) == ([max(0, length - 6)], max(length, 6)), text
    busy = [cycle("vlda x0, [p0, #0]"), cycle("add r1, r2, r3")]
    returning(AIE2P_ISA, busy)
    assert ([i for i, one in enumerate(busy) if "ret" in one.texts], len(busy)) == ([2], 8)
    assert [is_free(AIE2P_ISA, cycle("movxm r1, #70000"), slot) for slot in ("alu", "mv", "lda")] == [
        False,
        False,
        True,
    ]


def test_short_constants_of_a_set_up_are_spread_over_two_slots():
    """Half of what the load slot has more goes to the move slot, if it is short enough for that."""
    setup = [AssemblyOp(f"mova r{i}, #{value}") for i, value in enumerate((511, 512, -512, -513, 1, 2))]
    assert [op.text.split()[0] for op in spread("aie2p", setup)] == ["mova", "mova", "mov", "mova", "mov", "mov"]
    with_moves = [*setup, AssemblyOp("mov m0, r1"), AssemblyOp("movxm r9, #70000")]
    assert [op.text.split()[0] for op in spread("aie2p", with_moves)][:6] == ["mova"] * 4 + ["mov"] * 2
