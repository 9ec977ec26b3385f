"""GEMMs whose columns go to several arrays: which elements each gets, under adversaries, in machine code."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from bdforge.array.emulator import emulate
from bdforge.array.images.programs import read_programs
from bdforge.design.sequences import Start, StartedTask, interpret
from bdforge.design.sequences.buffers import arguments, fetched, placed
from bdforge.devices import device_named
from bdforge.operators import SpecError, render
from bdforge.operators.gemm import GemmProblem, sequence
from bdforge.operators.gemm.grid import Storage, Tiling
from bdforge.operators.gemm.program import GemmProgram
from bdforge.operators.gemm.spec import Output, spec_from
from bdforge.operators.gemm.spec_check import spec_problems
from bdforge.runtime.toolchain.assembled import built_image
from support.built_designs import small_gemm, spec_content
from support.differences import same
from support.loaded_arrays import LoadedArray

QKV = {"q": 96, "k": 32, "v": 64}
N = sum(QKV.values())
INT8 = ("int8", "int8", "int32")
RESIDENT: dict[str, Any] = {"m": 32, "rho": 2, "k_mt": 64, "residency": "b", "c_memtile_buffers": 1, "c_in_parts": True}
SUMS: dict[str, Any] = {"k": 32, "types": ("int8", "int2", "bf16"), "outputs": QKV}


@pytest.mark.parametrize(
    ("content", "device"),
    [
        (SUMS | RESIDENT | {"rows": 1, "columns": 4}, "strix_halo"),
        pytest.param(
            {"types": INT8, "layouts": "row row row", "outputs": QKV, "columns": 3},
            "strix_halo",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            {"types": INT8, "layouts": "column packed column", "outputs": QKV, "rows": 1, "columns": 4},
            "phoenix",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_ragged_sizes_under_two_adversaries(content: dict[str, Any], device: str):
    array = LoadedArray.of(small_gemm(**content, device=device))
    for seed, (M, K) in ((1, (70, 100)), (2, (3, 5))):
        inputs = array.plan.random(GemmProblem(M, K, N), seed)
        found, _ = array.run((M, K, N), inputs, schedule="random", seed=seed)
        whole = inputs["A"].astype(np.int64) @ inputs["B"]
        for name, wanted in zip(QKV, np.split(whole, [96, 128], axis=1), strict=True):
            same(found[name].astype(np.float64), wanted.astype(np.float32).astype(found[name].dtype).astype(np.float64))


def wanted_order(tiling: Tiling, M: int, areas: Iterator[tuple[int, int, int, int]], column: int) -> list[list[tuple]]:
    """For each step, (output, row, first column) of the lines of n elements that an array column writes, in order."""
    ends = np.cumsum([one.columns for one in tiling.outputs])
    tiles, m, panel_rows, found = int(ends[-1]) // tiling.n, tiling.m, tiling.panel_rows, []
    for panel, panels, first, count in areas:
        lines = []
        for step in range(first, first + count):
            tile = min(min(step * tiling.columns, max(tiles - tiling.columns, 0)) + column, tiles - 1)
            output = int(np.searchsorted(ends, tile * tiling.n, side="right"))
            start = tile * tiling.n - (int(ends[output - 1]) if output else 0)
            for each in range(panel, panel + panels):
                whole = min(each * panel_rows, M - panel_rows)
                tops = [min(r * m, M - m) if panel_rows > M else whole + r * m for r in range(tiling.rows)]
                lines += [(output, row, start) for top in tops for row in range(top, top + m)]
        found.append(lines)
    return found


@pytest.mark.daily(every=3)
@pytest.mark.parametrize("order", ["row", "column"])
@pytest.mark.parametrize("columns", [1, 2, 3, 8])
def test_every_line_goes_to_its_array_in_the_order_in_which_cores_make_it(columns: int, order: Any):
    """Against tiles that are counted one by one; of column-major arrays whichever comes first."""
    rng, base = np.random.default_rng(columns), small_gemm(types=("int8", "int8", "int16"), rows=1, columns=1)
    for widths in ((12, 4, 8), (4, 4), (8, 36, 4), (20, 20, 20)):
        outputs = tuple(Output(name, width) for name, width in zip("qkv", widths, strict=False))
        tiling = Tiling(4, 8, 4, 16, 2, columns, b=Storage(8, "packed"), c=Storage(32, order), outputs=outputs)
        program = GemmProgram(replace(base, tiling=tiling)).program()
        for M in (6, int(rng.integers(9, 64)), 72)[int(columns == 1) :]:  # less is staged
            gaps = {
                f"ld{one.name}": (M if order == "column" else one.columns) + 4 * int(rng.integers(3)) for one in outputs
            }
            sizes = {"M": M, "K": 24, "N": sum(widths), "lda": 0, "ldb": 0, **gaps}
            events = [e for e in interpret(program, sizes, base.limits) if isinstance(e, Start)]
            for column in range(columns):
                steps = zip(events, wanted_order(tiling, M, map(area_of, events), column), strict=True)
                for event, lines in steps:
                    wanted = [place for line in lines for place in places(line, order, list(gaps.values()))]
                    found = visited(event, column)
                    assert found == wanted if order == "row" else sorted(found) == sorted(wanted)


def area_of(event: Start) -> tuple[int, int, int, int]:
    """Panel, panels, column step, how many of those: as the note tells."""
    panels, panel, count, first = map(int, re.findall(r"\d+", event.note))
    return panel, panels, first, count


def places(line: tuple[int, int, int], order: str, leading: list[int]) -> list[tuple[int, int]]:
    output, row, start = line
    columns = range(start, start + 4)
    at = (row * leading[output] + c if order == "row" else c * leading[output] + row for c in columns)
    return [(2 + output, place) for place in at]


def visited(event: Start, column: int) -> list[tuple[int, int]]:
    """Argument and element of all that a column's chain writes."""
    tasks = [t for t in event.items if isinstance(t, StartedTask) and t.direction == "S2MM" and t.column == column]
    (task,) = tasks
    found = []
    for run in range(task.runs):
        for bd in task.bds:
            sizes, strides, offset = bd.pattern.sizes, bd.pattern.strides, bd.pattern.offset
            if len(sizes) == 4:
                offset += run % sizes[0] * strides[0]
            one = replace(bd.pattern, sizes=sizes[-3:], strides=strides[-3:], offset=offset)
            found += [(bd.argument, int(place)) for place in one.order()]
    return found


