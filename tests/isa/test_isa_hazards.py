"""The checker: planted hazards are found with both bundles, correct code has none."""

import json
import random
from pathlib import Path

import pytest

from bdforge.core import isa
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.elf import CoreProgram, CoreSegment
from bdforge.core.isa.flow import ControlFlow
from bdforge.core.isa.hazards import Checked, check, check_program, check_source
from support.instructions import draw

DATA = Path(__file__).parent / "data"
KERNEL = (DATA / "gemm_i8.s").read_text()
LOAD = "vlda    x0, [p0], #64 ; vldb x1, [p1], m0"
NOPS = "        nop\n"


def hazards(source: str, generation: str = "aie2p") -> list[tuple[str, str]]:
    """Rules and messages of a source's hazards."""
    return [(hazard.rule, str(hazard)) for hazard in check_source(assemble(source, generation, "k.s"))]


@pytest.mark.parametrize(
    ("first", "second", "apart"),
    [
        ("vband x1, x1, x2", "vband x3, x1, x2", 1), ("vband x1, x1, x2", "vmac dm0, dm0, x1, x2, r0", 2),
        ("vmac dm1, dm1, x0, x1, r0", "vmac dm1, dm1, x0, x1, r0", 2), ("mul r1, r2, r3", "add r4, r1, r2", 2),
    ],
)  # fmt: skip
def test_a_result_is_read_as_early_as_it_is_there_and_no_earlier(first: str, second: str, apart: int):
    """Forwarded between units of one kind it is there a bundle earlier (the distances of test_isa_timing)."""
    for bundles in range(1, apart + 1):
        source = f"{first}\n{NOPS * (bundles - 1)}{second}\n{NOPS * 12}done\n"
        found = [rule for rule, _ in hazards(source)]
        assert found == ([] if bundles == apart else ["early-read"]), bundles


def planted(old: str, new: str) -> str:
    """The kernel with one place changed."""
    assert KERNEL.count(old) >= 1
    return KERNEL.replace(old, new, 1)


def test_the_kernel_has_no_hazards():
    assert hazards(KERNEL) == []


