"""The table of timed emulation beside the estimate: current, and within what the project promises."""

import pytest

from bdforge.devices import device_named
from bdforge.operators.gemm import GemmProblem, plan_gemm
from tools.docs import operators
from tools.docs.emulated import AGREEMENT, Comparison, compare, read_table, side_by_side, write_table

ROWS = [row for row in read_table() if row.group == "agreement"]


def run_again(index: int) -> Comparison:
    spec, device, shape = AGREEMENT[index]
    return compare("agreement", plan_gemm(spec, device_named(device)), GemmProblem(*shape), "ideal")


def test_both_models_agree_on_all_designs_but_one_half_arrays_among_them():
    differences = sorted(abs(row.difference) for row in ROWS)
    assert len(ROWS) >= 16
    assert differences[-2] < 0.10
    assert differences[-1] < 0.13  # docs/accuracy.md names it


def test_the_table_holds_every_comparison_in_order():
    assert [(row.design, row.device, (row.M, row.K, row.N)) for row in ROWS] == [
        (spec.name, device, shape) for spec, device, shape in AGREEMENT
    ]


@pytest.mark.slow
def test_a_row_is_what_a_run_says_today():
    assert run_again(0) == ROWS[0]


@pytest.mark.slow
def test_all_rows_are_what_runs_say_today():
    assert [run_again(i) for i in range(len(AGREEMENT))] == ROWS
    assert list(side_by_side()) == [row for row in read_table() if row.group == "side by side"]


@pytest.mark.slow
def test_operators_take_what_runs_say_today():
    for row in operators.read_table():
        assert operators.timed_again(row) == row


def test_a_table_survives_writing_and_reading(tmp_path):
    write_table(ROWS, tmp_path / "rows.csv")
    assert read_table(tmp_path / "rows.csv") == ROWS
