"""Mutated files of every format that is read, hostile designs: each is accepted, or refused in a short sentence."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from fuzz.corpus import FILES
from fuzz.file_reading import READERS, outcome
from fuzz.file_seeds import seeds
from fuzz.hostile_texts import HOSTILE


def fuzzed(*options: str) -> str:
    tests = Path(__file__).parents[1]
    environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(tests), str(tests.parent)))}
    command = [sys.executable, "-m", "fuzz.file_reading", *options]
    done = subprocess.run(command, text=True, capture_output=True, check=False, env=environment)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("kind", READERS)
def test_the_files_that_are_mutated_are_sound(kind, tmp_path):
    """`packets_pad` has a sink without a program, and waits."""
    for content in seeds()[kind]:
        waits = content == (FILES / "packets_pad.mlir").read_bytes()
        assert outcome(kind, content, tmp_path) == ("refused" if waits else "accepted")


def test_hostile_texts_and_some_mutated_files_of_each_format_lead_to_no_fault():
    """Of designs more: some stop in the parser or the array, some run, as 18 of the hostile texts do."""
    kinds = [*READERS, *["design"] * 5]
    count = 2 * len(kinds)
    options = [word for kind in kinds for word in ("--kind", kind)]
    told = fuzzed("--hostile", "--count", str(count), "--seed", "4", *options)
    assert told.startswith(f"{count + len(HOSTILE)} inputs, 0 faults; ")
    ran = re.search(r"design accepted (\d+), design refused \d+", told)
    assert ran is not None
    assert int(ran[1]) > 18


@pytest.mark.slow
def test_eight_thousand_mutated_designs_lead_to_no_fault():
    assert fuzzed("--count", "8000", "--seed", "1", "--kind", "design").startswith("8000 inputs, 0 faults; ")


@pytest.mark.slow
def test_twenty_thousand_mutated_files_lead_to_no_fault():
    assert fuzzed("--count", "20000", "--seed", "1").startswith("20000 inputs, 0 faults; ")
