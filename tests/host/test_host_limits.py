"""Limits of C++: every one has a last value that is taken and a next one that is refused."""

import json
from collections.abc import Callable, Sequence

import pytest
from host_programs import run
from library_builds import sanitized_build

from bdforge.devices import mlir_device_named
from bdforge.sequences.words import target_facts
from support.program_limits import BOUNDS, WORDS, changed_word
from support.run_limits import RUN_LIMITS


@pytest.fixture(scope="module")
def probe() -> Callable[[list[dict]], list[str]]:
    """What C++ makes of sequences, under sanitizers: words as a list, or an error's kind and text."""
    program = sanitized_build() / "tests" / "program_probe"

    def answers(sequences: list[dict], parameters: Sequence[int] = (1,)) -> list[str]:
        order = {"parameters": parameters, "wide": False}
        lines = [json.dumps(order | {"sequence": found}) for found in sequences]
        return run(program, lines=[*lines, ""]).decode().splitlines()

    return answers


def test_ends_of_the_form_are_taken_and_what_is_next_is_refused(probe):
    """The same ends as in Python, but for channels: their number is the target's."""
    taken = [(name, value) for name, bound in BOUNDS.items() for value in bound.accepted()]
    for order, answer in zip(taken, probe([BOUNDS[name].changed(value) for name, value in taken]), strict=True):
        assert answer.startswith("["), (order, answer)
    beyond = [(name, value) for name, bound in BOUNDS.items() for value in bound.beyond()]
    for (name, value), answer in zip(beyond, probe([BOUNDS[n].changed(v) for n, v in beyond]), strict=True):
        said = BOUNDS[name].refused if value == (BOUNDS[name].last or 0) + 1 else ""
        assert answer.startswith(("ManifestError: ", "SequenceError: ")), (name, value, answer[:80])
        assert (said or BOUNDS[name].member) in answer, (name, value, answer)


def test_words_of_the_form_are_taken_and_others_refused(probe):
    taken = [(name, word) for name, (_, words) in WORDS.items() for word in words]
    for order, answer in zip(taken, probe([changed_word(*order) for order in taken]), strict=True):
        assert answer.startswith("["), (order, answer)
    for name, answer in zip(WORDS, probe([changed_word(name, WORDS[name][1][0] + "s") for name in WORDS]), strict=True):
        assert answer.startswith("ManifestError: "), (name, answer)
        assert f"{WORDS[name][0][-1]} is " in answer


@pytest.mark.parametrize("name", RUN_LIMITS)
def test_a_run_takes_the_last_value_and_refuses_the_next_one_by_its_limit(probe, name):
    limit, target = RUN_LIMITS[name], target_facts(mlir_device_named("npu2"))
    for value, taken in ((limit.last, True), (limit.last + 1, False)):
        program, parameters = limit.program(value)
        if max(parameters.values(), default=0) > (1 << 63) - 1:
            continue  # no parameter that C++ takes
        facts = {"program": program.model_dump(exclude_none=True), "target": target}
        (answer,) = probe([facts], list(parameters.values()))
        assert answer.startswith("[" if taken else ("SequenceError: ", "ManifestError: ")), (value, answer[:200])
        assert taken or limit.said in answer
