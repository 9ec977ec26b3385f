"""Attention on the emulated array with its compiled kernels: any queries and keys, whatever the schedule."""

from collections import Counter
from functools import cache
from math import prod
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.emulator.strictness import EDGES
from bdforge.array.images.programs import read_programs
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import device_named
from bdforge.operators import SpecError, plan, render, spec_from
from bdforge.operators.attention import AttentionPlan
from bdforge.perf.timed import timed, timing_options
from bdforge.runtime.toolchain.assembled import built_image
from support.differences import same
from support.loaded_arrays import LoadedArray

TILE = {"queries": 16, "keys": 16}
LEAST: dict[str, Any] = {"kind": "attention", "heads": 4, "kv_heads": 2, "head_dim": 64, "tile": TILE}
ONE_ROW, TWO_ROWS = {"array": {"rows": 1, "columns": 2}}, {"array": {"rows": 2, "columns": 4}}
FEW = {"few_queries": True, "array": {"rows": 1}, "kv_splits": 1}
SPLIT = FEW | {"kv_splits": 3}
DESIGNS: dict[str, dict[str, Any]] = {
    "threes": {"heads": 6, **ONE_ROW},
    "capped": {"heads": 2, "soft_cap": 2.0, **ONE_ROW},
    "one KV head": {"kv_heads": 1, "window": 20, "scale": 0.5, **TWO_ROWS},
    "odd KV heads": {"heads": 6, "kv_heads": 3, "causal": False, "tile": {"queries": 32, "keys": 16}, **TWO_ROWS},
    "few": {"heads": 8, **FEW},
    "few, wide": {"heads": 4, "kv_heads": 1, **FEW, "head_dim": 256},
    "few, one digit": {"heads": 8, "digits": 1, **FEW},
    "one digit": {"heads": 2, "digits": 1, **ONE_ROW},
    "few, window": {"heads": 21, "kv_heads": 3, **FEW, "window": 20, "array": {"rows": 1, "columns": 2}},
    "few, all keys": {"heads": 3, "kv_heads": 3, **FEW, "causal": False, "soft_cap": 3.0},
    "split": {"heads": 5, "kv_heads": 1, **SPLIT},
    "split, two KV heads": {"heads": 8, **SPLIT, "kv_splits": 2, "digits": 1},
    "split, window": {"heads": 2, "kv_heads": 1, **SPLIT, "window": 20, "kv_splits": 4},
    "split, capped": {"heads": 2, "kv_heads": 1, **SPLIT, "soft_cap": 3.0, "causal": False},
    "split in rounds": {"heads": 6, "kv_heads": 3, **SPLIT, "kv_splits": 2, "array": {"rows": 1, "columns": 4}},
    "whole": {"heads": 10, "kv_heads": 5, "tile": {"queries": 16, "keys": 32}},
    "three pairs of rows": {"tile": {"queries": 48, "keys": 16}, **ONE_ROW},
    "five pairs of rows": {"tile": {"queries": 80, "keys": 16}, "stack_bytes": 2048, **ONE_ROW},
    "few, two pairs": {"heads": 20, "kv_heads": 1, **FEW, "tile": {"queries": 32, "keys": 32}},
}


@cache
def loaded(name: str) -> LoadedArray:
    return LoadedArray.of(plan(spec_from(LEAST | DESIGNS[name], "small"), device_named("strix_halo")))