@pytest.mark.slow
def test_machine_code_in_every_core_gives_the_same_arrays():
    planned, problem = small_gemm(**SUMS | RESIDENT), GemmProblem(70, 100, N, "odd")
    text = render(planned, [problem])
    image = built_image(text, "parts.mlir", planned.kernels.defines, [problem.sequence])
    assert not image.without
    programs = {program.tile: program for program in read_programs(image.xclbin) if program.tile is not None}
    inputs, steps = planned.random(problem, 6), planned.sequence(problem)
    buffers = arguments(steps, placed(steps, inputs))
    emulate(text, buffers, instructions=next(iter(image.streams.values())), elfs=programs)
    wanted, found = planned.reference(inputs), fetched(steps, buffers)
    assert [operand.name for operand in planned.program.operands] == ["A", "B", *QKV]
    for name, width in QKV.items():
        assert found[name].shape == (70, width)
        same(found[name].astype(np.float64), wanted[name].values)


def test_outputs_may_be_parts_of_longer_lines_and_are_staged_alone():
    plan = small_gemm(**SUMS)
    planned = sequence(plan, 40, 64, N, ldq=100, ldk=None, ldv=65)
    staged = {operand.name: planned.values[operand.staged] for operand in planned.program.operands}
    assert staged == {"A": 0, "B": 1, "q": 0, "k": 0, "v": 1}  # 65 numbers of 16 bits are no whole words
    assert "v" in str(planned.edges().c) or planned.staging.c is not None
    with pytest.raises(SpecError, match=r"N = 191 is not 192, the columns of q, k, v together"):
        sequence(plan, 40, 64, N - 1)
    with pytest.raises(SpecError, match=r"ldk = 31 is below k's columns = 32; lines would overlap"):
        sequence(plan, 40, 64, N, ldk=31)
    with pytest.raises(TypeError, match=r"takes lda, ldb, ldq, ldk, ldv, not ldc"):
        sequence(plan, 40, 64, N, ldc=192)


REFUSED: dict[str, dict[str, Any]] = {
    "outputs: 4 of 5 arguments, A and B are in others: use 2 to 3, or leave them out": {
        "outputs": {"q": 32, "k": 32, "v": 32, "w": 32},
    },
    "outputs: 1 of 5 arguments, A and B are in others: use 2 to 3, or leave them out": {"outputs": {"q": 32}},
    "A and B are in others, and scales and biases in two more: leave them out": {"k": 96, "epilogue": {"scale": True}},
    "outputs: A is the name of another array, size or": {"outputs": {"A": 32, "q": 32}},
    "outputs: lda is the name of another array, size or": {"outputs": {"lda": 32, "q": 32}},
    "outputs: ldq is the name of another array, size or": {"outputs": {"q": 32, "ldq": 32}},
    "outputs: they have 1048608 columns together; N is at most 1048576": {"outputs": {"q": 32, "k": 1 << 20}},
    "outputs: k has 40 columns, no multiple of the 32 of a core's tile of C": {"outputs": {"q": 32, "k": 40}},
    "outputs: q has 8 columns, no multiple of the 16 of a core's tile of C": {
        "epilogue": {"gate": "relu2"}, "outputs": {"q": 8, "k": 16},
    },
}  # fmt: skip


def reasons(changes: dict[str, Any]) -> str:
    content: dict[str, Any] = {"m": 16, "n": 32, **SUMS, **changes}
    return "\n".join(spec_problems(spec_from(spec_content(**content), "small"), device_named("strix_halo")))


@pytest.mark.parametrize("said", REFUSED)
def test_what_cannot_go_to_several_arrays_is_refused(said: str):
    assert reasons({}) == ""
    assert said in reasons(REFUSED[said])


def test_a_name_is_a_word():
    with pytest.raises(SpecError, match=r"outputs\.0\.name"):
        spec_from(spec_content(16, 16, 32, outputs={'q"': 32, "k": 32}), "small")
