"""Planned sequences: the same words as their MLIR lowered, staging and edges, counts, and what is refused."""

import json
from typing import Any

import numpy as np
import pytest
from sequence_replay import replay

from bdforge.array.mlir import parse
from bdforge.array.mlir.allocate import allocate
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.txn.lower import lower_module
from bdforge.design import Parameters
from bdforge.design.sequences import SequenceOptionError
from bdforge.devices import device_named
from bdforge.devices.txn_format.codec import decode, encode
from bdforge.devices.txn_format.operations import BlockWrite, Patch, Sync
from bdforge.operators import manifest, render
from bdforge.operators.gemm import GemmPlan, GemmProblem, SequenceOptions, SpecError, plan_gemm, sequence, spec_from
from support.built_designs import small_gemm, spec_content
from support.differences import same
from support.gemm_problems import natural_leading

STRIX_HALO = device_named("strix_halo")


@pytest.fixture(scope="module")
def small() -> GemmPlan:
    return small_gemm(m=16, k=16, n=32, k_mt=32)


INT8, BF16 = ("int8", "int8", "int32"), ("bf16", "bf16", "f32")
DESIGNS: dict[str, dict[str, Any]] = {
    "ternary": {"m": 16, "k": 16, "n": 32, "k_mt": 32},
    "4 x 4": {"m": 16, "k": 8, "n": 32, "rows": 4, "columns": 4},
    "panels longer than a wrap": {"m": 320, "k": 8, "n": 32, "rows": 4, "columns": 4},
    "row-major": {"m": 16, "k": 16, "n": 16, "k_mt": 32, "types": INT8, "layouts": "row row row"},
    "column-major": {"m": 16, "k": 8, "n": 16, "k_mt": 24, "types": INT8, "layouts": "column column column"},
    "two shims for A": {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "row row row", "a_shims": 2, "columns": 4},
    "more rows than columns": {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "row column column", "rows": 4},
    "fed": {
        "m": 16, "k": 16, "n": 32, "types": ("int8", "int8", "bf16"), "layouts": "row packed row",
        "epilogue": {"scale": True},
    },
    "block floats": {"m": 32, "k": 32, "n": 32, "types": ("bfp16", "bfp16", "bfp16"), "k_mt": 64},
    "B that stays": {
        "m": 8, "k": 64, "n": 32, "types": ("int8", "int2", "bf16"), "epilogue": {"scale": True, "bias": True},
        "residency": "b", "c_memtile_buffers": 1, "pool_bytes": 2560,
    },
    "the other generation": {"m": 16, "k": 8, "n": 16, "types": BF16, "layouts": "column row row", "device": "phoenix"},
}  # fmt: skip


def gaps(rng: np.random.Generator, plan: GemmPlan, M: int, K: int, N: int) -> dict[str, int]:
    """Leading dimensions with gaps behind the lines; none for packed B."""
    natural = natural_leading(plan, GemmProblem(M, K, N))
    leading = {f"ld{name}": natural[name] + int(rng.integers(0, 6)) for name in "abc"}
    return {name: value for name, value in leading.items() if name != "ldb" or plan.tiling.b.order != "packed"}


@pytest.mark.daily("fed", "row-major")
@pytest.mark.parametrize("name", DESIGNS)
def test_the_words_are_those_of_the_mlir(name):
    """Every kind of edge, views, many steps: the rendered sequence lowered is the stream."""
    plan = small_gemm(**DESIGNS[name])
    rng = np.random.default_rng(4)
    sequences = []
    for _ in range(2):
        M, K, N = (int(s) for s in rng.integers(1, [6 * plan.spec.tile.m, 100, 300]))
        options = SequenceOptions("wide") if rng.integers(2) else SequenceOptions(in_flight=int(rng.integers(5)))
        sequences.append(sequence(plan.waiting(options), M, K, N, **gaps(rng, plan, M, K, N)))
    named = {one.problem.sequence: one for one in sequences}
    module = parse(plan.text(named), "sequences.mlir")
    for one in sequences:
        device, operations = lower_module(module, one.problem.sequence)
        assert operations == one.operations()
        same(encode(operations, device), one.words())