def softmax(name: str, inputs: dict[str, np.ndarray]) -> np.ndarray:
    """Y as the formula has it, head by head in float64."""
    form = LEAST | DESIGNS[name]
    q, k, v = (inputs[x].astype(float) for x in "QKV")
    k, v = (np.repeat(x, q.shape[1] // x.shape[1], axis=1) for x in (k, v))
    scores = np.einsum("ihd,jhd->hij", q, k) * form.get("scale", form["head_dim"] ** -0.5)
    if cap := form.get("soft_cap"):
        scores = cap * np.tanh(scores / cap)
    apart = np.arange(len(q))[:, None] + len(k) - len(q) - np.arange(len(k))
    hidden = (apart < 0) & form.get("causal", True) | (apart >= form.get("window", 1 << 30))
    scores = np.where(hidden, -np.inf, scores)
    weights = np.exp(scores - scores.max(axis=2, keepdims=True))
    return np.einsum("hij,jhd->ihd", weights / weights.sum(axis=2, keepdims=True), v)


def run(name: str, sizes: tuple[int, int], seed: int = 0, **options: Any) -> Any:
    """A run, whose mean error is below half a percent; no element leaves its bound."""
    design = loaded(name)
    inputs = design.plan.random(design.problem(list(sizes)), seed)
    found, result = design.run(list(sizes), inputs, seed=seed, **options)
    exact, y = softmax(name, inputs), found["Y"].astype(float)
    assert abs(y - exact).mean() <= (0.02 if design.plan.spec.form.digits == 1 else 0.006) * abs(exact).mean()
    expected = design.plan.reference(inputs)["Y"]
    assert np.allclose(expected.values, exact, rtol=1e-9, atol=1e-12)
    assert (abs(y - exact) <= expected.bound).all()
    return result


SIZES = {
    "threes": ((1, 1), (5, 7), (16, 16), (33, 70)),
    "capped": ((20, 33),),
    "one KV head": ((1, 40), (20, 64)),
    "odd KV heads": ((3, 5), (40, 9)),
    "few": ((1, 1), (1, 70), (4, 16), (11, 40)),
    "few, wide": ((5, 33),),
    "one digit": ((5, 7), (20, 50)),
    "few, one digit": ((2, 40),),
    "few, window": ((1, 5), (2, 50), (5, 90)),
    "few, all keys": ((18, 33), (1, 20)),
    "split": ((1, 1), (1, 33), (4, 70), (1, 160), (20, 50)),
    "split, two KV heads": ((1, 20), (5, 90)),
    "split, window": ((1, 5), (2, 50), (1, 97), (19, 90)),
    "split, capped": ((18, 33), (1, 20), (1, 75)),
    "split in rounds": ((1, 40), (17, 70)),
    "three pairs of rows": ((5, 7), (100, 120)),
    "five pairs of rows": ((5, 7), (100, 120)),
    "few, two pairs": ((1, 1), (3, 70)),
}


@pytest.mark.daily("one KV head")
@pytest.mark.parametrize("name", SIZES)
def test_every_kind_of_edge_and_order(name):
    for number, sizes in enumerate(SIZES[name]):
        run(name, sizes, number, schedule=("random", "in-order")[number % 2], poison=number % 3 != 1)


@pytest.mark.slow
def test_a_whole_array_keeps_to_the_bound():
    run("whole", (41, 100), schedule="random", poison=True)


MACHINE_CODE = {
    "threes": (20, 40),
    "one KV head": (20, 64),
    "odd KV heads": (40, 9),
    "few": (5, 40),
    "few, wide": (5, 33),
    "few, window": (5, 50),
    "one digit": (20, 40),
    "few, one digit": (5, 40),
    "split": (4, 70),
    "split, window": (2, 50),
    "split in rounds": (17, 40),
    "whole": (33, 50),
    "three pairs of rows": (100, 110),
    "few, two pairs": (3, 70),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MACHINE_CODE)
def test_machine_code_in_every_core_gives_the_bits_of_compiled_kernels(name):
    design, sizes = loaded(name), list(MACHINE_CODE[name])
    image = built_image(design.mlir, "attention.mlir", design.plan.kernels.defines, [])
    assert not image.without
    programs = {program.tile: program for program in read_programs(image.xclbin) if program.tile is not None}
    inputs = design.plan.random(design.problem(sizes), 1)
    wanted, steps = design.run(sizes, inputs)[0]["Y"], design.plan.sequence(design.problem(sizes))
    for schedule in ("random", "in-order"):
        buffers = arguments(steps, placed(steps, inputs))
        options: dict[str, Any] = {"schedule": schedule, "poison": schedule == "random", "permissive": [EDGES]}
        emulate(design.mlir, buffers, instructions=steps.words(), elfs=programs, **options)
        same(fetched(steps, buffers)["Y"].view(np.uint16), wanted.view(np.uint16), schedule)


def test_a_prompt_in_pieces_is_the_same_to_a_rounding():
    design = loaded("threes")
    inputs = design.plan.random(design.problem([60, 60]), 1)
    whole = design.run([60, 60], inputs)[0]["Y"]
    for first, last in ((0, 16), (33, 60)):
        part = {"Q": inputs["Q"][first:last], "K": inputs["K"][:last], "V": inputs["V"][:last]}
        y = design.run([last - first, last], part)[0]["Y"]
        assert (abs(y.astype(float) - whole[first:last].astype(float)) <= 0.02 * abs(whole[first:last]).max()).all()


@pytest.mark.slow  # daily arrays of rows do
def test_one_loaded_array_serves_problem_after_problem():
    design = loaded("odd KV heads")
    problems = [([n, m], design.plan.random(design.problem([n, m]), n)) for n, m in ((20, 40), (3, 50), (40, 20))]
    for (_, inputs), found in zip(problems, design.run_in_turn(problems), strict=True):
        expected = design.plan.reference(inputs)["Y"]
        assert (abs(found["Y"].astype(float) - expected.values) <= expected.bound).all()


@pytest.mark.daily("threes")
@pytest.mark.parametrize("name", ["threes", "split"])
def test_late_large_scores_move_what_weights_are_relative_to(name):
    design = loaded(name)
    inputs = design.plan.random(design.problem([40, 40]), 2)
    inputs["Q"] = abs(inputs["Q"])
    inputs["K"][30] = 40
    found = design.run([40, 40], inputs, schedule="random")[0]["Y"]
    expected = design.plan.reference(inputs)["Y"]
    assert (abs(found.astype(float) - expected.values) <= expected.bound).all()
    assert (abs(found[30:] - inputs["V"][30].repeat(design.plan.tiling.group, axis=0)) <= 0.02).all()


@pytest.mark.parametrize(("kv_heads", "tokens", "blocks"), [(5, 1024, 340), (5, 512, 90), (8, 1024, 544), (2, 512, 36)])
def test_rows_of_cores_have_equally_many_blocks(kv_heads, tokens, blocks):
    """Passes of 64 queries, four to a row and round at most: of 1,024 tokens 2 + 4 ... + 32 blocks for each KV head."""
    spec = {"kind": "attention", "heads": 4 * kv_heads, "kv_heads": kv_heads, "head_dim": 128}
    spec |= {"problems": [{"queries": tokens, "keys": tokens}]}
    design = plan(spec_from(spec, "rows"), device_named("strix_halo"))
    sequence = design.sequence(design.problems[0])
    brought = Counter[int]()
    for task in sequence.tasks():
        brought[task.column] += sum(prod(bd.pattern.sizes) for bd in task.bds if bd.argument == 1)
    assert {column: size // (32 * 128) for column, size in brought.items() if size} == dict.fromkeys(
        (0, 2, 4, 6), blocks
    )


def test_halves_of_sums_stand_in_two_banks():
    """Of 128 dimensions, so that machine code waits for banks 0.6 % of its time, not 4.4: neither p nor v, which a core
    reads meanwhile, is in one of the two."""
    spec = {"kind": "attention", "heads": 4, "kv_heads": 1, "head_dim": 128}
    design = plan(spec_from(spec, "halves"), device_named("strix_halo")).design
    core = next(tile for tile in design.tiles if tile.core)
    held = {buffer.name.removeprefix(f"{core.name}_"): buffer for buffer in core.buffers}
    o = held["o"]
    assert o.address is not None
    assert (o.address + o.bytes // 2) % 16384 == 0
    assert not {*held["o"].banks} & {*held["p"].banks, *held["v_ping"].banks}


@pytest.mark.daily("threes-larger0")
@pytest.mark.parametrize(
    ("name", "larger"), [("threes", ((16, 16), (16, 60), (48, 60))), ("split", ((3, 16), (3, 200), (9, 200)))]
)
def test_more_keys_take_longer_with_data_as_without(name, larger):
    design, seconds = loaded(name), []
    for sizes in larger:
        problem = design.problem(list(sizes))
        timing = run(name, sizes, timing=timing_options(design.plan, problem, "ideal")).timing
        seconds.append(timing.array_seconds)
        assert abs(timed(design.plan, problem, "ideal").array_seconds / seconds[-1] - 1) <= 0.05
    assert seconds[2] > 1.2 * seconds[1] > 1.4 * seconds[0]


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"soft_cap": 80.0}, "soft_cap"),
        ({"heads": 5}, "heads = 5 are no multiple of kv_heads = 2"),
        ({"window": 8, "causal": False}, "needs causal = true"),
        ({"array": {"rows": 4, "columns": 6}}, "array.columns >= 8"),
        ({"tile": {"queries": 24, "keys": 16}}, "tile.queries"),
        ({"head_dim": 256, "tile": {"queries": 64, "keys": 64}}, "a smaller tile"),
        ({**FEW, "head_dim": 256, "stack_bytes": 4096}, "a stack of 3264 would fit"),
        ({"heads": 2, "tile": {"queries": 32, "keys": 80}, **ONE_ROW}, "a stack of 1536 would fit"),
        ({"head_dim": 96}, "head_dim"),
        ({"array": {"columns": 9}}, "columns"),
        ({"few_queries": True, "array": {"rows": 2}}, "array.rows = 2"),
        ({**FEW, "heads": 34}, "17 heads share a KV head"),
        ({**FEW, "tile": {"queries": 32, "keys": 16}}, "tile.keys = 16 are no multiple"),
        ({**FEW, "kv_splits": 2, "array": {"rows": 1, "columns": 3}}, "array.columns = 3 are no multiple of kv_splits"),
        ({"kv_splits": 2}, "kv_splits = 2: rows of cores share their keys"),
        ({**FEW, "kv_splits": 9}, "array.columns"),
        ({**FEW, "kv_splits": 0}, "kv_splits"),
    ],
)
def test_what_no_array_holds_is_refused(changes, said):
    with pytest.raises(SpecError, match=said):
        plan(spec_from(LEAST | changes, "mine"), device_named("strix_halo"))


