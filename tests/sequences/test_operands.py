"""Where arrays stand in buffers: worked out by hand, and against the packers of each type."""

from functools import lru_cache

import numpy as np
import pytest

from bdforge.operators.gemm import GemmSequence, Problem, sequence
from bdforge.operators.gemm.spec import SpecError
from bdforge.runtime import DTYPES, b_operand, c_buffer, c_matrix, staged_a
from bdforge.runtime.epilogues import fed_operands
from bdforge.runtime.reference import random_operands, random_scales
from bdforge.sequences import Builder, ProgramError
from bdforge.sequences.interpret import values_of
from bdforge.sequences.operands import OperandError, fetch, place
from support.family import GROUPS, SEED, SIZE, group


def placed(array: np.ndarray, size_bytes: int, type_: str, bits: int, axes, dims, **facts) -> np.ndarray:
    """The buffer that `place` makes of an array."""
    build = Builder([], 1)
    x = build.argument("X", "i8", 8, size_bytes)
    build.operand("X", x, "in", type_, bits, axes, dims, **facts)
    buffer = np.zeros(size_bytes, np.uint8)
    place(build.program.operands[0], values_of(build.program, {}), array, buffer)
    return buffer


def test_lines_stand_in_the_corner_of_zeros():
    array = np.arange(1, 7, dtype=np.int8).reshape(2, 3)
    axes, lines = [(2, 3, None, False), (3, 4, None, False)], [(0, 3, 1, 4), (1, 4, 1, 1)]
    assert placed(array, 12, "int8", 8, axes, lines).tolist() == [1, 2, 3, 0, 4, 5, 6, 0, 0, 0, 0, 0]
    turned = placed(array, 12, "int8", 8, axes, [(1, 4, 1, 3), (0, 3, 1, 1)])
    assert turned.tolist() == [1, 4, 0, 2, 5, 0, 3, 6, 0, 0, 0, 0]


def test_the_last_tile_moves_back_and_may_hold_positions_once():
    array = np.arange(1, 6, dtype=np.int8)
    loop = [(0, 6, 1, 1)]
    assert placed(array, 6, "int8", 8, [(5, 5, 3, False)], loop).tolist() == [1, 2, 3, 3, 4, 5]
    assert placed(array, 6, "int8", 8, [(5, 5, 3, True)], loop).tolist() == [1, 2, 3, 0, 4, 5]
    assert placed(array[:4], 6, "int8", 8, [(4, 5, 3, False)], loop).tolist() == [1, 2, 3, 3, 4, 0]


def test_codes_fill_bytes_from_the_lowest_bits():
    array = np.array([[-1, 0, 1, 1, 0, -1, 1, 0]], np.int8)
    axes = [(1, 1, None, False), (8, 8, None, False)]
    apart = placed(array, 2, "int2", 2, axes, [(0, 1, 1, 8), (1, 2, 1, 4), (1, 4, 2, 1)], bias=1)
    # byte 0 holds columns 0, 2, 4, 6, byte 1 columns 1, 3, 5, 7
    assert apart.tolist() == [0 | 2 << 2 | 1 << 4 | 2 << 6, 1 | 2 << 2 | 0 << 4 | 1 << 6]
    pairs = placed(array, 4, "int4", 4, axes, [(0, 1, 1, 8), (1, 4, 2, 2), (1, 2, 1, 1)])
    assert pairs.tolist() == [0x0F, 0x11, 0xF0, 0x01]


def test_a_buffer_that_is_too_small_is_named():
    with pytest.raises(ProgramError, match="operand X reaches element 11; its buffer has 8"):
        placed(np.zeros((3, 4), np.int8), 8, "int8", 8, [(3, 3, None, False), (4, 4, None, False)],
               [(0, 3, 1, 4), (1, 4, 1, 1)])  # fmt: skip


@pytest.mark.parametrize(
    ("dims", "facts", "message"),
    [
        ([(0, 4, 1, -1)], {"offset": 3}, "starts and strides begin at 0"),
        ([(0, 4, 1, 1)], {"offset": -1}, "operand X starts at element -1"),
        ([(0, 4, 1, 8)], {}, "operand X reaches element 24; its buffer has 4"),
    ],
)
def test_loops_that_leave_the_buffer_are_refused(dims, facts, message):
    with pytest.raises(ProgramError, match=message):
        placed(np.zeros(4, np.int8), 4, "int8", 8, [(4, 4, None, False)], dims, **facts)


