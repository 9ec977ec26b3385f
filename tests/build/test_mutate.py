"""The command `go mutate`: the faults it plants, and which of them it says that the tests miss."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from tools.testing.mutants import mutants_of

COMMAND = [sys.executable, str(Path(__file__).resolve().parents[2] / "tools/testing/mutate.py")]

FAULTY = {
    "a < b": ["a <= b"],
    "a == b in c": ["a != b in c", "a == b not in c"],
    "a and (not b)": ["a or not b", "a and b"],
    "a + 7": ["a - 7", "a + 8"],
    "-a << 1": ["-a >> 1", "a << 1", "-a << 2"],
    "min(abs(a), True)": ["pass", "max(abs(a), True)", "min(a, True)", "min(abs(a), False)"],
    "if a:\n    b()": ["if False:\n    b()", "if a:\n    pass"],
    "for a in b:\n    continue": ["for a in b:\n    pass"],
    "a: Literal[1] = 2": ["a: Literal[1] = 3"],
    "raise A(1, f'{2}')": [],
    "def f(a: B[1]=0) -> C[1]:\n    '''2'''": ['def f(a: B[1]=1) -> C[1]:\n    """2"""'],
}


def test_each_fault_is_planted_once_and_alone():
    for text, faulty in FAULTY.items():
        tree = ast.parse(text)
        planted = [ast.unparse(mutant.planted(tree)) for mutant in mutants_of(tree)]
        assert sorted(planted) == sorted(faulty), text
        assert ast.unparse(tree) == ast.unparse(ast.parse(text)), text


CODE = """
LARGEST = 4
COUNT = 2


def refuses(value):
    if value > LARGEST:
        return True
    return False


def spins(count):
    while count > 1:
        count -= 1
    return count


def unused(value):
    return value + 1
"""
TESTS = """
import bounds


def test_limit():
    assert bounds.refuses(5) and not bounds.refuses(3)


def test_what_is_there_on_import():
    assert bounds.COUNT == 2


def test_loop():
    assert bounds.spins(4) == 1
"""


@pytest.mark.slow  # runs all of a command that only developers give
def test_faults_that_no_test_finds_are_named_with_their_lines(tmp_path: Path):
    code = tmp_path / "bounds.py"
    code.write_text(CODE)
    (tmp_path / "test_bounds.py").write_text(TESTS)
    command = [*COMMAND, "--tests", str(tmp_path), str(code)]
    done = subprocess.run(command, text=True, capture_output=True, timeout=500, check=False)
    found = [line.partition("bounds.py:")[2] for line in done.stdout.splitlines() if "bounds.py:" in line]
    assert found == [
        "19:12: Add to Sub (no test comes here)",
        "19:20: 1 to 2 (no test comes here)",
        "7:8: Gt to GtE",
    ]
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == "3 faults were not found"
    assert code.read_text() == CODE
