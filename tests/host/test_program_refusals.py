"""Sequence programs that C++ refuses by name, as Python does, and what is close to them."""

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest
from host_programs import CORE, Content, content_of, copying, difference, line, moved, python_words

from bdforge.design.sequences import Builder, ProgramError
from bdforge.design.sequences.expressions import LARGEST, LEAST
from bdforge.design.sequences.program_check import load_program

LOOP: list[Any] = ["do", 0]
STEP = [*LOOP, "do", 0]
READ = [*STEP, "do", 0]


def member(content: Any, path: list[Any]) -> Any:
    for part in path:
        content = content[part]
    return content


def put(path: list[Any], **changes: Any) -> Callable[[Content], None]:
    return lambda content: member(content, path).update(changes)


def add(path: list[Any], *entries: Any) -> Callable[[Content], None]:
    return lambda content: member(content, path).extend(entries)


def again(to: list[Any], path: list[Any]) -> Callable[[Content], None]:
    return lambda content: member(content, to).append(copy.deepcopy(member(content, path)))


def drop(path: list[Any], name: str) -> Callable[[Content], None]:
    return lambda content: member(content, path).pop(name)


VALUES, COUNTER = len(content_of(copying())["values"]), content_of(copying())["values"].index(["index", 0])
WAIT = {"direction": "S2MM", "channel": 0, "column": 0, "columns": 0}
INNER_STEP = {"kind": "step", "do": [{"kind": "step", "do": []}]}
MALFORMED = [  # beside ends and words of members, which test_host_limits.py asks for
    (add(["values"], ["pow", 0, 1]), 'is "pow", expected an operation that this library knows'),
    (add(["values"], ["add", 0]), "expected add of 2 operands"),
    (add(["values"], ["index", 0, 0]), 'is "index", expected an operation'),
    (add(["values"], ["add", 0, 5000]), "names a value that does not stand before it"),
    (add(["values"], ["add", -1, 0]), "is -1, expected an integer from 0 to 65535"),
    (add(["values"], ["add", "n", 0]), 'is "n", expected an integer'),
    (add(["values"], ["index", 7]), "is 7, expected the number of a loop"),
    (add(["values"], "m"), 'is "m", expected the name of a parameter'),
    (add(["values"], []), "expected an operation and its operands"),
    (add(["values"], 1.5), "expected an integer"),
    (add(["values"], True), "is true, expected an integer"),
    (put(READ, extra=1), "extra is 1, expected nothing"),
    (put(READ, token=1), "token is 1, expected true or false"),
    (put([*READ, "bds", 0], sizes=[0, 0]), "strides is a list, expected 2 of them"),
    (put([*STEP, "awaits", 0], channel=9), "a wait is on channel 9; a shim has 2"),
    (again(["do"], STEP), "which needs the counter of loop 0, outside of it"),
    (again(["do"], LOOP), "loop is 0, expected a number that no other loop has"),
    (again(["do"], [*STEP, "do", 1]), "a choice uses value"),
    (again(LOOP[:1], READ), "a task stands in no step; nothing would say when its BDs are free"),
    (add(["do"], INNER_STEP), "a step stands in another"),
    (add(["do"], {"kind": "jump"}), 'kind is "jump", expected for, if, step, task, write or configure'),
    (drop([], "arguments"), "sequence.program.arguments is missing"),
    (put(["requires", 0, "otherwise"], text="{} {}"), "says 2 {} of 1 values"),
    (put([*STEP, "note"], text="{0}"), "says 0 {} of 1 values"),
    (put(LOOP, do=7), "do is 7, expected a list"),
    (add(["values"], ["add", VALUES, 0]), "names a value that does not stand before it"),
    (put(LOOP, count=COUNTER), "a loop's count uses value"),
    (put(["arguments", 0], elements=COUNTER), "an argument uses value"),
    (put(["requires", 0], when=COUNTER), "a requirement uses value"),
    (put(["requires", 0, "otherwise"], values=[COUNTER]), "a requirement uses value"),
    (add(["do"], {"kind": "write", "address": COUNTER, "values": [0]}), "a write uses value"),
    (add(["do"], {"kind": "write", "address": 0, "values": [0, COUNTER]}), "a write uses value"),
    (add(["do"], {"kind": "step", "do": [], "note": {"text": "{}", "values": [COUNTER]}}), "a note uses value"),
    (add(["do"], {"kind": "step", "do": [], "awaits": [WAIT | {"column": COUNTER}]}), "a wait uses value"),
    (add(["do"], {"kind": "step", "do": [], "awaits": [WAIT | {"columns": COUNTER}]}), "a wait uses value"),
]


