"""Mutated files of every format that is read: each is accepted, or refused in a short printable sentence."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.file_reading import READERS, outcome
from fuzz.file_seeds import seeds


def fuzzed(*options: str) -> str:
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent)))}
    command = [sys.executable, "-m", "fuzz.file_reading", *options]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.parametrize("kind", READERS)
def test_the_files_that_are_mutated_are_sound(kind, tmp_path):
    assert [outcome(kind, content, tmp_path) for content in seeds()[kind]] == ["accepted"] * len(seeds()[kind])


def test_ten_mutated_files_of_each_format_lead_to_no_fault():
    count = str(10 * len(READERS))
    assert fuzzed("--count", count, "--seed", "7").startswith(f"{count} inputs, 0 faults; ")


@pytest.mark.slow
def test_twenty_thousand_mutated_files_lead_to_no_fault():
    assert fuzzed("--count", "20000", "--seed", "1").startswith("20000 inputs, 0 faults; ")
