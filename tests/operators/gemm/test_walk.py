"""The shims' BDs of small and of extreme tilings, one by one, where wraps, steps and repetitions end."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from typing import NamedTuple

import pytest

from bdforge.design.sequences import Start, StartedTask, interpret
from bdforge.operators.gemm import GemmPlan
from bdforge.operators.gemm.grid import Storage, Tiling
from bdforge.operators.gemm.program import GemmProgram
from support.built_designs import small_gemm

SMALL = Tiling(m=2, k=8, n=4, k_mt=16, rows=2, columns=4, b=Storage(8, "packed"))
ONE_CORE = Tiling(m=4, k=4, n=8, k_mt=4, rows=1, columns=1, b=Storage(8, "packed"))
FLAGSHIP = Tiling(64, 128, 64, 256)
BYTES, BYTE_LINES, WORD_LINES = Storage(8), Storage(8, "column"), Storage(32, "column")
OPERANDS = {("MM2S", 0): "A", ("MM2S", 1): "B", ("S2MM", 0): "C"}


class Problem(NamedTuple):
    """Sizes as the shims walk them; lines of A, C and B are `lda`, `ldc` and `ldb` positions apart."""

    M: int
    K: int
    N: int
    lda: int
    ldc: int
    ldb: int = 0


@dataclass(frozen=True)
class Step:
    """`panels` row panels from `panel` over `count` column steps from `first`, and the tasks of the shims."""

    panel: int
    panels: int
    first: int
    count: int
    tasks: list[StartedTask]

    def of(self, operand: str) -> list[StartedTask]:
        return [task for task in self.tasks if OPERANDS[task.direction, task.channel] == operand]


@cache
def any_plan() -> GemmPlan:
    return small_gemm(types=("int8", "int8", "int16"), rows=1, columns=1)


def walk(tiling: Tiling, problem: Problem) -> tuple[Step, ...]:
    """The steps of a problem on an array of these tiles."""
    plan = replace(any_plan(), tiling=tiling)
    events = interpret(GemmProgram(plan).program(), problem._asdict(), plan.limits)
    return tuple(step_of(event) for event in events if isinstance(event, Start))


def step_of(event: Start) -> Step:
    """What a step starts; its note tells what it covers."""
    panels, panel, count, first = map(int, re.findall(r"\d+", event.note))
    return Step(panel, panels, first, count, [item for item in event.items if isinstance(item, StartedTask)])


def test_bitnets_widest_layer_is_one_step():
    tiling, problem = Tiling(64, 128, 64, 512), Problem(256, 2560, 13824, 2560, 13824)
    (step,) = walk(tiling, problem)
    assert (step.count, str(step.of("A")[1].bds[0].pattern)) == (27, "(5, 64, 512):(512, 2560, 1)+163840")
    assert str(step.of("B")[1].bds[0].pattern) == "(27, 16, 2560):(327680, 2560, 1)+40960"
    assert str(step.of("C")[1].bds[0].pattern) == "(27, 256, 64):(512, 13824, 1)+64"
    assert {len(t.bds) for t in step.tasks} == {1}


def areas(steps: Iterable[Step]) -> list[tuple[int, int, int, int]]:
    return [(s.panel, s.panels, s.first, s.count) for s in steps]


def test_the_order_is_the_one_that_needs_fewer_steps():
    """4096 x 2560: 16 panels, 5 column steps. 70,000 x 512: 273 panels that one column step serves, and one moved."""
    assert areas(walk(FLAGSHIP, Problem(4096, 6912, 2560, 6912, 2560))) == [(0, 16, s, 1) for s in range(5)]
    starts = [(p, min(64, 273 - p), 0, 1) for p in range(0, 273, 64)]
    assert areas(walk(FLAGSHIP, Problem(70_000, 512, 512, 512, 512))) == [*starts, (273, 1, 0, 1)]


def test_a_step_repeats_a_at_most_256_times():
    steps = walk(ONE_CORE, Problem(M=4, K=4, N=8 * 300, lda=4, ldc=2400))
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
    steps = walk(tiling, Problem(M=4, K=depth, N=3 * 8 * n, lda=depth, ldc=3 * 8 * n))
    assert [s.count for s in steps] == [1, 1, 1]
    length = depth * n * 2 // 8  # of a packed n-tile of int2
    assert str(steps[2].of("B")[1].bds[0].pattern) == f"({length}):(1)+{(2 * 8 + 1) * length}"


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
    steps = walk(tiling, Problem(8, 16, 80, 16, leading.get("ldc", ldc), leading.get("ldb", ldb)))
    assert [s.count for s in steps] == counts


FOUR = Tiling(4, 4, 4, 4, 1, 1, a=Storage(32), b=Storage(8, "packed"))
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
        replace(FOUR, k=1023, k_mt=1023, a=WORD_LINES), Problem(4, 1028, 8, 4, 8), "A",
        "2: 2 (2, 1023, 4):(20, 4, 1)+0",
    ),
    "two slabs of 1024 lines are two": (
        replace(FOUR, k=1024, k_mt=1024, a=WORD_LINES), Problem(4, 1029, 8, 4, 8), "A",
        "2: 2 (1024, 1, 4):(4, 0, 1)+0 (1024, 1, 4):(4, 0, 1)+20",
    ),
    "two slabs as far apart as a step": (
        replace(FOUR, k=8, k_mt=8, a=WORD_LINES), Problem(4, 12, 8, 1 << 18, 8), "A",
        "2: 2 (2, 8, 4):(1048576, 262144, 1)+0",
    ),
    "two slabs that are farther apart": (
        replace(FOUR, k=8, k_mt=8, a=WORD_LINES), Problem(4, 12, 8, (1 << 18) + 1, 8), "A",
        "2: 2 (8, 1, 4):(262145, 0, 1)+0 (8, 1, 4):(262145, 0, 1)+1048580",
    ),
    "two slabs of which none moved back": (SMALL, Problem(4, 32, 16, 32, 16), "A", "1: 1 (2, 2, 16):(16, 32, 1)+0"),
    "two panels of column-major C": (
        replace(SMALL, m=4, c=WORD_LINES), Problem(16, 16, 16, 16, 16), "C", "1: 2 (2, 2, 4, 4):(8, 4, 16, 1)+0",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_LIMITS)
def test_a_bd_takes_as_much_as_its_registers_hold(name: str):
    """Wraps of 1023, steps of 2^20 words; the outermost dimension has no wrap."""
    tiling, problem, operand, wanted = AT_LIMITS[name]
    first = walk(tiling, problem)[0]
    task = first.of(operand)[0]
    assert f"{first.count}: {task.runs} {' '.join(str(bd.pattern) for bd in task.bds)}" == wanted


@pytest.mark.parametrize(("M", "N", "lda", "wanted"), [
    # Two steps either way: panel by panel. Three panels on two column steps: by column steps, if they are near.
    (8, 32, 16, [(0, 1, 0, 2), (1, 1, 0, 2)]), (12, 32, 16, [(0, 3, 0, 1), (0, 3, 1, 1)]),
    (12, 32, 1 << 20, [(0, 3, 0, 1), (0, 3, 1, 1)]),
    (12, 32, (1 << 20) + 4, [(0, 1, 0, 2), (1, 1, 0, 2), (2, 1, 0, 2)]),
])  # fmt: skip
def test_panels_are_walked_at_once_where_that_takes_fewer_steps(M: int, N: int, lda: int, wanted: list):
    """Panels of four rows: 4 x 2^20 bytes are a BD's longest step."""
    assert areas(walk(SMALL, Problem(M, 16, N, lda, N))) == wanted


