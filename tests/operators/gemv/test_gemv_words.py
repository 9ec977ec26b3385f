"""What the shims are told: W once from its first byte to its last, C once, A once for each pass; what is refused."""

import numpy as np
import pytest
from gemv_designs import DESIGNS, plan_of

from bdforge.design import rtp_addresses
from bdforge.design.sequences import PlannedSequence, Start, Stored
from bdforge.devices import device_named
from bdforge.devices.timing import timing_of
from bdforge.operators import OPERATORS, Plan
from bdforge.operators.gemv import GemvSpec, plan_gemv
from bdforge.operators.gemv.mapping import BETWEEN, CHUNKS, IDLE, TILES
from bdforge.operators.gemv.program import A, C, W
from bdforge.perf.bounds.operator_bound import cost_estimate
from support.differences import same


def sequence_of(plan: Plan, *sizes: int) -> PlannedSequence:
    return plan.sequence(OPERATORS["gemv"].problem(sizes))


def runs_of(sequence: PlannedSequence, argument: int) -> np.ndarray:
    """(first, end) of every contiguous run that BDs of an argument move, in elements, sorted."""
    found = []
    for task in sequence.tasks():
        for bd in task.bds:
            if bd.argument == argument:
                *outer, (length, step) = bd.pattern.coalesced().dims()
                assert (task.runs, step) == (1, 1)
                starts = np.array([bd.pattern.offset])
                for size, stride in outer:
                    starts = (starts[:, None] + np.arange(size) * stride).ravel()
                found.append(np.stack([starts, starts + length], axis=1))
    runs = np.concatenate(found)
    return runs[np.argsort(runs[:, 0])]


