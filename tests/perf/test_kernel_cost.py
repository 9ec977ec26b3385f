"""Cycles of our kernels: slots counted by hand, published rates, machine code, and refusals."""

from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest

from bdforge.core.codegen.kernels import assembled
from bdforge.devices import AIE2, AIE2P, DEVICES
from bdforge.devices.types import PEAK_MACS
from bdforge.operators import load_spec, operator_of, plan, spec_from
from bdforge.operators.gemm.kernels import KERNELS
from bdforge.perf.kernels.kernel_cost import ScheduleError, kernel_cost, matrix_kernel, pass_cycles
from tools.docs.counted import OURS, counted_rows
from tools.docs.kernel_costs import known_passes
from tools.fit.kernel_rates import HAND_WRITTEN, comparisons

DESIGNS = Path(__file__).resolve().parents[2] / "designs"
MATRIX = list(KERNELS.values())
IDS = [f"{k.generation.name}-{k.multiply}" for k in MATRIX]
GENERATIONS = {"aie2": AIE2, "aie2p": AIE2P}
COMPILED = [row for row in comparisons() if row.published.compiled]

INNER = {  # by what arrives column by column: loads, moves, stores and products of an iteration
    "AIE2P": {
        "int8 int8": {"": (4, 0, 0, 4), "a": (4, 2, 0, 4), "b": (4, 2, 0, 4), "ab": (4, 4, 0, 4)},
        "int8 int4": {"": (4, 0, 0, 4), "a": (4, 2, 0, 4), "b": (4, 0, 0, 4)},  # the host packs B
        "int8 int2": {"": (3, 4, 0, 4), "a": (3, 6, 0, 4), "b": (3, 4, 0, 4)},  # two masks, two biases
        # To bfp16 by way of an accumulator: two loads that widen, or two loads, two shuffles, two widening moves.
        "bf16 bf16": {"": (8, 8, 4, 4), "a": (8, 16, 4, 4), "b": (8, 0, 4, 4), "ab": (8, 8, 4, 4)},
        # Two steps of K: a stream is opened, then two tiles come of it.
        "bf16 bfp16": {"": (8 + 6, 0, 4, 8), "a": (8 + 6, 16, 4, 8), "b": (8 + 6, 0, 4, 8)},
        "bfp16 bfp16": {"": (12, 0, 0, 8), "a": (12, 0, 0, 8), "b": (12, 0, 0, 8)},
    },
    "AIE2": {  # registers of 256 bits: a tile of B takes two loads, and one of A where it has 16 columns or bf16
        "int8 int8": {"": (6, 0, 0, 4), "a": (6, 2, 0, 4), "b": (6, 2, 0, 4), "ab": (6, 4, 0, 4)},
        "int8 int4": {"": (8, 0, 0, 4), "a": (8, 2, 0, 4), "b": (8, 2, 0, 4)},
        "int8 int2": {"": (4, 4, 0, 4), "a": (4, 6, 0, 4), "b": (4, 4, 0, 4)},
        "bf16 bf16": {"": (8, 0, 0, 4), "a": (8, 2, 0, 4), "b": (8, 2, 0, 4), "ab": (8, 4, 0, 4)},
    },
}


@pytest.mark.parametrize("kernel", MATRIX, ids=IDS)
def test_an_inner_loop_takes_the_instructions_that_its_micro_tiles_need(kernel):
    by_side = INNER[kernel.generation.name][f"{kernel.a.name} {kernel.b.name}"]
    found = {}
    for turned in by_side:
        m, k, n = 2 * kernel.r, 4 * kernel.s, 4 * kernel.t
        use = kernel_cost(kernel.multiply, m, k, n, generation=kernel.generation, transposed=turned).slot_use
        loads, *others = use.get("lda", 0) + use.get("ldb", 0), *(use.get(slot, 0) for slot in ("mv", "st", "vec"))
        found[turned] = (loads, *others)
    assert found == by_side


C_BUSIEST = {  # loads and stores of a micro-tile of C, of which the busier binds where K is one step
    ("AIE2P", "int8"): 1, ("AIE2P", "int16"): 2, ("AIE2P", "int32"): 4, ("AIE2P", "bf16"): 2, ("AIE2P", "f32"): 4,
    ("AIE2P", "bfp16"): 2, ("AIE2", "int8"): 1, ("AIE2", "int16"): 2, ("AIE2", "int32"): 4, ("AIE2", "bf16"): 1,
    ("AIE2", "f32"): 2,
}  # fmt: skip


