"""`pytest` in this folder checks every puzzle as `bdforge puzzle` does."""

from pathlib import Path

import pytest

from bdforge.cli.puzzle import Puzzle, puzzles


@pytest.mark.parametrize("puzzle", puzzles(), ids=str)
def test_it_is_solved(puzzle: Puzzle):
    if (fault := puzzle.fault(Path(__file__).with_name(puzzle.file))) is not None:
        pytest.fail(fault, pytrace=False)
