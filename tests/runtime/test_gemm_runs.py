"""GEMMs of many tile sizes and ragged shapes against numpy, and what happens when something is wrong."""

import json
import re
import shutil

import numpy as np
import pytest

from bdforge.array.emulator import Deadlock, PoisonError, emulate
from bdforge.cli.run import run_problems
from bdforge.operators import render
from bdforge.operators.gemm import GemmProblem, GemmSequence
from bdforge.runtime import BuiltDesign, ElementMismatch, OperandError, first_mismatch, run
from support.built_designs import TERNARY, PlannedDesign, build, spec_content
from support.differences import same
from support.gemm_problems import filled, operands, run_gemm

INT8 = ("int8", "int8", "int32")
SCALED = {"scale": True, "bias": True}


@pytest.mark.daily("one row")
@pytest.mark.parametrize(
    ("content", "device", "sizes"),
    [
        (spec_content(8, 16, 32, types=INT8, layouts="row row row", rows=1, m_used=1), "strix_halo", (1, 80, 64)),
        (spec_content(8, 16, 32, types=TERNARY, k_mt=32, m_used=3), "strix_halo", (7, 76, 100)),
        (spec_content(8, 64, 32, types=("int8", "int2", "bf16"), m_used=5, epilogue=SCALED), "strix_halo", (6, 64, 40)),
        (spec_content(4, 16, 32, types=INT8, layouts="row column row", rows=1, m_used=1), "phoenix", (3, 32, 64)),
    ],
    ids=["one row", "three of eight", "scaled", "AIE2"],
)
def test_problems_of_few_rows_need_no_staging(tmp_path, content, device, sizes):
    design, problem = build(tmp_path, content, device=device), GemmProblem(*sizes)
    inputs = design.plan.random(problem, 7)
    done = run(design, inputs)
    right = design.plan.reference(inputs)["C"]
    assert first_mismatch(done.outputs["C"], right.values, right.bound) is None
    staging = GemmSequence.of(design.plan, done.sequence).staging
    assert staging.a is None
    assert staging.c is None
    assert "const_pad_after" in design.mlir


def exact(design: PlannedDesign, m: int, k: int, n: int) -> None:
    a, weights = operands(m, k, n)
    run = run_gemm(design, a, weights)
    expected = a.astype(np.int64) @ weights.astype(np.int64)
    assert expected.any()
    same(run.outputs["C"], expected)


@pytest.mark.parametrize("shape", [(32, 16, 64), (1, 1, 1), (33, 17, 65), (70, 100, 130), (5, 300, 64)])
def test_ragged_shapes_are_exact(small, shape):
    exact(small, *shape)


TILES = [
    ((32, 24, 64), {"rows": 1, "columns": 2, "c_buffers": 2}),
    ((48, 40, 32), {"rows": 2, "columns": 2, "k_mt": 120}),
    ((80, 16, 128), {"rows": 4, "columns": 4, "k_mt": 64}),
    ((32, 8, 160), {"rows": 4, "columns": 8, "k_mt": 72, "stack_bytes": 2048}),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("tile", "layout"),
    [
        pytest.param(tile, layout, id="x".join(map(str, tile)), marks=() if number % 2 else pytest.mark.slow)
        for number, (tile, layout) in enumerate(TILES)
    ],
)
def test_other_tiles_and_buffering_are_exact(tmp_path, tile, layout):
    """Unequal m, k, n; odd numbers of k-steps; more than one panel and column step; ragged edges."""
    design = build(tmp_path, spec_content(*tile, **layout))
    rows, columns = layout["rows"], layout["columns"]
    exact(design, rows * tile[0] * 2 + 3, tile[1] * 5 - 1, columns * tile[2] + 7)
    exact(design, 1, tile[1], tile[2])


def test_extreme_values_do_not_overflow(small):
    a = np.full((32, 512), -128, np.int8)
    weights = np.ones((512, 64), np.int8)
    weights[:, 1::2] = -1
    same(run_gemm(small, a, weights).outputs["C"], a.astype(np.int64) @ weights)


def host_arrays(design: PlannedDesign, problem: GemmProblem, seed: int) -> list[tuple[np.ndarray, np.ndarray | None]]:
    _, (staged, packed, _), expected = filled(design, problem.M, problem.K, problem.N, seed)
    return [(staged, None), (packed, None), (np.zeros_like(expected), expected)]