def test_the_flagships_words_are_those_of_its_mlir(flagship):
    problem = GemmProblem(300, 2562, 700)
    device, operations = lower_module(parse(render(flagship, [problem]), "flagship.mlir"), problem.sequence)
    same(encode(operations, device), flagship.sequence(problem).words())


def test_parameters_lie_where_the_whole_design_allocates_them():
    plan = small_gemm(m=16, k=16, n=32, rows=2, columns=4, stack_bytes=2048, c_buffers=2)
    device = next(op for op in parse(render(plan, []), "whole.mlir").walk() if isinstance(op, DeviceOp))
    placed = {op.symbol: at for op, at in allocate(device).buffers.items()}
    for tile in (tile for tile in plan.design.tiles if tile.core):
        held = Parameters.held(tile)
        parameters, go = tile.address(held.buffer), tile.address(held.go)
        assert parameters & 0xFFFFF == placed[held.buffer.name]
        assert parameters >> 20 == tile.column << 5 | tile.row
        assert go == (tile.column << 25 | tile.row << 20) + 0x1F000 + 16 * held.go.id


@pytest.mark.parametrize(
    ("sizes", "a", "c"),
    [
        ((16, 32, 32), None, None),
        ((33, 44, 65), None, None),
        ((15, 32, 32), (16, 32), (16, 32)),
        ((1, 5, 7), (16, 32), (16, 32)),
        ((40, 28, 40), (40, 32), None),
        ((40, 33, 40), (40, 36), None),
        ((40, 36, 31), None, (40, 32)),
        ((40, 36, 40, 41, 40), (40, 36), None),
        ((40, 36, 40, 44, 41), None, None),
        ((40, 36, 40, (1 << 22) + 4, 1 << 20), (40, 36), None),
        ((40, 36, 40, 1 << 22, (1 << 20) + 1), None, (40, 40)),
    ],
)
def test_operands_are_staged_only_where_they_must_be(small, sizes, a, c):
    leading = dict(zip(("lda", "ldc"), sizes[3:], strict=False))
    staging = sequence(small, *sizes[:3], **leading).staging
    shapes = [s and (s.rows, s.columns) for s in (staging.a, staging.c)]
    assert shapes == [a, c]


@pytest.fixture(scope="module")
def rows() -> GemmPlan:
    return small_gemm(**DESIGNS["row-major"])


@pytest.fixture(scope="module")
def columns() -> GemmPlan:
    return small_gemm(**DESIGNS["column-major"])


@pytest.mark.parametrize(
    ("layout", "sizes", "staged", "in_slabs"),
    [
        # Tiles of 16 x 16 in slabs of 32; lines of 4 int8 start at whole words.
        ("row-major", (33, 64, 36), (None, None, None), False),
        ("row-major", (33, 68, 36), ((33, 96), None, None), True),
        ("row-major", (33, 66, 36), ((33, 96), (68, 36), None), True),
        ("row-major", (33, 64, 37), (None, (64, 40), (33, 40)), False),
        ("row-major", (5, 64, 36), ((16, 64), None, (16, 36)), False),
        ("row-major", (33, 20, 36), ((33, 32), (32, 36), None), False),
        ("row-major", (33, 64, 12), (None, (64, 16), (33, 16)), False),
        # Tiles of 16 x 16 in slabs of 24; lines run along M, K, M.
        ("column-major", (36, 48, 33), (None, None, None), False),
        ("column-major", (34, 48, 33), ((36, 48), None, (36, 33)), False),
        ("column-major", (36, 52, 33), ((36, 72), None, None), True),
        ("column-major", (36, 49, 33), ((36, 72), (52, 33), None), True),
        ("column-major", (36, 8, 33), ((36, 24), (24, 33), None), False),
        ("column-major", (36, 48, 3), (None, (48, 16), (36, 16)), False),
    ],
)
def test_unpacked_operands_are_staged_only_where_they_must_be(rows, columns, layout, sizes, staged, in_slabs):
    staging = sequence(rows if layout == "row-major" else columns, *sizes).staging
    assert tuple(s and (s.rows, s.columns) for s in (staging.a, staging.b, staging.c)) == staged
    assert staging.a_in_slabs == in_slabs


