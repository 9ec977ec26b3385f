"""The checker leaves code alone that compilers make: what they read too early, or from nowhere, on purpose."""

import pytest

from bdforge import isa
from bdforge.isa.assembler import assemble
from bdforge.isa.elf import Segment
from bdforge.isa.hazards import check_program
from bdforge.isa.program import CoreProgram
from support.recorded_cases import cases

FIVE = "nop\n" * 5
LOAD = "movxm p0, #0x70100\nlda r16, [p0, #0]\n"

COMPILED = {
    "saved registers are stored while loads into them are under way": f"{LOAD}st r16, [sp, #-32]\n{FIVE}nop\ndone",
    "saved registers are copied so": f"{LOAD}mov r8, r16\n{FIVE}nop\ndone",
    "values are passed to functions, and saved across them": f"""
        jl #main
        movxm sp, #0x70000
        {FIVE[4:]}
        done
        .p2align 4
main:   st lr, [sp, #-64]
        movx r0, #4
        jl #f
        movxm p0, #0x70400
        lda r1, [p0, #0]
        {FIVE[8:]}
        add r2, r1, r0
        lda lr, [sp, #-64]
        {FIVE}nop
        ret
        {FIVE}
        .p2align 4
f:      nop
        ret
        lda r1, [p0, #4]
        {FIVE[4:]}""",
    "a function is left by a jump to another": f"""
        jl #f
        {FIVE}done
        .p2align 4
f:      j #g
        lda r1, [p0, #0]
        {FIVE[4:]}
        .p2align 4
g:      ret
        {FIVE}""",
    "a function that never returns is called at the end": f"""
        j #main
        {FIVE}
        .p2align 4
f:      j #f
        {FIVE}
        .p2align 4
main:   jl #f
        {FIVE}""",
    "a load goes round a loop": f"""
        movxm p0, #0x70400
        movxm p1, #loop
        movx r1, #3
        lda r2, [p0], #4
        lda r2, [p0], #4
        {FIVE[4:]}
        .p2align 4
loop:   jnzd r1, r1, p1
        lda r2, [p0], #4
        add r4, r4, r2
        {FIVE[8:]}
        {FIVE}nop
        done""",
    "code that only a register leads to": f"""
        movxm p0, #a
        jl p0
        lda r1, [p1, #0]
        {FIVE[4:]}
        add r0, r1, r1
        done
        .p2align 4
a:      ret
        {FIVE}""",
    "locks in a loop": f"""
        .p2align 4
l:      acq #48, r0
        {FIVE[8:]}
        rel #49, r0
        {FIVE[12:]}
        jnz r1, #l
        {FIVE}done""",
    "a way that loads, and one that does not": f"""
        movxm p0, #0x70000
        jz r0, #b
        {FIVE[4:]}
        lda r1, [p0, #0]
        {FIVE}nop
        j #c
        add r3, r1, r1
        {FIVE[4:]}
        .p2align 4
b:      mova r1, #7
        {FIVE}
        .p2align 4
c:      add r4, r1, r1
        done""",
}


def hazards(source: str, generation: str) -> list[str]:
    """What the checker finds in a binary."""
    code = tuple(Segment(start, data) for start, data in assemble(source, generation, "c.s").code)
    return [str(hazard) for hazard in check_program(CoreProgram("", code, generation))]


@pytest.mark.parametrize("what", COMPILED)
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_what_compilers_do_is_no_hazard(what, generation):
    assert hazards(COMPILED[what], generation) == []


@pytest.mark.parametrize("use", ["add r8, r16, r16", "st r16, [p1, #0]", "jz r16, #0", "acq #48, r16"])
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_a_value_from_nowhere_that_is_used_is_one(use, generation):
    (found,) = hazards(f"{LOAD}{use}\n{FIVE}nop\ndone", generation)
    assert "reads what nobody has written yet" in found
    assert "reads r16 6 cycles before the result of" in found


def test_vectors_are_built_in_registers_that_nobody_has_written():
    source = "movxm p0, #0x70100\nvldb x0, [p0, #0]\n{}\n" + FIVE + "nop\nnop\ndone"
    assert hazards(source.format("vinsert.32 x2, x0, #0, r1"), "aie2p") == []
    assert hazards(source.format("vshuffle x2, x3, x0, r1"), "aie2p") == []
    assert len(hazards(source.format("vadd.32 x2, x3, x0"), "aie2p")) == 1


def test_recorded_programs_have_no_hazards_when_their_registers_are_given():
    for case in cases():
        program = CoreProgram("", (Segment(0, bytes.fromhex(case["program"])),), case.get("arch", "aie2p"))
        assert check_program(program, given=tuple(case["regs"])) == [], case["id"]
