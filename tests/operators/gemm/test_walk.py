"""The shim walks replayed: streams become tiles, tiles become C, and C must be A times B."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from walked import Await, Problem, Start, Step, Transfer, events, runtime_parameters, step_of, walk

from bd_patterns import Pattern, problems
from bdforge.design.sequences import Stored
from bdforge.devices.limits import AIE2P, TileKind
from bdforge.operators.gemm.grid import Storage, Tiling
from support.differences import same

SHIM = AIE2P.limits(TileKind.SHIM)
SMALL = Tiling(m=2, k=8, n=4, k_mt=16, rows=2, columns=4, b=Storage(8, "packed"))
ONE_CORE = Tiling(m=4, k=4, n=8, k_mt=4, rows=1, columns=1, b=Storage(8, "packed"))
TALL_TILE = Tiling(
    m=512, k=4, n=4, k_mt=4, rows=2, columns=2, b=Storage(8, "packed")
)  # a panel has more rows than a wrap
WIDE = Problem(M=12, K=32, N=80, lda=36, ldc=83)
FLAGSHIP = Tiling(64, 128, 64, 256)

CASES = {
    "whole tiles, one panel of three": (SMALL, WIDE, {}),
    "two column steps at a time": (SMALL, WIDE, {"max_count": 2}),
    "one column step at a time": (SMALL, WIDE, {"max_count": 1}),
    "one step of all": (SMALL, Problem(M=4, K=16, N=16, lda=16, ldc=16), {}),
    "tall: more panels than column steps": (SMALL, Problem(M=28, K=32, N=16, lda=32, ldc=16), {}),
    "tall, three panels at a time": (SMALL, Problem(M=28, K=32, N=32, lda=40, ldc=33), {"max_count": 3}),
    "the last panel moves back": (SMALL, Problem(M=27, K=32, N=16, lda=32, ldc=16), {}),
    "a single panel lacks rows": (SMALL, Problem(M=3, K=16, N=40, lda=16, ldc=40), {}),
    "a single panel of one tile": (SMALL, Problem(M=2, K=16, N=48, lda=16, ldc=48), {}),
    "a single panel and a moved column step": (SMALL, Problem(M=3, K=16, N=43, lda=16, ldc=43), {}),
    "the last slab moves back": (SMALL, Problem(M=4, K=44, N=16, lda=44, ldc=16), {}),
    "the last slab moves back, tall": (SMALL, Problem(M=17, K=20, N=16, lda=20, ldc=16), {}),
    "the last column step moves back": (SMALL, Problem(M=8, K=16, N=52, lda=16, ldc=52), {}),
    "the last n-tile moves back": (SMALL, Problem(M=8, K=16, N=31, lda=16, ldc=31), {}),
    "fewer n-tiles than columns": (SMALL, Problem(M=8, K=16, N=9, lda=16, ldc=9), {}),
    "everything is ragged": (SMALL, Problem(M=11, K=28, N=37, lda=28, ldc=41), {}),
    "one core": (ONE_CORE, Problem(M=9, K=12, N=29, lda=12, ldc=29), {"max_count": 2}),
    "more rows than a wrap": (TALL_TILE, Problem(M=1024, K=4, N=20, lda=4, ldc=20), {}),
    "more rows than a wrap, moved": (TALL_TILE, Problem(M=1100, K=8, N=18, lda=8, ldc=18), {}),
    "no factors of B fit": (replace(ONE_CORE, k_mt=8), Problem(M=4, K=8 * 1031, N=24, lda=8248, ldc=24), {}),
}
every_case = pytest.mark.parametrize(("tiling", "problem", "options"), CASES.values(), ids=CASES)


def moves(transfer: Transfer) -> Iterator[np.ndarray]:
    """Host offsets of each run of each BD: a fourth dimension only moves on from run to run."""
    for run in range(transfer.runs):
        for bd in transfer.bds:
            if bd.rank < 4:
                yield bd.order()
                continue
            turn = run % bd.sizes[0]
            yield Pattern(bd.sizes[1:], bd.strides[1:], bd.offset + turn * bd.strides[0]).order()


def stream(steps: Iterable[Step], operand: str, column: int) -> np.ndarray:
    """Host offsets in the order in which one channel moves them."""
    tasks = [t for step in steps for t in step.transfers if (t.operand, t.column) == (operand, column)]
    offsets = np.concatenate([offsets for task in tasks for offsets in moves(task)])
    assert offsets.min() >= 0
    return offsets


def moved_back(size: int, tile: int) -> np.ndarray:
    """First positions of tiles, of which the last ends at `size`."""
    return np.array([min(first, size - tile) for first in range(0, size, tile)])


def packed(tiling: Tiling, weights: np.ndarray) -> np.ndarray:
    """B as the cores eat it, a byte to a weight, tiles row-major; what two slabs cover counts in the first only."""
    K, N = weights.shape
    slabs = moved_back(K, tiling.k_mt)
    depth = (slabs[:, None] + np.arange(tiling.k_mt)).ravel()
    fresh = np.concatenate([[True], np.diff(np.maximum.accumulate(depth)) > 0])
    tiles = [(weights[depth] * fresh[:, None])[:, n : n + tiling.n] for n in moved_back(N, tiling.n)]
    return np.concatenate([tile.ravel() for tile in tiles])


def lines(store: Storage, matrix: np.ndarray) -> np.ndarray:
    """A matrix in the order of its memory without gaps, a line to a row; block floats as 64 elements and 8 of 99."""
    if store.order == "column":
        return matrix.T
    if store.block == 1:
        return matrix
    rows, columns = matrix.shape
    blocks = matrix.reshape(rows // 8, 8, columns // 8, 8).transpose(0, 2, 1, 3).reshape(rows // 8, columns // 8, 64)
    return np.pad(blocks, ((0, 0), (0, 0), (0, 8)), constant_values=99).reshape(rows // 8, -1)


def matrices(store: Storage, moved: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """Inverse of `lines` for many matrices, one after the other in the last axis."""
    if store.order == "column":
        return moved.reshape(-1, columns, rows).transpose(0, 2, 1)
    if store.block == 1:
        return moved.reshape(-1, rows, columns)
    blocks = moved.reshape(-1, rows // 8, columns // 8, 72)[..., :64].reshape(-1, rows // 8, columns // 8, 8, 8)
    return blocks.transpose(0, 1, 3, 2, 4).reshape(-1, rows, columns)


def memory(store: Storage, matrix: np.ndarray, leading: int) -> np.ndarray:
    """A host buffer with a matrix in it; 99 stands between the lines."""
    packed_lines = lines(store, matrix)
    return np.pad(packed_lines, ((0, 0), (0, leading * store.run - packed_lines.shape[1])), constant_values=99).ravel()


def in_slabs(matrix: np.ndarray, k_mt: int) -> np.ndarray:
    """Columns in slabs of which the last moves back; zeros for what the one before it holds."""
    places = (moved_back(matrix.shape[1], k_mt)[:, None] + np.arange(k_mt)).ravel()
    fresh = np.concatenate([[True], np.diff(np.maximum.accumulate(places)) > 0])
    return matrix[:, places] * fresh


def joined(tiling: Tiling, slabs: np.ndarray, tiles: int, rows: int) -> np.ndarray:
    """Slabs of rows x k_mt one after the other as `tiles` matrices of rows x depth."""
    return slabs.reshape(tiles, -1, rows, tiling.k_mt).transpose(0, 2, 1, 3).reshape(tiles, rows, -1)


def computed(tiling: Tiling, problem: Problem, steps: tuple[Step, ...]) -> tuple[np.ndarray, np.ndarray]:
    """C's buffer as cores make it of the streams, and as it should be: A times B, 99 between the lines."""
    rng = np.random.default_rng(5)
    a, b = rng.integers(-9, 9, (problem.M, problem.K)), rng.integers(-9, 9, (problem.K, problem.N))
    a_memory = memory(tiling.a, in_slabs(a, tiling.k_mt) if problem.a_in_slabs else a, problem.lda)
    expected = memory(tiling.c, a @ b, problem.ldc)
    is_packed = tiling.b.order == "packed"
    b_memory = packed(tiling, b) if is_packed else memory(tiling.b, b, problem.ldb)
    c = np.full(len(expected), 99)
    k_steps, tiles = runtime_parameters(tiling, problem)
    panel = np.empty((tiles, tiling.rows * tiling.m, k_steps * tiling.k), int)
    for feed in tiling.feeds():
        moved = matrices(tiling.a, a_memory[stream(steps, "A", feed.column)], feed.rows, tiling.k_mt)
        first = feed.row * tiling.m + feed.offset
        panel[:, first : first + feed.rows] = joined(tiling, moved, tiles, feed.rows)
    for column in range(tiling.columns):
        moved = b_memory[stream(steps, "B", column)]
        if not is_packed:
            moved = matrices(tiling.b, moved, tiling.k_mt, tiling.n)
        c_tiles = panel @ moved.reshape(tiles, -1, tiling.n)
        by_core = c_tiles.reshape(tiles * tiling.rows, tiling.m, tiling.n)
        c[stream(steps, "C", column)] = np.concatenate([lines(tiling.c, tile).ravel() for tile in by_core])
    return c, expected


