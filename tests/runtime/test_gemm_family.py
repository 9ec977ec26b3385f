"""Randomly drawn members of the GEMM family against numpy, each under two adversarial schedules."""

from collections.abc import Iterable

import numpy as np
import pytest

from bdforge.devices import DEVICES
from bdforge.operators.gemm import GemmProblem
from bdforge.operators.gemm.kernels import KERNELS
from bdforge.operators.gemm.spec import _GemmFile
from support.differences import same
from support.family import GROUPS, REFUSED, SEED, SIZE, TURNS, Member, group, kernel_of, refused
from support.family_oracle import check, random_data, wanted
from support.family_runs import fault

FEW = [kernel + turn % TURNS * len(KERNELS) for turn, kernel in enumerate(range(len(KERNELS)))]
"""Each kernel once, each in another turn."""
TWINS = {"mm_i8_i8_i8", "mm_i8_i8_i16", "mm_i8_i4_i32", "mm_i8_i4_i16", "mm_bf16_bf16_bf16"}
"""Kernels whose members run on AIE2P daily, on AIE2 in the sweep; there others of their type run daily."""
SECTIONS = _GemmFile.model_json_schema()["$defs"]
CHOICES = {
    (section, key): set(facts.get("enum") or next(way["enum"] for way in facts["anyOf"] if "enum" in way))
    for section, model in (("types", "_Types"), ("layouts", "Layouts"))
    for key, facts in SECTIONS[model]["properties"].items()
}
"""What a spec may choose of, by section and key."""


def name_of(index: int) -> str:
    kernel = kernel_of(index)
    return f"{index}-{kernel.generation.name}-{kernel.multiply}"


def few(index: int):
    """A kernel for each day, or for the sweep."""
    kernel = kernel_of(index)
    twin = kernel.generation.name == "AIE2" and kernel.multiply in TWINS
    return pytest.param(index, marks=pytest.mark.slow if twin else ())


def check_runs(runs: Iterable[tuple[Member, int, bool]]) -> None:
    found = [told for run in runs if (told := fault(*run))]
    assert not found, "\n".join(found)


@pytest.mark.daily("16-AIE2-mm_i8_i8_i32")
@pytest.mark.parametrize("index", [few(index) for index in FEW], ids=name_of)
def test_a_member_is_right_whatever_the_schedule(index):
    """Integers are exact, floats within their bound, nothing unwritten is read, nothing is left over.

    Of each group the member with the fewest cores. Every other kernel's runs from its text, the others' from its PDI.
    """
    member = min(group(index, SIZE, SEED), key=lambda member: member.plan.spec.rows * member.plan.spec.columns)
    check_runs([(member, 0, FEW.index(index) % 2 == 1)])


@pytest.mark.slow
@pytest.mark.parametrize("index", range(GROUPS), ids=name_of)
def test_200_members_are_right_whatever_the_schedule(index):
    members = enumerate(group(index, SIZE, SEED))
    check_runs((member, seed, booted) for seed, member in members for booted in (False, True))


@pytest.mark.slow
@pytest.mark.parametrize(("section", "key"), CHOICES)
def test_every_choice_of_a_spec_is_drawn(section: str, key: str):
    members = [member for index in range(GROUPS) for member in group(index, SIZE, SEED)]
    holders = [member.plan.spec if section == "types" else member.plan.spec.layouts for member in members]
    assert {getattr(holder, key) for holder in holders} == CHOICES[section, key]


@pytest.mark.slow
def test_members_are_many_and_of_every_kind():
    members = [member for index in range(GROUPS) for member in group(index, SIZE, SEED)]
    assert len(set(map(str, members))) >= 200
    plans = [member.plan for member in members]
    kernels = {(plan.kernel.generation.name, plan.kernel.multiply) for plan in plans}
    assert len(kernels) == len(KERNELS)
    for facts in (
        {plan.spec.layouts.a for plan in plans},
        {plan.spec.layouts.c for plan in plans},
        {plan.spec.buffers.c_buffers for plan in plans},
        {plan.spec.buffers.c_memtile_buffers for plan in plans},
        {plan.spec.buffers.a_shims for plan in plans},
        {plan.spec.epilogue.relu for plan in plans},
        {plan.spec.epilogue.scale for plan in plans},
        {plan.spec.epilogue.bias for plan in plans},
        {plan.spec.buffers.k_mt > plan.spec.tile.k for plan in plans},
    ):
        assert len(facts) == 2
    assert {plan.spec.layouts.b for plan in plans} == {"packed", "row", "column"}
    assert {plan.spec.buffers.rho for plan in plans} == {1, 2, 3}
    assert {plan.spec.rows for plan in plans} == {1, 2, 3, 4}
    assert {plan.spec.columns for plan in plans} >= set(range(1, 9))


@pytest.mark.parametrize("types", [("int8", "int8"), ("int32", "bf16"), ("bf16", "bf16"), ("bfp16", "bfp16")])
def test_the_oracle_sees_one_wrong_element(types):
    """A value next to the right one for integers; for floats a 16th of what went into the sum."""
    accumulator, c = types
    operand = "int8" if accumulator.startswith("int") else "bf16"
    content = {"kind": "gemm", "types": {"a": operand, "b": "bfp16" if c == "bfp16" else operand, "c": c}}
    content["types"]["accumulator"] = accumulator
    content |= {"array": {"rows": 1, "columns": 1}, "tile": {"m": 32, "k": 64, "n": 16}}
    content |= {"epilogue": {"shift": 7} if c == "int8" else {"scale": True} if accumulator == "int32" else {}}
    member = Member(content, DEVICES["strix_halo"], GemmProblem(9, 70, 13))
    plan = member.plan
    data = random_data(plan, member.problem, 5)
    right = wanted(plan, data)
    assert not check(plan, data, right)
    wrong = right.copy()
    magnitude = np.abs(data.a[4].astype(float)) @ np.abs(data.b[:, 6].astype(float))
    wrong[4, 6] += 1 if right.dtype.kind == "i" else (magnitude / 16 if c != "bfp16" else magnitude)
    told = check(plan, data, wrong)
    assert told.startswith(
        f"1 of 117 elements are wrong, the first is [4, 6] = {wrong[4, 6]}, expected {right[4, 6]}; "
    )


@pytest.mark.parametrize("b", ["packed", "row", "column"])
@pytest.mark.parametrize("depth", [64, 50, 46, 7])
def test_the_runtimes_reference_and_the_oracle_agree_on_ragged_depths(b, depth):
    """Where the last slab moves back, other values of K share an exponent."""
    content = {"kind": "gemm", "types": {"a": "bf16", "b": "bf16", "c": "f32"}, "layouts": {"b": b}}
    content |= {"array": {"rows": 1, "columns": 1}, "tile": {"m": 8, "k": 16, "n": 32}}
    member = Member(content, DEVICES["strix_halo"], GemmProblem(11, depth, 13))
    plan = member.plan
    data = random_data(plan, member.problem, 6)
    same(plan.reference(data.inputs)["C"].values, wanted(plan, data), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("index", REFUSED)
def test_draws_that_are_left_out_are_refused(index: int):
    assert refused(index)
