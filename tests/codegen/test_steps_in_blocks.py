"""Blocks of steps in loops in loops, as functions of machine code equal to numpy: largest numbers of lines."""

import numpy as np
import pytest
from test_assembled_kernels import call

from bdforge.core.codegen.basic_block import AssemblyOp
from bdforge.core.codegen.errors import CodegenError
from bdforge.core.codegen.pipeline.dataflow import named_op
from bdforge.core.codegen.pipeline.pipelined_function import LoopOfParts, function, repeated
from bdforge.core.codegen.pipeline.pointer_walks import PointerWalk, Steppers
from bdforge.core.codegen.pipeline.register_colouring import Life, meet
from bdforge.core.codegen.pipeline.steps_in_blocks import BlockOfSteps, stepped
from support.differences import same

LANES = 16


def maxima(steps: int, blocks: int, times: int, hardware: bool):
    """Of `times` x `blocks` lines of `steps` vectors of int32 at p0, and of those at p1; to p2."""
    before, behind = [named_op("vlda x10, [p1], #64", "before")], [named_op("vst x10, [p2], #64", "found")]

    def step(_: int):
        return [named_op("vldb x{v}, [p0], #64", "given"), named_op("vmax_lt.32 x10, r16, x10, x{v}, vaddSign1")]

    block = BlockOfSteps(before, step, behind, steps, {"x": range(4)})
    kept = repeated("aie2p", [], [named_op("mov el0, r16")], 1)
    back = repeated("aie2p", [], [named_op("mov r16, el0")], 1)
    parts = [kept, LoopOfParts([stepped("aie2p", [AssemblyOp("mov r8, r7")], block, blocks)], times, "r4"), back]
    return function("maxima", "aie2p", parts, "{cycles}", hardware=hardware)


@pytest.mark.parametrize("hardware", [False, True])
@pytest.mark.parametrize(("steps", "blocks", "times"), [(1, 1, 1), (2, 5, 1), (7, 3, 2), (20, 9, 3)])
def test_each_block_takes_all_of_its_steps(steps, blocks, times, hardware):
    rng = np.random.default_rng(steps)
    given = rng.integers(-1000, 1000, (times * blocks, steps, LANES)).astype(np.int32)
    before = rng.integers(-1000, 1000, (times * blocks, LANES)).astype(np.int32)
    found, kernel = np.zeros_like(before), maxima(steps, blocks, times, hardware)
    cycles = call(kernel, "aie2p", [given, before, found])
    same(found, np.maximum(given.max(axis=1), before))
    assert kernel.cycles is not None
    assert 0 <= cycles - kernel.cycles <= 24  # the call


def test_many_steps_are_no_longer_text():
    lines = [len(maxima(steps, 9, 3, False).text.splitlines()) for steps in (40, 80)]
    assert lines[0] == lines[1]


def test_steps_without_registers_are_refused():
    block = BlockOfSteps(
        [], lambda _: [named_op("vldb x{v}, [p0], #64"), named_op("vst x{v}, [p1], #64")], [], 2, {"x": ()}
    )
    with pytest.raises(CodegenError, match="no schedule was found for blocks of 2 steps of 2 instructions"):
        stepped("aie2p", [], block, 2)


def test_a_walk_may_have_immediates_of_its_own():
    made = Steppers(range(-512, 449), 64)
    walks = [PointerWalk("p0", (0, 4, 32, 36), ((2, 40),), access=4), PointerWalk("p1", (0, 64), ((2, 128),))]
    assert made.walks(walks) == [["#4", "#28", "#4", "#4"], ["#64", "#64"]]
    assert made.step(32, 4).startswith("m")
    assert made.step(-32, 4) == "#-32"


def test_accesses_that_move_pointers_are_followed_by_what_is_left_of_a_step_in_a_register():
    made = Steppers(range(-512, 449), 64)
    assert made.walks([PointerWalk("p0", (0, 576), ((2, 144),), moved=128)]) == [["m6", "m7"]]
    assert made.constants == {"m6": 576 - 128, "m7": 144 - 576 - 128}


@pytest.mark.parametrize("seed", range(40))
def test_values_of_blocks_that_follow_each_other_meet_where_their_cycles_do(seed):
    rng = np.random.default_rng(seed)
    period, count = int(rng.integers(3, 12)), int(rng.integers(1, 4))
    starts, lengths = rng.integers(-9, 30, count), rng.integers(1, 7, count)
    values = [(f"v{i}", 0) for i in range(count)]
    found = [Life(v, int(at), int(at + n)) for v, at, n in zip(values, starts, lengths, strict=True)]
    registers = {value: ("xy"[rng.integers(2)], 3) for value in values}
    held = [
        (registers[life.value], cycle + block * period)
        for life in found for block in range(-20, 21) for cycle in range(life.start, life.end)
    ]  # fmt: skip
    assert meet(found, period, registers) == (len(held) != len(set(held)))
