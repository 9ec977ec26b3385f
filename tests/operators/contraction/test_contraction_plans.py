"""The benchmark's 24 contractions at full size: each plans, and its stream is one that shims can walk."""

from math import prod
from types import SimpleNamespace
from typing import Any

import pytest

from bdforge.design.sequences import Start, StartedTask
from bdforge.design.sequences.interpret import STEPS_MAX
from bdforge.devices import device_named
from bdforge.operators.contraction import ContractionError, ContractionPlan, contraction, plan_contraction
from bdforge.operators.contraction.boxes import box_count, box_size
from bdforge.operators.contraction.choose import _refusal
from bdforge.operators.contraction.config import config_of
from support.built_designs import small_gemm
from support.tccg import tccg

PHOENIX = device_named("phoenix")


def moved_elements(plan: ContractionPlan) -> dict[int, int]:
    """Elements of each operand that the sequence's tasks move."""
    found = {0: 0, 1: 0, 2: 0}
    for task in plan.sequence(plan.problem).tasks():
        for bd in task.bds:
            found[bd.argument] += task.runs * prod(bd.pattern.sizes[-3:])
    return found


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("case", tccg(), ids=lambda case: case.expression)
def test_the_benchmark_plans_at_full_size(phoenix, case):
    mapped = plan_contraction(contraction(case.expression, case.sizes), phoenix).choice.mapped
    tiles = mapped.sides[0].tiles
    assert [box_size(box) for box in (tiles.m, tiles.n, tiles.k)] == [64, 64, 64]
    positions = [prod(part.dim.size for part in box) for box in (tiles.m, tiles.n, tiles.k)]
    assert prod(positions) == contraction(case.expression, case.sizes).macs
    assert all(box_count(box) * 64 >= size for box, size in zip((tiles.m, tiles.n, tiles.k), positions, strict=True))
    assert mapped.steps <= STEPS_MAX


@pytest.mark.parametrize(
    "case",
    [pytest.param(c, id=c.expression, marks=[] if c.name in ("6", "17", "19") else pytest.mark.slow) for c in tccg()],
)
def test_the_benchmark_s_streams_move_every_tile(phoenix, case):
    plan = plan_contraction(contraction(case.expression, case.sizes), phoenix)
    mapped, slabs = plan.choice.mapped, box_count(plan.sides[0].tiles.k)
    visits = mapped.batches * mapped.rows.tiles * mapped.columns.tiles
    inputs = visits * 4 * slabs * 64 * 64
    assert moved_elements(plan) == {0: inputs, 1: inputs, 2: visits * 16 * 64 * 64}


def test_a_batch_is_offsets_of_one_stream(phoenix):
    """Two panels of each batch before the next one."""
    sizes = {"b": 3, "m": 512, "k": 128, "n": 256}
    plan = plan_contraction(contraction("bmk,bkn->bmn", sizes), phoenix, staged="")
    assert plan.choice.mapped.rows.steps == 2
    notes = {level.exec for level in config_of(plan.choice.mapped).levels if level.type == "C"}
    assert notes == {"seq"}
    first = [next(bd.pattern.offset for t in _tasks(plan, b) for bd in t.bds if bd.argument == 0) for b in range(3)]
    assert first == [0, 512 * 128, 2 * 512 * 128]