def test_phoenix_has_no_block_floats():
    with pytest.raises(SpecError, match="no block floats"):
        plan(spec_from(LEAST | ONE_ROW, "mine"), device_named("phoenix"))


def test_queries_without_their_keys_are_refused():
    design = loaded("threes")
    with pytest.raises(SpecError, match="queries = 9 are more than keys = 8"):
        design.plan.sequence(design.problem([9, 8]))


STACKS = [
    ({**FEW, "head_dim": 256}, 3264), ({**FEW, "head_dim": 256, "stack_bytes": 1024}, 1024), (FEW, 4096),
    ({"heads": 2, "stack_bytes": 8192}, 8192), ({"heads": 2, "head_dim": 256}, 4096),
]  # fmt: skip
"""What a spec says; bytes of each core's stack."""


@pytest.mark.parametrize(("changes", "stack"), STACKS)
def test_stacks_that_a_spec_leaves_open_take_what_buffers_leave(changes, stack):
    made = plan(spec_from(LEAST | changes, "mine"), device_named("strix_halo"))
    assert {tile.stack_bytes for tile in made.design.tiles if tile.core} == {stack}


@pytest.mark.parametrize("dim", [64, 128, 256])
def test_every_dimension_has_a_tile(dim):
    made = plan(
        spec_from({name: x for name, x in LEAST.items() if name != "tile"} | {"head_dim": dim}, "mine"),
        device_named("strix_halo"),
    )
    problem = made.problems or (loaded("threes").problem([100, 200]),)
    assert made.cost(problem[0]).operations == 2 * 4 * dim * sum(range(101, 201))