def test_leading_dimensions_count_along_the_lines_of_each_order(rows, columns):
    assert sequence(rows, 64, 64, 64, lda=80, ldb=84, ldc=65).staging == sequence(rows, 64, 64, 64).staging
    odd = sequence(rows, 64, 64, 64, lda=66, ldb=66, ldc=66).staging
    assert (odd.a is None, odd.b is None, odd.c is None) == (False, False, True)
    assert str(odd.b) == "staged as 64 x 64: ldb = 66 is no multiple of 4, so that lines do not start at whole words"
    far = sequence(columns, 64, 48, 64, lda=(1 << 22) + 4, ldb=(1 << 22) + 4, ldc=(1 << 20) + 1).staging
    assert str(far.a) == "staged as 64 x 48: lda = 4194308 is more than 1048576 words, a BD's longest step"
    assert all((far.a, far.b, far.c))
    with pytest.raises(SpecError, match="ldb = 63 is below N = 64; lines would overlap"):
        sequence(rows, 64, 64, 64, ldb=63)
    with pytest.raises(SpecError) as caught:
        sequence(columns, 70, 48, 64, lda=69, ldb=47, ldc=69)
    assert [r.split(": ", 2)[2] for r in str(caught.value).splitlines()] == [
        "lda = 69 is below M = 70; lines would overlap",
        "ldb = 47 is below K = 48; lines would overlap",
        "ldc = 69 is below M = 70; lines would overlap",
    ]


def test_edges_of_unpacked_b_are_said(rows):
    edges = sequence(rows, 33, 68, 44).edges()
    assert edges.a == (
        "staged as 33 x 96: K = 68 is no multiple of k_mt = 32 and B is not packed",
        "reads 31 rows again",
        "holds 0 for 28 columns of the last slab",
    )
    assert edges.b == ("reads 28 rows again", "reads 20 columns again")
    assert edges.c == ("writes 31 rows again", "writes 20 columns again")


def test_more_rows_than_columns_walk_whole_panels():
    plan = small_gemm(m=16, k=8, n=16, rows=4, columns=2, types=INT8, layouts="row row row")
    staging = sequence(plan, 63, 64, 64).staging
    assert str(staging.a) == "staged as 64 x 64: M = 63 is below m = 64"
    assert sequence(plan, 65, 64, 64).staging.a is None


def test_edges_are_said_operand_by_operand(small):
    edges = sequence(small, 33, 43, 65).edges()
    assert edges.a == (
        "staged as 33 x 44: K = 43 is no multiple of 4, so that lines do not start at whole words",
        "reads 31 rows again",
        "reads 20 columns again",
    )
    assert edges.b == ("holds 0 for 20 rows of the last slab", "is packed in 3 n-tiles")
    assert edges.c == ("writes 31 rows again", "writes 63 columns again")
    assert edges.brief == "M, K, N overlap; A staged"
    assert str(sequence(small, 32, 32, 64).edges()) == sequence(small, 32, 32, 64).edges().brief == "none"


def test_every_reason_to_refuse_is_listed(small):
    with pytest.raises(SpecError) as caught:
        sequence(small, 0, 262_144, (1 << 20) + 1, lda=5, ldc=6)
    reasons = str(caught.value).splitlines()
    assert [reason.split(": ", 2)[2] for reason in reasons] == [
        "M = 0 is outside 1 to 1048576",
        "N = 1048577 is outside 1 to 1048576",
        "K = 262144 could overflow the sums; at most 262143",
        "lda = 5 is below K = 262144; lines would overlap",
        "ldc = 6 is below N = 1048577; lines would overlap",
    ]


def test_a_bitnet_layer_is_four_dozen_bds_and_a_wait_for_each_column(flagship):
    planned = sequence(flagship, 256, 2560, 2560)
    operations, counts = planned.operations(), planned.counts()
    assert sum(isinstance(op, BlockWrite) for op in operations) == sum(isinstance(op, Patch) for op in operations) == 20
    assert [op for op in operations if isinstance(op, Sync)] == [Sync(0, 0, j, 1, 1, 0) for j in range(8)]
    assert (counts.steps, counts.output_tiles, counts.operations) == (1, 160, 3 * 32 + 3 * 20 + 8 + 8)
    assert counts.words == len(planned.words()) == 4 + 6 * 96 + (12 + 12 + 6) * 20 + 7 * 8 + 4 * 8
    assert counts.bytes == 4 * counts.words
    assert counts.macs == 256 * 2560 * 2560