def _tasks(plan: ContractionPlan, batch: int) -> list[StartedTask]:
    """Tasks of the first step of a batch."""
    steps = [event for event in plan.sequence(plan.problem).events if isinstance(event, Start) and event.index >= 0]
    return [item for item in steps[batch * len(steps) // 3].items if isinstance(item, StartedTask)]


def test_configurations_hold_every_position(phoenix):
    plan = plan_contraction(contraction("abk,kn->abn", {"a": 8, "b": 64, "k": 128, "n": 512}), phoenix)
    sizes: dict[str, int] = dict.fromkeys("MNK", 1)
    for level in config_of(plan.choice.mapped).levels:
        sizes[level.type] *= level.size
    assert sizes == {"M": 512, "N": 512, "K": 128}


def test_strides_beyond_a_bd_s_step_are_staged_or_split(phoenix):
    sizes, far = {"m": 512, "k": 64, "n": 256}, 1 << 22
    with pytest.raises(ContractionError, match="steps 2097152 words, a BD's longest step is 1048576"):
        plan_contraction(contraction("mk,kn->mn", sizes, ([far, 1], None, None)), phoenix, staged="")
    plan = plan_contraction(contraction("mk,kn->mn", sizes, ([far, 1], None, None)), phoenix)
    assert plan.sides[0].staged


@pytest.mark.parametrize(("staged", "k", "n", "gap", "told"), [
    # Two column steps on: 2 x 8192 staged tiles of 256 bytes are 2^20 words, a BD's longest step.
    ("B", 8192 * 16, 32, 0, (2, 0)), ("B", 8193 * 16, 32, 0, (1, 0)), ("", 16, 32, 1 << 16, (2, 0)),
    ("", 16, 32, (1 << 16) + 2, (2, 2)),
])  # fmt: skip
def test_steps_have_turns_as_far_as_a_bd_can_step(staged: str, k: int, n: int, gap: int, told: tuple[int, int]):
    """In place, 16 columns of C with 2^16 elements from one to the next are as far; beyond, tiles come in chunks."""
    gemm = small_gemm(8, 16, 8, types=("bf16", "bf16", "f32"), layouts="row row column")
    strides = (None, None, [1, gap] if gap else [1, 16])
    found = plan_contraction(contraction("mk,kn->mn", {"m": 16, "k": k, "n": n}, strides), gemm, staged)
    assert (found.choice.mapped.columns.turns, found.choice.mapped.columns.chunk) == told


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"m": 8, "m_used": 4}, "tile.m_used: tiles must be full"),
        (
            {"types": ("int8", "int2", "bf16", "int32"), "epilogue": {"scale": True}, "k": 64},
            "epilogue: scales and biases",
        ),
        ({"residency": "b", "k_mt": 16}, "buffers.residency"),
        ({"rows": 4}, "array.rows = 4: each core row needs a shim for A, there are 2"),
        ({"rows": 1, "a_shims": 2}, "buffers.a_shims = 2: one shim must bring a core row's A"),
        ({"types": ("bf16", "bfp16", "f32")}, "bfp16: blocks lie along a matrix' rows; use bf16"),
        ({"types": ("bf16", "bf16", "bfp16", "f32")}, "bfp16: blocks lie along a matrix' rows; use bf16"),
        ({"types": ("int8", "int8", "bf16"), "epilogue": {"bias": True}, "k": 64}, "epilogue: scales and biases"),
    ],
)
def test_designs_that_take_no_contractions_say_why(facts, said):
    gemm = small_gemm(**facts)
    with pytest.raises(ContractionError, match=said):
        plan_contraction(contraction("ab,bc->ac", {"a": 64, "b": 64, "c": 64}), gemm)


@pytest.mark.parametrize(
    "facts", [{"m": 8}, {"rows": 2}, {"rows": 1}, {"epilogue": {"relu": True}}, {"k_mt": 32}, {"c_buffers": 2}]
)
def test_other_designs_take_contractions(facts):
    gemm = small_gemm(**facts)
    assert plan_contraction(contraction("ab,bc->ac", {"a": 64, "b": 64, "c": 64}), gemm).choice.mapped.steps >= 1


def test_sums_that_cannot_overflow_are_taken():
    gemm = small_gemm()
    plan = plan_contraction(contraction("mk,kn->mn", {"m": 8, "k": (1 << 18) - 1, "n": 8}), gemm)
    assert plan.choice.mapped.depth == 1 << 18


def test_sums_that_could_overflow_are_refused():
    gemm = small_gemm()
    with pytest.raises(ContractionError, match="K = 262144 could overflow the sums; at most 262143"):
        plan_contraction(contraction("mk,kn->mn", {"m": 8, "k": 1 << 18, "n": 8}), gemm)


@pytest.mark.parametrize(("steps", "bds", "told"), [
    (STEPS_MAX, 16, None), (STEPS_MAX + 1, 16, f"takes {STEPS_MAX + 1} steps, at most {STEPS_MAX}"),
    (1, 17, "takes 17 BDs of a shim at a time; there are 16"),
])  # fmt: skip
def test_a_mapping_is_refused_beyond_the_steps_and_bds_that_there_are(steps: int, bds: int, told: str | None):
    mapped: Any = SimpleNamespace(
        steps=steps, bds=lambda: [3, bds], limits=SimpleNamespace(bds=16), program=lambda: None
    )
    assert (_refusal(mapped) or "").startswith(told or "")
    assert (_refusal(mapped) is None) == (told is None)
