"""Sequence programs of no operator in C++: their words are Python's, what Python refuses is refused by name."""

import copy
import difflib
import json
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from host_programs import run
from library_builds import sanitized_build, small_plan

from bdforge.design.sequences import (
    Builder,
    Expr,
    Program,
    ProgramError,
    ceildiv,
    divisor,
    interpret,
    largest,
    least,
    select,
)  # fmt: skip
from bdforge.design.sequences.expressions import LARGEST, LEAST, OPERATIONS, operate
from bdforge.design.sequences.instruction_words import illegal, operations, target_facts
from bdforge.design.sequences.program_check import load_program
from bdforge.devices import TileKind, device_named, mlir_device_named
from bdforge.devices.txn_format.bd_encoding import BdError
from bdforge.devices.txn_format.codec import TxnError, decode, encode
from bdforge.devices.txn_format.describe import diff
from bdforge.operators import manifest, plan, spec_from
from bdforge.operators.contraction import contraction, plan_contraction
from bdforge.operators.gemm import plan_gemm
from bdforge.operators.gemm import spec_from as gemm_spec
from support.built_designs import spec_content
from support.run_limits import RUN_LIMITS
from support.tccg import random_case, tccg

DEVICE = mlir_device_named("npu2")
LIMITS = DEVICE.generation.limits(TileKind.SHIM)
TARGET = target_facts(DEVICE)
CORE = 0x200400
"""A register of a core."""

Content = dict[str, Any]


def content_of(program: Program) -> Content:
    return json.loads(json.dumps(program.model_dump(exclude_none=True)))


def line(program: Content, parameters: list[int], wide: bool = False, target: Any = TARGET) -> str:
    return json.dumps({"sequence": {"program": program, "target": target, "wide": wide}, "parameters": parameters})


@pytest.fixture(scope="module")
def probe() -> Callable[[list[str]], list[str]]:
    """What C++ makes of programs, under sanitizers: words as a list, or an error's kind and text."""
    program = sanitized_build() / "tests" / "probe"

    def answers(lines: list[str]) -> list[str]:
        printed = run(program, "programs", lines=[*lines, ""]).decode().splitlines()
        assert len(printed) == len(lines)
        return printed

    return answers


def python_words(program: Program, parameters: list[int], wide: bool = False) -> list[int] | str:
    """The words, or why there are none."""
    given = dict(zip(program.parameters, parameters, strict=True))
    bits = [argument.bits for argument in program.arguments]
    try:
        events = list(interpret(program, given, LIMITS))
        words = encode(operations(events, bits, DEVICE.generation, wide), DEVICE).tolist()
    except (ProgramError, BdError, TxnError, ValueError) as error:
        return str(error)
    faults = illegal(program, events, DEVICE)
    if outside := [fault for fault in faults if fault.startswith(("a ", "columns ", "runs "))]:  # no argument's
        return outside[0]
    return f"illegal: {faults[0]}" if faults else words


def difference(expected: list[int] | str, answer: str) -> str:
    """What C++ answers that is neither Python's words nor an error where Python has one, in operations; else nothing.

    Where Python's words hold a BD that it then calls illegal C++ may have found so, or not: a stride that no run takes.
    """
    if isinstance(expected, str):
        found = expected.startswith("illegal: ") or answer.startswith("SequenceError: ")
        return "" if found else f"expected an error, {expected!r}, got {answer[:200]}"
    if answer[0] != "[":
        return f"expected {len(expected)} words, got {answer[:500]}"
    words = json.loads(answer)
    if words == expected:
        return ""
    return "\n".join(diff(decode(expected), decode(words), ("Python", "C++"))) or f"headers {expected[:4]}, {words[:4]}"


