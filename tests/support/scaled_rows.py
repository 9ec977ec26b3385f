"""A sequence program of no operator with every kind of operand: rows, columns in place, one that may be missing."""

from types import SimpleNamespace
from typing import Any

import numpy as np

from bdforge.design.sequences import Builder, PlannedSequence, Program, SequenceOptions, planned
from bdforge.devices import device_named

DEVICE = device_named("strix_halo")


def scaled_rows() -> Program:
    """Y (n) from A (m x n, row-major), B (n x n, column-major, the user's own memory where ldb is 0) and s (n)."""
    build = Builder(["m", "n", "ldb"], 4)
    m, n, ldb = (build.parameter(name) for name in ("m", "n", "ldb"))
    along = lambda size: (size, size, None, False)  # noqa: E731
    a = build.argument("A", "i8", 8, m * n)
    b = build.argument("B", "i8", 8, n * n)
    s = build.argument("S", "f32", 32, n)
    y = build.argument("Y", "i32", 32, n)
    build.operand("A", a, "in", "int8", 8, [along(m), along(n)], [(0, m, 1, n), (1, n, 1, 1)], staged=1)
    build.operand(
        "B", b, "in", "int8", 8, [along(n), along(n)], [(1, n, 1, n), (0, n, 1, 1)], staged=ldb, order="column",
        leading="ldb",
    )  # fmt: skip
    build.operand("s", s, "in", "f32", 32, [along(n)], [(0, n, 1, 1)], missing=2.0)
    build.operand("Y", y, "out", "int32", 32, [along(n)], [(0, n, 1, 1)])
    with build.step([("S2MM", 1, 0, 2)], "the step"):
        build.task("MM2S", 0, 0, build.bd(a, 0, (m, n), (n, 1)))
        build.task("MM2S", 1, 1, build.bd(b, 0, (n, n // 2), (n, 1)), runs=3)
        for column in (0, 1):
            build.task("S2MM", 1, column, build.bd(y, n // 2 * column, (n // 2,), (1,)), token=True)
    return build.program


PROGRAM = scaled_rows()


def design_of(program: Program = PROGRAM, name: str = "rows") -> Any:
    """What a built design tells of itself, of a program alone."""
    plan = lambda sizes: planned(program, sizes, DEVICE)  # noqa: E731
    return SimpleNamespace(program=program, name=name, summary=name, array=DEVICE, sequence=plan)


def arrays(m: int = 6, n: int = 8) -> dict[str, np.ndarray]:
    """Values of A and B."""
    rng = np.random.default_rng(m)
    b = np.asfortranarray(rng.integers(-9, 9, (n, n), np.int8))
    return {"A": rng.integers(-9, 9, (m, n), np.int8), "B": b}


def sequence(options: SequenceOptions | None = None, **sizes: int) -> PlannedSequence:
    """The program for 6 x 8, or other `sizes`."""
    return planned(PROGRAM, {"m": 6, "n": 8} | sizes, DEVICE, options)