@every_case
def test_the_streams_make_c(tiling: Tiling, problem: Problem, options):
    c, expected = computed(tiling, problem, walk(tiling, problem, SHIM, **options))
    same(c, expected)


SIZES = st.tuples(*[st.integers(1, 40)] * 3, st.integers(0, 2), st.integers(0, 5), st.integers(1, 5))


@given(SIZES)
@settings(deadline=None, derandomize=True, max_examples=60)
def test_the_streams_of_any_size_make_c(sizes: tuple[int, ...]):
    m, k, n, lda, ldc, max_count = sizes
    problem = Problem(m + 1, 4 * (k + 3), n + 3, 4 * (k + 3 + lda), n + 3 + ldc)
    c, expected = computed(SMALL, problem, walk(SMALL, problem, SHIM, max_count=max_count))
    same(c, expected)


BYTES, BYTE_LINES, BLOCKS = Storage(8), Storage(8, "column"), Storage(8, "row", 8, 9)
WORD_LINES, HALVES, HALF_LINES = Storage(32, "column"), Storage(16), Storage(16, "column")
SQUARE = replace(SMALL, m=4)
LAYOUTS = {
    "row-major B": replace(SMALL, b=BYTES),
    "column-major B": replace(SMALL, b=BYTE_LINES),
    "column-major A": replace(SQUARE, a=BYTE_LINES),
    "column-major C": replace(SMALL, c=WORD_LINES),
    "all column-major": replace(SQUARE, a=BYTE_LINES, b=BYTE_LINES, c=BYTE_LINES),
    "16 bit": replace(SMALL, a=HALVES, b=HALVES, c=HALVES),
    "16 bit, column-major": replace(SQUARE, a=HALF_LINES, b=HALF_LINES, c=HALF_LINES),
    "two shims for A": replace(SMALL, rows=2, columns=5, m=4, a_shims=2),
    "two shims for column-major A": replace(SMALL, m=8, a_shims=2, a=BYTE_LINES, b=BYTES),
    "more rows than columns": replace(SMALL, rows=4, columns=1),
    "four rows, three columns": replace(SMALL, rows=4, columns=3, b=BYTES, c=WORD_LINES),
    "block floats": replace(SMALL, m=8, n=8, columns=2, a=BLOCKS, c=BLOCKS),
    "one core, column-major": replace(ONE_CORE, a=BYTE_LINES, b=BYTE_LINES, c=WORD_LINES, k=8, k_mt=8),
}


