"""The checker leaves code alone that compilers make: what they read too early, or from nowhere, on purpose."""

import pytest

from bdforge.core import isa
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.elf import CoreProgram, CoreSegment
from bdforge.core.isa.hazard_layout import Hazard, HazardVerdict
from bdforge.core.isa.hazards import check_program, check_source
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


WHOLE = "nopa ; nopb ; nops ; nopx ; nopm ; nopv"
SLOTS = f"""
        jnz r0, #l
        {FIVE[4:]}
        {{}}
        .p2align 4
l:      done"""
LOOP = f"""
        movxm ls, #first ; nopa
        movxm le, #last
        movxm lc, #3
        {FIVE}{FIVE}
        .p2align 4
first:  nop
        .p2align 4
last:   {WHOLE.replace("nopa", "st.s8 r1, [p0], #1")}
        {FIVE}nop
        done"""
UNUSUAL = {  # what public programs have that a checker would rather not see, with the rules that tell of it once
    "a lock taken in a delay slot": (SLOTS.format("acq #48, r1"), []),
    "a lock given in a delay slot": (SLOTS.format("rel #48, r1"), []),
    "a load right behind a store of 8 bits": (
        f"st.s8 r1, [p0], #1\nlda r2, [p1], #4\n{FIVE}nop\ndone", ["store-window"]),
    "a vector stored four cycles behind one of 16 bits": (
        "st.s16 r1, [p0], #2\nnop\nnop\nnop\nvst wl0, [p1], #32\n" + FIVE + "done", ["store-window"]),
    "a store of 8 bits in a loop's last bundle": (LOOP, ["loop", "store-window"]),
    "a store to where start-up code left a pointer": (f"movxm p7, #448\nst r0, [p7], #4\n{FIVE}done", ["no-memory"]),
    "a load from there": (f"movxm p7, #448\nlda r0, [p7], #4\n{FIVE}nop\ndone", []),
    "a store to a register of the tile": (f"movxm p7, #0x9de00\nst r0, [p7], #4\n{FIVE}done", []),
    "data behind a call that never returns": (
        f"jl #f\n{FIVE}.byte 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00, 0x00\n.p2align 4\nf: j #f\n{FIVE}", []),
}  # fmt: skip
AIE2P_ONLY = {
    "a choice beside a sum of the move slot":
        "sel.eqz r1, r2, r3, r27 ; add.nc r4, r5, r6\nsel.nez r1, r2, r3, r27 ; mov r4, r5\ndone",
    "a lock by condition beside a move": "rel.cond #50, r1, r26 ; mov el0, r3\nnop\nnop\nnop\ndone",
    "a choice beside a shuffle": "sel.nez r1, r2, r3, r27 ; vshuffle x0, x1, x2, r5\nnop\ndone",
    "a return beside a move": f"jl #f\n{FIVE}done\n.p2align 4\nf: ret ; mov unpackSign0, r1\n{FIVE}",
    "a counted jump beside a sum": f"movxm p0, #l\njnzd r1, r1, p0 ; add.nc r2, r3, #1\n{FIVE}.p2align 4\nl: done",
}  # fmt: skip


def found_in(source: str, generation: str) -> list[Hazard]:
    """What the checker finds in a binary."""
    code = tuple(CoreSegment(start, data) for start, data in assemble(source, generation, "c.s").code)
    return check_program(CoreProgram("", code, generation))


@pytest.mark.parametrize("what", UNUSUAL)
@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_what_is_unusual_in_compiled_code_is_no_error(what, generation):
    source, rules = UNUSUAL[what]
    hazards = found_in(source, generation)
    assert sorted({hazard.rule for hazard in hazards}) == rules
    assert all(hazard.unusual for hazard in hazards)
    verdict = HazardVerdict.of(hazards)
    assert verdict.errors == ()
    assert all(f" {rule}" in verdict.unusual for rule in rules)
    strict = [] if ".byte" in source else check_source(assemble(source, generation, "c.s"))
    assert all(hazard.unusual for hazard in strict if hazard.rule not in ("no-memory", "end", "early-read"))


@pytest.mark.parametrize("what", AIE2P_ONLY)
def test_what_shares_no_port_is_not_told(what):
    assert found_in(AIE2P_ONLY[what], "aie2p") == []


def test_a_mask_may_land_with_what_is_moved_a_bundle_later():
    (hazard,) = found_in("vmax_lt.16 x0, r16, x1, x2, vaddSign1\nmov r27, r1\nnop\ndone", "aie2p")
    assert (hazard.rule, hazard.unusual) == ("structural", True)
    (hazard,) = found_in("vlt.16 r16, x1, x2, vaddSign1\nmov r27, r1\nnop\ndone", "aie2p")
    assert (hazard.rule, hazard.unusual) == ("structural", False)


def test_a_flush_may_count_beside_sums_as_public_programs_have_it():
    hazards = found_in(
        "vst.flush.512 [p2, sf, r26] ; add r1, r2, r3 ; add.nc r4, r5, #1\n" + FIVE + "nop\ndone", "aie2p"
    )
    assert {(hazard.rule, hazard.unusual) for hazard in hazards} == {("structural", True)}
    told = HazardVerdict.of(hazards).unusual
    assert f"{len(hazards)} structural (as in 5 of 816 public programs); the first: " in told


@pytest.mark.parametrize(("apart", "waited"), [(1, 6), (2, 5), (6, 1), (7, 0)])
def test_what_a_store_of_8_bits_costs_is_told(apart, waited):
    """As llvm-aie's simulator inserts cycles: six if a load issues in the next."""
    nops = "nop\n" * (apart - 1)
    found = found_in(f"st.s8 r1, [p0], #1\n{nops}lda r2, [p1], #4\n{FIVE}nop\ndone", "aie2p")
    assert [f"which costs {waited} cycles" in str(hazard) for hazard in found] == [True] * bool(waited)


def hazards(source: str, generation: str) -> list[str]:
    """What the checker finds in a binary, in words."""
    return [str(hazard) for hazard in found_in(source, generation)]


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
        program = CoreProgram("", (CoreSegment(0, bytes.fromhex(case["program"])),), case.get("arch", "aie2p"))
        assert check_program(program, given=tuple(case["regs"])) == [], case["id"]
