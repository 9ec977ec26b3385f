"""Sequence programs of no operator in C++: their words are Python's."""

import json
import random
from collections.abc import Callable

import numpy as np
import pytest
from host_programs import CORE, content_of, difference, line, lines, moved, python_words

from bdforge.design.sequences import Builder, Expr, Program, ceildiv, divisor, largest, least, select
from bdforge.design.sequences.expressions import LARGEST, LEAST, OPERATIONS, operate
from bdforge.design.sequences.instruction_words import target_facts
from bdforge.design.sequences.program_check import load_program
from bdforge.devices import device_named, mlir_device_named
from bdforge.operators import plan, spec_from
from bdforge.operators.contraction import contraction, plan_contraction
from bdforge.operators.gemm import plan_gemm
from bdforge.operators.gemm import spec_from as gemm_spec
from support.built_designs import spec_content
from support.run_limits import RUN_LIMITS
from support.tccg import random_case, tccg


def stored(values: list[Expr], parameters: list[str]) -> Program:
    """A program that writes both halves of each value to registers."""
    build = Builder(parameters, 1)
    for i, value in enumerate(values):
        build.write(CORE + 8 * i, value % (1 << 32))
        build.write(CORE + 8 * i + 4, value // (1 << 32) % (1 << 32))
    return build.program


TYPES_OF_GEMV = {"a": "int8", "w": "int2", "c": "int32"}
ELEMENTWISE = {"kind": "elementwise", "function": "mul", "type": "bf16", "tile": 32}
ROWS = {"kind": "rows", "function": "rmsnorm", "width": 64, "residual": True, "codes": True}
ATTENTION = {"kind": "attention", "heads": 6, "kv_heads": 3, "head_dim": 64, "window": 100}
GEMV = {"kind": "gemv", "types": TYPES_OF_GEMV, "tile": {"m": 3, "k": 24, "n": 32}}


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(
    ("content", "array", "most"),
    [(ELEMENTWISE, {"rows": 2, "columns": n}, (30,)) for n in (1, 3, 8)]
    + [(ROWS, {"rows": 2, "columns": 3}, (12,)), (ATTENTION, {"rows": 2, "columns": 4}, (10, 12))]
    + [(GEMV, {"columns": n, "channels": channels}, (1.6, 18, 20)) for n, channels in ((1, 1), (3, 2), (8, 1))],
)
def test_an_operator_beside_gemm_gives_the_same_words(probe, content, array, most):
    """Sizes up to 2^most of each axis, and some that are refused."""
    spec = spec_from(content | {"array": array}, "small")
    program, rng = plan(spec, device_named("strix_halo")).program, np.random.default_rng(array["columns"])
    ends = [[size] * len(most) for size in (0, 1, 2, 63, 64, 65, 66, 1 << 30, (1 << 30) + 1)]
    sizes = [*ends, *((2 ** rng.uniform(0, most, (30, len(most)))).astype(int).tolist())]
    answers = probe(lines(program, sizes))
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
    for values, answer in zip(given, probe(lines(program, given)), strict=True):
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
        kinds = ["task", "task"] if in_step else ["step", "step", "step", "configure"]
        kinds += ["write"] + ["loop", "choice"] * (depth > 0)
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
            case "configure":
                with self.build.configure(None, self.rng.randint(1, 4)):
                    if self.rng.random() < 0.5:
                        self.block(0, True)
                    for _ in range(self.rng.choice([0, 0, 0, 1, 2])):
                        with self.build.sooner():
                            if self.rng.random() < 0.7:
                                self.block(0, True)
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
        bits = rng.choice([None, None, 8, 16, 32])
        per_word = max(32 // (bits or self.bits[argument]), 1)
        rank = rng.randint(1, 3)
        sizes = [self.number(6) + 1 for _ in range(rank - 1)] + [per_word * (self.number(1100) + 1)]
        strides = [per_word * (self.number(1 << 21) + 1) for _ in range(rank - 1)] + [self.build.constant(1)]
        runs = (self.number(66) + 1, per_word * (self.number(50) + 1)) if rng.random() < 0.4 else None
        when = (self.number(9) + self.known[1]) % 3 if rng.random() < 0.3 else 1
        return self.build.bd(argument, per_word * self.number(1 << 22), sizes, strides, runs, when, bits)


@pytest.mark.slow
def test_random_programs_make_the_same_words(probe):
    programs = [(_Random(seed).program(), [seed % 13, seed % 7], seed % 3 == 0) for seed in range(50)]
    answers = probe([line(content_of(program), parameters, wide) for program, parameters, wide in programs])
    for seed, ((program, parameters, wide), answer) in enumerate(zip(programs, answers, strict=True)):
        assert not (why := difference(python_words(program, parameters, wide), answer)), f"seed {seed}: {why}"
    assert 10 < sum(answer[0] == "[" and answer.count(",") > 4 for answer in answers) < 39


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


@pytest.mark.daily(every=3)
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
