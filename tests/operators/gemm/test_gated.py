"""GEMMs of two matrices, one of which gates the other: packed side by side, under adversaries, refused with reasons."""

from itertools import product
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.images.programs import read_programs
from bdforge.design.sequences.buffers import arguments, fetched, pack, placed
from bdforge.design.sequences.operands import fetch
from bdforge.devices import device_named, mlir_device_named
from bdforge.operators import DATA, input_data, render
from bdforge.operators.gemm import GemmProblem, sequence
from bdforge.operators.gemm.spec import spec_from
from bdforge.operators.gemm.spec_check import spec_problems
from bdforge.perf.bounds.case import case_of
from bdforge.runtime.toolchain.assembled import built_image
from support.built_designs import small_gemm, spec_content
from support.differences import same
from support.loaded_arrays import LoadedArray

TYPES = ("int8", "int2", "bf16")
SQUARE: dict[str, Any] = {"k": 32, "types": TYPES, "epilogue": {"gate": "relu2"}}
RESIDENT: dict[str, Any] = {"m": 32, "rho": 2, "k_mt": 64, "residency": "b", "c_memtile_buffers": 1, "c_in_parts": True}
SILU: dict[str, Any] = {"k": 96, "types": TYPES, "epilogue": {"gate": "silu", "scale": True}}


def within(expected, found: np.ndarray) -> bool:
    bound = 0 if expected.bound is None else expected.bound
    return bool((np.abs(found.astype(np.float64) - expected.values) <= bound).all())


@pytest.mark.parametrize(
    ("content", "device"),
    [
        (SQUARE | RESIDENT, "strix_halo"),
        pytest.param(
            SQUARE | {"types": ("int8", "int8", "bf16"), "layouts": "column packed column"},
            "strix_halo",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            SQUARE | {"m": 8, "m_used": 3, "types": ("int8", "int4", "bf16")}, "strix_halo", marks=pytest.mark.slow
        ),
        (SILU | {"residency": "b", "c_memtile_buffers": 1}, "strix_halo"),
        pytest.param(SQUARE | RESIDENT, "phoenix", marks=pytest.mark.slow),
    ],
)
def test_ragged_sizes_are_within_the_bound_under_two_adversaries(content, device):
    array = LoadedArray.of(small_gemm(**content, device=device))
    for seed, sizes in ((1, (40, 100, 50)), (2, (3, 5, 7)), (3, (70, 64, 38))):
        inputs = array.plan.random(GemmProblem(*sizes), seed)
        found, _ = array.run(sizes, inputs, schedule="random", seed=seed)
        assert within(array.plan.reference(inputs)["C"], found["C"])


@pytest.mark.parametrize("types", [TYPES, ("int8", "int4", "bf16"), ("int8", "int8", "bf16")])
def test_packed_columns_are_the_gate_s_and_up_s_in_blocks_of_eight_in_turn(types):
    """The bytes of one matrix whose columns stand so, of a design without a gate; and each comes back."""
    gated, plain = small_gemm(**SQUARE | {"types": types}), small_gemm(k=32, types=types)
    rng, device = np.random.default_rng(4), mlir_device_named(gated.mlir_device)
    low, high = {"int2": (-1, 1), "int4": (-8, 7), "int8": (-128, 127)}[types[1]]
    gate, up = rng.integers(low, high + 1, (2, 64, 48), np.int8)
    joined = np.stack([gate.reshape(64, 6, 8), up.reshape(64, 6, 8)], axis=2).reshape(64, 96)
    _, buffers = pack(gated.program, device, {"gate": gate, "up": up})
    _, wanted = pack(plain.program, device, {"B": joined})
    same(buffers[1], wanted[1])
    for operand in gated.program.operands[1:3]:
        known = sequence(gated, 8, 64, 48).values
        same(fetch(operand, known, buffers[1], np.dtype(np.int8)), {"gate": gate, "up": up}[operand.name])


