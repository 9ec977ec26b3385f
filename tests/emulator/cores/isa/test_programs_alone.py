"""Programs of cores run by themselves: cycles by part until a lock would keep them, with stalls at their own banks."""

import pytest

from bdforge.core import isa
from bdforge.core.exact.alone import run_alone
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.errors import StepBudgetError

LOADS = """
main:   movxm p0, #0x70000
        movxm p1, #{second}
        mova r1, #-1
        .p2align 4
again:  acq #50, r1
        vlda x0, [p0], #0 ; vldb x1, [p1], #0
        vlda x0, [p0], #0 ; vldb x1, [p1], #0
        j #again
        nop
        nop
        nop
        nop
        nop
"""
FIRST, PASS = 3, 9  # cycles before the loop, and of a pass: the acquire, two bundles of loads, a jump with its slots


def run(second: int, turns: int):
    program = assemble(LOADS.format(second=second), "aie2p", "loads.s")
    names = {program.symbols[name]: name for name in ("main", "again")}
    return run_alone(isa.load("aie2p"), program.code[0][1], names, {}, {50: turns})


@pytest.mark.parametrize(("second", "stalls"), [(0x74000, 0), (0x70400, 2), (0x60000, 0)])
def test_two_loads_of_one_bank_take_a_cycle_more(second, stalls):
    few, many = run(second, 2), run(second, 5)
    assert many.cycles - few.cycles == 3 * (PASS + stalls)
    assert many.stalls.get("again", 0) - few.stalls.get("again", 0) == 3 * stalls


def test_cycles_are_told_by_part():
    few, many = run(0x70400, 1), run(0x70400, 4)
    assert many.issue["main"] == few.issue["main"] in (FIRST, FIRST + 1)  # a bundle may fill the line before the loop
    assert many.issue["again"] - few.issue["again"] == 3 * PASS


@pytest.mark.parametrize(
    ("turns", "parts"),
    [({50: 0}, {"main"}), ({50: 1}, {"main", "second"}), ({50: 2}, {"main", "second", "third"}),
     ({}, {"main", "second", "third"}), ({51: 0}, {"main", "second", "third"})],
)  # fmt: skip
def test_a_program_runs_until_a_lock_has_no_turn_left(turns, parts):
    """A lock that is not named never keeps it waiting."""
    gap = "nop\n" * 6
    text = f"main: nop\nacq #50, r1\n{gap}second: nop\nacq #50, r1\n{gap}third: nop\nrel #50, r1\n{gap}done\n"
    program = assemble(text, "aie2p", "turns.s")
    names = {program.symbols[name]: name for name in ("main", "second", "third")}
    found = run_alone(isa.load("aie2p"), program.code[0][1], names, {}, turns, budget=1000)
    assert set(found.issue) == parts


def test_words_are_there_from_the_start():
    text = "main: movxm p0, #0x70010\n lda r2, [p0, #0]\n" + "nop\n" * 6 + "jz r2, #skip\n" + "nop\n" * 15
    program = assemble(f"{text} .p2align 4\nskip: done\n", "aie2p", "skip.s")
    names = {program.symbols[name]: name for name in ("main", "skip")}
    taken, passed = (run_alone(isa.load("aie2p"), program.code[0][1], names, words, {}) for words in ({}, {0x70010: 7}))
    assert passed.issue["main"] - taken.issue["main"] >= 10


def test_programs_that_ask_for_more_than_locks_are_refused():
    program = assemble("main: mov r1, ss\n nop\n nop\n done\n", "aie2p", "stream.s")
    with pytest.raises(ValueError, match="asks for locks only"):
        run_alone(isa.load("aie2p"), program.code[0][1], {0: "main"}, {}, {}, budget=1000)


def test_a_program_without_end_is_ended():
    program = assemble("main: j #main\n" + "nop\n" * 5, "aie2p", "loop.s")
    with pytest.raises(StepBudgetError):
        run_alone(isa.load("aie2p"), program.code[0][1], {0: "main"}, {}, {}, budget=1000)
