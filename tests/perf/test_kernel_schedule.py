"""Cycles of our kernels: hand-counted blocks, published rates, bounds and refusals."""

from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import pytest

from bdforge.devices import AIE2, AIE2P, DEVICES
from bdforge.devices.types import PEAK_MACS, TYPES
from bdforge.operators import load_spec, operator_of, plan
from bdforge.operators.gemm.kernels import KERNELS
from bdforge.perf.kernels.blocks import _Timeline
from bdforge.perf.kernels.loop_schedule import (
    ScheduleError,
    _joined,
    _Kind,
    _split,
    kernel_cost,
    kernel_costs,
    kernel_multiples,
    known_kernels,
    pass_cycles,
)
from bdforge.perf.kernels.loops import ELEMENT_KERNELS, MATRIX_KERNELS, VECTOR_BYTES
from bdforge.perf.kernels.published import HAND_WRITTEN, comparisons, compiled_efficiency

DESIGNS = Path(__file__).resolve().parents[2] / "designs"
KERNEL_SOURCES = DESIGNS.parent / "kernels" / "aie2p"
IDS = [f"{k.generation.name}-{k.symbol}" for k in MATRIX_KERNELS]
COMPILED = [row for row in comparisons() if row.published.compiled]
INT8 = [row for row in COMPILED if row.published.types[:2] == ("int8", "int8")]


def test_one_block_of_int32_is_counted_by_hand():
    # 16 loads of C on unit A, issued 0 to 15; the last may feed c11 at 19, so c00 starts at 16. Eight steps of four
    # products: c00's last at 44, its stores from 50, all 16 stores until 65.
    cost = kernel_cost("mm_i8_i8_i32", 16, 64, 16, generation=AIE2P)
    assert cost.sequential_cycles == cost.cycles == 66
    assert (cost.interval, cost.stages, cost.trips, cost.blocks) == (4, 3, 8, 1)


def test_overlapped_blocks_are_counted_by_hand():
    # With a fifth accumulator c00 of the next block is loaded ahead. c01 waits for c00's stores (6 after its last
    # product, a load may issue 6 before a store): its loads start with c00's last product, c11's 8 later, and c11 adds
    # at + 15, 8 later than without C.
    one, two, nine = (kernel_cost("mm_i8_i8_i32", 16, 64, 16 * n, generation=AIE2P) for n in (1, 2, 9))
    assert two.cycles - one.cycles == 4 * 8 + 8
    assert nine.cycles - one.cycles == 8 * (4 * 8 + 8)
    assert two.sequential_cycles == 2 * one.sequential_cycles


@pytest.mark.parametrize(("k", "share"), [(64, 0.78), (128, 0.88), (256, 0.94)])
def test_steady_state_agrees_with_an_independent_simulation(k, share):
    # Greedy simulation by others with the same latencies: read-modify-write int32, 5 accumulators, unit A free for C.
    few, many = (kernel_cost("mm_i8_i8_i32", 16, k, n, generation=AIE2P) for n in (160, 320))
    assert (many.macs - few.macs) / (many.cycles - few.cycles) / 512 == pytest.approx(share, abs=0.025)