def test_scales_stand_by_their_columns():
    plan = small_gemm(**SILU)
    found = sequence(plan, 16, 96, 16)
    names = [operand.name for operand in found.program.operands]
    assert names == ["A", "gate", "up", "C", "row_scales", "gate_scales", "up_scales"]
    inputs = plan.random(GemmProblem(16, 96, 16), 5)
    buffer = arguments(found, placed(found, inputs))[4].view(np.float32)
    for block, name in product(range(2), ("gate", "up")):
        at = 16 * block + 8 * (name == "up")
        same(buffer[at : at + 8], inputs[f"{name}_scales"][8 * block : 8 * block + 8])


@pytest.mark.daily("tiny")
@pytest.mark.parametrize(
    "kind",
    ["late", "tiny", *(pytest.param(kind, marks=pytest.mark.slow) for kind in DATA if kind not in ("late", "tiny"))],
)
def test_silu_of_data_that_hurts_is_within_the_bound(kind: str):
    """Gates far below -87, and scales whose products are below all normal numbers."""
    array = LoadedArray.of(small_gemm(**SILU | {"rows": 1, "columns": 1}))
    inputs = input_data(kind, array.plan.random(GemmProblem(24, 64, 40), 1))
    found, _ = array.run((24, 64, 40), inputs)
    assert within(array.plan.reference(inputs)["C"], found["C"])


@pytest.mark.slow
@pytest.mark.parametrize("content", [SQUARE | RESIDENT, SILU])
def test_machine_code_in_every_core_is_within_the_bound(content: dict[str, Any]):
    planned, problem = small_gemm(**content), GemmProblem(70, 100, 40, "odd")
    text = render(planned, [problem])
    image = built_image(text, "gated.mlir", planned.kernels.defines, [problem.sequence])
    assert not image.without
    programs = {program.tile: program for program in read_programs(image.xclbin) if program.tile is not None}
    inputs = planned.random(problem, 6)
    steps = planned.sequence(problem)
    buffers = arguments(steps, placed(steps, inputs))
    emulate(text, buffers, instructions=next(iter(image.streams.values())), elfs=programs)
    assert within(planned.reference(inputs)["C"], fetched(steps, buffers)["C"])


def test_half_of_the_columns_of_b_are_written():
    gated, plain = small_gemm(**SQUARE), small_gemm(k=32, types=TYPES)
    by_design = [
        {traffic.operand: traffic for traffic in case_of(plan.spec, plan.device, problem).dram_traffic()}
        for plan, problem in ((gated, GemmProblem(64, 64, 64)), (plain, GemmProblem(64, 64, 128)))
    ]
    for name, share in (("A", 1), ("B", 1), ("C", 2)):
        mine, other = (found[name] for found in by_design)
        assert (share * mine.size_bytes, share * mine.run_bytes) == (other.size_bytes, other.run_bytes)
    costs = [gated.cost(GemmProblem(64, 64, 64)), plain.cost(GemmProblem(64, 64, 128))]
    assert costs[0].operations == costs[1].operations
    assert 2 * costs[0].write_bytes == costs[1].write_bytes


REFUSED: dict[str, dict[str, Any]] = {
    "epilogue.gate = relu2 is there for int32 to bf16, not for int32 to int32": {"types": ("int8", "int8", "int32")},
    "epilogue.gate = relu2 is there for int32 to bf16, not for f32 to bf16": {"types": ("bf16", "bf16", "bf16", "f32")},
    "so tile.n = 24 must be a multiple of 16; use one": {"types": ("int8", "int8", "bf16"), "n": 24},
    "layouts.b = row: packing alone puts a gate's columns beside up's": {
        "types": ("int8", "int8", "bf16"), "layouts": "row row row",
    },
    "takes no relu and no bias": {"epilogue": {"gate": "relu2", "relu": True}},
    "a scale is one of its result: whoever reads C can apply it": {
        "epilogue": {"gate": "relu2", "scale": True}, "k": 96,
    },
    "a scale is no factor of its result; set epilogue.scale = true": {"epilogue": {"gate": "silu"}},
}  # fmt: skip


def reasons(changes: dict[str, Any]) -> str:
    content: dict[str, Any] = {"m": 16, "n": 32, **SQUARE, **changes}
    return "\n".join(spec_problems(spec_from(spec_content(**content), "small"), device_named("strix_halo")))


@pytest.mark.parametrize("said", REFUSED)
def test_what_no_gate_can_do_is_refused(said: str):
    assert reasons({}) == ""
    assert said in reasons(REFUSED[said])
