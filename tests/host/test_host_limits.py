"""Limits of C++: every one has a last value that is taken and a next one that is refused."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from host_programs import ROOT, run
from library_builds import run as run_program
from library_builds import sanitized_build

from bdforge.design.sequences import Builder, Program
from bdforge.design.sequences.instruction_words import target_facts
from bdforge.devices import mlir_device_named
from support.processes import ends
from support.program_limits import BOUNDS, WORDS, changed_word, numbers
from support.run_limits import RUN_LIMITS


@pytest.fixture(scope="module")
def probe() -> Callable[[list[dict]], list[str]]:
    """What C++ makes of sequences, under sanitizers: words as a list, or an error's kind and text."""
    program = sanitized_build() / "tests" / "probe"

    def answers(sequences: list[dict], parameters: Sequence[int] = (1,), **more: Any) -> list[str]:
        order = {"parameters": parameters} | more
        lines = [json.dumps(order | {"sequence": {"wide": False} | found}) for found in sequences]
        return run(program, "programs", lines=[*lines, ""]).decode().splitlines()

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
        named = said in answer if said else re.search(rf"\b{BOUNDS[name].member}(\[\d+\])? is ", answer)
        assert named, (name, value, answer)


def test_every_field_and_channel_of_a_target_has_the_same_ends(probe):
    whole = BOUNDS["Target.columns"].changed(1)["target"]
    bits = [("queue_fields", name) for name in whole["queue_fields"]]
    places = [("bd_fields", name, part) for name in whole["bd_fields"] for part in (0, 1)]
    channels = [(table, way, 0) for table in ("queues", "controls") for way in ("S2MM", "MM2S")]
    ends = [*((path, 31) for path in bits), *((path, 31 if path[2] else 7) for path in places),
            *((path, 0xFFFFFFFF) for path in channels)]  # fmt: skip
    orders = [numbers(0, last, ("target", *path)).changed(value) for path, last in ends for value in (last, last + 1)]
    for (path, last), taken, refused in zip(ends, *(iter(probe(orders)),) * 2, strict=True):
        assert taken.startswith("["), (path, taken)
        assert refused.startswith("ManifestError: "), (path, last, refused)
        assert path[1] in refused


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


OF_A_TARGET: dict[str, tuple[dict[str, Any], int, str]] = {
    "BDs of a step": ({"bds": 3}, 3, "a step needs more than the 3 BDs of a shim"),
    "size of dimension 0": ({"wraps": [5, 9]}, 5, "size of dimension 0 is 6; it must be from 1 to 5"),
    "size of dimension 1": ({"wraps": [5, 9]}, 9, "size of dimension 1 is 10; it must be from 1 to 9"),
    "stride of dimension 0": ({"step_max": 100}, 100, "stride of dimension 0 is 101; it must be from 0 to 100"),
    "stride of the iteration": ({"step_max": 100}, 100, "stride of dimension 3 is 101; it must be from 0 to 100"),
    "iterations": ({"iteration_max": 6}, 6, "size of dimension 3 is 7; it must be from 1 to 6"),
    "length": ({"length_max": 50}, 50, "a length in words is 51; it must be from 1 to 50"),
    "runs": ({"repeat_max": 3}, 3, "runs of a task is 4; it must be from 1 to 3"),
    "columns": ({"columns": 3}, 2, "a column is 3; it must be from 0 to 2"),
    "columns of a wait": ({"columns": 3}, 3, "columns of a wait is 4; it must be from 1 to 3"),
    "channels": (
        {name: {"S2MM": [0], "MM2S": [0, 4, 8]} for name in ("queues", "controls")}, 2, "is on channel 3; a shim has 3",
    ),
}  # fmt: skip
"""By the limit of a run: a target with another one, the last value that is then taken, what is said of the next one."""


