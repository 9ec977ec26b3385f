"""Limits of C++: every one has a last value that is taken and a next one that is refused."""

import json
import re
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from host_programs import TARGET, content_of, probed

from bdforge.design.sequences import Builder, Program
from support.program_limits import BOUNDS, WORDS, changed_word, numbers
from support.run_limits import RUN_FIRSTS, RUN_LIMITS

Case = tuple[str, dict[str, Any], str]
"""What it is of, an order for the probe, and what is said where it is refused; "" where it is taken."""


def order(program: Program | dict[str, Any], parameters: Sequence[int] = (), **more: Any) -> dict[str, Any]:
    """Of a program for an array with `target`, whose operands are laid out where `layouts`."""
    content = content_of(program) if isinstance(program, Program) else program
    target = more.pop("target", TARGET)
    return {"sequence": {"wide": False, "program": content, "target": target}, "parameters": [*parameters], **more}


def answers(orders: list[dict[str, Any]]) -> list[str]:
    return probed("programs", lines=[json.dumps(one) for one in orders])


def check(cases: list[Case]) -> None:
    """All of them are taken, or refused with these words."""
    for (name, _, said), answer in zip(cases, answers([case for _, case, _ in cases]), strict=True):
        if said:
            assert answer.startswith(("SequenceError: ", "ManifestError: ")), f"{name} is taken: {answer[:200]}"
            assert said in answer, name
        else:
            assert answer.startswith("["), f"{name} is refused: {answer}"


def of_form(sequences: list[dict[str, Any]]) -> list[str]:
    """Answers to changed sequences of one parameter."""
    return answers([{"parameters": [1], "sequence": {"wide": False} | one} for one in sequences])


@pytest.mark.slow
def test_ends_of_the_form_are_taken_and_what_is_next_is_refused():
    """The same ends as in Python, but for channels: their number is the target's."""
    taken = [(name, value) for name, bound in BOUNDS.items() for value in bound.accepted()]
    for order, answer in zip(taken, of_form([BOUNDS[name].changed(value) for name, value in taken]), strict=True):
        assert answer.startswith("["), (order, answer)
    beyond = [(name, value) for name, bound in BOUNDS.items() for value in bound.beyond()]
    for (name, value), answer in zip(beyond, of_form([BOUNDS[n].changed(v) for n, v in beyond]), strict=True):
        said = BOUNDS[name].refused if value == (BOUNDS[name].last or 0) + 1 else ""
        assert answer.startswith(("ManifestError: ", "SequenceError: ")), (name, value, answer[:80])
        named = said in answer if said else re.search(rf"\b{BOUNDS[name].member}(\[\d+\])? is ", answer)
        assert named, (name, value, answer)


def test_every_field_and_channel_of_a_target_has_the_same_ends():
    whole = BOUNDS["Target.columns"].changed(1)["target"]
    bits = [("queue_fields", name) for name in whole["queue_fields"]]
    places = [("bd_fields", name, part) for name in whole["bd_fields"] for part in (0, 1)]
    channels = [(table, way, 0) for table in ("queues", "controls") for way in ("S2MM", "MM2S")]
    ends = [*((path, 31) for path in bits), *((path, 31 if path[2] else 7) for path in places),
            *((path, 0xFFFFFFFF) for path in channels)]  # fmt: skip
    orders = [numbers(0, last, ("target", *path)).changed(value) for path, last in ends for value in (last, last + 1)]
    for (path, last), taken, refused in zip(ends, *(iter(of_form(orders)),) * 2, strict=True):
        assert taken.startswith("["), (path, taken)
        assert refused.startswith("ManifestError: "), (path, last, refused)
        assert path[1] in refused


def test_words_of_the_form_are_taken_and_others_refused():
    taken = [(name, word) for name, (_, words) in WORDS.items() for word in words]
    for order, answer in zip(taken, of_form([changed_word(*order) for order in taken]), strict=True):
        assert answer.startswith("["), (order, answer)
    others = [changed_word(name, words[0] + "s") for name, (_, words) in WORDS.items()]
    for name, answer in zip(WORDS, of_form(others), strict=True):
        assert answer.startswith("ManifestError: "), (name, answer)
        assert f"{WORDS[name][0][-1]} is " in answer


def test_a_run_takes_the_last_value_and_refuses_the_next_one_by_its_limit():
    cases: list[Case] = []
    for name, limit in RUN_LIMITS.items():
        for value, said in ((limit.last, ""), (limit.last + 1, limit.said)):
            program, parameters = limit.program(value)
            if max(parameters.values(), default=0) < 1 << 63:  # else no parameter that C++ takes
                cases.append((f"{name} = {value}", order(program, [*parameters.values()]), said))
    check(cases)


def test_a_run_takes_the_first_value_and_refuses_the_one_before_it_by_its_limit():
    for name, (first, program, said) in RUN_FIRSTS.items():
        (taken, given), (refused, before) = program(first), program(first - 1)
        told = answers([order(taken, [*given.values()]), order(refused, [*before.values()])])
        assert told[0].startswith("["), (name, told[0])
        assert re.match(f"SequenceError: .*({said})", told[1]), (name, told[1])


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