STRIDE = r"%mem_0_a0_ping : memref<\d+xi8>, 0, \d+, \[<size = 2, stride = (\d+)>, <size = 2, stride = (\d+)>"
RELEASE = r"aie.use_lock\(%core_0_2_a_free, Release, 1\)"
LENGTH = r"(?<=%core_1_3_a_pong : memref<256xi8>, 0, )256"
LOCK = r"%mem_1_b_full(?=, AcquireGreaterEqual)"


def run_mutated(small: PlannedDesign, pattern: str, replacement) -> tuple[ElementMismatch | None, tuple[str, ...]]:
    problem = GemmProblem(32, 64, 64)
    text = render(small.plan, [problem])
    mutated = re.sub(pattern, replacement, text, count=1)
    assert mutated != text
    (a, _), (b, _), (c, expected) = host_arrays(small, problem, 5)
    assert expected is not None
    result = emulate(mutated, [a, b, c], small.kernels, file="mutated.mlir")
    return first_mismatch(c, expected), result.warnings


def test_two_swapped_strides_give_a_wrong_element(small):
    def swapped(match: re.Match[str]) -> str:
        first, second = (f"= {stride}>" for stride in match.groups())
        return match[0].replace(first, "= X>").replace(second, first).replace("= X>", second)

    wrong, _ = run_mutated(small, STRIDE, swapped)
    assert wrong is not None
    assert wrong.position[0] < 16  # memtile 0 feeds the first row of cores


def test_a_dropped_lock_release_is_a_deadlock_at_a_named_line(small):
    with pytest.raises(Deadlock) as fault:
        run_mutated(small, RELEASE, "")
    assert "lock core_0_2_a_free" in str(fault.value)
    assert "mutated.mlir:" in str(fault.value)


def test_a_bd_one_granule_short_leaves_its_channel_in_the_middle(small):
    wrong, warnings = run_mutated(small, LENGTH, "252")
    assert wrong is not None
    assert any("core (1, 3) S2MM 0 stopped in the middle of BD 0, 62 words are missing" in w for w in warnings)


def test_a_swapped_lock_order_gives_a_wrong_column(small):
    wrong, _ = run_mutated(small, LOCK, "%mem_1_b_free")
    assert wrong is not None
    assert wrong.position[1] >= 32  # memtile 1 feeds the second column of cores


def test_wrong_results_suggest_poison_which_names_the_reader(small, tmp_path, capsys):
    problem = GemmProblem(32, 64, 64)
    text = re.sub(LOCK, "%mem_1_b_free", render(small.plan, [problem]), count=1)
    folder = tmp_path / "mutated"
    shutil.copytree(small.folder, folder)
    (folder / small.mlir_file.name).write_text(text)
    facts = json.loads((folder / "manifest.json").read_text())
    facts["files"]["mlir"]["sha256"] = ""
    facts["problems"] = [{"name": "", "sequence": problem.sequence, "sizes": problem.sizes}]
    (folder / "manifest.json").write_text(json.dumps(facts))
    broken = BuiltDesign.load(folder)
    assert run_problems(broken, small.plan, [problem], None, (), 0) == 1
    shown = capsys.readouterr().out
    assert "WRONG: C[" in shown
    assert "--poison, which names the reader" in shown
    with pytest.raises(PoisonError, match=r"memtile \(1, 1\) MM2S \d.* words that nobody wrote"):
        run_problems(broken, small.plan, [problem], None, (), 0, poison=True)
    assert run_problems(small, small.plan, [problem], None, (), 0, poison=True) == 0
    assert "--poison" not in capsys.readouterr().out


def test_one_flipped_weight_bit_shows_in_one_column(small):
    problem = GemmProblem(32, 16, 64)
    (a, _), (b, _), (c, expected) = host_arrays(small, problem, 5)
    b.reshape(-1)[0] ^= 1  # the code of row 0, column 0; every row of A is 77 there
    emulate(small.mlir_for(problem), [a, b, c], small.kernels, problem.sequence)
    wrong = c != expected
    assert wrong[:, 0].all()
    same(wrong[:, 1:], 0)


@pytest.mark.parametrize(
    ("a", "weights", "message"),
    [
        (
            np.zeros((2, 3), np.int8),
            np.zeros((4, 4), np.int8),
            "operand B has the shape 4x4, so that K = 4; operand A has K = 3",
        ),
        (
            np.zeros((2, 3), np.int8),
            np.full((3, 4), 2, np.int8),
            r"operand B: the value at \[0, 0\] is 2; int2 holds -1 to 1",
        ),
    ],
)
def test_operands_that_do_not_fit_are_refused(small, a, weights, message):
    with pytest.raises(OperandError, match=message):
        run_gemm(small, a, weights)
