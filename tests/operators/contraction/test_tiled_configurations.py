"""Tiled execution configurations as TEIR writes them: the published one of Phoenix, and what contradicts itself."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from bdforge.operators.contraction import Config, ContractionError, contraction, plan_config, plan_contraction
from bdforge.operators.contraction.config import config_of
from support.built_designs import small_gemm
from support.differences import same

TYPES = "MNKMNK"
EXECS = ("spatial", "spatial", "seq", "prim", "prim", "prim")
SIZES = (16, 16, 8, 64, 64, 64)
# acdf,bcfe->abde: both inputs and the output tiled in the order of access.
STRIDES = (
    (8 * 64 * 64, 0, 64 * 64, 64, 0, 1),
    (0, 8 * 64 * 64, 64 * 64, 0, 1, 64),
    (16 * 64 * 64, 64 * 64, 0, 64, 1, 0),
)


def test_the_published_configuration_is_walked_in_place(phoenix):
    plan = plan_config(Config.of(TYPES, EXECS, SIZES, STRIDES), phoenix, staged="")
    mapped = plan.choice.mapped
    assert (mapped.rows.unit, mapped.columns.unit) == ("d0", "d1")
    assert [[part.dim.name for part in box if part.size > 1] for box in mapped.sides[0].tiles.groups(0)] == [
        ["d3"],
        ["d5"],
    ]
    tasks = plan.sequence(plan.problem).tasks()
    assert {len(bd.pattern.sizes) for task in tasks for bd in task.bds if bd.argument < 2 and task.runs == 1} <= {1}
    again = config_of(mapped).levels
    assert np.prod([level.size for level in again]) == np.prod(SIZES)


def test_its_answer_is_the_contraction_s(phoenix):
    plan = plan_config(Config.of(TYPES, EXECS, (4, 4, 2, 64, 64, 64), STRIDES), phoenix, staged="")
    inputs = plan.random(plan.problem, 3)
    want = np.einsum("acdf,bcfe->abde", *(array.astype(np.float64) for array in inputs.values()))
    same(plan.reference(inputs)["C"].values, want)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"types": "MNKMN"}, "a type, an execution type, a size and three strides each"),
        ({"strides": STRIDES[:2]}, "a type, an execution type, a size and three strides each"),
        ({"strides": (*STRIDES[:2], STRIDES[2][:5])}, "a type, an execution type, a size and three strides each"),
        ({"sizes": SIZES[:5]}, "a type, an execution type, a size and three strides each"),
        ({"strides": ((-1, *STRIDES[0][1:]), *STRIDES[1:])}, "dimension d0: size 16, strides .-1, 0"),
        ({"types": "MNKNMK", "execs": (*EXECS[:3], "seq", "seq", "prim")}, "dimension d3: strides .* of type 'N'"),
        ({"execs": ("gpu", *EXECS[1:])}, "dimension 0: 'gpu' is none of seq, shared, spatial, prim"),
        ({"sizes": (16, 16, 8, 0, 64, 64)}, "dimension d3: size 0"),
        ({"first": "copy"}, "first touch 'copy' is none of zero"),
        ({"last": "tanh"}, "last touch 'tanh' is none of none, relu"),
        ({"last": "relu"}, "last touch relu; design .* has epilogue.relu = false: change either"),
        ({"sizes": (16, 16, 8, 32, 64, 64)}, "prim dimensions of type M make 32; design .* has m = 64"),
        ({"sizes": (3, 16, 8, 64, 64, 64)}, "spatial dimension d0: its tiles cannot be dealt out regularly"),
    ],
)
def test_what_contradicts_itself_is_refused(phoenix, changes, said):
    facts: dict[str, Any] = {"types": TYPES, "execs": EXECS, "sizes": SIZES, "strides": STRIDES, **changes}
    with pytest.raises(ContractionError, match=said):
        plan_config(Config.of(**facts), phoenix)


def test_a_last_touch_is_the_design_s_epilogue():
    gemm = small_gemm(8, 16, 8, types=("int8", "int8", "int8", "int32"), epilogue={"shift": 2, "relu": True})
    facts = {"types": "MNK", "execs": ("prim",) * 3, "sizes": (8, 8, 16), "strides": ((16, 0, 1), (0, 1, 8), (8, 1, 0))}
    plan = plan_config(Config.of(**facts, last="relu"), gemm)  # type: ignore[arg-type]
    assert config_of(plan.choice.mapped).last == "relu"
    inputs = plan.random(plan.problem, 5)
    a, b = (array.astype(np.int64) for array in inputs.values())
    sums = (a @ b).reshape(-1)
    found = plan.reference(inputs)["C"].values.reshape(-1)
    assert found.min() == 0 < found.max()
    assert ((found > 0) <= (sums > 0)).all()
    with pytest.raises(ContractionError, match=r"last touch none; design .* has epilogue.relu = true"):
        plan_config(Config.of(**facts), gemm)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", "CMNKX")
def test_a_type_has_strides_in_its_own_tensors_and_no_others(kind: str):
    has = {"C": (1, 1, 1), "M": (1, 0, 1), "N": (0, 1, 1), "K": (1, 1, 0)}.get(kind)
    for given in product((0, 1), repeat=3):
        try:
            Config.of(kind, ["seq"], [1], [[stride] for stride in given])
            refused = ""
        except ContractionError as error:
            refused = str(error)
        said = "" if given == has else f"dimension d0: strides {given} are not those of type {kind!r}"
        assert refused.startswith(said), given
        assert bool(refused) == bool(said), given


def test_the_last_spatial_dimension_of_a_type_is_dealt_out():
    config = Config.of(
        "MMNNK", ["spatial"] * 4 + ["prim"], [2] * 5, ([1] * 2 + [0] * 2 + [1], [0] * 2 + [1] * 3, [1] * 4 + [0])
    )
    assert [config.unit(kind) for kind in "MNK"] == ["d1", "d3", ""]
    assert [part.size for kind in "MNK" for part in config.box(kind)] == [1, 1, 1, 1, 2]


@pytest.mark.parametrize(("how", "size"), [("prim", 5), ("shared", 1), ("spatial", 1), ("seq", 1)])
def test_only_prim_dimensions_are_a_tile(how: str, size: int):
    config = Config.of("MM", [how, "seq"], [5, 3], ([3, 1], [0, 0], [3, 1]))
    assert [part.size for part in config.box("M")] == [size, 1]
    assert config.unit("M") == ("d0" if how == "spatial" else "")
    assert config.box("N") == ()


LOOPS: dict[tuple[int, int, int], list[str]] = {
    # 32 rows in 4 tiles of 8, 48 columns in 6 of 8, on 2 x 2 cores; K in slabs of 16.
    (32, 48, 32): [
        "M seq 2: 512 0 768", "M spatial 2: 256 0 384", "N shared 3: 0 16 16", "N spatial 2: 0 8 8",
        "K seq 2: 16 768 0",
        "M prim 8: 32 0 48", "N prim 8: 0 1 1", "K prim 16: 1 48 0",
    ],
    # 5 column tiles go in chunks of 3, the second of which moves back by one.
    (16, 40, 16): [
        "M spatial 2: 128 0 320", "N spatial 2: 0 24 24", "N shared 3: 0 8 8",
        "M prim 8: 16 0 40", "N prim 8: 0 1 1", "K prim 16: 1 40 0",
    ],
    # Twice 67 column tiles: a prime, and more than 64 runs of a task; chunks of 72 are 2 steps of 36.
    (8, 16 * 67, 16): [
        "N spatial 2: 0 576 576", "N seq 2: 0 288 288", "N shared 36: 0 8 8", "M prim 8: 16 0 1072", "N prim 8: 0 1 1",
        "K prim 16: 1 1072 0",
    ],
}  # fmt: skip


@pytest.mark.parametrize("sizes", LOOPS, ids=str)
def test_loops_of_a_mapping_are_told_with_their_strides(sizes: tuple[int, int, int]):
    m, n, k = sizes
    gemm = small_gemm(8, 16, 8, types=("int8", "int8", "int32"), layouts="row row row")
    plan = plan_contraction(contraction("mk,kn->mn", {"m": m, "n": n, "k": k}), gemm, staged="")
    levels = config_of(plan.choice.mapped).levels
    same([f"{x.type} {x.exec} {x.size}: {' '.join(map(str, x.strides))}" for x in levels], LOOPS[sizes])