@pytest.mark.parametrize("name", OF_A_TARGET)
def test_limits_of_a_run_are_those_of_its_target(probe, name):
    changes, last, said = OF_A_TARGET[name]
    target = target_facts(mlir_device_named("npu2")) | changes
    programs = [RUN_LIMITS[name].program(value)[0].model_dump(exclude_none=True) for value in (last, last + 1)]
    taken, refused = probe([{"program": program, "target": target} for program in programs], [])
    assert taken.startswith("["), f"{name} = {last}: {taken}"
    assert refused.startswith("SequenceError: "), f"{name} = {last + 1}: {refused}"
    assert said in refused


def test_a_direction_has_as_many_controls_as_queues(probe):
    whole = target_facts(mlir_device_named("npu2"))
    for name in ("queues", "controls"):
        for way in ("S2MM", "MM2S"):
            target = whole | {name: whole[name] | {way: whole[name][way][:1]}}
            (answer,) = probe([{"program": laid_out().model_dump(exclude_none=True), "target": target}], [])
            assert "the target's channels have other controls than queues" in answer, (name, way)


REACH = 1 << 50


def laid_out(
    count: int = 1, stride: int = 1, *, size: int = 1, offset: int = 0, elements: int = REACH, tile: int | None = None,
    bits: int = 8, direction: str = "in", walked: int = 1,
) -> Program:  # fmt: skip
    """An operand of one axis and one loop in a buffer of bytes."""
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, elements)
    axes = [(size, max(walked, size) if tile is None else walked, tile, False)]
    build.operand("A", x, direction, "int8", bits, axes, [(0, count, 1, stride)], offset=offset)
    return build.program


