"""Streams executed on the emulated array: every kind of edge gives the exact product, whatever the schedule."""

from functools import cache
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.design.sequences.buffers import empty, fetched
from bdforge.devices.types import TYPES
from bdforge.operators.gemm import GemmPlan, GemmProblem, GemmSequence, GemmSpec, sequence
from support.built_designs import small_gemm
from support.differences import same
from support.gemm_problems import host_buffers, natural_leading
from support.loaded_arrays import LoadedArray

INT8, BF16 = ("int8", "int8", "int32"), ("bf16", "bf16", "f32")
TERNARY: dict[str, Any] = {"m": 16, "k": 16, "n": 32}
SMALL: dict[str, Any] = {"m": 16, "k": 8, "n": 16, "types": INT8}
STAYS: dict[str, Any] = {"residency": "b", "c_memtile_buffers": 1}
ROWS, COLUMNS = "row row row", "column column column"
DESIGNS: dict[str, dict[str, Any]] = {
    "2x2": {**TERNARY, "rows": 2, "columns": 2, "k_mt": 32},
    "1x1": {**TERNARY, "rows": 1, "columns": 1},
    "4x4": {**TERNARY, "rows": 4, "columns": 4, "k_mt": 48},
    "packed int8": {**SMALL, "layouts": "row packed row", "k_mt": 24},
    "row-major": {**SMALL, "layouts": ROWS, "k_mt": 16},
    "row-major, two shims for A": {**SMALL, "layouts": ROWS, "a_shims": 2, "columns": 4},
    "row-major, 4 x 1": {**SMALL, "layouts": ROWS, "rows": 4, "columns": 1},
    "row-major, 4 x 3": {**SMALL, "layouts": ROWS, "rows": 4, "columns": 3, "k_mt": 16, "c_memtile_buffers": 1},
    "column-major B": {**SMALL, "layouts": "row column row", "k_mt": 24},
    "column-major": {**SMALL, "layouts": COLUMNS, "k_mt": 16},
    "column-major, two shims for A": {**SMALL, "layouts": COLUMNS, "a_shims": 2, "columns": 4},
    "column-major A and C": {**SMALL, "layouts": "column row column", "rows": 1, "columns": 2, "k_mt": 16},
    "bf16": {**SMALL, "types": BF16, "layouts": "row row column", "k_mt": 16},
    "B stays twice": {**TERNARY, **STAYS, "k_mt": 32},
    "B stays once": {**TERNARY, **STAYS, "k_mt": 16, "pool_bytes": 4 * 128, "c_pieces": 2},
    "B stays in part": {**TERNARY, **STAYS, "k_mt": 64, "pool_bytes": 5 * 128, "m": 8},
    "C in parts": {**TERNARY, "k_mt": 32, "rho": 2, "c_in_parts": True, "c_pieces": 2},
    "npu1": {**SMALL, "layouts": "row row row", "device": "phoenix", "k_mt": 16},
}
TWINS = {
    "4x4", "row-major, two shims for A", "row-major, 4 x 1", "column-major B", "column-major A and C", "packed int8",
    "row-major, 4 x 3", "column-major", "bf16", "B stays twice",
}  # fmt: skip
"""Whose layouts, rows and residency others have, too: for the sweep, which runs more sizes of each."""
RUNS = {"1x1": 3}
OTHER_RUNS = 2
SWEEP = 60  # times as many sizes
VALUES = {"int2": (-1, 2), "int8": (-128, 128), "bf16": (-8, 8)}  # sums of floats stay exact


@cache
def built(name: str) -> LoadedArray:
    return LoadedArray.of(small_gemm(**DESIGNS[name]))


def sizes_of(plan: GemmPlan, count: int) -> list[tuple[int, ...]]:
    """M, K, N beyond two panels, slabs and column steps, and gaps behind the lines of A, B, C in every second."""
    spec, tile = plan.spec, plan.spec.tile
    most = ((2 * spec.rows + 1) * tile.m, 2 * spec.buffers.k_mt + tile.k, (2 * spec.columns + 1) * tile.n)
    rng = np.random.default_rng(count)
    chosen = []
    for i in range(count):
        sizes = (int(rng.integers(1, top + 1)) for top in most)
        gaps = (int(gap) for gap in rng.integers(0, 3, 3) * rng.choice([1, 4, 4], 3)) if i % 2 else (0, 0, 0)
        chosen.append((*sizes, *gaps))
    return chosen


def with_gaps(matrix: np.ndarray, order: str, gap: int) -> np.ndarray:
    """Lines of a matrix as they lie in memory, with a gap of 7s behind each."""
    lines = np.ascontiguousarray(matrix.T if order == "column" else matrix)
    return np.pad(lines, ((0, 0), (0, gap)), constant_values=7)


def ordered(spec: GemmSpec, a: np.ndarray, b: np.ndarray) -> dict[str, np.ndarray]:
    """A and B in the orders of their layouts, by operand."""
    pairs = (("A", a, spec.layouts.a), ("B", b, spec.layouts.b))
    return {name: np.asfortranarray(x) if order == "column" else x for name, x, order in pairs}


def random_values(rng: np.random.Generator, type_name: str, shape: tuple[int, int]) -> np.ndarray:
    return rng.integers(*VALUES[type_name], shape, np.int8).astype(TYPES[type_name].dtype)


