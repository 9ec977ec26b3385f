"""Streams executed on the emulated array: every kind of edge gives the exact product, whatever the schedule."""

from functools import cache

import numpy as np
import pytest

from bdforge.devices import mlir_device_named
from bdforge.emulator import emulate
from bdforge.plan import GemmSequence, render, sequence
from bdforge.runtime import BuiltDesign, c_buffer, packed_weights, staged_a
from bdforge.txn import Operation, Patch, encode
from support.built_designs import build, spec_content

DESIGNS = {
    "2x2": spec_content(16, 16, 32, rows=2, columns=2, k_mt=32),
    "1x1": spec_content(16, 8, 32, rows=1, columns=1),
    "4x4": spec_content(16, 8, 32, rows=4, columns=4, k_mt=24),
}
NORMAL_RUNS = {"2x2": 25, "1x1": 10, "4x4": 5}
SWEEP_RUNS = {"2x2": 300, "1x1": 100, "4x4": 100}


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    return cache(lambda name: build(tmp_path_factory.mktemp(name), DESIGNS[name], "small"))


def sizes_of(name: str, count: int) -> list[tuple[int, ...]]:
    """Up to four panels, slabs and column steps; leading dimensions beyond in every second."""
    content = DESIGNS[name]
    tile, array = content["tile"], content["array"]
    most = [
        4 * array["rows"] * tile["m"],
        4 * content["buffers"].get("k_mt", tile["k"]),
        4 * array["columns"] * tile["n"],
    ]
    rng = np.random.default_rng(len(name) + count)
    chosen = []
    for i in range(count):
        M, K, N = (int(rng.integers(1, top)) for top in most)
        extra = (4 * int(rng.integers(0, 3)), int(rng.integers(0, 6))) if i % 2 else (0, 0)
        chosen.append((M, K, N, K + extra[0], N + extra[1]))
    return chosen


def run_exactly(design: BuiltDesign, mlir: str, sizes: tuple[int, ...], seed: int) -> GemmSequence:
    """Run the words on the loaded array, without any sequence in the MLIR, and compare every element."""
    M, K, N, lda, ldc = sizes
    rng = np.random.default_rng(seed)
    a = rng.integers(-128, 128, (M, lda), np.int8)
    weights = rng.integers(-1, 2, (K, N), np.int8)
    planned = sequence(design.plan, M, K, N, lda=lda, ldc=ldc)
    host_a = a if planned.staging.a is None else staged_a(planned, a[:, :K])
    host_c = np.full((M, ldc), 7, np.int32) if planned.staging.c is None else c_buffer(planned)
    arrays = [host_a, packed_weights(design.plan, weights), host_c]
    schedule = ("in-order", "random")[seed % 2]
    result = emulate(mlir, arrays, design.kernels, instructions=planned.words(), schedule=schedule, seed=seed)
    assert result.warnings == ()
    np.testing.assert_array_equal(host_c[:M, :N], a[:, :K].astype(np.int64) @ weights)
    assert planned.staging.c is not None or (host_c[:, N:] == 7).all()
    return planned


@pytest.mark.parametrize("name", DESIGNS)
def test_random_sizes_are_exact(built, name):
    design = built(name)
    mlir = render(design.plan, [])
    for seed, sizes in enumerate(sizes_of(name, NORMAL_RUNS[name])):
        run_exactly(design, mlir, sizes, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_500_random_sizes_are_exact(built, name):
    design = built(name)
    mlir = render(design.plan, [])
    for seed, sizes in enumerate(sizes_of(name, SWEEP_RUNS[name])):
        run_exactly(design, mlir, sizes, seed)


EDGES = {
    "decoding: one row": ((1, 32, 64, 32, 64), "M overlap; A staged; C staged"),
    "one element": ((1, 1, 1, 1, 1), "M, N overlap; A staged; C staged"),
    "a single panel of one tile": ((16, 32, 150, 32, 150), "M, N overlap"),
    "a single panel that lacks rows": ((29, 64, 64, 64, 64), "M overlap"),
    "a moved panel": ((70, 32, 64, 32, 64), "M overlap"),
    "a moved slab": ((32, 44, 64, 44, 64), "K overlap"),
    "a moved column step": ((32, 32, 160, 32, 160), "N overlap"),
    "a moved n-tile": ((32, 32, 101, 32, 101), "N overlap"),
    "rows that do not start at words": ((32, 33, 64, 33, 64), "K overlap; A staged"),
    "few columns": ((64, 32, 5, 32, 5), "N overlap; C staged"),
    "views": ((33, 36, 65, 48, 80), "M, K, N overlap"),
    "many steps": ((16 * 140 + 3, 32, 70, 32, 70), "M, N overlap"),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_edge_is_exact(built, edge):
    design, (sizes, brief) = built("2x2"), EDGES[edge]
    planned = run_exactly(design, render(design.plan, []), sizes, seed=1)
    assert planned.edges().brief == brief


def test_one_loaded_array_serves_sequence_after_sequence(built):
    """Four streams as one: cores keep their ping-pong turns from one problem to the next."""
    design = built("2x2")
    problems = [(33, 44, 65), (1, 32, 7), (64, 96, 64), (40, 33, 100)]
    rng = np.random.default_rng(3)
    arrays, operations, expected = [], [], []
    for index, (M, K, N) in enumerate(problems):
        a, weights = rng.integers(-128, 128, (M, K), np.int8), rng.integers(-1, 2, (K, N), np.int8)
        planned = sequence(design.plan, M, K, N)
        arrays += [staged_a(planned, a), packed_weights(design.plan, weights), c_buffer(planned)]
        operations += [_of_arguments(op, 3 * index) for op in planned.operations()]
        expected.append(a.astype(np.int64) @ weights)
    words = encode(operations, mlir_device_named(design.plan.mlir_device))
    emulate(render(design.plan, []), arrays, design.kernels, instructions=words)
    for (M, _, N), c, wanted in zip(problems, arrays[2::3], expected, strict=True):
        np.testing.assert_array_equal(c[:M, :N], wanted)


def _of_arguments(operation: Operation, first: int) -> Operation:
    if isinstance(operation, Patch):
        return Patch(operation.register, operation.argument + first, operation.plus)
    return operation
