"""The shim walks replayed element by element."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from bd_patterns import (
    AwaitC,
    Problem,
    Start,
    Step,
    Tiling,
    Transfer,
    WalkError,
    problems,
    runtime_parameters,
    schedule,
    walk,
)
from bdforge.devices.limits import AIE2P, TileKind

SHIM = AIE2P.limits(TileKind.SHIM)
SMALL = Tiling(m=2, k=8, n=4, k_mt=16, rows=2, columns=4)
PROBLEM = Problem(M=12, K=32, N=80, lda=36, ldc=83)
ONE_CORE = Tiling(m=4, k=4, n=8, k_mt=4, rows=1, columns=1, b_bits=8)

CASES = [
    (SMALL, PROBLEM, {}),
    (SMALL, PROBLEM, {"max_count": 2}),
    (SMALL, PROBLEM, {"max_count": 1, "slots": 1}),
    (SMALL, PROBLEM, {"max_count": 3, "slots": 3}),
    (SMALL, Problem(M=4, K=16, N=16, lda=16, ldc=16), {}),
    (ONE_CORE, Problem(M=8, K=12, N=24, lda=12, ldc=24), {"max_count": 2, "slots": 2}),
    (Tiling(m=2, k=8, n=4, k_mt=24, rows=4, columns=4), Problem(M=16, K=48, N=32, lda=48, ldc=40), {"max_count": 1}),
]
every_case = pytest.mark.parametrize(("tiling", "problem", "options"), CASES)


def stream(transfers: list[Transfer]) -> list[int]:
    """Host offsets in the order in which these tasks of one channel move them."""
    return [offset for t in transfers for _ in range(t.repeat) for offset in t.pattern.offsets()]


def tasks(steps: tuple[Step, ...], operand: str, column: int) -> list[Transfer]:
    return [t for step in steps for t in step.transfers if (t.operand, t.column) == (operand, column)]


def host(rows: int, leading: int) -> np.ndarray:
    """A host buffer whose elements are their own offsets."""
    return np.arange(rows * leading).reshape(rows, leading)


@every_case
def test_each_core_row_gets_its_rows_of_a_in_slabs_for_every_column_step(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    a = host(problem.M, problem.lda)
    repeats = problem.N // (tiling.columns * tiling.n)
    for row in range(tiling.rows):
        wanted: list[int] = []
        for panel in range(0, problem.M, tiling.rows * tiling.m):
            mine = a[panel + row * tiling.m :][: tiling.m]
            slabs = [mine[:, k : k + tiling.k_mt].ravel() for k in range(0, problem.K, tiling.k_mt)]
            wanted += np.concatenate(slabs).tolist() * repeats
        assert stream(tasks(steps, "A", row * tiling.columns // tiling.rows)) == wanted


@every_case
def test_a_is_read_once_for_each_column_step_and_nothing_else_is(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    read = Counter(stream([t for step in steps for t in step.of("A")]))
    wanted = host(problem.M, problem.lda)[:, : problem.K].ravel().tolist()
    assert read == dict.fromkeys(wanted, problem.N // (tiling.columns * tiling.n))


@every_case
def test_each_column_gets_its_packed_tiles_of_b_for_every_row_panel(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    tile_bytes = problem.K * tiling.n * tiling.b_bits // 8
    packed = np.arange(problem.N // tiling.n * tile_bytes).reshape(-1, tile_bytes)
    panels = problem.M // (tiling.rows * tiling.m)
    assert tiling.b_tile_bytes(problem.K) == tile_bytes
    for column in range(tiling.columns):
        wanted = packed[column :: tiling.columns].ravel().tolist() * panels
        assert stream(tasks(steps, "B", column)) == wanted


@every_case
def test_each_column_writes_its_joined_tiles_of_c(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    c = host(problem.M, problem.ldc)
    height, width = tiling.rows * tiling.m, tiling.columns * tiling.n
    for column in range(tiling.columns):
        wanted = [
            c[panel : panel + height, first : first + tiling.n].ravel()
            for panel in range(0, problem.M, height)
            for first in range(column * tiling.n, problem.N, width)
        ]
        assert stream(tasks(steps, "C", column)) == np.concatenate(wanted).tolist()


@every_case
def test_c_is_written_exactly_once(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    written = Counter(stream([t for step in steps for t in step.of("C")]))
    assert written == dict.fromkeys(host(problem.M, problem.ldc)[:, : problem.N].ravel().tolist(), 1)


@every_case
def test_every_transfer_is_a_legal_bd(tiling: Tiling, problem: Problem, options):
    sizes = {"A": problem.M * problem.lda, "B": problem.N // tiling.n * tiling.b_tile_bytes(problem.K)}
    sizes["C"] = problem.M * problem.ldc
    for step in walk(tiling, problem, SHIM, **options):
        for t in step.transfers:
            buffer = sizes[t.operand]
            repeat = t.repeat
            assert problems(t.pattern, SHIM, t.element_bits, static=False, buffer_elements=buffer, repeat=repeat) == []


def test_operands_travel_on_their_columns_and_only_c_asks_for_tokens():
    (step,) = walk(Tiling(64, 128, 64, 512), Problem(256, 2560, 2560, 2560, 2560), SHIM)
    assert [t.column for t in step.of("A")] == [0, 2, 4, 6]
    assert [t.column for t in step.of("B")] == [t.column for t in step.of("C")] == list(range(8))
    assert {(t.operand, t.direction, t.token, t.repeat) for t in step.transfers} == {
        ("A", "MM2S", False, 5),
        ("B", "MM2S", False, 1),
        ("C", "S2MM", True, 1),
    }


def test_bitnets_widest_layer_is_one_step():
    tiling, problem = Tiling(64, 128, 64, 512), Problem(256, 2560, 13824, 2560, 13824)
    (step,) = walk(tiling, problem, SHIM)
    assert (step.count, str(step.of("A")[1].pattern)) == (27, "(5, 64, 512):(512, 2560, 1)+163840")
    assert str(step.of("B")[1].pattern) == "(27, 16, 2560):(327680, 2560, 1)+40960"
    assert str(step.of("C")[1].pattern) == "(27, 256, 64):(512, 13824, 1)+64"
    assert runtime_parameters(tiling, problem) == (20, 27)


def test_steps_cover_all_column_steps_of_each_panel_within_the_cap():
    steps = walk(SMALL, PROBLEM, SHIM, max_count=2)
    ranges = [(panel, first, count) for panel in range(3) for first, count in ((0, 2), (2, 2), (4, 1))]
    assert [(s.panel, s.first, s.count) for s in steps] == ranges
    assert [s.slot for s in steps] == [0, 1, 2, 3, 0, 1, 2, 3, 0]
    assert {t.bd_id for t in steps[6].transfers} == {6, 7, 8}


def test_a_step_repeats_a_at_most_256_times():
    steps = walk(ONE_CORE, Problem(M=4, K=4, N=8 * 300, lda=4, ldc=2400), SHIM, max_count=1000)
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
    problem = Problem(M=4, K=depth, N=3 * 8 * n, lda=depth, ldc=3 * 8 * n)
    steps = walk(tiling, problem, SHIM)
    assert [s.count for s in steps] == [1, 1, 1]
    length = tiling.b_tile_bytes(depth)
    assert str(steps[2].of("B")[1].pattern) == f"({length}):(1)+{(2 * 8 + 1) * length}"


@every_case
def test_the_schedule_never_overfills_a_queue_nor_reuses_a_waiting_bd(tiling: Tiling, problem: Problem, options):
    steps = walk(tiling, problem, SHIM, **options)
    slots = options.get("slots", 4)
    in_flight: Counter[tuple[str, int]] = Counter()
    busy: set[tuple[int, int]] = set()
    order = []
    for event in schedule(steps):
        for t in event.step.transfers:
            bd, channel = (t.column, t.bd_id), (t.operand, t.column)
            if isinstance(event, Start):
                assert bd not in busy
                assert t.bd_id < SHIM.bds
                busy.add(bd)
                in_flight[channel] += 1
            else:
                busy.remove(bd)
                in_flight[channel] -= 1
            assert 0 <= in_flight[channel] <= slots
        order.append((type(event), event.step.index))
    assert not busy
    assert [i for kind, i in order if kind is Start] == list(range(len(steps)))
    assert [i for kind, i in order if kind is AwaitC] == list(range(len(steps)))


def test_a_step_starts_as_soon_as_its_slot_is_free():
    steps = walk(SMALL, PROBLEM, SHIM, max_count=2, slots=2)[:4]
    names = [f"{'start' if isinstance(e, Start) else 'await'} {e.step.index}" for e in schedule(steps)]
    assert names == ["start 0", "start 1", "await 0", "start 2", "await 1", "start 3", "await 2", "await 3"]


def test_runtime_parameters_count_k_steps_and_tiles():
    assert runtime_parameters(SMALL, PROBLEM) == (4, 3 * 5)


def test_illegal_sizes_are_refused_with_every_reason():
    with pytest.raises(WalkError) as caught:
        walk(replace(SMALL, k_mt=12), Problem(M=13, K=32, N=81, lda=31, ldc=80), SHIM, slots=5, max_count=0)
    for reason in (
        "M = 13 is no multiple of rows * m = 4; pad it to 16",
        "K = 32 is no multiple of k_mt = 12; pad it to 36",
        "k_mt = 12 is no multiple of k = 8",
        "N = 81 is no multiple of columns * n = 16; pad it to 96",
        "lda = 31 is below K = 32",
        "ldc = 80 is below N = 81",
        "slots = 5 is outside 1 to 4",
        "max_count = 0 is below 1",
    ):
        assert f"  - {reason}" in str(caught.value)


@pytest.mark.parametrize(
    ("tiling", "problem", "reasons"),
    [
        (SMALL, replace(PROBLEM, lda=33), ["A: stride 33 x 8 bit = 264 bit"]),
        (SMALL, replace(PROBLEM, lda=1 << 23, ldc=1 << 21), ["A: stride 8388608", "C: stride 2097152"]),
        (replace(SMALL, m=0), replace(PROBLEM, N=-1), ["m = 0 is below 1", "N = -1 is below 1"]),
        (replace(SMALL, columns=3), replace(PROBLEM, N=48), ["columns = 3 is no multiple of rows = 2"]),
        (replace(SMALL, k=2, k_mt=4), PROBLEM, ["k * n * b_bits = 16 bit"]),
        (Tiling(1024, 8, 4, 8, 1, 1), Problem(1024, 8, 4, 8, 4), ["A: size 1024 in dimension 1", "C: size 1024"]),
    ],
)
def test_a_problem_that_no_bd_describes_is_refused(tiling: Tiling, problem: Problem, reasons: list[str]):
    with pytest.raises(WalkError, match="cannot be walked with") as caught:
        walk(tiling, problem, SHIM)
    assert all(reason in str(caught.value) for reason in reasons), str(caught.value)


def test_runtime_parameters_refuse_sizes_that_do_not_divide():
    with pytest.raises(WalkError, match="N = 81 is no multiple"):
        runtime_parameters(SMALL, replace(PROBLEM, N=81))
