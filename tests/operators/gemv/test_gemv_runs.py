"""GEMV designs on the emulated array: any M, K and N, exact, whatever the schedule."""

import numpy as np
import pytest
from gemv_designs import DESIGNS, INT, Loaded, loaded, plan_of

from bdforge.array.emulator import TimingOptions, emulate
from bdforge.design import render
from bdforge.design.sequences import fetch, place
from bdforge.devices import device_named, mlir_device_named
from bdforge.devices.timing import timing_of
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import Operation, Patch
from bdforge.operators import OPERATORS
from bdforge.operators.gemv import GemvSpec, plan_gemv
from support.built_designs import kernels_of
from support.differences import same

RUNS = {"two columns": 6, "one core": 6}
WHOLE_ARRAY_RUNS = 2


def sizes_of(design: Loaded, count: int) -> list[tuple[int, int, int]]:
    """M, K, N of up to three chunks and some more groups than two for each column."""
    rng, tiling, m = np.random.default_rng(11), design.plan.tiling, design.plan.spec.form.tile.m
    most = m, 3 * tiling.k, (2 * tiling.columns + 3) * tiling.group
    return [tuple(int(rng.integers(1, size + 1)) for size in most) for _ in range(count)]  # type: ignore[misc]


@pytest.mark.parametrize("name", DESIGNS)
def test_random_sizes_are_exact_in_adversarial_schedules(name):
    design = loaded(name)
    for seed, sizes in enumerate(sizes_of(design, RUNS.get(name, WHOLE_ARRAY_RUNS))):
        design.run(sizes, seed, schedule=("in-order", "random")[seed % 2], seed=seed, poison=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_more_random_sizes_are_exact(name):
    design = loaded(name)
    for seed, sizes in enumerate(sizes_of(design, 100)):
        design.run(sizes, seed, schedule="random", seed=seed, poison=True)


EDGES = {
    "one element": (1, 1, 1),
    "one column of W": (2, 17, 1),
    "a chunk less one": (4, 7, 64),
    "a chunk more one": (4, 9, 64),
    "a tile less one": (3, 16, 31),
    "a tile more one": (3, 16, 33),
    "whole groups": (4, 16, 256),
    "whole groups, a row": (1, 16, 256),
    "a group more": (4, 24, 320),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_edge_is_exact(edge):
    loaded("two columns").run(EDGES[edge], 3, schedule="random", seed=5, poison=True)


@pytest.mark.parametrize(("name", "groups"), [("one core", 300), ("two columns", 800)])
def test_passes_beyond_what_one_task_repeats_are_exact(name, groups):
    """Of two columns, the one with half the channels has nothing to do in the first of several steps."""
    design = loaded(name)
    sizes = 1, 5, groups * design.plan.tiling.group - 3
    sequence = design.plan.sequence(OPERATORS["gemv"].problem(sizes))
    assert len({event.index for event in sequence.events}) > 1
    design.run(sizes, 7)


def test_one_loaded_array_serves_problem_after_problem():
    """Several streams as one: cores keep their turns from one problem to the next, whatever they let go by."""
    design = loaded("two columns")
    rng, arrays, operations, expected = np.random.default_rng(3), [], [], []
    for sizes in [(1, 8, 1), (4, 30, 500), (2, 9, 64), (1, 8, 3), (3, 17, 320)]:
        inputs = design.random(sizes, int(rng.integers(1 << 30)))
        sequence = design.plan.sequence(OPERATORS["gemv"].problem(sizes))
        buffers = [np.zeros(size, np.uint8) for size in sequence.argument_bytes]
        for operand in sequence.program.operands[:2]:
            place(operand, sequence.values, inputs[operand.name], buffers[operand.argument])
        operations += [_of_arguments(op, len(arrays)) for op in sequence.operations()]
        arrays += [buffer.view(np.int32) for buffer in buffers]
        expected.append((sequence, inputs["A"].astype(np.int64) @ inputs["W"]))
    words = encode(operations, mlir_device_named(design.plan.mlir_device))
    emulate(design.mlir, arrays, design.kernels, instructions=words, permissive=["buffer-arguments"], schedule="random")
    for (sequence, wanted), c in zip(expected, arrays[2::3], strict=True):
        found = fetch(sequence.program.operands[2], sequence.values, c.view(np.uint8), np.dtype(np.int32))
        same(found, wanted)


def _of_arguments(operation: Operation, first: int) -> Operation:
    """The operation with arguments counted from `first` on."""
    if not isinstance(operation, Patch):
        return operation
    return Patch(operation.register, operation.argument + first, operation.plus)


@pytest.mark.parametrize(("product", "k", "most"), [("strix_halo", 640, 1.3), ("phoenix", 640, 1.45)])
def test_time_is_little_more_than_that_of_the_bytes(product, k, most):
    """Of BitNet's 2560 x 2560, from the sequence's start: DRAM's port is busy nearly all the time."""
    content = {"kind": "gemv", "types": INT, "tile": {"k": k, "n": 32}}
    plan, problem = plan_gemv(GemvSpec.load(content, "bitnet"), device_named(product)), (1, 2560, 2560)
    sequence, timing = plan.sequence(OPERATORS["gemv"].problem(problem)), timing_of(plan.device)
    report = emulate(
        render(plan.design),
        [np.zeros(size, np.uint8) for size in sequence.argument_bytes],
        dict.fromkeys(plan.kernels.symbols, lambda *_: None),
        instructions=sequence.words(),
        timing=TimingOptions(timing, plan.kernels.cycles),
    ).timing
    assert report is not None
    cost = plan.cost(OPERATORS["gemv"].problem(problem))
    port_ns = timing.port_ns(cost.read_bytes, cost.write_bytes)
    assert 1 < timing.cycles_ns(report.cycles) / port_ns < most


def test_compiled_kernels_are_those_of_the_contracts():
    plan = plan_of("one core")
    design = Loaded(plan, loaded("one core").mlir, kernels_of(plan))
    for seed, sizes in enumerate(sizes_of(design, 3)):
        design.run(sizes, seed)
