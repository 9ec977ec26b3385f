"""What a GEMM's reference makes of small matrices, worked out by hand; steps of K, and random operands."""

from typing import Any

import numpy as np
import pytest

from bdforge.operators.gemm import GemmPlan, GemmProblem
from bdforge.operators.gemm.grid import Storage, Tiling
from bdforge.operators.gemm.reference import k_steps, moved_back, product
from support.built_designs import small_gemm
from support.differences import same

BF16, ROWS = ("bf16", "bf16", "bf16", "f32"), "row row row"


def planned(**changes: Any) -> GemmPlan:
    changes = {"m": 8, "k": 8, "rows": 1, "columns": 1, **changes}
    return small_gemm(**changes)


@pytest.mark.parametrize(("size", "tile", "starts"), [
    (8, 4, [0, 4]), (10, 4, [0, 4, 6]), (4, 4, [0]), (5, 4, [0, 1]),
])  # fmt: skip
def test_tiles_move_back_until_they_end_with_the_matrix(size: int, tile: int, starts: list[int]):
    assert moved_back(size, tile).tolist() == [start + i for start in starts for i in range(tile)]


@pytest.mark.parametrize(("K", "packed", "ends"), [
    # Slabs of 16 in steps of 8: (first, end) of what each step adds. Lines of int8 are whole words.
    (16, True, [(0, 8), (8, 16)]), (32, True, [(0, 8), (8, 16), (16, 24), (24, 32)]),
    (20, True, [(0, 8), (8, 16), (0, 0), (16, 20)]), (18, True, [(0, 8), (8, 16), (0, 0), (16, 18)]),
    (29, True, [(0, 8), (8, 16), (16, 24), (24, 29)]), (5, True, [(0, 5), (0, 0)]),
    (28, False, [(0, 8), (8, 16), (16, 20), (20, 28)]),
])  # fmt: skip
def test_a_step_adds_what_no_slab_before_it_held(K: int, packed: bool, ends: list[tuple[int, int]]):
    tiling = Tiling(8, 8, 8, 16, a=Storage(8), b=Storage(8, "packed") if packed else Storage(8))
    assert [step.tolist() for step in k_steps(tiling, K)] == [list(range(*end)) for end in ends]


@pytest.mark.parametrize("K", [1, 1024, 1032, 1041, 2081])
def test_products_are_exact_where_float32_is_not(K: int):
    """1041 times 127^2 is odd and above 2^24."""
    assert product(np.full((1, K), 127, np.int8), np.full((K, 1), 127, np.int8)).tolist() == [[127 * 127 * K]]
    assert product(np.full((1, K), -127, np.int8), np.full((K, 1), 127, np.int8)).dtype == np.int32


def test_no_weights_are_no_sum():
    same(product(np.zeros((2, 0), np.int8), np.zeros((0, 3), np.int8)), np.zeros((2, 3), np.int32))


SUMS = [5, 6, 7, 10, -6, -5, 600, -600]
FINISHED: dict[tuple[str, int, str, bool], list[int]] = {
    # C, shift, rounding, relu: each sum divided by 2^shift.
    ("int32", 0, "conv_even", False): SUMS, ("int32", 0, "conv_even", True): [5, 6, 7, 10, 0, 0, 600, 0],
    ("int16", 2, "conv_even", False): [1, 2, 2, 2, -2, -1, 150, -150],
    ("int8", 2, "conv_even", False): [1, 2, 2, 2, -2, -1, 127, -128],
    ("int8", 2, "conv_even", True): [1, 2, 2, 2, 0, 0, 127, 0],
    ("int8", 0, "floor", False): [5, 6, 7, 10, -6, -5, 127, -128],
    ("int8", 2, "floor", False): [1, 1, 1, 2, -2, -2, 127, -128],
    ("int8", 2, "ceil", False): [2, 2, 2, 3, -1, -1, 127, -128],
    ("int8", 2, "positive_inf", False): [1, 2, 2, 3, -1, -1, 127, -128],
    ("int8", 2, "conv_odd", False): [1, 1, 2, 3, -1, -1, 127, -128],
}  # fmt: skip


@pytest.mark.parametrize(("c", "shift", "rounding", "relu"), FINISHED)
def test_integer_sums_become_c_as_the_epilogue_says(c: str, shift: int, rounding: str, relu: bool):
    epilogue = {"shift": shift, "rounding": rounding, "relu": relu}
    plan = planned(types=("int8", "int8", c, "int32"), epilogue=epilogue)
    b = np.array([SUMS[:6], SUMS[:6]], np.int8)
    big = np.array([[100, -100], [5, -5]], np.int8)  # 100 + 100 * 5
    a = np.array([[1, 0]], np.int8)
    got = [plan.reference({"A": a, "B": b})["C"], plan.reference({"A": np.array([[1, 100]], np.int8), "B": big})["C"]]
    assert [one.bound for one in got] == [None, None]
    same(np.concatenate([one.values[0] for one in got]), FINISHED[c, shift, rounding, relu])


