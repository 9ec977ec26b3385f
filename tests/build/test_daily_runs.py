"""Which cases run daily, and what a run says of the processors' time."""

import subprocess
import sys
from pathlib import Path

import pytest

from tools.testing.check import ROOT

TABLE = """
import pytest

@pytest.mark.daily({})
@pytest.mark.parametrize("case", ["a", "b", "c", "d", "e"])
def test_it(case): pass

def test_other(): pass
"""
SCRIPT = """
import sys, pytest
sys.path.insert(0, "tests")
from support.cpu_time import CpuTime
from support.daily import DailyCases
pytest.main(["-rA", "-c", "/dev/null", "-m", "not slow", *sys.argv[1:]], plugins=[DailyCases(), CpuTime()])
"""


def said(tmp_path: Path, mark: str, case: str = "") -> str:
    (tmp_path / "test_table.py").write_text(TABLE.format(mark))
    words = [sys.executable, "-c", SCRIPT, f"{tmp_path}/test_table.py{case}"]
    done = subprocess.run(words, cwd=ROOT, text=True, capture_output=True, check=False)
    return done.stdout + done.stderr


@pytest.mark.parametrize(("mark", "daily"), [("'b', 'e'", "be"), ("every=2", "ace")])
def test_cases_that_are_not_daily_are_slow(tmp_path: Path, mark: str, daily: str):
    text = said(tmp_path, mark)
    ran = [line.partition("::")[2] for line in text.splitlines() if line.startswith("PASSED ")]
    assert ran == [*(f"test_it[{case}]" for case in daily), "test_other"]
    assert " CPU minutes; most of them:\n" in text
    assert text.count(" s  test_table.py\n") == 1


@pytest.mark.slow
def test_a_mark_that_names_no_case_is_refused(tmp_path: Path):
    text = said(tmp_path, "'b', 'x', 'y'")
    assert "test_table.py::test_it: no case is called 'x', 'y'" in text
    assert "passed" not in text
    assert "1 passed" in said(tmp_path, "'b', 'x'", "::test_it[b]")