def test_passes_over_c_are_counted_by_hand():
    assert kernel_cost("zero_i32", 64, 0, 64, generation=AIE2P).cycles == 64 * 64 * 4 // 64
    assert kernel_cost("zero_i8", 48, 0, 80, generation=AIE2).cycles == 48 * 80 // 32
    # Of 16 quads of column blocks 12 vectors each; the last store issues 9 cycles after its load.
    unscale = kernel_cost("unscale_i32", 64, 0, 64, generation=AIE2P)
    assert unscale.slot_cycles == 16 * 12
    assert unscale.cycles == 16 * 12 + 9
    assert unscale.bound == "slot lda+st"
    # Two float products of 3 x 3 parts with two subtractions for each operand, and 5 for the conversion of int32, for
    # 32 lanes (AIE2: 16). One accumulator each way for 64 elements of four vectors.
    scaled = kernel_cost("finish_i32_bf16", 64, 0, 64, generation=AIE2P)
    assert (scaled.interval, scaled.slot_cycles) == (2 * (9 + 4) + 5, 64 * 64 // 32 * 31)
    assert kernel_cost("finish_i32_bf16", 64, 0, 64, generation=AIE2).slot_cycles == 64 * 64 // 16 * 31
    assert kernel_cost("finish_f32_bf16", 64, 0, 64, generation=AIE2P).slot_cycles == 64 * 4
    by_scales = kernel_costs(["finish_f32_bf16"], 64, 0, 64, generation=AIE2P, which="slots", options=["SCALE", "RELU"])
    assert by_scales == {"finish_f32_bf16": 64 * 64 // 32 * 26}


PASSES = {  # on AIE2 and AIE2P: elements of an iteration, its loads, stores, moves and products
    ("zero_i8", ""): ((32, 0, 1, 0, 0), (64, 0, 1, 0, 0)),
    ("zero_i16", ""): ((16, 0, 1, 0, 0), (32, 0, 1, 0, 0)),
    ("zero_bf16", ""): ((16, 0, 1, 0, 0), (32, 0, 1, 0, 0)),
    ("zero_i32", ""): ((8, 0, 1, 0, 0), (16, 0, 1, 0, 0)),
    ("zero_f32", ""): ((8, 0, 1, 0, 0), (16, 0, 1, 0, 0)),
    ("zero_bfp16", ""): (None, (512, 0, 9, 0, 0)),
    ("finish_i32_i8", ""): ((32, 4, 1, 0, 0), (64, 4, 1, 0, 0)),
    ("finish_i32_i16", ""): ((32, 4, 2, 0, 0), (64, 4, 2, 0, 0)),
    ("finish_i32_i32", ""): ((32, 4, 4, 4, 0), (64, 4, 4, 0, 0)),  # AIE2 widens to 64 bits by a move
    ("unscale_i32", ""): ((128, 12, 12, 12, 0), (256, 12, 12, 0, 0)),
    ("finish_f32_bf16", ""): ((16, 2, 1, 0, 0), (64, 4, 2, 0, 0)),
    ("finish_f32_bf16", "SCALE"): ((16, 2, 1 + 12, 0, 26), (32, 2, 1 + 12, 0, 26)),  # 3 parts of each of 4 factors
    ("finish_i32_bf16", ""): ((16, 2, 1 + 12, 0, 31), (32, 2, 1 + 12, 0, 31)),
    ("finish_bf16_bfp16", ""): (None, (64, 2, 1, 0, 0)),
    ("finish_f32_bfp16", ""): (None, (64, 4, 1, 0, 0)),
}


@pytest.mark.parametrize(("symbol", "option"), PASSES)
def test_a_pass_takes_the_instructions_that_its_bytes_need(symbol: str, option: str):
    """Vectors of 32 bytes on AIE2 and of 64 on AIE2P; micro-tiles of C have 32 (floats 16) and 64 elements."""
    found = {}
    for kernel in ELEMENT_KERNELS:
        if (kernel.symbol, kernel.option) == (symbol, option):
            use = kernel.loop().slot_use
            found[kernel.generation.name] = (kernel.elements, use["lda"] + use["ldb"], use["st"], use["mv"], use["vec"])
    wanted = dict(zip(("AIE2", "AIE2P"), PASSES[symbol, option], strict=True))
    assert found == {name: counts for name, counts in wanted.items() if counts is not None}


def test_every_pass_is_in_that_table():
    assert {(kernel.symbol, kernel.option) for kernel in ELEMENT_KERNELS} == set(PASSES)


INNER = {  # accumulators; by what arrives column by column: loads, moves, stores and products of an iteration
    "AIE2P": {
        "int8 int8": (5, {"": (4, 0, 0, 4), "a": (4, 2, 0, 4), "b": (4, 2, 0, 4), "ab": (4, 4, 0, 4)}),
        "int8 int4": (5, {"": (4, 0, 0, 4), "a": (4, 2, 0, 4), "b": (4, 0, 0, 4)}),  # the host packs B
        "int8 int2": (5, {"": (3, 4, 0, 4), "a": (3, 6, 0, 4), "b": (3, 4, 0, 4)}),  # two masks, two biases
        # To bfp16 by way of an accumulator: two loads that widen, or two loads, two shuffles, two widening moves.
        "bf16 bf16": (4, {"": (8, 8, 4, 4), "a": (8, 16, 4, 4), "b": (8, 0, 4, 4), "ab": (8, 8, 4, 4)}),
        # Two steps of K: a stream is opened, then two tiles come of it.
        "bf16 bfp16": (4, {"": (8 + 6, 0, 4, 8), "a": (8 + 6, 16, 4, 8), "b": (8 + 6, 0, 4, 8)}),
        "bfp16 bfp16": (5, {"": (12, 0, 0, 8), "a": (12, 0, 0, 8), "b": (12, 0, 0, 8)}),
    },
    "AIE2": {  # registers of 256 bits: a tile of B takes two loads, and one of A where it has 16 columns or bf16
        "int8 int8": (9, {"": (6, 0, 0, 4), "a": (6, 2, 0, 4), "b": (6, 2, 0, 4), "ab": (6, 4, 0, 4)}),
        "int8 int4": (9, {"": (8, 0, 0, 4), "a": (8, 2, 0, 4), "b": (8, 2, 0, 4)}),
        "int8 int2": (9, {"": (4, 4, 0, 4), "a": (4, 6, 0, 4), "b": (4, 4, 0, 4)}),
        "bf16 bf16": (18, {"": (8, 0, 0, 4), "a": (8, 2, 0, 4), "b": (8, 2, 0, 4), "ab": (8, 4, 0, 4)}),
    },
}


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
def test_an_inner_loop_takes_the_instructions_that_its_micro_tiles_need(kernel):
    accumulators, by_side = INNER[kernel.generation.name][f"{kernel.a} {kernel.b}"]
    found = {}
    for turned in by_side:
        block = kernel.block(2, 2, frozenset(turned), kernel.product.run)
        use = block.loop.slot_use
        found[turned] = (use["lda"] + use["ldb"], use["mv"], use["st"], use["vec"])
        assert block.accumulators == accumulators
    assert found == by_side


NARROW, TURNED = ("ldb mv mv", "st mv st"), ("ldb mv mv", "mv mv mv st")
TRAFFIC = {  # slots that move one part of a micro-tile of C: in and out, as it lies and column by column
    ("AIE2P", "int32"): (("lda", "st"), TURNED), ("AIE2P", "f32"): (("lda", "st"), TURNED),
    **dict.fromkeys([("AIE2P", name) for name in ("int16", "int8", "bf16")], (("lda", "st"), NARROW)),
    ("AIE2P", "bfp16"): (("lda lda vec", "st st"),) * 2,  # opened, popped, widened; pushed, closed; never turned
    # Moved into accumulators after both rounds of shuffles; AIE2P's second shuffle writes them.
    **dict.fromkeys([("AIE2", name) for name in ("int32", "f32")], (("lda", "st"), ("ldb mv mv mv", "mv mv mv st"))),
    **dict.fromkeys([("AIE2", name) for name in ("int16", "int8")], (("lda mv", "st"), NARROW)),
    ("AIE2", "bf16"): (("lda", "st"), NARROW),
}  # fmt: skip
"""Only unit A loads accumulators; what is shuffled first comes by unit B."""


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
@pytest.mark.parametrize("transposed", [False, True])
def test_c_moves_through_the_slots_that_its_type_needs(kernel, transposed: bool):
    def slots(chain) -> str:
        return " ".join(slot for form in chain for slot in form.slots)

    moved = kernel.traffic(kernel.generation, transposed)
    found = tuple({slots(chain) for chain in chains} for chains in moved)
    assert found == tuple({text} for text in TRAFFIC[kernel.generation.name, kernel.c][transposed])


@pytest.mark.parametrize(
    ("tiles", "size", "counts"),
    [(4, 2, {2: 2}), (5, 2, {2: 2, 1: 1}), (1, 2, {1: 1}), (4, 4, {4: 1}), (7, 4, {4: 1, 3: 1}), (6, 4, {4: 1, 2: 1}),
     (3, 1, {1: 3})],
)  # fmt: skip
def test_micro_tiles_are_split_into_whole_blocks_and_one_rest(tiles: int, size: int, counts: dict[int, int]):
    assert dict(_split(tiles, size)) == counts
    many = {extent: found.tolist() for extent, found in _split(np.array([tiles, size]), size)}
    assert many == {extent: [counts.get(extent, 0), int(extent == size)] for extent in {size, *counts}}


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
@pytest.mark.parametrize("transposed", [False, True])
def test_every_byte_of_a_tile_of_c_is_loaded_and_stored_once(kernel, transposed):
    type_ = TYPES[kernel.c]
    if type_.blocked:
        return  # one pop and one push for 72 bytes
    vectors = kernel.product.r * kernel.product.t * type_.bytes / VECTOR_BYTES[kernel.generation.name]
    load, store = kernel.traffic(kernel.generation, transposed)
    assert (len(load), len(store)) == (vectors, vectors)


@pytest.mark.parametrize("kernel", [k for k in ELEMENT_KERNELS if k.symbol.startswith("zero")], ids=lambda k: k.symbol)
def test_every_byte_is_zeroed_once(kernel):
    type_ = next(type_ for type_ in TYPES.values() if type_.code == kernel.symbol.removeprefix("zero_"))
    assert len(kernel.loop().body) * VECTOR_BYTES[kernel.generation.name] == kernel.elements * type_.bytes


def test_ternary_unpacking_hides_beside_the_products():
    plain, ternary = (kernel_cost(f"mm_i8_{b}_i32", 64, 128, 64, generation=AIE2P) for b in ("i8", "i2"))
    assert ternary.interval == plain.interval == 4
    assert ternary.slot_use["mv"] == 4
    assert ternary.bound == "slot mv+vec"
    assert ternary.cycles == plain.cycles
    assert ternary.live_registers <= 12
    assert plain.notes == ("no memory bank stalls", f"{plain.live_registers} of 12 vector registers live")


def test_a_transposed_a_makes_the_move_slot_the_bound_of_ternary():
    cost = kernel_cost("mm_i8_i2_i32", 64, 128, 64, generation=AIE2P, transposed="a")
    assert (cost.interval, cost.bound) == (6, "slot mv")
    int8 = kernel_cost("mm_i8_i8_i32", 64, 128, 64, generation=AIE2P, transposed="ab")
    assert (int8.interval, int8.bound) == (4, "slot mv+vec")


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
def test_costs_are_ordered_and_below_the_peak(kernel):
    r, s, t = kernel.multiples
    peaks = PEAK_MACS[kernel.generation.name]
    peak = peaks.get((kernel.a, kernel.b), peaks["int8", "int8"])  # other widths are unpacked to int8
    for m, k, n in ((r, s, t), (3 * r, 5 * s, t), (2 * r, 16 * s, 3 * t), (8 * r, 9 * s, 4 * t)):
        cost = kernel_cost(kernel.symbol, m, k, n, generation=kernel.generation)
        assert cost.slot_cycles <= cost.cycles <= cost.sequential_cycles
        assert cost.macs_per_cycle <= peak
        assert cost.interval >= max(cost.resource_interval, cost.recurrence_interval)


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
def test_depth_costs_the_interval_alone(kernel):
    r, s, t = kernel.multiples
    m, n = 2 * r, 2 * t
    run = kernel.product.run
    shallow, deep = (
        kernel_cost(kernel.symbol, m, k * s, n, generation=kernel.generation) for k in (40 * run, 53 * run)
    )
    assert deep.cycles - shallow.cycles == 13 * shallow.interval * shallow.blocks
    # The shortcut for deep loops against every instruction placed.
    block = kernel.block(2, 2, run=run)
    trips = block.settled_trips() + 7
    assert block.overlapped_cycles(trips) == block.overlapped_cycles(trips - 7) + 7 * shallow.interval
    assert block.sequential_cycles(trips) == block.sequential_cycles(trips - 7) + 7 * shallow.interval


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
def test_inner_loops_of_blocks_stay_whole(kernel):
    """One micro-tile alone leaves the product's slot free every other cycle: the next block does not go in between."""
    block = kernel.block(1, 1)
    assert block.overlapped_cycles(8) >= 8 * block.pipelined.interval
    assert block.sequential_cycles(8) >= block.overlapped_cycles(8)


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
def test_a_micro_tile_is_stored_after_its_last_product(kernel):
    """Of the second of two blocks too, each part no earlier than the product's distance to the store."""
    block = kernel.block(2, 1, run=kernel.product.run)
    timeline, pipelined, store = _Timeline(block, block.pipelined, 3), block.pipelined, block.store[0][0]
    starts = [timeline.add(), timeline.add()]
    for number, parts in enumerate(timeline.stores):
        products = [i for i, o in enumerate(block.loop.body) if block.tiles[number % 2] in o.writes]
        assert len(products) == kernel.product.run
        last = starts[number // 2] + 2 * pipelined.interval + max(pipelined.issues[i] for i in products)
        assert min(parts) >= last + block.loop.body[products[0]].form.distance_to(store, "src")


def test_blocks_that_alternate_count_by_the_mean_of_a_turn_of_the_accumulators():
    """Two tiles in five accumulators meet the same ones after five blocks, which lie 22 and 8 cycles apart by turns."""
    kernel = next(k for k in MATRIX_KERNELS if (k.generation.name, k.symbol) == ("AIE2P", "mm_i8_i8_i16"))
    block = kernel.block(2, 1, frozenset("c"))
    (pipelined,) = block.variants
    timeline = _Timeline(block, pipelined, 4)
    starts = [timeline.add() for _ in range(16)]
    assert {after - before for before, after in pairwise(starts[4:])} == {22, 8}
    assert 5 * block.overlapped_cycles(4) in (3 * 22 + 2 * 8, 2 * 22 + 3 * 8)


@pytest.mark.parametrize("kernel", MATRIX_KERNELS, ids=IDS)
@pytest.mark.parametrize("turned", ["", "a", "b"])
def test_what_an_inner_loop_loads_or_makes_it_reads(kernel, turned: str):
    body = kernel.block(2, 2, frozenset(turned), kernel.product.run).loop.body
    read = {value for operation in body for _, value in operation.reads}
    assert {value for operation in body for value in operation.writes} - read == set()


def name_of(kernel) -> str:
    return f"{kernel.generation.name}-{kernel.symbol}{kernel.option}"


@pytest.mark.parametrize("kernel", ELEMENT_KERNELS, ids=name_of)
def test_what_a_pass_loads_or_makes_it_reads(kernel):
    body = kernel.loop().body
    read = {value for operation in body for _, value in operation.reads} | {"sums high"}  # of a pair, read by its first
    assert {value for operation in body for value in operation.writes} - read == set()


@pytest.mark.parametrize(
    "kernel", [k for k in ELEMENT_KERNELS if not k.option], ids=lambda k: f"{k.generation.name}-{k.symbol}"
)
def test_a_pass_costs_the_same_as_a_call_and_in_many_sizes(kernel):
    elements = kernel.elements * np.array([1, 2, 7])
    alone = [kernel_cost(kernel.symbol, 1, 0, int(size), generation=kernel.generation) for size in elements]
    assert pass_cycles(kernel.symbol, elements, kernel.generation).tolist() == [cost.cycles for cost in alone]
    assert [cost.cycles - alone[0].cycles for cost in alone] == [0, alone[0].interval, 6 * alone[0].interval]


def test_a_matrix_kernel_is_no_pass_and_known_ones_are_known_once():
    with pytest.raises(ScheduleError, match="mm_i8_i8_i32 is a matrix kernel, not a pass over C"):
        pass_cycles("mm_i8_i8_i32", 64, AIE2P)
    for generation in (AIE2, AIE2P):
        known = known_kernels(generation)
        assert len(set(known)) == len(known)


def test_of_blocks_one_after_another_the_first_of_the_kind_that_takes_most_stands_alone():
    """3 blocks 10 apart and 2 that are 20 apart: 70 cycles, and the 5 by which one of 25 is longer alone than 20."""
    small, large = _Kind(1, 1, 3, 18, 10, 4), _Kind(2, 2, 2, 25, 20, 9)
    for kinds in ([small, large], [large, small]):
        found = _joined(kinds)
        assert (found.ideal, found.sequential, found.slots) == (70 + 5, 3 * 18 + 2 * 25, 3 * 4 + 2 * 9)
    many = _joined([_Kind(1, 1, np.array([3, 9]), 18, 10, 4), _Kind(2, 2, np.array([2, 2]), 25, 20, 9)])
    assert many.ideal.tolist() == [75, 9 * 10 + 2 * 20 + 8]
    equal = [_Kind(2, 2, 2, 25, 20, 9), _Kind(1, 1, 4, 18, 10, 4)]
    assert [_joined(kinds).ideal for kinds in (equal, equal[::-1])] == [80 + 5, 80 + 8], "the first of equal kinds"
    assert _joined([_Kind(1, 1, 1, 7, 2.5, 1)]).ideal == 7
    assert _joined([_Kind(1, 1, 2, 7, 2.5, 1)]).ideal == 10  # 9.5, in whole cycles


def test_streams_of_block_floats_are_opened_for_two_tiles():
    even, odd = (kernel_cost("mm_bfp16_bfp16_f32", 64, k, 64, generation=AIE2P) for k in (64, 72))
    assert (even.trips, even.slot_use["lda"] + even.slot_use["ldb"], even.slot_use["vec"]) == (4, 4 + 2 * 4, 8)
    assert (odd.trips, odd.slot_use["lda"] + odd.slot_use["ldb"], odd.slot_use["vec"]) == (9, 4 + 4, 4)


def test_odd_edges_make_smaller_blocks():
    whole = kernel_cost("mm_i8_i8_i32", 16, 64, 32, generation=AIE2P)
    odd = kernel_cost("mm_i8_i8_i32", 24, 64, 40, generation=AIE2P)
    assert whole.blocks == 2
    assert odd.blocks == 2 + 1 + 2 + 1
    assert odd.macs_per_cycle < whole.macs_per_cycle * 1.2
    assert any("edge" in note for note in odd.notes)


def test_part_of_the_rows_costs_as_a_tile_of_those_rows():
    part = kernel_cost("mm_bf16_bfp16_bf16", 128, 64, 128, generation=AIE2P, a_rows=32)
    assert part == kernel_cost("mm_bf16_bfp16_bf16", 32, 64, 128, generation=AIE2P)
    zero = kernel_cost("zero_bf16", 128, 64, 128, generation=AIE2P, a_rows=32)
    assert zero.m == 128


def test_kernels_are_named_by_symbol_or_types():
    by_symbol = kernel_cost("mm_i8_i2_i32", 64, 64, 64, generation=AIE2P)
    assert kernel_cost(("int8", "int2", "int32"), 64, 64, 64, generation=AIE2P) == by_symbol
    assert kernel_cost(("bfloat16", "bf16", "float32"), 64, 64, 64, generation=AIE2P).symbol == "mm_bf16_bf16_f32"


def test_call_cycles_are_added_to_every_count():
    bare, called = (kernel_cost("mm_i8_i8_i8", 64, 64, 64, generation=AIE2, call_cycles=c) for c in (0, 25))
    counts = [(c.cycles, c.sequential_cycles, c.slot_cycles) for c in (bare, called)]
    assert [b - a for a, b in zip(*counts, strict=True)] == [25, 25, 25]


def test_shallow_tiles_are_bound_by_overhead():
    assert kernel_cost("mm_i8_i8_i32", 64, 8, 64, generation=AIE2P).bound == "overhead"


@pytest.mark.parametrize(("symbol", "inside"), [("mm_i8_i8_i32", "slot vec"), ("unscale_i32", "slot lda+st")])
def test_a_call_whose_half_lies_outside_its_loops_is_bound_by_overhead(symbol: str, inside: str):
    plain = kernel_cost(symbol, 64, 64, 64, generation=AIE2P)
    loops = plain.blocks * plain.trips * plain.interval
    around = 2 * loops - plain.cycles
    told = {
        cycles: kernel_cost(symbol, 64, 64, 64, generation=AIE2P, call_cycles=cycles).bound
        for cycles in (around - 1, around)
    }
    assert told == {around - 1: inside, around: "overhead"}, f"{loops} cycles lie in loops"


def test_every_kernel_that_plans_know_has_a_loop():
    for (generation, *_), kernel in KERNELS.items():
        known = known_kernels({"AIE2": AIE2, "AIE2P": AIE2P}[generation])
        assert kernel.multiply in known, f"describe {kernel.multiply} of {generation} in bdforge/perf/kernels/loops.py"
        assert kernel.zero in known
        multiples = zip(kernel_multiples(kernel.multiply, kernel.generation), kernel.multiples, strict=True)
        assert all(scheduled % planned == 0 for scheduled, planned in multiples)


@pytest.mark.parametrize("generation", [AIE2, AIE2P], ids=lambda g: g.name)
def test_every_kernel_source_has_a_loop_or_an_operator_that_tells_its_cycles(generation):
    sources = {path.stem for path in KERNEL_SOURCES.glob("*.cc") if generation == AIE2P or "bfp16" not in path.stem}
    missing = sorted(sources - set(known_kernels(generation)) - told_by_operators(generation))
    assert sources
    assert not missing, f"describe {', '.join(missing)} in bdforge/perf/kernels/loops.py, one line each"


def told_by_operators(generation) -> set[str]:
    """Kernels whose cycles the plans of our designs tell themselves."""
    product = next(device for device in DEVICES.values() if device.generation is generation)
    specs = map(load_spec, sorted(DESIGNS.glob("*.toml")))
    plans = [plan(spec, product) for spec in specs if operator_of(spec).fits(spec, product)]
    return {symbol for found in plans for symbol in found.kernels.cycles}


def test_costs_by_symbol_serve_timed_emulation():
    symbols = ["mm_i8_i2_i32", "zero_i32", "unscale_i32"]
    ideal = kernel_costs(symbols, 64, 128, 64, generation=AIE2P)
    assert ideal == {s: kernel_cost(s, 64, 128, 64, generation=AIE2P).cycles for s in symbols}
    half = kernel_costs(symbols, 64, 128, 64, generation=AIE2P, efficiency=0.5)
    assert half == ideal | {"mm_i8_i2_i32": 2 * ideal["mm_i8_i2_i32"]}
    fast = kernel_costs(symbols, 64, 128, 64, generation=AIE2P, which="sequential", efficiency=1.9)
    assert fast["mm_i8_i2_i32"] == 64 * 128 * 64 // 512  # the busiest slot's


@pytest.mark.parametrize(
    "row", comparisons(), ids=lambda r: f"{r.published.device}-{r.published.types}-{r.published.k}"
)
def test_no_published_rate_beats_the_slots(row):
    assert row.efficiency("slots") <= 1


@pytest.mark.parametrize("row", COMPILED, ids=lambda r: r.published.source)
def test_no_compiled_kernel_beats_the_ideal_schedule(row):
    assert 0.45 <= row.efficiency("overlapped") <= 1


def test_the_sequential_schedule_tells_compiled_int8_kernels():
    gaps = [abs(row.efficiency("sequential") - 1) for row in INT8]
    assert len(gaps) == 18
    assert fmean(gaps) <= 0.07
    assert max(gaps) <= 0.15


@pytest.mark.parametrize(
    ("generation", "a", "rows", "columns"), [("AIE2", "int8", 4, 2), ("AIE2", "bf16", 4, 4), ("AIE2P", "int8", 2, 2)]
)
def test_published_kernels_are_held_against_blocks_of_their_own(generation: str, a: str, rows: int, columns: int):
    """mlir-aie's kernels have 4 x 2 and 4 x 4 micro-tiles in a block on AIE2, of 4 x 8 for int8 and 4 x 4 for bf16."""
    r, t = {"AIE2 int8": (4, 8), "AIE2 bf16": (4, 4), "AIE2P int8": (8, 8)}[f"{generation} {a}"]
    known = [c for c in COMPILED if (c.published.generation.name, c.published.types[0]) == (generation, a)]
    assert known
    for row in known:
        height, width = row.published.m // row.published.rho // r, row.published.n // t
        assert row.cost.blocks == -(-height // rows) * -(-width // columns), row.published


def test_hand_written_rates_are_those_that_were_published():
    """2.703 us at 1.02 GHz on Phoenix, and 1760 of 1843 GFLOPS of bfp16 on Strix, whose cores do 512 MACs a cycle."""
    phoenix, strix = HAND_WRITTEN
    assert phoenix.cycles / 1.02e9 == pytest.approx(2.703e-6, rel=1e-3)
    assert strix.macs_per_cycle / 512 == pytest.approx(1760 / 1843, rel=1e-3)
    assert [(rate.device, rate.types[0], rate.m, rate.n, rate.compiled) for rate in (phoenix, strix)] == [
        ("phoenix", "bf16", 64, 64, False), ("strix", "bfp16", 64, 64, False),
    ]  # fmt: skip


def test_compiled_efficiency_falls_back_to_the_nearest_types():
    own = compiled_efficiency("int8", "int8", "int32", AIE2P)
    ternary = compiled_efficiency("int8", "int2", "int32", AIE2P)
    assert ternary.mean == own.mean
    assert (own.basis, ternary.basis) == ("int8 x int8 to int32", "int8 x any to int32")
    assert own.low <= own.mean <= own.high
    assert compiled_efficiency("int8", "int8", "bf16", AIE2P).basis == "int8 x any to any"
    assert compiled_efficiency("int16", "int16", "int32", AIE2P).basis == "all types"


@pytest.mark.parametrize(
    ("kernel", "sizes", "options", "message"),
    [
        (
            "mm_i8_i3_i32",
            (64, 64, 64),
            {},
            "no loop of a kernel 'mm_i8_i3_i32' for AIE2P; known: mm_i8_i8_i8, .*kernels[./]loops",
        ),
        ("mm_i8_i8_i32", (60, 64, 64), {}, "m = 60 is no positive multiple of 8; change the tile"),
        ("mm_i8_i2_i32", (64, 64, 40), {}, "n = 40 is no positive multiple of 32"),
        ("mm_i8_i8_i32", (64, 0, 64), {}, "k = 0 is no positive multiple of 8"),
        ("mm_i8_i8_i32", (64, 64, 64), {"a_rows": 24}, "a_rows = 24 does not divide m = 64; m / a_rows is rho"),
        ("mm_i8_i8_i32", (64, 64, 64), {"transposed": "x"}, "transposed names x; the operands are a, b and c"),
        (
            "mm_i8_i8_i32",
            (64, 64, 64),
            {"blocking": (3, 2)},
            "block of 6 micro-tiles exceeds the 5 free",
        ),
        ("unscale_i32", (8, 0, 8), {}, "m · n = 64 is no positive multiple of 256"),
        ("zero_i32", (0, 0, 64), {}, "m · n = 0 is no positive multiple of 16"),
        ("zero_i32", (-8, 0, -8), {}, "m · n = 64 is no positive multiple of 16"),
    ],
)
def test_what_cannot_be_costed_is_refused(kernel, sizes, options, message):
    with pytest.raises(ScheduleError, match=message):
        kernel_cost(kernel, *sizes, generation=AIE2P, **options)


def test_other_refusals():
    for efficiency in (0, 1.01):
        with pytest.raises(ScheduleError, match=rf"efficiency {efficiency} is outside \(0, 1\]"):
            kernel_costs(["zero_i32"], 64, 64, 64, generation=AIE2P, efficiency=efficiency)
    with pytest.raises(ScheduleError, match="zero_i32 is a pass over C, not a matrix kernel"):
        kernel_multiples("zero_i32", AIE2P)


def test_first_generation_multiplies_four_bits_at_twice_the_rate():
    int8, int4 = (kernel_cost(f"mm_i8_{b}_i32", 64, 256, 64, generation=AIE2) for b in ("i8", "i4"))
    assert int4.interval == int8.interval == 4
    assert int4.trips * 2 == int8.trips
    assert int4.bound == "slot lda+ldb+vec"