def sizes_of(plan) -> list[tuple[int, int, int]]:
    rng, group = np.random.default_rng(2), plan.tiling.group
    edges = [(1, 1, 1), (1, plan.tiling.k, group * plan.tiling.columns), (1, plan.tiling.k + 1, 9 * group + 1)]
    return edges + [
        (int(rng.integers(1, plan.spec.form.tile.m + 1)), int(rng.integers(1, 4096)), int(2 ** rng.uniform(0, 17)))
        for _ in range(12)
    ]


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("name", DESIGNS)
def test_w_and_c_move_once_and_a_once_for_each_pass(name):
    plan = plan_of(name)
    for sizes in sizes_of(plan):
        sequence = sequence_of(plan, *sizes)
        a_elements, w_bytes, c_elements = sequence.elements
        for argument, elements in ((W, w_bytes), (C, c_elements)):
            runs = runs_of(sequence, argument)
            assert runs[0, 0] == 0
            assert runs[-1, 1] == elements
            same(runs[1:, 0], runs[:-1, 1])
        passes = [task.runs for task in sequence.tasks() for bd in task.bds if bd.argument == A]
        groups = c_elements // plan.tiling.lines // plan.tiling.group
        assert groups == max(-(-sizes[2] // plan.tiling.group), plan.tiling.columns)
        # A channel that halves W's work of its column has half of a pass with each group.
        channels = 1 + plan.tiling.channels * (plan.tiling.columns - 1)
        least = groups // plan.tiling.columns if plan.tiling.channels == 1 else groups * 2 // channels
        assert least <= sum(passes) <= least + 2
        depth = -(-sizes[1] // plan.tiling.k) * plan.tiling.k
        assert a_elements == plan.tiling.lines * depth
        assert w_bytes == groups * plan.tiling.group * depth * plan.tiling.w.bits // 8


def test_a_stream_does_not_grow_with_its_sizes():
    plan = plan_of("strix halo")
    assert len({len(sequence_of(plan, 1, K, N).words()) for K, N in ((1, 1), (2560, 13824), (1 << 17, 200_000))}) == 1


def test_c_is_the_users_own_memory_where_rows_and_groups_are_whole():
    plan = plan_of("strix halo")
    whole = plan.tiling.columns * plan.tiling.group
    for sizes, staged in (((8, 5, whole), 0), ((7, 5, whole), 1), ((8, 5, whole + 1), 1), ((8, 5, 1), 1)):
        sequence = sequence_of(plan, *sizes)
        assert sequence.values[sequence.program.operands[C].staged] == staged


TERNARY, FLOATS = {"a": "int8", "w": "int2", "c": "int32"}, {"a": "bf16", "w": "bf16", "c": "f32"}


@pytest.mark.parametrize(("product", "m", "lines", "height"), [
    # Blocks of 8 rows on AIE2P, of 4 on AIE2: memtiles fill one that is less, more than one are whole.
    *(("strix_halo", m, m, 8) for m in range(1, 9)), *(("phoenix", m, m, 4) for m in range(1, 5)),
    *(("phoenix", m, 8, 8) for m in range(5, 9)),
])  # fmt: skip
def test_rows_are_whole_blocks_or_less_than_one(product: str, m: int, lines: int, height: int):
    content = {"kind": "gemv", "types": TERNARY, "tile": {"m": m, "k": 64, "n": 32}, "array": {"rows": 1, "columns": 1}}
    tiling = plan_gemv(GemvSpec.load(content, "small"), device_named(product)).tiling
    assert (tiling.lines, tiling.height) == (lines, height)


@pytest.mark.parametrize(("product", "array", "channels"), [
    # A channel reads 12.8 GB/s of Strix Halo's 55.5, 3.8 of Phoenix' 20; only an even number of rows has halves.
    ("strix_halo", {}, 1), ("strix_halo", {"columns": 5}, 1), ("strix_halo", {"columns": 4}, 2),
    ("strix_halo", {"columns": 2}, 2), ("strix_halo", {"columns": 1}, 1), ("strix_halo", {"columns": 4, "rows": 3}, 1),
    ("strix_halo", {"columns": 4, "rows": 2}, 2), ("phoenix", {}, 2), ("phoenix", {"columns": 1}, 1),
    ("phoenix", {"rows": 1}, 1), ("phoenix", {"channels": 1}, 1), ("strix_halo", {"channels": 2}, 2),
    ("strix_halo", {"columns": 1, "channels": 2}, 1),
])  # fmt: skip
def test_shims_use_as_many_channels_as_dram_can_feed(product: str, array: dict[str, int], channels: int):
    content = {"kind": "gemv", "types": FLOATS, "tile": {"k": 64, "n": 32}, "array": array}
    plan = plan_gemv(GemvSpec.load(content, "any"), device_named(product))
    assert plan.tiling.channels == channels
    assert [plan.tiling.lags(column) for column in range(2)] == [channels == 2, False]
    assert plan.tiling.feeds(0) == [(1, range(plan.tiling.rows))]
    half = plan.tiling.rows // 2
    both = [(0, range(half)), (1, range(half, plan.tiling.rows))]
    assert plan.tiling.feeds(1) == (both if channels == 2 else plan.tiling.feeds(0))


@pytest.mark.parametrize(("columns", "channels", "groups", "told"), [
    # Groups by column: equal parts of W for each channel, of which column 0 has one; at least one for each column.
    # After / the passes that a column lets go by at first, so that all end with the last one, and before each tile.
    (3, 2, 10, "2 4 4/0 0 0/1"), (3, 2, 11, "2 5 4/1 0 1/1"), (3, 2, 1, "1 1 1/0 0 0/0"), (3, 2, 4, "1 2 1/0 0 1/1"),
    (3, 2, 20, "4 8 8/0 0 0/1"), (3, 1, 10, "3 4 3/1 0 1/"), (3, 1, 11, "3 4 4/1 0 0/"), (1, 1, 7, "7/0/"),
    (2, 2, 6, "2 4/0 0/1"), (2, 1, 5, "2 3/1 0/"),
])  # fmt: skip
def test_columns_share_w_by_their_channels(columns: int, channels: int, groups: int, told: str):
    content = {
        "kind": "gemv", "types": TERNARY, "tile": {"m": 1, "k": 16, "n": 32},
        "array": {"columns": columns, "rows": 2, "channels": channels},
    }  # fmt: skip
    plan = plan_gemv(GemvSpec.load(content, "small"), device_named("strix_halo"))
    sequence = sequence_of(plan, 1, 33, groups * 64)
    words = {item.address: item.values[0] for e in sequence.events if isinstance(e, Start)
             for item in e.items if isinstance(item, Stored)}  # fmt: skip
    at = {core.column: core.parameters for core in rtp_addresses(plan.design)}
    found = [[words[at[column] + 4 * slot] for column in range(columns)] for slot in (TILES, IDLE)]
    between = [words[at[column] + 4 * BETWEEN] for column in range(columns) if at[column] + 4 * BETWEEN in words]
    assert "/".join(" ".join(map(str, numbers)) for numbers in (*found, between)) == told
    assert {words[address + 4 * CHUNKS] for address in at.values()} == {3}


@pytest.mark.parametrize(("passes", "runs"), [(256, [256]), (257, [256, 1]), (512, [256, 256]), (600, [256, 256, 88])])
def test_a_task_brings_a_up_to_256_times(passes: int, runs: list[int]):
    sequence = sequence_of(plan_of("one core"), 2, 8, 32 * passes)
    assert [task.runs for task in sequence.tasks() for bd in task.bds if bd.argument == A] == runs


def test_a_plan_tells_what_a_run_moves():
    """20 groups of 128 columns over 8 columns: 3 passes of 8 rows of A; each weight once."""
    content = {"kind": "gemv", "types": {"a": "int8", "w": "int2", "c": "int32"}, "tile": {"k": 640, "n": 32}}
    plan = plan_gemv(GemvSpec.load(content, "bitnet"), device_named("strix_halo"))
    cost = plan.cost(OPERATORS["gemv"].problem((1, 2560, 2560)))
    assert cost.operations == 2560 * 2560
    assert cost.read_bytes == 2560 * 2560 // 4 + 3 * 8 * 2560
    assert cost.write_bytes == 8 * 2560 * 4
    assert cost.channel_bytes == 3 * 128 * 2560 // 4
    multiply, ends = 8 * 640 * 32 // 256, 8 * 32 * 4 // 64
    assert cost.core_cycles == 3 * (4 * multiply + 2 * ends)
    assert plan.kernels.cycles == {"mm_i8_i2_i32": multiply, "zero_i32": ends, "unscale_i32": ends}


@pytest.mark.parametrize("name", ["strix halo, bf16", "phoenix, bf16"])
def test_bounds_of_floats_hold_for_numpys_own_product(name):
    plan = plan_of(name)
    inputs = plan.random(OPERATORS["gemv"].problem((3, 50, 40)), 1)
    wanted = plan.reference(inputs)["C"]
    assert wanted.bound is not None
    exact = inputs["A"].astype(np.float64) @ inputs["W"].astype(np.float64)
    if not plan.tiling.kernel.block_products:
        assert (np.abs(exact.astype(plan.tiling.c.dtype).astype(np.float64) - wanted.values) <= wanted.bound).all()
    assert (
        np.abs(exact - wanted.values) <= 0.05 * (np.abs(inputs["A"].astype(float)) @ np.abs(inputs["W"].astype(float)))
    ).all()


INT, FLOAT = {"a": "int8", "w": "int2", "c": "int32"}, {"a": "bf16", "w": "bf16", "c": "bf16"}


@pytest.mark.parametrize(
    ("product", "types", "m", "cycles"),
    [
        ("strix_halo", INT, 8, (8 * 64 * 32 // 256, 8 * 32 * 4 // 64)),  # one block of rows: half of 512
        ("strix_halo", INT, 1, (8 * 64 * 32 // 256, 8 * 32 * 4 // 64)),
        ("phoenix", INT, 8, (8 * 64 * 32 // 256, 8 * 32 * 4 // 32)),  # two blocks of four: all of 256
        ("phoenix", INT, 5, (8 * 64 * 32 // 256, 8 * 32 * 4 // 32)),
        ("phoenix", INT, 4, (4 * 64 * 32 // 128, 4 * 32 * 4 // 32)),
        ("phoenix", FLOAT, 8, (8 * 64 * 32 // 128, 8 * 32 * 4 // 32)),
        ("strix_halo", FLOAT, 3, (8 * 64 * 32 // 128, 8 * 32 * 4 // 64)),
    ],
)
def test_a_single_block_of_rows_multiplies_at_half_the_rate(product, types, m, cycles):
    content = {"kind": "gemv", "types": types, "tile": {"m": m, "k": 64, "n": 32}}
    plan = plan_gemv(GemvSpec.load(content, "any"), device_named(product))
    multiply, zero, finish = plan.kernels.cycles.values()
    assert (multiply, zero, finish) == (*cycles, cycles[1])


def test_random_operands_have_every_value_of_their_types():
    plan = plan_of("strix halo")
    inputs = plan.random(OPERATORS["gemv"].problem((8, 1024, 4)), 1)
    assert {name: (int(array.min()), int(array.max())) for name, array in inputs.items()} == {
        "A": (-128, 127), "W": (-1, 1),
    }  # fmt: skip
    floats = plan_of("phoenix, bf16").random(OPERATORS["gemv"].problem((6, 400, 4)), 1)
    assert all(abs(float(a.astype(float).std()) - 1) < 0.1 and abs(float(a.astype(float).mean())) < 0.1
               for a in floats.values())  # fmt: skip


@pytest.mark.parametrize("name", ["strix halo, bf16", "phoenix, bf16"])
def test_bounds_are_those_of_sums_and_half_a_step_of_a_narrower_c(name):
    """K = 24 ones of one sign: 24 products, in blocks of eight on Strix Halo, in three chunks of k = 8."""
    plan = plan_of(name)
    inputs = {"A": np.ones((1, 24), plan.tiling.kernel.a.dtype), "W": np.ones((24, 8), plan.tiling.w.dtype)}
    found = plan.reference(inputs)["C"]
    sums = 24 * ((3 if plan.tiling.kernel.block_products else 24) + 3) / 2**23
    wanted = sums + (24 + sums) / 256 if name == "phoenix, bf16" else sums
    assert found.values.tolist() == [[24.0] * 8]
    assert found.bound is not None
    same(found.bound, np.full((1, 8), wanted), rtol=1e-12)


def test_a_language_models_head_takes_little_more_than_its_bytes():
    """Without dispatch, modelled: 101 MB at 55.5 GB/s are 1,814 us, of which A's eight rows add 1.5 %."""
    plan = plan_gemv(GemvSpec.load({"kind": "gemv", "types": FLOATS, "tile": {"k": 256, "n": 16}}, "head"),
                     device_named("strix_halo"))  # fmt: skip
    found = cost_estimate(plan, OPERATORS["gemv"].problem((1, 3072, 16384)), timing_of(plan.device))
    assert found.bound == "DRAM bandwidth"
    assert 1814 < found.time_us - found.serial["dispatch"] < 1900


@pytest.mark.parametrize(("w", "k", "n", "tile_bytes", "finish"), [
    ("int2", 64, 32, 64 * 32 // 4, ("unscale_i32",)), ("bf16", 64, 16, 64 * 16 * 2, ()), ("int8", 64, 8, 64 * 8, ()),
])  # fmt: skip
def test_a_tile_of_weights_knows_its_bytes_and_what_finishes_its_sums(w, k, n, tile_bytes, finish):
    types = FLOATS if w == "bf16" else TERNARY | {"w": w}
    content = {"kind": "gemv", "types": types, "tile": {"k": k, "n": n}}
    weights = plan_gemv(GemvSpec.load(content, "any"), device_named("strix_halo")).tiling.weights
    assert (weights.tile_bytes, weights.finish) == (tile_bytes, finish)