def stored(values: list[Expr], parameters: list[str]) -> Program:
    """A program that writes both halves of each value to registers."""
    build = Builder(parameters, 1)
    for i, value in enumerate(values):
        build.write(CORE + 8 * i, value % (1 << 32))
        build.write(CORE + 8 * i + 4, value // (1 << 32) % (1 << 32))
    return build.program


TYPES_OF_GEMV = {"a": "int8", "w": "int2", "c": "int32"}
ELEMENTWISE = {"kind": "elementwise", "function": "mul", "type": "bf16", "tile": 32}
GEMV = {"kind": "gemv", "types": TYPES_OF_GEMV, "tile": {"m": 3, "k": 24, "n": 32}}


@pytest.mark.parametrize(
    ("content", "array", "most"),
    [(ELEMENTWISE, {"rows": 2, "columns": n}, (30,)) for n in (1, 3, 8)]
    + [(GEMV, {"columns": n, "channels": channels}, (1.6, 18, 20)) for n, channels in ((1, 1), (3, 2), (8, 1))],
)
def test_an_operator_beside_gemm_gives_the_same_words(probe, content, array, most):
    """Sizes up to 2^most of each axis, and some that are refused."""
    spec = spec_from(content | {"array": array}, "small")
    program, rng = plan(spec, device_named("strix_halo")).program, np.random.default_rng(array["columns"])
    ends = [[size] * len(most) for size in (0, 1, 2, 63, 64, 65, 66, 1 << 30, (1 << 30) + 1)]
    sizes = [*ends, *((2 ** rng.uniform(0, most, (30, len(most)))).astype(int).tolist())]
    answers = probe([line(content_of(program), given) for given in sizes])
    for given, answer in zip(sizes, answers, strict=True):
        assert not (why := difference(python_words(program, given), answer)), f"{given}: {why}"


EXTREMES = [LEAST, LEAST + 1, -(1 << 62), -(1 << 32), -7, -1, 0, 1, 2, 7, 4095, 1 << 31, 1 << 62, LARGEST - 1, LARGEST]


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_operation_gives_what_python_gives(probe, name):
    rng = random.Random(name)
    numbers = [*EXTREMES, *(rng.randint(-(1 << rng.randint(1, 63)), 1 << rng.randint(1, 62)) for _ in range(10))]
    parameters = ["a", "b", "c"][: OPERATIONS[name][0]]
    program = stored([operate(name, *(Expr("parameter", (p,)) for p in parameters))], parameters)
    given = [[rng.choice(numbers) for _ in parameters] for _ in range(400)]
    refused = 0
    for values, answer in zip(given, probe([line(content_of(program), v) for v in given]), strict=True):
        expected = python_words(program, values)
        refused += isinstance(expected, str)
        if isinstance(expected, str):
            assert answer == f"SequenceError: {expected}"
        else:
            assert json.loads(answer) == expected, values
    assert refused < len(given)


def test_constants_of_64_bits_are_held(probe):
    program = content_of(stored([Expr("constant", (value,)) + Expr("parameter", ("a",)) for value in EXTREMES], ["a"]))
    assert json.loads(probe([line(program, [0])])[0]) == python_words(load_program(program), [0])
    program["values"][0] = 1 << 63
    assert "out of range" in probe([line(program, [0])])[0]


COMBINED: list[Callable[[Expr, Expr], Expr]] = [
    lambda a, b: a + b,
    lambda a, b: a - b,
    lambda a, b: a * 3 + b,
    lambda a, b: a // largest(b, 1),
    lambda a, b: ceildiv(a, largest(b, 2)),
    lambda a, b: a % largest(b, 1),
    least,
    largest,
    lambda a, b: select(a < b, a, b),
    lambda a, b: divisor(a, b) + (a <= b) + a.equals(b),
]


class _Random:
    """Programs with loops, choices, writes and steps of tasks, whose values depend on two parameters and counters."""

    def __init__(self, seed: int):
        self.rng = random.Random(seed)
        self.build = Builder(["p", "q"], self.rng.randint(1, 4))
        self.known = [self.build.parameter(name) for name in self.build.program.parameters]
        bits = (8, 16, 32, 64)
        self.bits = [self.rng.choice(bits) for _ in range(3)]
        for i, width in enumerate(self.bits):
            self.build.argument(f"X{i}", f"i{width}", width, 1 << 30)

    def program(self) -> Program:
        self.block(3, False)
        return self.build.program

    def number(self, most: int) -> Expr:
        """A value from 0 to most - 1."""
        rng, value = self.rng, self.build.constant(self.rng.randint(0, 40))
        for _ in range(rng.randint(0, 4)):
            other = rng.choice([*self.known, self.build.constant(rng.randint(1, 9))])
            value = self.rng.choice(COMBINED)(value, other)
        return value % most

    def block(self, depth: int, in_step: bool) -> None:
        for _ in range(self.rng.randint(1, 3)):
            self.statement(depth, in_step)

    def statement(self, depth: int, in_step: bool) -> None:
        kinds = (["task", "task"] if in_step else ["step", "step"]) + ["write"] + ["loop", "choice"] * (depth > 0)
        match self.rng.choice(kinds):
            case "loop":
                with self.build.loop(self.number(4)) as counter:
                    self.known.append(counter)
                    self.block(depth - 1, in_step)
                    self.known.remove(counter)
            case "choice":
                with self.build.when((self.number(9) + self.known[0]) % 2):
                    self.block(depth - 1, in_step)
            case "step":
                awaits = [("S2MM", 0, self.number(4), self.number(4) + 1)] if self.rng.random() < 0.9 else []
                with self.build.step(awaits, "at {}", [self.number(9)]):
                    self.block(depth - 1, True)
            case "write":
                values = [self.number(1 << 20) for _ in range(self.rng.choice([1, 1, 3]))]
                self.build.write(CORE + 4 * self.number(16), *values)
            case _:
                self.task()

    def task(self) -> None:
        rng = self.rng
        bds = [self.bd() for _ in range(rng.choice([1, 1, 1, 2, 3]))]
        way, token = rng.choice([("S2MM", True), ("MM2S", False)])
        self.build.task(way, rng.randint(0, 1), self.number(8), *bds, runs=self.number(9) + 1, token=token)

    def bd(self):
        rng, argument = self.rng, self.rng.randrange(3)
        per_word = max(32 // self.bits[argument], 1)
        rank = rng.randint(1, 3)
        sizes = [self.number(6) + 1 for _ in range(rank - 1)] + [per_word * (self.number(1100) + 1)]
        strides = [per_word * (self.number(1 << 21) + 1) for _ in range(rank - 1)] + [self.build.constant(1)]
        runs = (self.number(66) + 1, per_word * (self.number(50) + 1)) if rng.random() < 0.4 else None
        when = (self.number(9) + self.known[1]) % 3 if rng.random() < 0.3 else 1
        return self.build.bd(argument, per_word * self.number(1 << 22), sizes, strides, runs, when)


def test_random_programs_make_the_same_words(probe):
    programs = [(_Random(seed).program(), [seed % 13, seed % 7], seed % 3 == 0) for seed in range(150)]
    answers = probe([line(content_of(program), parameters, wide) for program, parameters, wide in programs])
    for seed, ((program, parameters, wide), answer) in enumerate(zip(programs, answers, strict=True)):
        assert not (why := difference(python_words(program, parameters, wide), answer)), f"seed {seed}: {why}"
    assert 40 < sum(answer[0] == "[" and answer.count(",") > 4 for answer in answers) < 146


def moved(offset: int, sizes: tuple[int, ...], strides: tuple[int, ...], bits: int = 32, columns: int = 1) -> Program:
    """One BD, in a task of which tokens of several columns are awaited."""
    build = Builder([], 1)
    x = build.argument("X", f"i{bits}", bits, 1 << 40)
    with build.step([("MM2S", 1, 1, columns), ("S2MM", 0, 2, columns)]):
        build.task("MM2S", 1, 1, build.bd(x, offset, sizes, strides), runs=2, token=True)
    return build.program


EDGES = [
    moved((1 << 30) - 1, (4,), (1,)), moved(1 << 30, (4,), (1,)), moved((1 << 38) + 5, (4,), (1,)),
    moved(1 << 32, (8,), (1,), 8), moved(0, (64, 1, 1, 4), (0, 0, 0, 1)), moved(0, (64, 1, 1, 4), (1 << 20, 0, 0, 1)),
    moved(0, (2, 1, 1, 4), (4, 7, 7, 1)), moved(0, (3, 1023, 1023), (1 << 20, 1 << 20, 1)),
    moved(0, (3, 1, 4), (8, 8, 1)), moved(0, (1, 3, 4), (8, 8, 1)), moved(0, (3, 1, 4), (8, 8, 2)),
    moved(0, (1, 1, 4), (0, 0, 1)), moved(0, (1,), (3,)), moved(0, (2, 2, 2), (8, 4, 1), 16, 3),
    moved(0, (1024,), (1,)), moved(0, (1024, 1), (1, 1)), moved(0, (5, 1), (2, 1)), moved(4, (4,), (1,), 32, 6),
    moved(0, (3, 1), (8, 5)), moved(0, (3, 1), (8, 0)), moved(0, (8,), (4,), 8), moved(0, (1, 3, 4), (1 << 21, 8, 1)),
    moved(0, (3, 1, 4), (8, 1 << 21, 1)), moved(0, (1, 2, 2, 4), (1 << 21, 16, 8, 1)),
]  # fmt: skip
"""Offsets on both sides of 4 GiB, iterations at one place, dimensions of size 1 with any stride, linear ones beyond a
wrap, waits."""


@pytest.mark.parametrize("wide", [False, True])
def test_ends_of_fields_make_the_same_words(probe, wide):
    fixed = [limit.program(limit.last)[0] for limit in RUN_LIMITS.values() if not limit.program(1)[1]]
    programs = [*fixed, *EDGES]
    answers = probe([line(content_of(program), [], wide) for program in programs])
    for program, answer in zip(programs, answers, strict=True):
        assert not (why := difference(python_words(program, [], wide), answer)), f"{program.do}: {why}"
    assert sum(answer[0] == "[" for answer in answers) > len(programs) - 4, answers


def copying() -> Program:
    """X to Y in pieces of 1024 words, the last one shorter, over two columns in turn."""
    build = Builder(["n"], 2)
    n = build.parameter("n")
    build.require(n > 0, "n = {} is below 1", n)
    x, y = build.argument("X", "i32", 32, n), build.argument("Y", "i8", 8, 4 * n, "bytes")
    with build.loop(ceildiv(n, 1024)) as i:
        column, length = i % 2, least(n - 1024 * i, 1024)
        with build.step([("S2MM", 0, column, 1)], "piece {}", [i]):
            build.task("MM2S", 1, column, build.bd(x, 1024 * i, (length,), (1,), (2, 0), when=n > 5))
            with build.when(i.equals(0)):
                build.write(CORE, n)
            build.task("S2MM", 0, column, build.bd(y, 4096 * i, (4 * length,), (1,)), token=True)
    return build.program


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
MALFORMED = [
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
    (add(["values"], *[0] * 65536), "expected a list of 0 to 65536 entries"),
    (put(READ, runs=5000), "a task names value 5000; there are"),
    (put(READ, column=-1), "column is -1, expected an integer"),
    (put(READ, direction="DOWN"), 'direction is "DOWN", expected another of its words: S2MM or MM2S'),
    (put(READ, channel=2), "a task is on channel 2; a shim has 2"),
    (put(READ, bds=[]), "bds is a list, expected a list of 1 to 65536 entries"),
    (put(READ, extra=1), "extra is 1, expected nothing"),
    (put(READ, token=1), "token is 1, expected true or false"),
    (put([*READ, "bds", 0], argument=2), "a BD's argument is 2; there are 2"),
    (put([*READ, "bds", 0], sizes=[0, 0]), "strides is a list, expected 2 of them"),
    (put([*READ, "bds", 0], sizes=[0] * 5), "sizes is a list, expected a list of 1 to 4 entries"),
    (put([*READ, "bds", 0], runs=[0]), "runs is a list, expected a list of 2 to 2 entries"),
    (put([*READ, "bds", 0], offset=5000), "a BD names value 5000"),
    (put([*READ, "bds", 0], when=5000), "a BD names value 5000"),
    (put([*STEP, "awaits", 0], column=5000), "a wait names value 5000"),
    (put([*STEP, "awaits", 0], channel=9), "a wait is on channel 9; a shim has 2"),
    (again(["do"], STEP), "which needs the counter of loop 0, outside of it"),
    (again(["do"], LOOP), "loop is 0, expected a number that no other loop has"),
    (again(["do"], [*STEP, "do", 1]), "a choice uses value"),
    (again(LOOP[:1], READ), "a task stands in no step; nothing would say when its BDs are free"),
    (add(["do"], INNER_STEP), "a step stands in another"),
    (add(["do"], {"kind": "jump"}), 'kind is "jump", expected for, if, step, task or write'),
    (add(["do"], {"kind": "write", "address": 0, "values": [5000]}), "a write names value 5000"),
    (put([], in_flight=0), "in_flight is 0, expected an integer from 1"),
    (drop([], "arguments"), "sequence.program.arguments is missing"),
    (put(["arguments", 0], elements=5000), "an argument names value 5000"),
    (put(["arguments", 0], bits=65), "bits is 65, expected an integer from 1 to 64"),
    (put(["requires", 0], when=5000), "a requirement names value 5000"),
    (put(["requires", 0, "otherwise"], text="{} {}"), "says 2 {} of 1 values"),
    (put([*STEP, "note"], text="{0}"), "says 0 {} of 1 values"),
    (put([*STEP, "note"], values=[5000]), "a note names value 5000"),
    (put(LOOP, count=5000), "a loop's count names value 5000"),
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


@pytest.mark.parametrize("index", range(len(MALFORMED)))
def test_malformed_programs_are_refused_by_both(probe, index):
    change, message = MALFORMED[index]
    content = content_of(copying())
    change(content)
    (answer,) = probe([line(content, [2500])])
    assert answer.split(": ")[0] in ("ManifestError", "SequenceError")
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
    ((0,), (2, 2000), (4096, 1), "size of dimension 0 is 2000; it must be from 1 to 1023"),
    ((0,), (2, 4), ((1 << 20) + 1, 1), "stride of dimension 1 is 1048577; it must be from 0 to 1048576"),
    ((0,), (65, 2, 2, 2), (8, 4, 2, 1), "size of dimension 3 is 65; it must be from 1 to 64"),
    ((0,), (1 << 33,), (1,), "a length in words is 8589934592; it must be from 1 to 4294967295"),
    ((0,), (0,), (1,), "size of dimension 0 is 0; it must be from 1"),
    ((0,), (2, 4), (-4, 1), "stride of dimension 1 is -4; it must be from 1"),
    ((-1,), (4,), (1,), "an offset is -1; it must be from 0"),
    ((0,), (1,), (-1,), "stride of dimension 0 is -1; it must be from 0"),
    ((0,), (2, 2), (4, 0), "stride of dimension 0 is 0; it must be from 1"),
    ((0,), (2, 1), (4, -1), "stride of dimension 0 is -1; it must be from 0"),
    ((0,), (2, 2), (0, 1), "stride of dimension 1 is 0; it must be from 1"),
    ((0,), (2, 2, 2), (0, 2, 1), "stride of dimension 2 is 0; it must be from 1"),
    ((0,), (1, 1, 2), (-1, 2, 1), "stride of dimension 2 is -1; it must be from 0"),
    ((0,), (2, 1, 2, 2), (-1, 4, 2, 1), "stride of dimension 3 is -1; it must be from 0"),
    ((0,), (3, 1), (8, (1 << 20) + 1), "stride of dimension 0 is 1048577; it must be from 0 to 1048576"),
    ((0,), (0, 2), (4, 1), "size of dimension 1 is 0; it must be from 1"),
    ((0,), (0, 2, 2), (4, 2, 1), "size of dimension 2 is 0; it must be from 1"),
    ((0,), (0, 2, 2, 2), (8, 4, 2, 1), "size of dimension 3 is 0; it must be from 1"),
]


@pytest.mark.parametrize("index", range(len(UNHOLDABLE)))
def test_values_that_no_register_holds_are_named_with_their_limit(probe, index):
    (offset,), sizes, strides, message = UNHOLDABLE[index]
    build = Builder(["z"], 1)
    zero = build.parameter("z")
    x = build.argument("X", "i32", 32, 1 << 40)
    with build.step([("MM2S", 0, 0, 1)], "the only step"):
        build.task(
            "MM2S", 0, 0, build.bd(x, zero + offset, [zero + s for s in sizes], [zero + s for s in strides]), token=True
        )
    (answer,) = probe([line(content_of(build.program), [0])])
    assert answer.startswith(f"SequenceError: the only step: {message}")
    assert isinstance(python_words(build.program, [0]), str)


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


PARTS = [
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


@pytest.mark.parametrize(("offset", "sizes", "strides", "bits", "message"), PARTS)
def test_parts_of_words_are_refused(probe, offset, sizes, strides, bits, message):
    """In every dimension; and dimension 0 of elements below a word has no stride, but where it is all."""
    program = moved(offset, sizes, strides, bits)
    assert probe([line(content_of(program), [])]) == [f"SequenceError: {message}"]
    assert isinstance(python_words(program, []), str)


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


@pytest.mark.parametrize(
    ("column", "runs", "columns", "message"),
    [
        (8, 1, 1, "a column is 8; it must be from 0 to 7"),
        (-1, 1, 1, "a column is -1; it must be from 0 to 7"),
        (1, 257, 1, "runs of a task is 257; it must be from 1 to 256"),
        (1, 0, 1, "runs of a task is 0; it must be from 1 to 256"),
        (1, 1, 8, "columns of a wait is 8; it must be from 1 to 7"),
    ],
)
def test_tasks_and_waits_stay_on_the_array(probe, column, runs, columns, message):
    build = Builder([], 1)
    x = build.argument("X", "i32", 32, 64)
    with build.step([("MM2S", 0, column, columns)]):
        build.task("MM2S", 0, column, build.bd(x, 0, (4,), (1,)), runs=runs, token=True)
    assert probe([line(content_of(build.program), [])]) == [f"SequenceError: {message}"]


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


@pytest.mark.parametrize("operator", ["copy", "gemm"])
def test_mutated_programs_are_run_as_python_runs_them_or_refused_by_name(probe, operator):
    facts = json.loads(json.dumps(manifest(small_plan(), ())["sequence"]))
    whole, parameters = (
        (content_of(copying()), [3000]) if operator == "copy" else (facts["program"], [33, 40, 70, 0, 0, 0])
    )
    rng = random.Random(11)
    programs = []
    for _ in range(200):
        changed = mutated(rng, whole)
        programs.append(mutated(rng, changed) if rng.random() < 0.3 else changed)
    answers = probe([line(program, parameters) for program in programs])
    for i, (program, answer) in enumerate(zip(programs, answers, strict=True)):
        assert answer.startswith(("[", "ManifestError: line", "SequenceError: ")), (i, answer)
        why = disagreement(program, parameters, answer)
        assert not why, f"{why}\nof program {i}:\n{changes(whole, program)}"
    assert 20 < sum(answer.startswith("[") for answer in answers) < 180


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


@pytest.mark.parametrize(
    "case",
    [tccg()[8].reduced, tccg()[9].reduced, tccg()[21].reduced, random_case(3), random_case(17)],
    ids=lambda c: c.expression,
)
def test_contractions_are_sequences_as_any(probe, case):
    """Programs of an array's own GEMM and of contractions differ in their data alone."""
    spec = gemm_spec(spec_content(8, 8, 8, types=("int8", "int8", "int32"), layouts="row row row"), "tensors")
    found = plan_contraction(contraction(case.expression, case.sizes), plan_gemm(spec, device_named("strix_halo")))
    program = load_program(content_of(found.program))
    parameters = [found.problem.sizes[name] for name in program.parameters]
    target = target_facts(mlir_device_named(found.mlir_device))
    (answer,) = probe([line(content_of(program), parameters, target=target)])
    assert json.loads(answer) == found.sequence(found.problem).words().tolist()
    (refused,) = probe([line(content_of(program), [size + 1 for size in parameters], target=target)])
    assert "this program is for" in refused
