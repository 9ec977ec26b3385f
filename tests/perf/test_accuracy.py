"""The table of errors by operator and source, against sums by hand, and as it is printed."""

import subprocess
import sys

import pytest

from bdforge.perf.accuracy import HEAD, Judged, judged, publication, table_lines


def run(measured: float, source: str = "a", fitted: bool = True) -> Judged:
    return Judged("GEMV", source, fitted, measured, modelled_us=100.0, range_us=(90.0, 110.0))


def test_a_line_has_bias_mean_median_worst_and_the_share_in_range():
    lines = list(table_lines([run(90.0), run(120.0), run(100.0), run(150.0), run(80.0, "b", fitted=False)]))
    assert lines == [
        ("GEMV", "a", "4", "+15.0%", "20.0%", "15.0%", "50.0%", "50%"),
        ("GEMV", "b, not fitted", "1", "-20.0%", "20.0%", "20.0%", "20.0%", "0%"),
        ("all", "fitted", "4", "+15.0%", "20.0%", "15.0%", "50.0%", "50%"),
        ("all", "not fitted", "1", "-20.0%", "20.0%", "20.0%", "20.0%", "0%"),
    ]
    assert all(len(line) == len(HEAD) for line in lines)


@pytest.mark.parametrize(("source", "wanted"), [
    ("taka-table2", "taka"), ("Xilinx/mlir-air@e972 kernel_registry", "mlir-air"), ("hipscope", "hipscope"),
])  # fmt: skip
def test_a_source_s_publication_is_what_stands_first(source: str, wanted: str):
    assert publication(source) == wanted


def test_every_published_operator_is_judged_and_most_lie_in_the_printed_range():
    found = judged()
    assert len({each.operator for each in found}) >= 10
    for fitted in (True, False):
        held = [each.held for each in found if each.fitted is fitted]
        assert sum(held) / len(held) >= 0.8


@pytest.mark.slow
def test_the_command_prints_the_table_and_the_goals():
    done = subprocess.run([sys.executable, "-m", "bdforge.perf.accuracy"], capture_output=True, text=True, check=True)
    assert "bf16 GEMM" in done.stdout
    assert "every second row left out: mean error" in done.stdout