LAYOUTS: dict[str, tuple[int, Callable[[int], Program], str]] = {
    "loop": (REACH, lambda n: laid_out(n), "has a loop of 1125899906842625"),
    "stride": (REACH, lambda n: laid_out(1, n), "by 1125899906842625; counts begin at 1, strides at 0, both end at"),
    "offset": (REACH - 1, lambda n: laid_out(offset=n), "reaches element 1125899906842624; its buffer has"),
    "elements": (REACH, lambda n: laid_out(elements=n), "its buffer has 1125899906842625"),
    "positions": (REACH, lambda n: laid_out(REACH, size=n), "has 1125899906842625 positions; there must be 1 to"),
    "held positions": (6, lambda n: laid_out(6, size=n), "holds 6 of 7 positions"),
    "places": (6, lambda n: laid_out(n, 0, elements=6), "has 7 places; its buffer has 6 elements"),
    "last element": (3, lambda n: laid_out(3, n, elements=7), "reaches element 8; its buffer has 7"),
    "tiles that move back": (4096, lambda n: laid_out(n + 1, tile=1), "has more than 4096 tiles that move back"),
    "tile": (5, lambda n: laid_out(n, tile=n, walked=5), "has tiles of 6 in 5 positions"),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_an_operand_takes_the_last_value_and_refuses_the_next_one_by_its_limit(probe, name):
    last, program, said = LAYOUTS[name]
    target = target_facts(mlir_device_named("npu2"))
    facts = [{"program": program(n).model_dump(exclude_none=True), "target": target} for n in (last, last + 1)]
    taken, refused = probe(facts, (), layouts=True)
    assert taken.startswith("["), f"{name} = {last} of an operand is refused: {taken}"
    assert refused.startswith("SequenceError: operand A "), f"{name} = {last + 1} of an operand is taken: {refused}"
    assert said in refused


FIRSTS: dict[str, tuple[int, Callable[[int], Program], str]] = {
    "loop": (1, lambda n: laid_out(n), "has a loop of 0 by 1; counts begin at 1, strides at 0"),
    "stride": (0, lambda n: laid_out(1, n), "has a loop of 1 by -1; counts begin at 1, strides at 0"),
    "offset": (0, lambda n: laid_out(offset=n), "starts at element -1"),
    "positions": (1, lambda n: laid_out(size=n), "has 0 positions; there must be 1 to"),
    "tile": (1, lambda n: laid_out(5, tile=n, walked=5), "has tiles of 0 in 5 positions"),
}


@pytest.mark.parametrize("name", FIRSTS)
def test_an_operand_takes_the_first_value_and_refuses_the_one_before_it_by_its_limit(probe, name):
    first, program, said = FIRSTS[name]
    target = target_facts(mlir_device_named("npu2"))
    facts = [{"program": program(n).model_dump(exclude_none=True), "target": target} for n in (first, first - 1)]
    taken, refused = probe(facts, (), layouts=True)
    assert taken.startswith("["), f"{name} = {first}: {taken}"
    assert refused.startswith("SequenceError: operand A "), f"{name} = {first - 1}: {refused}"
    assert said in refused


BLOCKS = {"bits": 576, "type": "bfp16ebs8", "blocked": "down"}
FORMS: dict[str, tuple[dict[str, Any], int, str]] = {
    "1 axis": ({}, 1, ""),
    "8 axes": ({}, 8, ""),
    "columns of 1 axis": ({"order": "column"}, 1, ""),
    "columns of 2 axes": ({"order": "column"}, 2, ""),
    "columns of 3 axes": ({"order": "column"}, 3, "is column-major with 3 axes; that is an order of two"),
    "blocks of 1 axis": (BLOCKS, 1, "has blocks and 1 axes; blocks lie in two"),
    "blocks of 2 axes": (BLOCKS, 2, ""),
    "blocks of 3 axes": (BLOCKS, 3, "has blocks and 3 axes; blocks lie in two"),
    "blocks of other bits": (BLOCKS | {"bits": 64}, 2, "has elements of 64 bits; this library places"),
    "bits of blocks alone": ({"bits": 576}, 2, "has elements of 576 bits; this library places"),
}


@pytest.mark.parametrize("name", FORMS)
def test_operands_have_forms_that_the_library_places(probe, name):
    changes, axes, said = FORMS[name]
    program = laid_out(elements=72).model_dump(exclude_none=True)
    (operand,) = program["operands"]
    operand |= changes | {"axes": operand["axes"] * axes}
    (answer,) = probe([{"program": program, "target": target_facts(mlir_device_named("npu2"))}], (), layouts=True)
    assert answer[:240].startswith(f"SequenceError: operand A {said}" if said else "[")


WORDS_OF_OPERANDS: list[tuple[str, Any, str]] = [
    *(
        (name, None, "is missing")
        for name in ("name", "argument", "direction", "type", "bits", "staged", "offset", "dims")
    ),
    ("direction", "inout", "another of its words"),
    ("direction", "", "another of its words"),
    ("blocked", "", "another of its words"),
    ("blocked", "up", "another of its words"),
    ("order", "rows", "another of its words"),
    ("leading", "lda", "the name of a parameter"),
    ("values", [1], "the smallest and the largest value"),
    ("values", [1, 2, 3], "the smallest and the largest value"),
    ("missing", "1", "a number"),
    ("blocks", "down", "nothing: sequence programs have no such member"),
]


@pytest.mark.parametrize(("member", "value", "said"), WORDS_OF_OPERANDS)
def test_operands_say_what_the_form_asks_for(probe, member, value, said):
    program = laid_out().model_dump(exclude_none=True)
    program["operands"][0][member] = value
    if value is None:
        del program["operands"][0][member]
    (answer,) = probe([{"program": program, "target": target_facts(mlir_device_named("npu2"))}], ())
    assert answer.startswith("ManifestError: ")
    assert f".operands[0].{member} " in answer
    assert said in answer


@pytest.mark.parametrize(
    ("n", "said"), [(0, "SequenceError: the square is 0"), (2, "["), (1 << 40, "needs more than 64 bits")]
)
def test_a_value_that_overflows_is_not_taken_for_one_that_is_refused(probe, n, said):
    program = laid_out().model_dump(exclude_none=True)
    at = len(program["values"])
    program |= {"parameters": ["n"], "values": [*program["values"], "n", ["mul", at, at]]}
    program["requires"] = [{"when": at + 1, "otherwise": {"text": "the square is 0"}}]
    (answer,) = probe([{"program": program, "target": target_facts(mlir_device_named("npu2"))}], (n,))
    assert said in answer
    assert said.endswith("square is 0") or "square" not in answer


MISSING: dict[str, tuple[int, list[float], list[float]]] = {
    "int8": (8, [-128, 127], [-129, 128]),
    "int16": (16, [-(1 << 15), (1 << 15) - 1], [-(1 << 15) - 1, 1 << 15]),
    "int32": (32, [-(1 << 31), (1 << 31) - 1], [-(1 << 31) - 1, 1 << 31]),
    "bf16": (16, [-1.5, 1, 2.0**127], [2.0**128, -(2.0**128)]),
    "f32": (32, [-1.5, 2.0**127, 1e-45], [2.0**128, -(2.0**128)]),
    "nothing": (8, [0], [1]),
}
"""Of a type its bits, values that may stand for an operand that is not given, and some that it does not hold."""


@pytest.mark.parametrize("type_", MISSING)
def test_what_stands_for_an_operand_is_a_value_of_its_type(probe, type_):
    bits, held, others = MISSING[type_]
    program, target = (
        laid_out(bits=bits, elements=64).model_dump(exclude_none=True),
        target_facts(mlir_device_named("npu2")),
    )
    program["operands"][0]["type"] = type_

    def answer(value: float) -> str:
        program["operands"][0]["missing"] = value
        return probe([{"program": program, "target": target}], (), layouts=True)[0]

    assert {value: answer(value)[:1] for value in held} == dict.fromkeys(held, "[")
    refused = f"SequenceError: operand A has no element of type {type_} for "
    assert {value: answer(value)[: len(refused)] for value in others} == dict.fromkeys(others, refused)


@pytest.mark.parametrize("direction", ["in", "out"])
def test_operands_have_widths_that_fit_bytes(probe, direction):
    target = target_facts(mlir_device_named("npu2"))
    programs = [
        laid_out(bits=bits, direction=direction, elements=1 << 10).model_dump(exclude_none=True)
        for bits in range(1, 130)
    ]
    answers = probe([{"program": program, "target": target} for program in programs], (), layouts=True)
    assert [bits for bits, answer in enumerate(answers, 1) if answer.startswith("[")] == [1, 2, 4, 8, 16, 32, 64]


def test_counts_of_options_have_a_last_value():
    program = sanitized_build() / "bin" / "bdforge-run"
    ends(run_program(program, "-i", "1000000000", "--help"))
    done = run_program(program, "-i", "1000000001", "--help")
    assert done.returncode == 2
    assert "-i takes a number from 1 to 1000000000, got '1000000001'" in done.stderr


IN_C = "unit/test_limits.cpp"
BY_IOCTLS = "test_software_npu.py: test_the_device_takes_the_last_value_of_each_limit_and_refuses_the_next"
CONSTANTS = {
    "host/src/sequence_program.cpp: values_max": (1 << 16, "Program.values"),
    "host/src/sequence_program.cpp: written_max": (1 << 10, "Write.values"),
    "host/src/sequence_program.cpp: number_max": (0x7FFFFFFF, "For.loop"),
    "host/src/sequence_program.cpp: columns_max": (64, "Target.columns"),
    "host/src/sequence_program.cpp: channels_max": (16, "Target.queues{}"),
    "host/src/manifest.cpp: size_max": (1 << 40, f"{IN_C}: sizes_of_built_problems_have_ends"),
    "host/src/manifest.cpp: manifest_limit_bytes": (16 << 20, f"{IN_C}: files_may_be_as_long_as_their_limit"),
    "host/src/design.cpp: image_limit_bytes": (1 << 30, f"{IN_C}: files_may_be_as_long_as_their_limit"),
    "host/src/files.cpp: npy_limit_bytes": (1 << 36, f"{IN_C}: files_may_be_as_long_as_their_limit"),
    "host/src/sequence_program.hpp: axes_max": (8, "Operand.axes"),
    "host/src/sequence_program.cpp: loops_max": (48, "Operand.dims"),
    "host/src/json.cpp: depth_limit": (64, f"{IN_C}: json_nests_to_its_depth"),
    "host/src/layout.cpp: reach_max": (REACH, "loop"),
    "host/src/layout.cpp: moved_max": (4096, "tiles that move back"),
    "host/src/extent.hpp: extent_limit": (1 << 47, "unit/test_memory.cpp: products_never_wrap"),
    "host/cli/options.cpp: count_max": (1_000_000_000, "test_counts_of_options_have_a_last_value"),
    "host/src/sequencer.hpp: budget": (1 << 24, "budget"),
    "host/src/sequencer.cpp: divisor_max": (4096, "divisor"),
    "host/src/sequencer.cpp: steps_max": (1 << 14, "steps"),
    "host/src/sequence_program.hpp: word_max": (0xFFFFFFFF, "address"),
    "host/src/sequencer.hpp: stream_words_max": (1 << 26, f"{IN_C}: streams_fill_their_words"),
    "host/npu/driver.cpp: units_most": (32, BY_IOCTLS),
    "host/npu/driver.cpp: handles_most": (4096, BY_IOCTLS),
    "host/npu/preload.cpp: images_most": (32, BY_IOCTLS),
    "host/npu/context.hpp: configuration_bytes_most": (64 << 20, BY_IOCTLS),
    "host/src/backend.hpp: chain_commands": (32, "unit/test_gemm.cpp: batches_are_submitted_32_at_a_time"),
}
"""Limits that C++ names: the number a second time, and the pair of cases."""
NO_LIMIT = {
    "host/src/execution.cpp: threads_most": "beyond it the first threads' fetches are as those of any thread",
    "host/src/layout_copies.cpp: run_max": "a choice between two ways of copying the same",
    "host/src/number_formats.hpp: mantissa_max": "tests/host/test_host_operands.py rounds at it",
    "host/src/number_formats.hpp: largest_exponent": "as above",
}


def named_constants() -> dict[str, int]:
    """The constants of the library and its program that are called like a limit, with their values."""
    found = {}
    for path in sorted(
        path for part in ("src", "include", "cli", "npu") for path in (ROOT / "host" / part).rglob("*.[ch]pp")
    ):
        for definitions in re.findall(r"^constexpr [\w:]+ (.*?);", path.read_text(encoding="utf-8"), re.M):
            for name, value in re.findall(r"(\w+) = ([^,]+)", re.sub(r"std::\w+\{(\d+)\}", r"\1", definitions)):
                if re.search("max|limit|budget|most|largest|commands", name):
                    found[f"{path.relative_to(ROOT)}: {name}"] = number_of(value)
    return found


def number_of(expression: str) -> int:
    """A literal, or one shifted."""
    base, *shifts = (int(part.strip().replace("'", ""), 0) for part in expression.split("<<"))
    return base << sum(shifts)


def test_every_constant_of_c_that_is_a_limit_has_a_pair_of_cases():
    """A new one goes into CONSTANTS with where the pair is, or into NO_LIMIT with the reason."""
    named = {name: value for name, value in named_constants().items() if name not in NO_LIMIT}
    assert named == {name: value for name, (value, _) in CONSTANTS.items()}
    known = BOUNDS.keys() | RUN_LIMITS.keys() | LAYOUTS.keys() | globals().keys()
    for _, where in CONSTANTS.values():
        file, _, case = where.partition(": ")
        cases = "" if where in known else (ROOT / "tests" / "host" / file).read_text(encoding="utf-8")
        assert where in known or re.search(rf", {case}\)|def {case}\(", cases), where