@pytest.mark.parametrize(("types", "shift", "wanted"), [
    # Three steps of K add 150, 30 and -13 to C << shift, of which C keeps as much as its type holds.
    (("int8", "int8", "int8", "int8"), 0, 127 - 13), (("int8", "int8", "int8", "int8"), 1, 84),
    (("int8", "int8", "int16", "int16"), 0, 167), (("int8", "int4", "int16", "int16"), 0, 167),
    (("int8", "int8", "int32", "int32"), 0, 167),
])  # fmt: skip
def test_narrow_sums_saturate_and_are_rounded_at_every_step(types: tuple[str, ...], shift: int, wanted: int):
    """By halves: 150 / 2 = 75, 75 + 15 = 90, 90 - 6.5 = 83.5, to even 84."""
    plan = planned(types=types, epilogue={"shift": shift})
    a, b = np.zeros((1, 24), np.int8), np.ones((24, 1), np.int8)
    a[0, [0, 1, 9, 16]] = 100, 50, 30, -13
    same(plan.reference({"A": a, "B": b})["C"].values, [[wanted]])


def test_narrow_sums_that_moved_back_are_added_once():
    """Slabs of 16 for K = 20: the last one begins at 4, and only four of its depths are new."""
    plan = planned(types=("int8", "int8", "int16", "int16"), k_mt=16)
    a, b = np.arange(1, 21, dtype=np.int8)[None], np.ones((20, 2), np.int8)
    same(plan.reference({"A": a, "B": b})["C"].values, [[210, 210]])


SCALED: dict[str, tuple[dict[str, Any], list[str], list[float]]] = {
    # What is fed, and C of sums 12 and -20 with row scale 0.5, column scales 2 and 3, biases 1 and -2.
    "nothing": ({"types": BF16}, [], [12, -20]),
    "relu": ({"types": BF16, "epilogue": {"relu": True}}, [], [12, 0]),
    "scales": ({"epilogue": {"scale": True}}, ["row_scales", "column_scales"], [12, -30]),
    "scales left out": ({"epilogue": {"scale": True}}, [], [12, -20]),
    "row scales": ({"epilogue": {"scale": True}}, ["row_scales"], [6, -10]),
    "column scales": ({"epilogue": {"scale": True}}, ["column_scales"], [24, -60]),
    "biases": ({"epilogue": {"bias": True}}, ["bias"], [13, -22]),
    "all and relu": (
        {"epilogue": {"scale": True, "bias": True, "relu": True}}, ["row_scales", "column_scales", "bias"], [13, 0],
    ),
    "biases of floats": ({"types": BF16, "epilogue": {"bias": True}}, ["bias"], [13, -22]),
}  # fmt: skip
FED = {"row_scales": [0.5], "column_scales": [2, 3], "bias": [1, -2]}


@pytest.mark.parametrize("name", SCALED)
def test_sums_are_scaled_biased_and_cut_in_this_order(name: str):
    """The bound of integer sums: 2^-21 of products and biases, then 2^-8 of a result as large as that allows."""
    content, fed, wanted = SCALED[name]
    plan = planned(**{"types": ("int8", "int8", "bf16"), "k": 64, **content})
    dtype = plan.kernel.a.dtype
    inputs = {"A": np.array([[2, 4]]).astype(dtype), "B": np.array([[4, -2], [1, -4]]).astype(dtype)}
    given = {key: np.array(FED[key], np.float32) for key in fed}
    found = plan.reference(inputs | given)["C"]
    same(found.values, np.array([wanted], float))
    assert found.bound is not None
    if plan.spec.accumulator == "int32":
        factor = np.ones(2)
        for key in {"row_scales", "column_scales"} & set(fed):
            factor = factor * FED[key]
        bias = np.abs(FED["bias"]) if "bias" in fed else np.zeros(2)
        scaling = 2.0**-21 * (np.abs([12, 20] * factor) + bias)
        same(found.bound[0], scaling + 2.0**-8 * (np.abs(wanted) + scaling), rtol=1e-12)
    else:
        assert (found.bound[0] > 2.0**-8 * np.abs(wanted)).all()
        assert (found.bound[0] < 2.0**-8 * np.abs(wanted) + 1e-3).all()


