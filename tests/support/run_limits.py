"""Limits that a run of a sequence program keeps: a program for each value, which Python and C++ take or refuse."""

from collections.abc import Callable
from typing import Any, NamedTuple

from bdforge.design.sequences import Builder, Expr, Program, divisor


class RunLimit(NamedTuple):
    """A limit's last value, the program of a value with its parameters, and what is said of the next value.

    `named` is the constant of bdforge that holds it, if one does.
    """

    last: int
    program: Callable[[int], tuple[Program, dict[str, int]]]
    said: str
    named: str = ""


def _moved(
    size: Any = 1, stride: Any = 1, *, sizes: Any = (), strides: Any = (), bits: int = 32, **task: int
) -> tuple[Program, dict[str, int]]:
    """One BD in one task: `size` by `stride` in dimension 0, `sizes` and `strides` around it, outermost first."""
    facts = {"count": 1, "column": 0, "channel": 0, "runs": 1, "columns": 1, "offset": 0} | task
    build = Builder([], 1)
    x = build.argument("X", f"i{bits}", bits, 1 << 40)
    with build.step([("MM2S", facts["channel"], facts["column"], facts["columns"])]):
        bd = build.bd(x, facts["offset"], (*sizes, size), (*strides, stride))
        chain = [bd] * facts["count"]
        build.task("MM2S", facts["channel"], facts["column"], *chain, runs=facts["runs"], token=True)
    return build.program, {}


def _written(address: int = 0, value: int = 0) -> tuple[Program, dict[str, int]]:
    build = Builder([], 1)
    build.write(address, value)
    return build.program, {}


def _computed(value: Callable[[Expr], Expr], n: int) -> tuple[Program, dict[str, int]]:
    build = Builder(["n"], 1)
    build.argument("X", "i32", 32, value(build.parameter("n")))
    return build.program, {"n": n}


def _spent(cost: int) -> tuple[Program, dict[str, int]]:
    """A run that costs so much: 1 at its start, 1 for each statement, turn and value, 4096 for a divisor."""
    build = Builder(["n"], 1)
    turns, divisors = 8, 511
    with build.loop(turns) as i, build.step():
        build.write(0, i)
        for most in range(divisors):
            build.place(divisor(i, most + 1))
    with build.loop(build.parameter("n")):
        pass
    statements, values = 2, 1 + 4096 * divisors
    return build.program, {"n": cost - (1 + 2 + turns * (1 + statements + values))}


def _stepped(steps: int) -> tuple[Program, dict[str, int]]:
    build = Builder(["n"], 1)
    with build.loop(build.parameter("n")), build.step():
        pass
    return build.program, {"n": steps}


