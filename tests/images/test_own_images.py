"""Named designs, and members of the family of integers and of AIE2's floats, that boot from their own images.

Where kernels are functions of this host the text gives the cores' bodies. With machine code in every core the array has
nothing but the image and the words.
"""

from collections.abc import Mapping
from functools import partial

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import AIE2P, DEVICES
from bdforge.devices.capacities import KNOWN
from bdforge.operators import Plan, load_spec, operator_of, plan, render
from bdforge.operators.gemm import GemmPlan
from bdforge.runtime.toolchain.assembled import built_image, cpp_only
from support.built_designs import ROOT, kernels_of, possible
from support.family import GROUPS, PRODUCTS, SEED, SIZE, Member, group, kernel_of
from support.family_oracle import check, random_data
from support.family_runs import own_pdi

QUICK = {"gemm_i8_i8_i32_one_core-strix_halo"}
SAMPLE = (4,)
"""Groups of which one member runs on machine code in every run; the sweep takes all."""
NAMED = [
    pytest.param(spec, product, marks=[] if name in QUICK else pytest.mark.slow, id=name)
    for spec in map(load_spec, sorted((ROOT / "designs").glob("*.toml")))
    for product in PRODUCTS.values()
    if operator_of(spec).fits(spec, DEVICES[product])
    for name in [f"{spec.name}-{product}"]
]
"""Every design of `designs/`, for every product that it is meant for."""


def coded(planned: Plan) -> bool:
    """Whether all that cores call exists as machine code."""
    return not cpp_only(planned.kernels.symbols, planned.device.generation, planned.kernels.defines)


def problem_of(planned: Plan):
    """One tile of C for each core and one slab of K; of other operators the smallest problem of the spec."""
    if isinstance(planned, GemmPlan):
        return possible(planned, planned.tiling.panel_rows, planned.tiling.k_mt, planned.tiling.step_columns)
    return min(planned.spec.problems, key=lambda problem: np.prod(list(problem.sizes.values())))


def run(planned: Plan, problem, inputs: Mapping[str, np.ndarray], text: str, **options) -> dict[str, np.ndarray]:
    """Outputs of a run on the emulated array."""
    steps = planned.sequence(problem)
    buffers = arguments(steps, placed(steps, inputs))
    words = steps.words().astype("<u4").tobytes()
    assert emulate(text, buffers, instructions=words, **options).warnings == ()
    return fetched(steps, buffers)


def run_alone(planned: Plan, problem, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Outputs of a run for which the array gets an xclbin with machine code in every core, words, and no text."""
    made = built_image(render(planned, []), f"{planned.spec.name}.mlir", planned.kernels.defines, [])
    assert not made.without
    return run(planned, problem, inputs, "", image=made.xclbin, device=planned.mlir_device)


def check_own(planned: Plan, seed: int, run_it) -> None:
    """The whole array: results of `run_it(problem, inputs)` are exact, or within their bound of floats."""
    problem = problem_of(planned)
    if isinstance(planned, GemmPlan) and planned.spec.matrices == 1 and not planned.spec.outputs:
        data = random_data(planned, problem, seed)
        assert not check(planned, data, run_it(problem, data.inputs)["C"])
        return
    inputs = planned.random(problem, seed)
    results = run_it(problem, inputs)
    for name, expected in planned.reference(inputs).items():
        off = np.abs(results[name].astype(np.float64) - expected.values)
        assert (off <= (0 if expected.bound is None else expected.bound)).all(), name


@pytest.mark.parametrize(("spec", "product"), NAMED)
@pytest.mark.parametrize("capacity", [KNOWN, pytest.param(0, marks=pytest.mark.slow)])
def test_a_named_design_is_right_from_its_own_pdi_and_without_buffering(spec, product, capacity):
    planned = plan(spec, DEVICES[product])
    text = render(planned, [])
    own = {"image": own_pdi(text), "kernels": kernels_of(planned), "capacity": capacity}
    check_own(planned, 3, lambda problem, inputs: run(planned, problem, inputs, text, **own))


@pytest.mark.parametrize(("spec", "product"), NAMED)
def test_a_named_design_with_machine_code_needs_its_xclbin_only(spec, product):
    planned = plan(spec, DEVICES[product])
    if coded(planned):
        check_own(planned, 4, partial(run_alone, planned))


ASSEMBLED = [i for i in range(GROUPS) if kernel_of(i).accumulator.integer or kernel_of(i).generation is not AIE2P]


def check_member(member: Member, seed: int) -> None:
    """All of AIE2P's integers have machine code in every core."""
    planned = member.plan
    if not coded(planned):
        assert planned.device.generation is not AIE2P
        return
    data = random_data(planned, member.problem, seed)
    c = run_alone(planned, member.problem, data.inputs)["C"]
    assert not check(planned, data, c), str(member)


@pytest.mark.parametrize("index", SAMPLE)
def test_a_member_with_machine_code_needs_its_xclbin_only(index):
    check_member(group(index, SIZE, SEED)[0], index)


@pytest.mark.slow
@pytest.mark.parametrize("index", ASSEMBLED)
def test_members_with_machine_code_need_their_xclbin_only(index):
    for seed, member in enumerate(group(index, SIZE, SEED)):
        check_member(member, seed)