def test_limits_of_a_run_are_those_of_its_target():
    check([
        (f"{name} = {value}", order(RUN_LIMITS[name].program(value)[0], target=TARGET | changes), text)
        for name, (changes, last, said) in OF_A_TARGET.items() for value, text in ((last, ""), (last + 1, said))
    ])  # fmt: skip


def test_a_direction_has_as_many_controls_as_queues():
    said = "the target's channels have other controls than queues"
    for name in ("queues", "controls"):
        for way in ("S2MM", "MM2S"):
            target = TARGET | {name: TARGET[name] | {way: TARGET[name][way][:1]}}
            check([(f"{name} {way}", order(laid_out(), target=target), said)])


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
FIRSTS: dict[str, tuple[int, Callable[[int], Program], str]] = {
    "loop": (1, lambda n: laid_out(n), "has a loop of 0 by 1; counts begin at 1, strides at 0"),
    "stride": (0, lambda n: laid_out(1, n), "has a loop of 1 by -1; counts begin at 1, strides at 0"),
    "offset": (0, lambda n: laid_out(offset=n), "starts at element -1"),
    "positions": (1, lambda n: laid_out(size=n), "has 0 positions; there must be 1 to"),
    "tile": (1, lambda n: laid_out(5, tile=n, walked=5), "has tiles of 0 in 5 positions"),
}


def test_an_operand_takes_the_values_at_both_ends_and_refuses_those_beyond_them():
    check([
        (f"{name} = {value}", order(program(value), layouts=True), text)
        for table, step in ((LAYOUTS, 1), (FIRSTS, -1)) for name, (end, program, said) in table.items()
        for value, text in ((end, ""), (end + step, said))
    ])  # fmt: skip


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


def test_operands_have_forms_that_the_library_places():
    cases: list[Case] = []
    for name, (changes, axes, said) in FORMS.items():
        program = content_of(laid_out(elements=72))
        (operand,) = program["operands"]
        operand |= changes | {"axes": operand["axes"] * axes}
        cases.append((name, order(program, layouts=True), said and f"SequenceError: operand A {said}"))
    check(cases)


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


def test_operands_say_what_the_form_asks_for():
    orders = []
    for member, value, _ in WORDS_OF_OPERANDS:
        program = content_of(laid_out())
        program["operands"][0][member] = value
        if value is None:
            del program["operands"][0][member]
        orders.append(order(program))
    for (member, _, said), answer in zip(WORDS_OF_OPERANDS, answers(orders), strict=True):
        assert answer.startswith("ManifestError: ")
        assert f".operands[0].{member} " in answer
        assert said in answer


def test_a_value_that_overflows_is_not_taken_for_one_that_is_refused():
    program = content_of(laid_out())
    at = len(program["values"])
    program |= {"parameters": ["n"], "values": [*program["values"], "n", ["mul", at, at]]}
    program["requires"] = [{"when": at + 1, "otherwise": {"text": "the square is 0"}}]
    refused, taken, beyond = answers([order(program, (n,)) for n in (0, 2, 1 << 40)])
    assert refused == "SequenceError: the square is 0"
    assert taken.startswith("[")
    assert "needs more than 64 bits" in beyond
    assert "square" not in beyond


MISSING: dict[str, tuple[int, list[float], list[float]]] = {
    "int8": (8, [-128, 127], [-129, 128]),
    "int16": (16, [-(1 << 15), (1 << 15) - 1], [-(1 << 15) - 1, 1 << 15]),
    "int32": (32, [-(1 << 31), (1 << 31) - 1], [-(1 << 31) - 1, 1 << 31]),
    "bf16": (16, [-1.5, 1, 2.0**127], [2.0**128, -(2.0**128)]),
    "f32": (32, [-1.5, 2.0**127, 1e-45], [2.0**128, -(2.0**128)]),
    "nothing": (8, [0], [1]),
}
"""Of a type its bits, values that may stand for an operand that is not given, and some that it does not hold."""


def test_what_stands_for_an_operand_is_a_value_of_its_type():
    cases: list[Case] = []
    for type_, (bits, held, others) in MISSING.items():
        for value in (*held, *others):
            program = content_of(laid_out(bits=bits, elements=64))
            program["operands"][0] |= {"type": type_, "missing": value}
            said = f"SequenceError: operand A has no element of type {type_} for " if value in others else ""
            cases.append((f"{type_} {value}", order(program, layouts=True), said))
    check(cases)


def test_operands_have_widths_that_fit_bytes():
    for way in ("in", "out"):
        programs = [laid_out(bits=bits, direction=way, elements=1 << 10) for bits in range(1, 130)]
        found = answers([order(program, layouts=True) for program in programs])
        assert [bits for bits, answer in enumerate(found, 1) if answer[0] == "["] == [1, 2, 4, 8, 16, 32, 64], way