@pytest.mark.parametrize("kernel", MATRIX, ids=IDS)
def test_a_tile_of_c_is_stored_once_by_every_call(kernel):
    """Whatever the depth: of one step and of many, slots beside the products' are those of C."""
    size = 4 * kernel.multiples[0], 8 * kernel.multiples[2]
    deep = kernel_cost(kernel.multiply, size[0], 64 * kernel.s, size[1], generation=kernel.generation)
    stores = C_BUSIEST[kernel.generation.name, kernel.accumulator.name] * size[0] * size[1] // (kernel.r * kernel.t)
    assert deep.sequential_cycles - deep.slot_cycles >= stores
    assert deep.slot_cycles >= stores + deep.blocks * deep.trips * deep.slot_use.get("st", 0)


def test_one_block_of_int32_is_counted_by_hand():
    """Of one micro-tile C's four loads come by unit A while A and B do by B, two cycles apart; the product at 8, its
    first store six later, the fourth at 17. Seven more steps of four cycles, three tiles' loads and stores more."""
    one, two = (kernel_cost("mm_i8_i8_i32", 16, 64, n, generation=AIE2P) for n in (16, 32))
    assert (one.interval, one.trips, one.blocks) == (4, 8, 1)
    assert one.sequential_cycles == 18 + 7 * 4 + 3 * (4 + 4)
    assert two.sequential_cycles == 2 * one.sequential_cycles
    assert one.slot_cycles == 8 * 4
    shallow = kernel_cost("mm_i8_i8_i32", 16, 16, 16, generation=AIE2P)
    assert shallow.slot_cycles == 4 * 4  # the stores of four micro-tiles, the loads of which take eight more


@pytest.mark.parametrize("kernel", MATRIX, ids=IDS)
def test_costs_are_ordered_and_below_the_peak(kernel):
    r, s, t = kernel.multiples
    peaks = PEAK_MACS[kernel.generation.name]
    peak = peaks.get((kernel.a.name, kernel.b.name), peaks["int8", "int8"])  # other widths are unpacked to int8
    for m, k, n in ((r, s, t), (3 * r, 5 * s, t), (2 * r, 16 * s, 3 * t), (8 * r, 9 * s, 4 * t)):
        cost = kernel_cost(kernel.multiply, m, k, n, generation=kernel.generation)
        assert cost.slot_cycles <= cost.sequential_cycles
        assert cost.cycles <= cost.sequential_cycles
        assert cost.macs_per_cycle <= peak


@pytest.mark.parametrize("kernel", MATRIX, ids=IDS)
def test_arrays_cost_what_their_sizes_do(kernel):
    r, s, t = kernel.multiples
    m, k, n = (np.array(sizes) for sizes in ((r, 4 * r, 5 * r), (6 * s, 7 * s, 2 * s), (3 * t, t, 2 * t)))
    many = kernel_cost(kernel.multiply, m, k, n, generation=kernel.generation)
    for i, size in enumerate(zip(m.tolist(), k.tolist(), n.tolist(), strict=True)):
        one = kernel_cost(kernel.multiply, *size, generation=kernel.generation)
        assert (one.cycles, one.sequential_cycles, one.slot_cycles) == (
            many.cycles[i], many.sequential_cycles[i], many.slot_cycles[i],
        )  # fmt: skip


def test_odd_edges_make_smaller_blocks():
    whole = kernel_cost("mm_i8_i8_i32", 16, 64, 32, generation=AIE2P)
    odd = kernel_cost("mm_i8_i8_i32", 24, 64, 40, generation=AIE2P)
    assert (whole.blocks, odd.blocks) == (2, 2 + 1 + 2 + 1)
    even, uneven = (kernel_cost("mm_bfp16_bfp16_f32", 64, k, 64, generation=AIE2P) for k in (64, 72))
    assert (even.trips, uneven.trips) == (4, 9)  # a stream is opened for two tiles where they come in pairs


def test_bounds_are_the_slots_that_are_full():
    costs = {
        turned: kernel_cost("mm_i8_i2_i32", 64, 128, 64, generation=AIE2P, transposed=turned) for turned in ("", "a")
    }
    assert {turned: (cost.interval, cost.bound) for turned, cost in costs.items()} == {
        "": (4, "slot mv+vec"), "a": (6, "slot mv"),
    }  # fmt: skip
    one = kernel_cost("mm_i8_i8_i32", 8, 64, 8, generation=AIE2P)
    assert (one.interval, one.bound) == (2, "latency")  # from a product of a sum to the next
    int8, int4 = (kernel_cost(f"mm_i8_{b}_i32", 64, 256, 64, generation=AIE2) for b in ("i8", "i4"))
    assert (int4.interval, int4.trips * 2) == (int8.interval, int8.trips)  # four bits at twice the rate


# What is counted


NEAR = {("aie2", "int4"): 0.16, ("aie2p", "bf16"): 0.07}
"""Where C shares loads' units, and where row-major B is turned."""