def any_problem(tiling: Tiling, sizes: tuple[int, ...]) -> Problem:
    """A problem of whole granules, at least a tile large, with gaps behind the lines."""
    m, k, n, a_gap, b_gap, c_gap = sizes
    least = (tiling.least_rows, tiling.k_mt, tiling.n)
    M, K, N = (t + g * x for t, g, x in zip(least, tiling.granules, (m, k, n), strict=True))
    slabs = tiling.b.order != "packed" and K % tiling.k_mt != 0
    depth = -(-K // tiling.k_mt) * tiling.k_mt if slabs else K
    along = {"a": {"row": depth, "column": M}, "b": {"row": N, "column": K, "packed": 0}, "c": {"row": N, "column": M}}
    leading = {
        f"ld{name}": along[name][store.order] + gap * store.granule if store.order != "packed" else 0
        for name, gap in (("a", 0 if slabs else a_gap), ("b", b_gap), ("c", c_gap))
        if (store := getattr(tiling, name))
    }
    lda, ldb, ldc = leading["lda"], leading["ldb"], leading["ldc"]
    return Problem(M, K, N, lda, ldc, ldb, a_in_slabs=slabs)


SIZES = st.tuples(*[st.integers(0, 24)] * 3, *[st.integers(0, 3)] * 3)
COUNTS = st.sampled_from([1, 2, 3, 256])


@pytest.mark.parametrize("name", LAYOUTS)
@given(SIZES, COUNTS)
@settings(deadline=None, derandomize=True, max_examples=25)
def test_every_layout_makes_c(name: str, sizes: tuple[int, ...], max_count: int):
    check_c(LAYOUTS[name], sizes, max_count)


@given(SIZES, COUNTS)
@settings(deadline=None, derandomize=True, max_examples=8)
def test_block_floats_of_more_rows_than_a_wrap_make_c(sizes: tuple[int, ...], max_count: int):
    check_c(replace(TALL_TILE, m=4104, n=8, k=8, k_mt=8, rows=2, a=BLOCKS, c=BLOCKS), sizes, max_count)


def check_c(tiling: Tiling, sizes: tuple[int, ...], max_count: int) -> None:
    problem = any_problem(tiling, sizes)
    steps = walk(tiling, problem, SHIM, max_count=max_count)
    c, expected = computed(tiling, problem, steps)
    same(c, expected)
    for transfer in (t for step in steps for t in step.transfers):
        assert transfer.runs <= 256
        assert all(problems(bd, SHIM, transfer.element_bits, static=False) == [] for bd in transfer.bds)
        assert all(bd.rank < 4 or bd.sizes[0] == transfer.runs for bd in transfer.bds)


@every_case
def test_nothing_is_touched_outside_of_the_users_elements(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    inside = {"A": (problem.M, problem.K, problem.lda), "C": (problem.M, problem.N, problem.ldc)}
    for step in steps:
        for transfer in step.of("A") + step.of("C"):
            rows, columns, leading = inside[transfer.operand]
            for offsets in moves(transfer):
                assert (offsets % leading < columns).all()
                assert (offsets // leading < rows).all()


@every_case
def test_every_transfer_is_a_legal_bd(tiling: Tiling, problem: Problem, options):
    b_bytes = len(packed(tiling, np.zeros((problem.K, problem.N), int)))
    sizes = {"A": problem.M * problem.lda, "B": b_bytes, "C": problem.M * problem.ldc}
    for step in walk(tiling, problem, SHIM, **options):
        for t in step.transfers:
            for bd in t.bds:
                buffer = sizes[t.operand]
                assert problems(bd, SHIM, t.element_bits, static=False, buffer_elements=buffer) == []
                assert bd.rank < 4 or bd.sizes[0] == t.runs
            assert t.runs <= 256


def test_operands_travel_on_their_columns_and_only_c_asks_for_tokens():
    (step,) = walk(Tiling(64, 128, 64, 512), Problem(256, 2560, 2560, 2560, 2560), SHIM)
    assert [t.column for t in step.of("A")] == [0, 2, 4, 6]
    assert [t.column for t in step.of("B")] == [t.column for t in step.of("C")] == list(range(8))
    assert {(t.operand, t.direction, t.token, t.runs) for t in step.transfers} == {
        ("A", "MM2S", False, 5),
        ("B", "MM2S", False, 1),
        ("C", "S2MM", True, 1),
    }


def test_bitnets_widest_layer_is_one_step():
    tiling, problem = Tiling(64, 128, 64, 512), Problem(256, 2560, 13824, 2560, 13824)
    (step,) = walk(tiling, problem, SHIM)
    assert (step.count, str(step.of("A")[1].bds[0])) == (27, "(5, 64, 512):(512, 2560, 1)+163840")
    assert str(step.of("B")[1].bds[0]) == "(27, 16, 2560):(327680, 2560, 1)+40960"
    assert str(step.of("C")[1].bds[0]) == "(27, 256, 64):(512, 13824, 1)+64"
    assert {len(t.bds) for t in step.transfers} == {1}
    assert runtime_parameters(tiling, problem) == (20, 27)


def areas(steps: Iterable[Step]) -> list[tuple[int, int, int, int]]:
    return [(s.panel, s.panels, s.first, s.count) for s in steps]


def test_the_order_is_the_one_that_needs_fewer_steps():
    """4096 x 2560: 16 panels, 5 column steps. 70,000 x 512: 273 panels that one column step serves, and one moved."""
    assert areas(walk(FLAGSHIP, Problem(4096, 6912, 2560, 6912, 2560), SHIM)) == [(0, 16, s, 1) for s in range(5)]
    starts = [(p, min(64, 273 - p), 0, 1) for p in range(0, 273, 64)]
    assert areas(walk(FLAGSHIP, Problem(70_000, 512, 512, 512, 512), SHIM)) == [*starts, (273, 1, 0, 1)]


def test_panels_too_far_apart_for_a_bd_go_one_by_one():
    """256 rows of 20,000 bytes are more than 2^20 words."""
    steps = walk(FLAGSHIP, Problem(1024, 20_000, 512, 20_000, 512), SHIM)
    assert areas(steps) == [(p, 1, 0, 1) for p in range(4)]


def test_steps_cover_all_column_steps_of_each_panel_within_the_cap():
    steps = walk(SMALL, WIDE, SHIM, max_count=2)
    assert areas(steps) == [(panel, 1, *columns) for panel in range(3) for columns in ((0, 2), (2, 2), (4, 1))]
    steps = walk(SMALL, replace(WIDE, M=21, N=17), SHIM, max_count=3)
    assert areas(steps) == [
        *((*panels, s, 1) for s in range(2) for panels in ((0, 3), (3, 2))),
        (5, 1, 0, 2),
    ]


def test_a_step_repeats_a_at_most_256_times():
    steps = walk(ONE_CORE, Problem(M=4, K=4, N=8 * 300, lda=4, ldc=2400), SHIM)
    assert [s.count for s in steps] == [256, 44]


@pytest.mark.parametrize(
    ("depth", "n"),
    [
        (8 * 1031, 4),  # 2 * 1031 words: no two factors up to 1023
        (1 << 15, 128),  # columns * L = 2^21 words: beyond the step
    ],
)
def test_b_falls_back_to_one_linear_column_step(depth: int, n: int):
    tiling = Tiling(m=2, k=8, n=n, k_mt=8, rows=2, columns=8)
    steps = walk(tiling, Problem(M=4, K=depth, N=3 * 8 * n, lda=depth, ldc=3 * 8 * n), SHIM)
    assert [s.count for s in steps] == [1, 1, 1]
    length = depth * n * 2 // 8  # of a packed n-tile of int2
    assert str(steps[2].of("B")[1].bds[0]) == f"({length}):(1)+{(2 * 8 + 1) * length}"


@pytest.mark.parametrize(
    ("tiling", "leading", "counts"),
    [
        (replace(SMALL, m=4, b=BYTE_LINES), {"ldb": 1 << 18}, [5]),
        (replace(SMALL, m=4, b=BYTE_LINES), {"ldb": (1 << 18) + 4}, [1] * 5),
        (replace(SMALL, m=4, b=BYTES), {"ldb": 1 << 22}, [5]),
        (replace(SMALL, m=4, c=WORD_LINES), {"ldc": 1 << 16}, [5]),
        (replace(SMALL, m=4, c=WORD_LINES), {"ldc": (1 << 16) + 1}, [1] * 5),
    ],
)
def test_column_steps_too_far_apart_for_a_bd_go_one_by_one(tiling: Tiling, leading: dict[str, int], counts: list[int]):
    """16 columns of 2^18 bytes, or of 2^16 words, are 2^20 words: a BD's longest step. Lines of row-major B are not."""
    ldb, ldc = 80 if tiling.b.order == "row" else 16, 8 if tiling.c.order == "column" else 80
    steps = walk(tiling, Problem(8, 16, 80, 16, leading.get("ldc", ldc), leading.get("ldb", ldb)), SHIM)
    assert [s.count for s in steps] == counts


WORDS, WORD_COLUMNS = Storage(32), Storage(32, "column")
FOUR = Tiling(4, 4, 4, 4, 1, 1, a=WORDS, b=Storage(8, "packed"))
AT_LIMITS: dict[str, tuple[Tiling, Problem, str, str]] = {
    # column steps of the first step; the operand's runs, and its BDs.
    "B of 1023 x 1023 words is two wraps": (
        replace(FOUR, m=2, k=3, k_mt=3), Problem(2, 1023 * 1023, 12, 1023 * 1023, 12),
        "B", "3: 1 (3, 1023, 4092):(4186116, 4092, 1)+0",
    ),
    "B of 1023 x 1024 words goes one by one": (
        FOUR, Problem(4, 1024 * 1023, 12, 1024 * 1023, 12), "B", "1: 1 (4190208):(1)+0",
    ),
    "1023 rows of C are a wrap": (
        replace(FOUR, m=341, rows=3, columns=3), Problem(1023, 4, 36, 4, 36), "C", "3: 1 (3, 1023, 4):(12, 36, 1)+0",
    ),
    "1026 rows of C are repeated": (
        replace(FOUR, m=342, rows=3, columns=3), Problem(1026, 4, 36, 4, 36), "C",
        "3: 3 (3, 1026, 1, 4):(12, 36, 0, 1)+0",
    ),
    "two slabs of 1023 lines are one BD": (
        replace(FOUR, k=1023, k_mt=1023, a=WORD_COLUMNS), Problem(4, 1028, 8, 4, 8), "A",
        "2: 2 (2, 1023, 4):(20, 4, 1)+0",
    ),
    "two slabs of 1024 lines are two": (
        replace(FOUR, k=1024, k_mt=1024, a=WORD_COLUMNS), Problem(4, 1029, 8, 4, 8), "A",
        "2: 2 (1024, 1, 4):(4, 0, 1)+0 (1024, 1, 4):(4, 0, 1)+20",
    ),
    "two slabs as far apart as a step": (
        replace(FOUR, k=8, k_mt=8, a=WORD_COLUMNS), Problem(4, 12, 8, 1 << 18, 8), "A",
        "2: 2 (2, 8, 4):(1048576, 262144, 1)+0",
    ),
    "two slabs that are farther apart": (
        replace(FOUR, k=8, k_mt=8, a=WORD_COLUMNS), Problem(4, 12, 8, (1 << 18) + 1, 8), "A",
        "2: 2 (8, 1, 4):(262145, 0, 1)+0 (8, 1, 4):(262145, 0, 1)+1048580",
    ),
    "two slabs of which none moved back": (SMALL, Problem(4, 32, 16, 32, 16), "A", "1: 1 (2, 2, 16):(16, 32, 1)+0"),
    "two panels of column-major C": (
        replace(SMALL, m=4, c=WORD_COLUMNS), Problem(16, 16, 16, 16, 16), "C", "1: 2 (2, 2, 4, 4):(8, 4, 16, 1)+0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_LIMITS)
def test_a_bd_takes_as_much_as_its_registers_hold(name: str):
    """Wraps of 1023, steps of 2^20 words; the outermost dimension has no wrap."""
    tiling, problem, operand, wanted = AT_LIMITS[name]
    first = walk(tiling, problem, SHIM)[0]
    transfer = first.of(operand)[0]
    assert f"{first.count}: {transfer.runs} {' '.join(map(str, transfer.bds))}" == wanted


@pytest.mark.parametrize(("M", "N", "lda", "wanted"), [
    # Two steps either way: panel by panel. Three panels on two column steps: by column steps, if they are near.
    (8, 32, 16, [(0, 1, 0, 2), (1, 1, 0, 2)]), (12, 32, 16, [(0, 3, 0, 1), (0, 3, 1, 1)]),
    (12, 32, 1 << 20, [(0, 3, 0, 1), (0, 3, 1, 1)]),
    (12, 32, (1 << 20) + 4, [(0, 1, 0, 2), (1, 1, 0, 2), (2, 1, 0, 2)]),
])  # fmt: skip
def test_panels_are_walked_at_once_where_that_takes_fewer_steps(M: int, N: int, lda: int, wanted: list):
    """Panels of four rows: 4 x 2^20 bytes are a BD's longest step."""
    assert areas(walk(SMALL, Problem(M, 16, N, lda, N), SHIM)) == wanted


@pytest.mark.parametrize("in_flight", [1, 2, 4])
@every_case
def test_the_schedule_never_overfills_a_queue_nor_reuses_a_waiting_bd(tiling, problem, options, in_flight):
    flying: dict[int, Step] = {}
    busy: dict[tuple[int, int], int] = {}
    order = []
    for event in events(tiling, problem, SHIM, in_flight=in_flight, **options):
        order.append((type(event), event.index))
        if isinstance(event, Await):
            del flying[event.index]
            busy = {bd: user for bd, user in busy.items() if user != event.index}
            continue
        flying[event.index] = step_of(event, tiling)
        assert len(flying) <= in_flight
        for task in (item for item in event.items if not isinstance(item, Stored)):
            for bd in task.bds:
                assert (task.column, bd.bd_id) not in busy
                assert 0 <= bd.bd_id < SHIM.bds
                busy[task.column, bd.bd_id] = event.index
    steps = range(len(walk(tiling, problem, SHIM, **options)))
    assert not busy
    assert [i for kind, i in order if kind is Start] == [i for kind, i in order if kind is Await] == list(steps)


@every_case
def test_cores_begin_once_a_and_b_of_the_first_step_are_on_their_way(tiling, problem, options):
    started = [e for e in events(tiling, problem, SHIM, **options) if isinstance(e, Start)]
    stored = [[isinstance(item, Stored) for item in event.items] for event in started]
    before = [item for item in started[0].items[: stored[0].index(True)] if not isinstance(item, Stored)]
    assert {task.direction for task in before} == {"MM2S"}
    assert {task.direction for task in started[0].items[stored[0].index(True) + 3 :]} == {"S2MM"}  # type: ignore[union-attr]
    assert [sum(kinds) for kinds in stored] == [3] + [0] * (len(started) - 1)


def test_a_step_starts_as_soon_as_there_is_room():
    four = events(SMALL, replace(WIDE, M=4, N=64), SHIM, max_count=1, in_flight=2)
    names = [f"{type(event).__name__.lower()} {event.index}" for event in four]
    assert names == [
        "start 0",
        "start 1",
        "await 0",
        "start 2",
        "await 1",
        "start 3",
        "await 2",
        "await 3",
    ]


def test_steps_of_many_bds_wait_for_bds_and_not_only_for_the_queue():
    """Of 16 BDs a step with two of A, one of B and one of C takes four; with three and more of C it takes more."""
    problem, tiling = Problem(M=3, K=36, N=4 * 16 * 4, lda=36, ldc=256), replace(SMALL, rows=4)
    steps = walk(tiling, problem, SHIM, max_count=1)
    needs = {sum(len(t.bds) for t in step.transfers if t.column == 0) for step in steps}
    assert needs == {2 + 1 + 4}
    found = list(events(tiling, problem, SHIM, max_count=1))
    before = found[: next(i for i, event in enumerate(found) if isinstance(event, Await))]
    assert {event.index for event in before} == {0, 1}  # a third step would need 21 BDs


COLUMN_MAJOR = replace(ONE_CORE, k_mt=8, rows=2, columns=2, a=Storage(8, "column"), b=Storage(8, "column"))


@pytest.mark.parametrize(
    ("tiling", "problem", "chains"),
    [
        (SMALL, Problem(M=4, K=20, N=16, lda=20, ldc=16), {"A": {1}, "B": {1}, "C": {1}}),  # two slabs
        (SMALL, Problem(M=4, K=36, N=16, lda=36, ldc=16), {"A": {2}, "B": {1}, "C": {1}}),  # three
        (SMALL, Problem(M=4, K=16, N=22, lda=16, ldc=22), {"A": {1}, "B": {1}, "C": {1}}),  # two column steps
        (SMALL, Problem(M=4, K=16, N=38, lda=16, ldc=38), {"A": {1}, "B": {2}, "C": {2}}),  # three
        (COLUMN_MAJOR, Problem(8, 12, 16, 8, 16, 12, a_in_slabs=True), {"A": {1}, "B": {1}, "C": {1}}),
        (COLUMN_MAJOR, Problem(8, 20, 16, 8, 16, 20, a_in_slabs=True), {"A": {1}, "B": {2}, "C": {1}}),
    ],
)
def test_what_moved_back_needs_a_bd_of_its_own_from_the_third_on(tiling, problem, chains):
    """One BD steps over two slabs, or two column steps, however far apart: no chain, and nothing to repeat in one."""
    transfers = [t for step in walk(tiling, problem, SHIM) for t in step.transfers]
    assert {name: {len(t.bds) for t in transfers if t.operand == name} for name in "ABC"} == chains


def test_runtime_parameters_count_whole_slabs_and_tiles():
    assert runtime_parameters(SMALL, WIDE) == (4, 3 * 5)
    assert runtime_parameters(SMALL, replace(WIDE, M=13, K=36, N=81)) == (6, 4 * 6)