def test_malformed_programs_are_refused_by_both(probe):
    contents = [content_of(copying()) for _ in MALFORMED]
    for content, (change, _) in zip(contents, MALFORMED, strict=True):
        change(content)
    answers = probe([line(content, [2500]) for content in contents])
    for content, answer, (_, message) in zip(contents, answers, MALFORMED, strict=True):
        assert answer.split(": ")[0] in ("ManifestError", "SequenceError"), message
        assert message in answer
        if "channel" not in message:  # how many there are the target says, which Python does not load
            with pytest.raises(ProgramError):
                load_program(content)


def test_requirements_are_said_with_values_before_anything_overflows(probe):
    program = content_of(copying())
    assert probe([line(program, [0])]) == ["SequenceError: n = 0 is below 1"]
    assert "needs more than 64 bits" in probe([line(program, [LARGEST])])[0]
    assert probe([line(program, [LEAST])]) == ["SequenceError: n = -9223372036854775808 is below 1"]
    assert probe([line(program, [1, 2])]) == ["SequenceError: 2 parameters for a program of 1"]


UNHOLDABLE = [
    (0, (0,), (1,), 32, "size of dimension 0 is 0; it must be from 1"),
    (0, (2, 4), (-4, 1), 32, "stride of dimension 1 is -4; it must be from 1"),
    (0, (1,), (-1,), 32, "stride of dimension 0 is -1; it must be from 0"),
    (0, (2, 1), (4, -1), 32, "stride of dimension 0 is -1; it must be from 0"),
    (0, (1, 1, 2), (-1, 2, 1), 32, "stride of dimension 2 is -1; it must be from 0"),
    (0, (3, 1), (8, (1 << 20) + 1), 32, "stride of dimension 0 is 1048577; it must be from 0 to 1048576"),
    (2, (4,), (1,), 8, "an offset is 2 elements of 8 bits; it must be a multiple of 4 bytes"),
    (0, (3,), (1,), 16, "size of dimension 0 is 3 elements of 16 bits; it must be a multiple of 4 bytes"),
    (0, (4,), (2,), 8, "stride of dimension 0 is 2 elements of 8 bits; it must be a multiple of 4 bytes"),
    (0, (2, 4), (2, 1), 8, "stride of dimension 1 is 2 elements of 8 bits; it must be a multiple of 4 bytes"),
    (0, (2, 2, 4), (1, 8, 1), 16, "stride of dimension 2 is 1 elements of 16 bits; it must be a multiple of 4 bytes"),
    (0, (2, 1, 1, 4), (3, 8, 8, 1), 16,
     "stride of dimension 3 is 3 elements of 16 bits; it must be a multiple of 4 bytes"),
    (0, (2, 4), (8, 4), 8, "stride of dimension 0 is 4; it must be from 1 to 1"),
    (0, (2, 4), (8, 2), 16, "stride of dimension 0 is 2; it must be from 1 to 1"),
]  # fmt: skip
"""Offset, sizes, strides, bits of an element; below a word's, dimension 0 has no stride but where it is all."""


def test_values_that_no_register_holds_are_named_with_their_limit(probe):
    programs = []
    for offset, sizes, strides, bits, _ in UNHOLDABLE:
        build = Builder(["z"], 1)
        zero = build.parameter("z")
        x = build.argument("X", f"i{bits}", bits, 1 << 40)
        with build.step([("MM2S", 0, 0, 1)], "the only step"):
            bd = build.bd(x, zero + offset, [zero + s for s in sizes], [zero + s for s in strides])
            build.task("MM2S", 0, 0, bd, token=True)
        programs.append(build.program)
    answers = probe([line(content_of(program), [0]) for program in programs])
    for program, answer, (*_, message) in zip(programs, answers, UNHOLDABLE, strict=True):
        assert answer.startswith(f"SequenceError: the only step: {message}")
        assert isinstance(python_words(program, [0]), str), message