@pytest.mark.parametrize("row", [r for r in counted_rows() if r.source == OURS and r.macs], ids=lambda r: r.symbol)
def test_the_ideal_is_near_what_is_counted(row):
    cost = kernel_cost(row.symbol, row.m, row.k, row.n, generation=GENERATIONS[row.generation], a_rows=row.m // row.rho)
    assert cost.basis == "expected of machine code"
    near = NEAR.get((row.generation, row.types.split()[1]), 0.05)
    assert cost.cycles == pytest.approx(row.issue, rel=near)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("symbol", ["zero_i8", "zero_i32", "unscale_i32", "finish_i32_i16", "finish_i32_i32"])
def test_passes_over_c_are_counted_where_they_are_assembled(generation: str, symbol: str):
    counted = assembled(symbol, generation, ("DIM_M=32", "DIM_N=96", "SHIFT=3")).cycles
    cost = kernel_cost(symbol, 32, 0, 96, generation=GENERATIONS[generation])
    assert (cost.cycles, cost.basis) == (counted, "counted")


PASSES = {  # elements of an iteration, its loads, stores and products
    ("AIE2P", "finish_f32_bf16", ""): (64, 4, 2, 0),
    ("AIE2P", "finish_f32_bf16", "SCALE"): (32, 2, 1 + 12, 26),  # 3 parts of each of 4 factors
    ("AIE2P", "finish_i32_bf16", "SCALE"): (32, 2, 1 + 12, 2 * (9 + 4) + 5),
    ("AIE2P", "finish_i32_bf16", "BIAS"): (32, 2, 1 + 12, 2 * (9 + 4) + 5),
    ("AIE2P", "gate_i32_bf16", "FUNCTION=silu"): (64, 4, 2 * 13 + 14 + 2, 2 * 31 + 13 + 2),
    ("AIE2", "gate_i32_bf16", "FUNCTION=silu"): (32, 4, 2 * 13 + 14 + 2, 2 * 31 + 13 + 2),
    ("AIE2", "gate_i32_bf16", "FUNCTION=relu2"): (32, 4, 3 + 1, 2 * 5 + 2),
    ("AIE2", "finish_f32_bf16", "SCALE"): (16, 2, 1 + 12, 26),
    ("AIE2", "finish_i32_bf16", ""): (16, 2, 1, 5),
    ("AIE2", "finish_i32_bf16", "SCALE"): (16, 2, 1 + 12, 31),
}


@pytest.mark.parametrize(("name", "symbol", "option"), PASSES)
def test_other_passes_take_the_instructions_that_their_bytes_need(name: str, symbol: str, option: str):
    elements, *counts = PASSES[name, symbol, option]
    few, many = (
        kernel_cost(symbol, 1, 0, n * elements, generation=GENERATIONS[name.lower()], options=[option]) for n in (1, 7)
    )
    use = few.slot_use
    assert [use.get("lda", 0) + use.get("ldb", 0), use.get("st", 0), use.get("vec", 0)] == counts
    assert (many.trips, many.cycles - few.cycles) == (7, 6 * few.interval)
    assert few.basis == "modelled by slots"


def test_a_pass_costs_the_same_as_a_call_and_in_many_sizes():
    for symbol in ("zero_i32", "finish_f32_bf16"):
        elements = 512 * np.array([1, 2, 7])
        alone = [kernel_cost(symbol, 1, 0, int(size), generation=AIE2P).cycles for size in elements]
        assert pass_cycles(symbol, elements, AIE2P).tolist() == alone


# Publications


@pytest.mark.parametrize("row", comparisons(), ids=lambda r: f"{r.published.device}-{r.published.types}-{r.cost.k}")
def test_no_published_rate_beats_the_slots_nor_a_compiled_one_the_ideal(row):
    assert row.efficiency("slots") <= 1
    assert not row.published.compiled or 0.4 <= row.efficiency("ideal") <= 1


def test_the_sequential_schedule_tells_compiled_int8_kernels():
    gaps = [abs(r.efficiency("sequential") - 1) for r in COMPILED if r.published.types[:2] == ("int8", "int8")]
    assert len(gaps) == 18
    assert fmean(gaps) <= 0.03
    assert max(gaps) <= 0.1


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


# Names, sizes and refusals


def test_part_of_the_rows_costs_as_a_tile_of_those_rows():
    part = kernel_cost("mm_bf16_bfp16_bf16", 128, 64, 128, generation=AIE2P, a_rows=32)
    assert part == kernel_cost("mm_bf16_bfp16_bf16", 32, 64, 128, generation=AIE2P)
    assert kernel_cost("zero_bf16", 128, 64, 128, generation=AIE2P, a_rows=32).m == 128


def test_kernels_are_named_by_symbol_or_types():
    by_symbol = kernel_cost("mm_i8_i2_i32", 64, 64, 64, generation=AIE2P)
    assert kernel_cost(("int8", "int2", "int32"), 64, 64, 64, generation=AIE2P) == by_symbol
    assert kernel_cost(("bfloat16", "bf16", "float32"), 64, 64, 64, generation=AIE2P).symbol == "mm_bf16_bf16_f32"


@pytest.mark.parametrize("symbol", ["mm_i8_i8_i8", "zero_i8"])
def test_call_cycles_are_added_to_every_count(symbol: str):
    bare, called = (kernel_cost(symbol, 64, 64, 64, generation=AIE2, call_cycles=c) for c in (0, 25))
    counts = [(c.cycles, c.sequential_cycles, c.slot_cycles) for c in (bare, called)]
    assert [b - a for a, b in zip(*counts, strict=True)] == [25, 25, 25]


OTHERS: list[dict[str, Any]] = [
    *(
        {"kind": "convert", "width": 64, "function": name}
        for name in ("bf16_to_f32", "f32_to_bf16", "int8_to_bf16", "quantise_f32", "dequantise_int32")
    ),
    *({"kind": "convert", "function": name, "width": 16384} for name in ("quantise", "quantise_f32")),
    {"kind": "attention", "heads": 1, "kv_heads": 1, "head_dim": 64, "soft_cap": 30},
    *({"kind": "rows", "function": "layernorm", "width": 16384, "codes": codes} for codes in (False, True)),
    {"kind": "rows", "function": "sum", "width": 64, "residual": True, "residual_scaled": True},
    *({"kind": "transpose", "type": name, "tile": {"m": 32, "n": 32}} for name in ("int8", "int32")),
]
"""Of kernels that no named design has."""
AIE2P_ALONE = ("bfp16", "attention")


@pytest.mark.slow
@pytest.mark.parametrize("generation", [AIE2, AIE2P], ids=lambda g: g.name)
def test_every_kernel_source_has_a_cost_or_an_operator_that_tells_its_cycles(generation):
    product = next(device for device in DEVICES.values() if device.generation is generation)
    specs = map(load_spec, sorted(DESIGNS.glob("*.toml")))
    specs = [*specs, *(spec_from(content, "other") for content in OTHERS)]
    plans = [plan(spec, product) for spec in specs if operator_of(spec).fits(spec, product)]
    told = {symbol for found in plans for symbol in found.kernels.cycles}
    known = {kernel.multiply for kernel in MATRIX if kernel.generation == generation}
    known |= {symbol for symbol, _ in known_passes(generation)}
    sources = {path.stem for path in (DESIGNS.parent / "kernels" / "aie2p").glob("*.cc")}
    here = {name for name in sources if generation == AIE2P or not any(word in name for word in AIE2P_ALONE)}
    missing = sorted(here - known - told)
    assert sources
    assert not missing, f"describe {', '.join(missing)} in bdforge/perf/kernels/loop_texts.py"
    assert {kernel.zero for kernel in MATRIX if kernel.generation == generation} <= known


@pytest.mark.parametrize(
    ("kernel", "sizes", "options", "message"),
    [
        ("mm_i8_i3_i32", (64, 64, 64), {}, "no matrix kernel 'mm_i8_i3_i32' for AIE2P; known: mm_i8_i8_i8, "),
        ("mm_i8_i8_i32", (60, 64, 64), {}, "m = 60 is no positive multiple of 8; change the tile"),
        ("mm_i8_i2_i32", (64, 64, 40), {}, "n = 40 is no positive multiple of 32"),
        ("mm_i8_i8_i32", (64, 0, 64), {}, "k = 0 is no positive multiple of 8"),
        ("mm_i8_i8_i32", (64, 64, 64), {"a_rows": 24}, "a_rows = 24 does not divide m = 64; m / a_rows is rho"),
        ("mm_i8_i8_i32", (64, 64, 64), {"transposed": "x"}, "transposed names x; the operands are a, b and c"),
        ("finish_f32_bf16", (8, 0, 4), {}, "m · n = 32 is no positive multiple of 64"),
        ("zero_i32", (0, 0, 64), {}, "m · n = 0 is no positive multiple of 1"),
        ("zero_i32", (-8, 0, -8), {}, "m · n = 64 is no positive multiple of 1"),
        ("zero_i64", (8, 0, 8), {}, "no pass over C 'zero_i64' for AIE2P: zero_i64 is not assembled"),
    ],
)
def test_what_cannot_be_costed_is_refused(kernel, sizes, options, message):
    with pytest.raises(ScheduleError, match=message):
        kernel_cost(kernel, *sizes, generation=AIE2P, **options)


def test_other_refusals():
    with pytest.raises(ScheduleError, match="no matrix kernel 'zero_i32'"):
        matrix_kernel("zero_i32", AIE2P)
    with pytest.raises(ScheduleError, match="mm_i8_i8_i32 is a matrix kernel"):
        pass_cycles("mm_i8_i8_i32", 64, AIE2P)
