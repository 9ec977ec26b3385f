"""Sequence programs with parts that are exchanged, lost or cut: run as Python runs them, or refused by name."""

import copy
import difflib
import json
import random
from typing import Any

import numpy as np
import pytest
from host_programs import TARGET, content_of, copying, difference, line, python_words
from library_builds import small_plan

from bdforge.design.sequences import ProgramError
from bdforge.design.sequences.expressions import LARGEST, LEAST
from bdforge.design.sequences.program_check import load_program
from bdforge.operators import manifest

JUNK: list[Any] = [
    None, True, -1, 0, 1, 2, 3, 7, 15, 64, 1000, 65535, 65536, 1 << 31, 1 << 32, LEAST, LARGEST, 1 << 63, 0.5, "", "n",
    "M", "add", "index", "for", "S2MM", "{}", [], [0], ["add", 0, 1], ["index", 0], {}, {"kind": "write"},
]  # fmt: skip


def mutated(rng: random.Random, content: Any) -> Any:
    """`content` with one of its parts exchanged, taken out, doubled or moved."""
    content = copy.deepcopy(content)
    paths: list[tuple[Any, Any]] = []

    def collect(part: Any) -> None:
        for key in part if isinstance(part, dict) else range(len(part)):
            paths.append((part, key))
            if isinstance(part[key], dict | list):
                collect(part[key])

    collect(content)
    part, key = rng.choice(paths)
    match rng.randrange(6):
        case 0 if isinstance(part, list):
            part.insert(key, copy.deepcopy(part[key]))
        case 1:
            del part[key]
        case 2:
            other, place = rng.choice(paths)
            part[key] = copy.deepcopy(other[place])
        case 3 if isinstance(part[key], int):
            part[key] += rng.choice([-2, -1, 1, 2])
        case _:
            part[key] = rng.choice(JUNK)
    return content


def disagreement(program: Any, parameters: list[int], answer: str) -> str:
    """How C++'s answer is not what Python gives: words, or any error for an error; "" where it is."""
    if "out of range" in answer or "channel" in answer:
        return ""  # Python's JSON has integers of any size, and Python asks for channels when they are used
    try:
        loaded = load_program(program)
    except ProgramError as error:
        return f"expected an error, {str(error)!r}, got {answer[:200]}" if answer.startswith("[") else ""
    return difference(python_words(loaded, parameters), answer) if len(loaded.parameters) == len(parameters) else ""


def changes(one: Any, other: Any) -> str:
    """The lines in which two contents differ, with what stands around them."""
    whole, mutated = (json.dumps(content, indent=0).splitlines() for content in (one, other))
    return "\n".join(difflib.unified_diff(whole, mutated, "whole", "mutated", n=2, lineterm=""))[:1000]


@pytest.mark.daily("copy")
@pytest.mark.parametrize("operator", ["copy", "gemm"])
def test_mutated_programs_are_run_as_python_runs_them_or_refused_by_name(probe, operator):
    facts = json.loads(json.dumps(manifest(small_plan(), ())["sequence"]))
    whole, parameters = (
        (content_of(copying()), [3000]) if operator == "copy" else (facts["program"], [33, 40, 70, 0, 0, 0])
    )
    rng = random.Random(11)
    programs = []
    for _ in range(100):
        changed = mutated(rng, whole)
        programs.append(mutated(rng, changed) if rng.random() < 0.3 else changed)
    answers = probe([line(program, parameters) for program in programs])
    for i, (program, answer) in enumerate(zip(programs, answers, strict=True)):
        assert answer.startswith(("[", "ManifestError: line", "SequenceError: ")), (i, answer)
        why = disagreement(program, parameters, answer)
        assert not why, f"{why}\nof program {i}:\n{changes(whole, program)}"
    assert 10 < sum(answer.startswith("[") for answer in answers) < 90


@pytest.mark.slow
def test_mutated_targets_are_refused_by_name_or_make_words(probe):
    rng = random.Random(5)
    program = content_of(copying())
    answers = probe([line(program, [3000], target=mutated(rng, TARGET)) for _ in range(300)])
    assert all(answer.startswith(("[", "ManifestError: line", "SequenceError: ")) for answer in answers)
    assert 30 < sum(answer.startswith("[") for answer in answers) < 270


def test_texts_cut_anywhere_are_refused_by_name(probe):
    text = line(content_of(copying()), [3000])
    ends = np.random.default_rng(3).integers(1, len(text), 100)
    assert all(answer.startswith("ManifestError: line:1:") for answer in probe([text[:end] for end in ends]))