SPLITS = [
    (1, None, 8, 8), (2, None, 4, 8), (3, None, 2, 6), (4, None, 2, 8), (5, None, 1, 5), (8, None, 1, 8),
    (9, None, 1, 5), (2, 6, 3, 6), (2, 7, 1, 7), (1, 4, 4, 4), (4, 2, 1, 2),
]  # fmt: skip
"""KV heads and columns that a spec says; ranges and columns of the plan for eight."""


@pytest.mark.parametrize(("kv_heads", "columns", "splits", "used"), SPLITS)
def test_keys_are_split_as_often_as_there_are_columns(kv_heads, columns, splits, used):
    array = {"rows": 1} | ({"columns": columns} if columns else {})
    spec = LEAST | {"heads": 2 * kv_heads, "kv_heads": kv_heads, "few_queries": True, "array": array}
    made = plan(spec_from(spec, "mine"), device_named("strix_halo"))
    assert isinstance(made, AttentionPlan)
    tiling = made.tiling
    assert (tiling.splits, tiling.columns) == (splits, used)


@pytest.mark.slow
def test_four_ranges_of_one_head_take_less_than_half_of_the_time():
    seconds = []
    for splits in (1, 4):
        spec = LEAST | {"heads": 4, "kv_heads": 1, **FEW, "kv_splits": splits}
        made = plan(spec_from(spec, "mine"), device_named("strix_halo"))
        seconds.append(timed(made, loaded("split").problem([1, 2000]), "ideal").array_seconds)
    assert seconds[1] < seconds[0] / 2


@pytest.mark.slow
@pytest.mark.parametrize("dim", [64, 128, 256])
@pytest.mark.parametrize("more", [{}, {"soft_cap": 50.0}, {"window": 1024}, {"soft_cap": 50.0, "window": 1024}])
def test_machine_code_of_split_keys_fits_program_memory(dim, more):
    spec = {"kind": "attention", "heads": 14, "kv_heads": 2, "head_dim": dim, "few_queries": True, **more}
    made = plan(spec_from(spec | {"array": {"rows": 1}}, "mine"), device_named("strix_halo"))
    assert isinstance(made, AttentionPlan)
    assert made.tiling.splits == 4
    assert not built_image(render(made, []), "mine.mlir", made.kernels.defines, []).without