def test_steps_whose_end_nothing_tells_are_refused_where_another_needs_their_bds(probe):
    answers = []
    for steps in (1, 2):
        build = Builder([], 1)
        x = build.argument("X", "i32", 32, 64)
        for _ in range(steps):
            with build.step():
                build.task("MM2S", 0, 0, build.bd(x, 0, (4,), (1,)))
        answers += probe([line(content_of(build.program), [])])
    assert answers[0].startswith("["), answers[0]
    assert "a step awaits no token; nothing says when its BDs are free" in answers[1]


def test_steps_of_writes_alone_need_no_token_before_another(probe):
    build = Builder([], 1)
    for value in (7, 8):
        with build.step():
            build.write(CORE, value)
        build.write(CORE, 10 * value)  # by itself, at once
    (answer,) = probe([line(content_of(build.program), [])])
    assert answer.startswith("["), answer
    assert json.loads(answer) == python_words(build.program, [])


@pytest.mark.parametrize(("runs", "taken"), [(1, True), (2, False)])
def test_runs_are_the_fourth_dimension(probe, runs, taken):
    build = Builder([], 1)
    x = build.argument("X", "i32", 32, 4096)
    with build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, 0, (2, 2, 2, 4), (512, 128, 32, 1), (runs, 1024)), token=True)
    (answer,) = probe([line(content_of(build.program), [])])
    assert answer.startswith("[" if taken else "SequenceError: a BD has 4 dimensions and runs; runs are the fourth")


def test_a_linear_bd_has_a_stride_too(probe):
    """Though it is lost: 0 is refused for more than one element."""
    answers = probe([line(content_of(moved(0, (size,), (0,))), []) for size in (1, 2)])
    assert answers[0].startswith("["), answers[0]
    assert "stride of dimension 0 is 0; it must be from 1" in answers[1]


def test_values_of_two_loops_side_by_side_have_no_place(probe):
    """Each alone has one, in its loop."""
    value = [["index", 0], ["index", 1], ["add", 2, 3], ["add", 4, 0]]
    loops = [
        {"kind": "for", "loop": n, "count": 0, "do": [{"kind": "write", "address": 1, "values": [2 + n]}]}
        for n in (0, 1)
    ]
    program = {"parameters": [], "values": [1, CORE, *value], "arguments": [], "do": loops, "in_flight": 1}
    assert probe([line(program, [])])[0].startswith("[")
    for place in (4, 5):
        torn = copy.deepcopy(program)
        torn["do"][1]["do"][0]["values"] = [place]
        (answer,) = probe([line(torn, [])])
        assert "which needs the counter of loop 0, outside of it" in answer


@pytest.mark.parametrize("value", [LEAST, -1, 0, 1, 2])
def test_whatever_is_not_zero_holds(probe, value):
    """Of choices, of a BD that may be left out and of requirements; a loop of less than one turn has none."""
    build = Builder(["p"], 1)
    p, x = build.parameter("p"), build.argument("X", "i32", 32, 64)
    with build.when(p):
        build.write(CORE, 7)
    with build.loop(p) as i:
        build.write(CORE + 4, i)
    with build.step([("MM2S", 0, 0, 1)]):
        build.task("MM2S", 0, 0, build.bd(x, 0, (4,), (1,)), build.bd(x, 8, (4,), (1,), when=p), token=True)
    (answer,) = probe([line(content_of(build.program), [value])])
    assert not difference(python_words(build.program, [value]), answer)
    assert json.loads(answer)[2] == 5 + 3 * (value != 0) + max(value, 0), "operations"
    build.require(p, "p is {}", p)
    (answer,) = probe([line(content_of(build.program), [value])])
    assert answer[0] == "[" if value else answer == "SequenceError: p is 0"


def test_a_wait_is_for_columns_that_the_array_has_behind_its_first(probe):
    build = Builder([], 1)
    x = build.argument("X", "i32", 32, 64)
    with build.step([("MM2S", 0, 1, 8)]):
        build.task("MM2S", 0, 1, build.bd(x, 0, (4,), (1,)), token=True)
    said = "SequenceError: columns of a wait is 8; it must be from 1 to 7"
    assert probe([line(content_of(build.program), [])]) == [said]