FLOATS = {
    "products of blocks": (("bf16", "bf16", "f32"), "row packed row"), "row-major B": (("bf16", "bf16", "f32"), ROWS),
    "C of bfloat16": (BF16, "row packed row"), "sums of bfloat16": (("bf16", "bf16", "bf16"), "row packed row"),
    "block floats": (("bfp16", "bfp16", "bfp16", "f32"), "row packed row"),
    "C of block floats": (("bf16", "bfp16", "bfp16"), "row packed row"),
}  # fmt: skip


@pytest.mark.parametrize("K", [5, 32, 40, 50, 72])
@pytest.mark.parametrize("name", FLOATS)
def test_small_integers_are_exact_in_floats_whatever_moved_back(name: str, K: int):
    """Slabs of 64 in steps of 32; C is off by half of its last place, block floats by that of the largest of eight."""
    types, layouts = FLOATS[name]
    plan = planned(types=types, layouts=layouts, m=16, k=32, n=32, k_mt=64)
    inputs = plan.random(GemmProblem(9, K, 12), K)
    found, wanted = plan.reference(inputs)["C"], inputs["A"].astype(int) @ inputs["B"].astype(int)
    same(found.values, wanted.astype(float))
    assert found.bound is not None
    depth = np.abs(inputs["A"].astype(int)) @ np.abs(inputs["B"].astype(int))
    assert (found.bound >= depth * 2.0**-23).all()
    filled = np.pad(np.abs(wanted), [(0, 0), (0, 4)])
    largest = np.repeat(filled.reshape(9, 2, 8).max(axis=-1), 8, axis=1)[:, :12]
    least = {"f32": 0 * largest, "bf16": np.abs(wanted) / 256, "bfp16": largest / 127.5}[types[2]]
    assert (found.bound > least).all()
    assert (found.bound < 4 * least + depth / 20).all()


RANGES = {
    ("int8", "int8", "int32"): ((-128, 127), (-128, 127)), ("int8", "int4", "int32"): ((-128, 127), (-8, 7)),
    ("int8", "int2", "int32"): ((-128, 127), (-1, 1)), ("bf16", "bf16", "f32"): ((-8, 7), (-8, 7)),
    ("bf16", "bfp16", "f32"): ((-8, 7), (-8, 7)),
}  # fmt: skip


@pytest.mark.parametrize("types", RANGES, ids=" ".join)
def test_random_operands_have_every_value_of_their_types(types: tuple[str, str, str]):
    inputs = planned(types=types, k=16).random(GemmProblem(40, 100, 40), 3)
    assert list(inputs) == ["A", "B"]
    ends = [(array.astype(int).min(), array.astype(int).max()) for array in inputs.values()]
    assert ends == list(RANGES[types])
    assert [array.shape for array in inputs.values()] == [(40, 100), (100, 40)]


@pytest.mark.parametrize(("layouts", "columns"), [
    ("row row row", [False, False]), ("column column row", [True, True]), ("column row row", [True, False]),
    ("row packed row", [False, False]),
])  # fmt: skip
def test_random_operands_lie_in_their_order(layouts: str, columns: list[bool]):
    inputs = planned(types=("int8", "int8", "int32"), layouts=layouts).random(GemmProblem(3, 5, 7), 1)
    assert [array.flags.f_contiguous for array in inputs.values()] == columns
    assert [array.flags.c_contiguous for array in inputs.values()] == [not column for column in columns]


@pytest.mark.parametrize(("epilogue", "fed"), [
    ({}, ""), ({"scale": True}, "row_scales column_scales"), ({"bias": True}, "bias"),
    ({"scale": True, "bias": True}, "row_scales column_scales bias"),
])  # fmt: skip
def test_random_numbers_of_an_epilogue_are_those_that_it_takes(epilogue: dict[str, bool], fed: str):
    """Scales are between 1/2 and 1, biases within 1, and the operands are those without an epilogue."""
    plan, plain = planned(types=BF16, k=64, epilogue=epilogue), planned(types=BF16, k=64)
    problem = GemmProblem(300, 8, 200)
    inputs, others = plan.random(problem, 5), plain.random(problem, 5)
    assert " ".join(inputs) == f"A B {fed}".strip()
    for name, (low, high, size) in {
        "row_scales": (0.5, 1, 300),
        "column_scales": (0.5, 1, 200),
        "bias": (-1, 1, 200),
    }.items():
        if name in inputs:
            array, near = inputs[name], (high - low) / 20
            assert (array.dtype, array.shape) == (np.float32, (size,))
            assert low <= array.min() < low + near
            assert high - near < array.max() <= high
    assert all((inputs[name] == others[name]).all() for name in "AB")