def test_codes_that_leave_the_buffer_are_refused():
    array, axes = np.zeros((1, 8), np.int8), [(1, 1, None, False), (8, 8, None, False)]
    with pytest.raises(ProgramError, match="operand X reaches element 16; its buffer has 2"):
        placed(array, 2, "int2", 2, axes, [(0, 1, 1, 8), (1, 2, 1, 64), (1, 4, 2, 1)])


@lru_cache(maxsize=64)
def planned_of(index: int, turn: int) -> GemmSequence | None:
    """A ragged problem for a member of the family; None where it is too deep for the kernel."""
    rng, member = np.random.default_rng([index, turn]), group(index, SIZE, SEED)[turn % SIZE]
    sizes = [int(rng.integers(1, most)) for most in (300, 500, 400)]
    try:
        return sequence(member.plan, *sizes)
    except SpecError:
        return None


@pytest.mark.parametrize("index", range(0, GROUPS, 2))
def test_buffers_are_those_of_the_packers(index: int):
    planned = planned_of(index, index // 2)
    if planned is None:
        return
    plan, problem = planned.plan, planned.problem
    values = values_of(planned.program, planned.given)
    operands = {operand.name: operand for operand in planned.program.operands}
    buffers = [np.zeros(size, np.uint8) for size in planned.argument_bytes]
    a, b = random_operands(plan, problem, index)
    scales = random_scales(plan, problem, index)
    given = {"A": a, "B": b}
    if plan.spec.epilogue.fed:
        given |= fed_arrays(problem, scales)
    for name, array in given.items():
        place(operands[name], values, array, buffers[operands[name].argument])
    expected = [staged_a(planned, a), b_operand(plan, b), buffers[2], *fed_operands(planned, scales)]
    for buffer, wanted in zip(buffers, expected, strict=True):
        assert np.array_equal(buffer, np.ascontiguousarray(wanted).view(np.uint8).ravel())


def fed_arrays(problem: Problem, scales) -> dict[str, np.ndarray]:
    """Every number that feeds an epilogue; ones and zeros for those not given."""
    ones = [np.ones(size, np.float32) for size in (problem.M, problem.N)]
    rows, columns = (
        one if given is None else given for one, given in zip(ones, (scales.rows, scales.columns), strict=True)
    )
    bias = np.zeros(problem.N, np.float32) if scales.bias is None else scales.bias
    return {"row_scales": rows, "column_scales": columns, "bias": bias}


@pytest.mark.parametrize("index", range(1, GROUPS, 4))
def test_c_comes_home_as_the_packers_bring_it(index: int):
    planned = planned_of(index, index // 2)
    if planned is None:
        return
    values = values_of(planned.program, planned.given)
    operand = next(o for o in planned.program.operands if o.name == "C")
    empty = c_buffer(planned)
    buffer = np.random.default_rng(index).integers(0, 50, empty.nbytes, np.uint8)
    wanted = c_matrix(planned, buffer.view(empty.dtype).reshape(empty.shape))
    got = fetch(operand, values, buffer, DTYPES[planned.plan.spec.c])
    assert np.array_equal(np.ascontiguousarray(got).view(np.uint8), np.ascontiguousarray(wanted).view(np.uint8))


def test_a_value_that_the_operand_may_not_hold_is_named():
    array = np.array([[-1, 0, 1, 0], [0, 1, 2, -2]], np.int8)
    axes, lines = [(2, 2, None, False), (4, 4, None, False)], [(0, 2, 1, 4), (1, 4, 1, 1)]
    with pytest.raises(OperandError, match=r"operand X: the value at \[1, 2\] is 2; int2 holds -1 to 1: clip or"):
        placed(array, 2, "int2", 2, axes, lines, values=[-1, 1], bias=1)
    assert placed(np.clip(array, -1, 1), 2, "int2", 2, axes, lines, values=[-1, 1], bias=1).any()