COLUMN_MAJOR = replace(ONE_CORE, k_mt=8, rows=2, columns=2, a=BYTE_LINES, b=BYTE_LINES)


@pytest.mark.parametrize(
    ("tiling", "problem", "chains"),
    [
        (SMALL, Problem(M=4, K=20, N=16, lda=20, ldc=16), {"A": {1}, "B": {1}, "C": {1}}),  # two slabs
        (SMALL, Problem(M=4, K=36, N=16, lda=36, ldc=16), {"A": {2}, "B": {1}, "C": {1}}),  # three
        (SMALL, Problem(M=4, K=16, N=22, lda=16, ldc=22), {"A": {1}, "B": {1}, "C": {1}}),  # two column steps
        (SMALL, Problem(M=4, K=16, N=38, lda=16, ldc=38), {"A": {1}, "B": {2}, "C": {2}}),  # three
        (COLUMN_MAJOR, Problem(8, 12, 16, 8, 16, 12), {"A": {1}, "B": {1}, "C": {1}}),
        (COLUMN_MAJOR, Problem(8, 20, 16, 8, 16, 20), {"A": {1}, "B": {2}, "C": {1}}),
    ],
)
def test_what_moved_back_needs_a_bd_of_its_own_from_the_third_on(tiling, problem, chains):
    """One BD steps over two slabs, or two column steps, however far apart: no chain, and nothing to repeat in one."""
    steps = walk(tiling, problem)
    assert {name: {len(task.bds) for step in steps for task in step.of(name)} for name in "ABC"} == chains