E2 = (2, 2)
RUN_LIMITS: dict[str, RunLimit] = {
    "budget": RunLimit(1 << 24, _spent, "more than its budget of 16777216", "design.sequences.interpret.BUDGET"),
    "steps": RunLimit(1 << 14, _stepped, "takes more than 16384 steps", "design.sequences.interpret.STEPS_MAX"),
    "divisor": RunLimit(
        4096, lambda n: _computed(lambda e: divisor(e, e), n), "at most 4096 can be",
        "design.sequences.expressions.DIVISOR_MAX",
    ),
    "largest value": RunLimit(
        (1 << 63) - 1, lambda n: _computed(lambda e: e + 1, n - 1), "needs more than 64 bits",
    ),
    "least value": RunLimit(
        1 << 63, lambda n: _computed(lambda e: (0 - e) - 1, n - 1), "needs more than 64 bits"
    ),
    "BDs of a step": RunLimit(16, lambda n: _moved(count=n), "more than the 16 BDs of a shim"),
    "size of dimension 0": RunLimit(1023, lambda n: _moved(n, sizes=(2,), strides=(1 << 11,)), "1023"),
    "size of dimension 1": RunLimit(1023, lambda n: _moved(1, sizes=(n,), strides=(2,)), "1023"),
    "stride of dimension 0": RunLimit(1 << 20, lambda n: _moved(2, n, sizes=(2,), strides=(2,)), "1048576"),
    "stride of dimension 1": RunLimit(1 << 20, lambda n: _moved(2, sizes=(2,), strides=(n,)), "1048576"),
    "stride of dimension 2": RunLimit(1 << 20, lambda n: _moved(2, sizes=E2, strides=(n, 2)), "1048576"),
    "stride of the iteration": RunLimit(1 << 20, lambda n: _moved(2, sizes=(2, 1, 2), strides=(n, 0, 2)), "1048576"),
    "iterations": RunLimit(64, lambda n: _moved(2, sizes=(n, 1, 2), strides=(4, 0, 2)), "64"),
    "length": RunLimit((1 << 32) - 1, lambda n: _moved(n), "4294967295"),
    "runs": RunLimit(256, lambda n: _moved(4, runs=n), "256"),
    "bits of an element": RunLimit(32, lambda n: _moved(32, bits=n), "32"),
    "columns": RunLimit(7, lambda n: _moved(4, column=n), "from 0 to 7"),
    "columns of a wait": RunLimit(8, lambda n: _moved(4, columns=n), "from 1 to 8"),
    "channels": RunLimit(1, lambda n: _moved(4, channel=n), "channel 2; a shim has 2"),
    "address": RunLimit((1 << 32) - 1, lambda n: _written(address=n), "4294967295"),
    "written value": RunLimit((1 << 32) - 1, lambda n: _written(value=n), "4294967295"),
}  # fmt: skip


class RunFirst(NamedTuple):
    """A limit's first value, the program of a value with its parameters, and a pattern of what is said of 1 less."""

    first: int
    program: Callable[[int], tuple[Program, dict[str, int]]]
    said: str


RUN_FIRSTS: dict[str, RunFirst] = {
    "stride of dimension 0": RunFirst(1, lambda n: _moved(2, n, sizes=(2,), strides=(2,)), "stride.* 0"),
    "stride of a linear BD": RunFirst(1, lambda n: _moved(2, n), "stride.* 0"),
    "stride of dimension 1": RunFirst(1, lambda n: _moved(2, sizes=(2,), strides=(n,)), "stride.* 0"),
    "stride of dimension 2": RunFirst(1, lambda n: _moved(2, sizes=E2, strides=(n, 2)), "stride.* 0"),
    "stride of dimension 2 alone": RunFirst(1, lambda n: _moved(2, sizes=(2, 1), strides=(n, 0)), "stride.* 0"),
    "stride of dimension 2 below runs": RunFirst(
        1, lambda n: _moved(2, sizes=(3, 2, 2), strides=(8, n, 2)), "stride.* 0"
    ),
    "stride of one position": RunFirst(0, lambda n: _moved(2, sizes=(1, 2), strides=(n, 2)), "stride.* -1"),
    "stride of the iteration": RunFirst(0, lambda n: _moved(2, sizes=(2, *E2), strides=(n, 4, 2)), "stride.* -1"),
    "size of dimension 0": RunFirst(1, lambda n: _moved(n, sizes=(2,), strides=(2,)), "size.* 0"),
    "size of dimension 1": RunFirst(1, lambda n: _moved(2, sizes=(n,), strides=(2,)), "size.* 0"),
    "size of dimension 2": RunFirst(1, lambda n: _moved(2, sizes=(n, 2), strides=(4, 2)), "size.* 0"),
    "iterations": RunFirst(1, lambda n: _moved(2, sizes=(n, *E2), strides=(8, 4, 2)), "size.* 0"),
    "offset": RunFirst(0, lambda n: _moved(4, offset=n), "offset.* -1"),
    "runs": RunFirst(1, lambda n: _moved(4, runs=n), "runs.* 0"),
    "column": RunFirst(0, lambda n: _moved(4, column=n), "column.* -1"),
    "columns of a wait": RunFirst(1, lambda n: _moved(4, columns=n), "0 columns|columns.* 0"),
    "address": RunFirst(0, lambda n: _written(address=n), "address.* -1"),
    "written value": RunFirst(0, lambda n: _written(value=n), "-1"),
}