def test_streams_grow_with_steps_and_not_with_tiles(flagship):
    """Twice the panels or columns add no words while one task can hold them; 16 x 5 tiles of a core cost 5 steps."""
    words = {shape: sequence(flagship, *shape).counts().words for shape in [(256, 2560, 512 * n) for n in (1, 5, 40)]}
    assert len(set(words.values())) == 1
    tall = sequence(flagship, 4096, 6912, 2560).counts()
    assert tall.steps == 5
    assert tall.words / tall.output_tiles < 1.6


def test_steps_overlap_as_far_as_the_queue_allows(flagship):
    """Four steps are started before the first wait; then each wait is followed by the next step."""
    operations = decode(sequence(flagship, 4096, 2560, 13_824).words()).operations
    kinds = ["wait" if isinstance(op, Sync) else "bd" for op in operations if isinstance(op, Sync | BlockWrite)]
    assert kinds.index("wait") == 4 * 20
    assert kinds == ["bd"] * 80 + (["wait"] * 8 + ["bd"] * 20) * 12 + ["wait"] * 32


@pytest.mark.parametrize("wait", ["column", "wide"])
def test_one_step_in_flight_is_awaited_before_the_next(flagship, wait):
    planned = sequence(flagship.waiting(SequenceOptions(wait, 1)), 4096, 2560, 13_824)
    operations = planned.operations()
    kinds = [op if isinstance(op, Sync) else "bd" for op in operations if isinstance(op, Sync | BlockWrite)]
    wide = [Sync(0, 0, 0, 1, 8, 0)]
    waits = wide if wait == "wide" else [Sync(0, 0, j, 1, 1, 0) for j in range(8)]
    assert kinds == (["bd"] * 20 + waits) * 16
    replay(planned.words())


def test_wide_waits_are_never_for_two_tokens_of_a_column(flagship):
    """However many steps: the stream read back knows of one task of C in each column when a wide wait comes."""
    planned = sequence(flagship.waiting(SequenceOptions("wide")), 4096, 2560, 13_824)
    assert planned.counts().steps == 16
    replay(planned.words())
    for in_flight in (2, 4):
        with pytest.raises(SequenceOptionError, match=rf"in_flight = {in_flight} is outside 0 to 1, the steps .* wide"):
            SequenceOptions("wide", in_flight)


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"wait": "all"}, "design: sequence.wait = 'all' is unknown; choose column or wide"),
        ({"in_flight": 5}, "design: sequence.in_flight = 5 is outside 0 to 4, the steps that sequence.wait = column"),
        ({"in_flight": -1}, "design: sequence.in_flight = -1 is outside 0 to 4"),
        ({"in_flight": "two"}, "design: sequence.in_flight: input should be a valid integer, got 'two'"),
        ({"waits": "wide"}, "design: sequence.waits: unexpected key"),
    ],
)
def test_impossible_waits_are_refused_by_name(section, message):
    with pytest.raises(SpecError, match=message):
        spec_from(spec_content(m=16, k=16, n=32) | {"sequence": section}, "small")


def _waits(plan):
    return [op for op in sequence(plan, 64, 32, 64).operations() if isinstance(op, Sync)]


def test_a_specs_waits_reach_sequences_and_manifest_and_leave_the_array_alone():
    plain = small_gemm(m=16, k=16, n=32, columns=2)
    content = plain.spec.content | {"sequence": {"wait": "wide"}}
    plan = plan_gemm(spec_from(content, "small"), STRIX_HALO)
    assert plan.spec.hash == plain.spec.hash
    assert _waits(plan) == [Sync(0, 0, 0, 1, 2, 0)]
    assert _waits(plan.waiting(SequenceOptions())) == _waits(plain) == [Sync(0, 0, c, 1, 1, 0) for c in range(2)]
    facts = json.loads(json.dumps(manifest(plan, [])))
    assert facts["document"]["made_from"]["sequence"] == {"wait": "wide", "in_flight": 0}
    assert facts["sequence"]["program"]["in_flight"] == 1
    assert spec_from(facts["document"]["made_from"], "small") == plan.spec