def run_exactly(design: LoadedArray, sizes: tuple[int, ...], seed: int) -> GemmSequence:
    """Run the words on the loaded array and compare every element of C, and the gaps behind its lines."""
    M, K, N, *gaps = sizes
    spec, rng = design.plan.spec, np.random.default_rng(seed)
    a, b = random_values(rng, spec.a, (M, K)), random_values(rng, spec.b, (K, N))
    natural = natural_leading(design.plan, GemmProblem(M, K, N))
    leading = {f"ld{name}": natural[name] + gap for name, gap in zip("abc", gaps, strict=True)}
    packed = spec.layouts.b == "packed"
    planned = sequence(design.plan, M, K, N, **leading | ({"ldb": None} if packed else {}))
    staging = planned.staging
    staged = host_buffers(planned, ordered(spec, a, b))
    host_a = staged[0] if staging.a else with_gaps(a, spec.layouts.a, gaps[0])
    host_b = staged[1] if packed or staging.b else with_gaps(b, spec.layouts.b, gaps[1])
    free_c = with_gaps(np.full((M, N), 7, TYPES[spec.c].dtype), spec.layouts.c, gaps[2])
    host_c = empty(planned, 2) if staging.c else free_c
    schedule = ("in-order", "random")[seed % 2]
    words = planned.words()
    result = emulate(
        design.mlir, [host_a, host_b, host_c], design.kernels, instructions=words, schedule=schedule, seed=seed
    )
    assert result.warnings == ()
    lines = host_c if staging.c else host_c[:, : host_c.shape[1] - gaps[2]]
    c = fetched(planned, [host_a, host_b, np.ascontiguousarray(lines)])["C"]
    same(c, a.astype(np.float64) @ b.astype(np.float64))
    assert staging.c or (host_c[:, host_c.shape[1] - gaps[2] :] == 7).all()
    return planned


@pytest.mark.daily("2x2", "npu1")
@pytest.mark.parametrize("name", [name for name in DESIGNS if name not in TWINS])
def test_random_sizes_are_exact(name):
    design = built(name)
    for seed, sizes in enumerate(sizes_of(design.plan, RUNS.get(name, OTHER_RUNS))):
        run_exactly(design, sizes, seed)


@pytest.mark.slow
@pytest.mark.parametrize("name", DESIGNS)
def test_many_more_random_sizes_are_exact(name):
    design = built(name)
    for seed, sizes in enumerate(sizes_of(design.plan, SWEEP * RUNS.get(name, OTHER_RUNS))):
        run_exactly(design, sizes, seed)


EDGES = {
    "decoding: one row": ((1, 32, 64), "M overlap; A staged; C staged"),
    "one element": ((1, 1, 1), "M, N overlap; A staged; C staged"),
    "a single panel of one tile": ((16, 32, 150), "M, N overlap"),
    "a single panel that lacks rows": ((29, 64, 64), "M overlap"),
    "a moved panel": ((70, 32, 64), "M overlap"),
    "a moved slab": ((32, 44, 64), "K overlap"),
    "a moved column step": ((32, 32, 160), "N overlap"),
    "a moved n-tile": ((32, 32, 101), "N overlap"),
    "rows that do not start at words": ((32, 33, 64), "K overlap; A staged"),
    "few columns": ((64, 32, 5), "N overlap; C staged"),
    "views": ((33, 36, 65, 12, 0, 15), "M, K, N overlap"),
    "many steps": ((16 * 140 + 3, 32, 70), "M, N overlap"),
}
UNPACKED_EDGES = {
    "decoding: one row": ((1, 32, 64), "M overlap; A staged; C staged"),
    "one element": ((1, 1, 1), "M, N overlap; A staged; B staged; C staged"),
    "a single panel that lacks rows": ((28, 32, 32), "M overlap"),
    "a moved panel": ((68, 32, 32), "M overlap"),
    "a moved slab: A in whole slabs": ((32, 44, 32), "K overlap; A staged"),
    "a moved column step": ((32, 32, 80), "N overlap"),
    "a moved n-tile": ((32, 32, 52), "N overlap"),
    "views": ((36, 48, 68, 12, 4, 16), "M, N overlap"),
    "many steps": ((16 * 140 + 4, 16, 36), "M, N overlap"),
}


@pytest.mark.parametrize("edge", EDGES)
def test_every_edge_is_exact(edge):
    sizes, brief = EDGES[edge]
    assert run_exactly(built("2x2"), (*sizes, 0, 0, 0)[:6], seed=1).edges().brief == brief


@pytest.mark.daily(
    "column-major-views",
    "column-major-a moved panel",
    "row-major-a moved slab: A in whole slabs",
    "row-major-many steps",
)
@pytest.mark.parametrize("edge", UNPACKED_EDGES)
@pytest.mark.parametrize("name", ["row-major", "column-major"])
def test_every_edge_of_unpacked_operands_is_exact(name, edge):
    sizes, brief = UNPACKED_EDGES[edge]
    assert run_exactly(built(name), (*sizes, 0, 0, 0)[:6], seed=1).edges().brief == brief


@pytest.mark.parametrize("name", ["2x2", "row-major", "column-major", "B stays in part"])
def test_one_loaded_array_serves_sequence_after_sequence(name):
    """Four streams as one: cores keep their ping-pong turns from one problem to the next."""
    design = built(name)
    sizes = [(33, 44, 65), (1, 32, 7), (64, 96, 64), (40, 33, 100)]
    problems = [(each, design.plan.random(GemmProblem(*each), seed)) for seed, each in enumerate(sizes)]
    for (_, inputs), found in zip(problems, design.run_in_turn(problems), strict=True):
        same(found["C"], inputs["A"].astype(np.int64) @ inputs["B"])