PLANTED = {
    "a result read one cycle early": (
        planted(f"m0\n{NOPS}{NOPS}", f"m0\n{NOPS}").replace(
            f"{NOPS}        nopa ; nopb ; nops ; nopx ; nopm ; nopv ",
            "        nopa ; nopb ; nops ; nopx ; nopm ; nopv "
        ),
        "early-read",
        ["vmac dm0, dm0, x0, x1, r0", "reads x0 1 cycle before", LOAD.split(" ; ")[0].replace("    ", " ")],
    ),
    "an accumulator stored one cycle early": (
        planted(f"x0, x1, r0\n{NOPS}", "x0, x1, r0\n"), "early-read",
        ["vst bmll0, [p2], #64", "reads bmll0 1 cycle before", "vmac dm0"],
    ),
    "two results in one register": (
        planted(f"{LOAD}\n{NOPS}{NOPS}{NOPS}{NOPS}{NOPS}",
                "lda r9, [p0, #0] ; vldb x1, [p1], m0\n" + NOPS * 4 + "        mul r9, r1, r2\n"),
        "two-results", ["lda r9, [p0, #0]", "mul r9, r1, r2", "write r9 in the same cycle"],
    ),
    "two results on one port": (
        planted(f"{LOAD}\n{NOPS}{NOPS}{NOPS}{NOPS}{NOPS}",
                "lda r9, [p0, #0] ; vldb x1, [p1], m0\n" + NOPS * 4 + "        mul r10, r1, r2\n"),
        "structural", ["lda r9, [p0, #0]", "mul r10, r1, r2", "port R_WA"],
    ),
    "a store within six cycles of an 8-bit one": (
        planted("        add     r6, r6, #-1\n", "        add     r6, r6, #-1 ; st.s8 r2, [p2, #0]\n"),
        "store-window", ["st.s8 r2, [p2, #0]", "vst bmll0, [p2], #64", "8- or 16-bit store"],
    ),
    "a result in flight across a jump": (
        planted("        vst     bmhh0, [p2], #64\n", "        vst     bmhh0, [p2], #64 ; lda r8, [p0, #0]\n")
        .replace("columns: movx   lc, #8 ", "columns: movx lc, #8 ; mov r7, r8 "),
        "early-read", ["mov r7, r8", "reads r8 3 cycles before", "lda r8, [p0, #0]"],
    ),
    "a branch in a delay slot": (
        planted("        vst     bmhl0, [p2], #64\n", "        vst     bmhl0, [p2], #64 ; j p3\n"),
        "delay-slot", ["j p3", "branches in a delay slot of", "jnz r6"],
    ),
    "locks closer than four bundles": (
        planted("        rel     #FINISHED, r2\n", "        rel     #FINISHED, r2\n        nop\n        rel #50, r2\n"),
        "locks-too-close", ["rel #49, r2", "rel #50, r2", "lock port"],
    ),
    "a loop whose last bundle is short": (
        planted("nopa ; nopb ; nops ; nopx ; nopm ; vmac", "vmac"),
        "loop", ["vmac dm0", "ends a hardware loop and has 4 bytes instead of 16"],
    ),
    "a loop count set too late": (
        planted("columns: movx   lc, #8 ; vclr dm0", "columns: vclr dm0")
        .replace("m0\n        nop\n        nop", "m0\n        nop\n        movx lc, #8"),
        "loop", ["movx lc, #8", "writes lc 6 bundles before the loop's last", "vmac"],
    ),
    "a loop end that is not aligned": (
        planted("movxm   le, #last", "movxm   le, #last - 8"), "loop", ["sets le to 0x78", "not a multiple of 16"],
    ),
    "a loop end where no bundle starts": (
        planted("movxm   le, #last", "movxm   le, #0x1000"), "loop", ["sets le to 0x1000", "where no bundle starts"],
    ),
    "a target that is not aligned": (
        planted("        .p2align 4\ncolumns:", "columns:"), "target", ["jumps to 0x4a", "not a multiple of 16"],
    ),
    "a misaligned vector": (
        planted("A       = 0x70400", "A       = 0x70420"), "misaligned", ["vlda x0", "moves 64 bytes at 0x70420"],
    ),
    "an address without memory": (
        planted("movxm   p2, #C", "movxm   p2, #C - 0x40000"), "no-memory", ["vst bmll0", "accesses 0x32400"],
    ),
    "a write that is overtaken": (
        planted("        padda   [p0], #448\n", "        padda   [p0], #448 ; mov r8, r2\n")
        .replace("columns\n        vst     bmhl0, [p2], #64",
                 "columns\n        vst bmhl0, [p2], #64 ; lda r8, [p0, #0]"),
        "overtaken", ["lda r8, [p0, #0]", "mov r8, r2", "cycles after the second: its result is what stays"],
    ),
    "code that runs out": (planted("        done\n", ""), "end", ["rel #49", "no bundle is known"]),
    "code that ends in delay slots": (
        planted("        done\n", "        ret\n        nop\n"), "delay-slot",
        ["the code ends in the delay slots of", "ret"],
    ),
    "a result in flight across a return": (
        KERNEL + "        ret\n        nop\n        lda r3, [p0, #0]\n        nop\n        nop\n        nop\n",
        "across-jump", ["result r3 of", "lda r3, [p0, #0]", "lands 3 cycles after", "ret"],
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", list(PLANTED))
def test_planted_hazards_are_found_with_both_bundles(name):
    source, rule, words = PLANTED[name]
    found = hazards(source)
    assert any(at == rule and all(word in message for word in words) for at, message in found), (rule, words, found)
    assert all("k.s:" in message for at, message in found if at != "size")


def test_a_declared_old_value_is_no_hazard():
    source = "movxm p0, #0x70000\nlda r0, [p0, #0]\n{}or r1, r0, r0\nnop\nnop\nnop\nnop\nnop\nnop\ndone"
    (found,) = hazards(source.format(""))
    assert found[0] == "early-read"
    assert "reads what nobody has written yet" in found[1]
    assert hazards(source.format(".old r0\n")) == []
    assert [rule for rule, _ in hazards(source.format(".old r0\nnop\n"))] == ["early-read"]  # of one bundle
    assert [rule for rule, _ in hazards(source.format(".old r1\n"))] == ["early-read"]


def test_compiled_code_may_read_old_values_but_not_nothing():
    isa_ = isa.load("aie2p")

    def compiled(first: str) -> list[str]:
        program = assemble(f"movxm p0, #0x70000\n{first}\nlda r0, [p0, #0]\nor r1, r0, r0\n" + "nop\n" * 6 + "done")
        bundles = dict(isa_.decode_program(program.code[0][1]))
        return [hazard.rule for hazard in check(ControlFlow("aie2p", bundles))]

    assert compiled("movx r0, #1") == []
    assert compiled("movx r2, #1") == ["early-read"]


def test_a_late_read_may_be_fed_by_a_later_write():
    """VUNPACK reads at stage 7: VBAND may issue up to four bundles after it."""
    source = (
        "movxm p0, #0x70000\nvunpack x0, wl1, unpackSign0\nnop\nnop\nnop\nvband x1, x2, x3\n" + "nop\n" * 6 + "done"
    )
    assert hazards(source) == []


def test_calls_and_returns_are_followed():
    source = f"""
        movxm   p0, #0x70000
        jl      #f
{NOPS * 5}        or      r2, r1, r1
        done
        .p2align 4
f:      nop
        {{}}
        ret
{NOPS * 4}        {{}}
"""
    assert hazards(source.format("lda r1, [p0, #0]", "nop")) == []
    found = dict(hazards(source.format("nop", "lda r1, [p0, #0]")))
    assert set(found) == {"early-read"}
    assert "reads r1 6 cycles before" in found["early-read"]


def test_paths_that_exclude_each_other_are_not_mixed():
    """A load on one way to a join and its reader after the other way."""
    source = f"""
        movxm   p0, #0x70000
        movx    r0, #1 ; mova r1, #2
        jnz     r0, #other
{NOPS * 5}        movx    r2, #0
        j       #join
{NOPS * 4}        lda     r5, [p0, #0]
        .p2align 4
other:  nop
        .p2align 4
join:
{NOPS * 7}        or      r2, r5, r1
        done
"""
    assert hazards(source) == []


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_locks_and_early_reads_on_both_generations(generation):
    source = "movxm p0, #0x70000\nacq #48, r0\nnop\nnop\nrel #49, r0\nlda r1, [p0, #0]\nnop\nor r2, r1, r1\ndone"
    assert {rule for rule, _ in hazards(source, generation)} == {"locks-too-close", "early-read"}


def test_bundles_of_real_programs_need_no_unit_twice():
    for generation, code, *_ in map(json.loads, (DATA / "bundles.jsonl").read_text().splitlines()):
        bundle = isa.load(generation).decode(bytes.fromhex(code))
        found = check(ControlFlow(generation, {0: bundle}), Checked(strict=True))
        assert {hazard.rule for hazard in found} <= {"end", "target", "delay-slot", "loop"}


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_random_programs_end_with_hazards_or_none(generation):
    isa_ = isa.load(generation)
    rng = random.Random(15)
    forms = list(isa_.forms.values())
    for _ in range(12):
        code = b"".join(isa_.encode([draw(rng.choice(forms), rng)]) for _ in range(60))
        for hazard in check_program(CoreProgram("", (CoreSegment(0, code),), generation), strict=True):
            assert len(str(hazard)) < 4096
        check_program(CoreProgram("", (CoreSegment(0, rng.randbytes(400)),), generation))


def test_a_long_program_with_many_branches_is_checked():
    body = "vlda x0, [p0], #64 ; vldb x1, [p1], #64 ; vmac dm0, dm0, x2, x3, r0\n" * 8
    block = f"l{{0}}: {body} jnz r0, #l{{0}}\n" + "nop\n" * 5 + ".p2align 4\n"
    program = assemble("".join(block.format(i) for i in range(40)) + "done")
    assert len(program.code[0][1]) > 3000
    assert {hazard.rule for hazard in check_source(program)} <= {"early-read"}
