"""What a program's code tells of its loops and functions, against what the interpreter counts when it runs them."""

from itertools import pairwise

import numpy as np
import pytest

from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.isa import GENERATIONS, load
from bdforge.core.isa.assembler import Assembled, assemble
from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.disassembler import bundle_text, control_flow
from bdforge.core.isa.elf import CoreProgram, CoreSegment
from bdforge.core.isa.program_work import BundleWork, ProgramWork

FIVE, ALIGN = "nop\n" * 5, ".p2align 4\n"
WHOLE = "nopa ; nopb ; nops ; nopx ; nopm ; nopv\n"
COUNTED = f"movx r7, #{{}}\n{ALIGN}l: {{}}jnz r7, #l\n{{}}done\n"
TOLD = {
    "nothing but a way": (f"nop\nmovx r1, #3\nj #l\n{FIVE}nop\n{ALIGN}l: lda r0, [p0, #0]\ndone\n", ()),
    "a counted jump": (COUNTED.format(5, "add r7, r7, #-1\nnop\n", FIVE), (5,)),
    "a counter right before the jump": (COUNTED.format(5, "add.nc r7, r7, #-1\n", FIVE), (5,)),
    "a counter behind the jump": (COUNTED.format(3, "nop\n", f"add r7, r7, #-1\n{FIVE[4:]}"), (4,)),
    "a jump that counts": (f"movxm p0, #l\nmovx r1, #3\n{ALIGN}l: nop\njnzd r1, r1, p0\n{FIVE}done\n", (4,)),
    "a hardware loop": (
        f"movxm ls, #first\nmovxm le, #last\nmovxm lc, #6\n{FIVE}nop\n{ALIGN}first: nop\n{ALIGN}last: {WHOLE}done\n",
        (6,)),
    "a loop of one bundle": (
        f"movxm ls, #last\nmovxm le, #last\nmovxm lc, #4\n{FIVE}nop\n{ALIGN}last: {WHOLE}done\n", (4,)),
    "loops one in another": (
        f"movx r6, #3\n{ALIGN}o: nop\nmovx r7, #4\n{ALIGN}i: add r7, r7, #-1\nnop\njnz r7, #i\n{FIVE}"
        f"add r6, r6, #-1\nnop\njnz r6, #o\n{FIVE}done\n", (3, 4)),
    "a call of a loop, twice": (
        f"jl #f\n{FIVE}jl #f\n{FIVE}done\n{ALIGN}f: movx r7, #4\n{ALIGN}i: add r7, r7, #-1\nnop\njnz r7, #i\n{FIVE}"
        f"ret\n{FIVE}", (4,)),
    "a call in a loop": (
        f"movx r6, #3\n{ALIGN}o: jl #f\n{FIVE}add r6, r6, #-1\nnop\njnz r6, #o\n{FIVE}done\n{ALIGN}f: ret\n{FIVE}",
        (3,)),
}  # fmt: skip
DONE = f"{FIVE}done\n"
NOT_TOLD = {
    "how often the loop at 0x10 runs": f"lda r7, [p0, #0]\n{ALIGN}l: nop\njnz r7, #l\n{DONE}",
    "which way the branch at 0x0 takes": f"jz r0, #l\n{FIVE}{ALIGN}l: done\n",
    "where the jump at 0x0 leads": f"jl p0\n{DONE}",
    "calls of the function at 0x20 nest too deeply": f"jl #f\n{DONE}{ALIGN}.org 0x20\nf: jl #f\n{FIVE}ret\n{FIVE}",
    "where execution goes on": "nop\n",
}
BESIDE = {
    "a way out": f"movx r7, #4\n{ALIGN}l: add r7, r7, #-1\njz r1, #out\n{FIVE}jnz r7, #l\n{FIVE}{ALIGN}out: done\n",
    "two that count": (
        f"movx r7, #4\n{ALIGN}l: add r7, r7, #-1\nadd r7, r7, #-1\nnop\njnz r7, #l\n{DONE}"),
    "a step of two": f"movx r7, #4\n{ALIGN}l: add r7, r7, #-2\nnop\njnz r7, #l\n{DONE}",
    "one that counts in a loop in it": (
        f"movx r7, #4\n{ALIGN}o: nop\n{ALIGN}i: add r7, r7, #-1\nnop\njnz r6, #i\n{FIVE}jnz r7, #o\n{DONE}"),
    "other values on another way": (
        f"movx r7, #4\njz r1, #l\n{FIVE}movx r7, #5\nnop\n{ALIGN}l: add r7, r7, #-1\nnop\njnz r7, #l\n{DONE}"),
}  # fmt: skip


def read(source: str, generation: str) -> tuple[ProgramWork, Assembled]:
    made = assemble(source, generation, "k.s")
    code = tuple(CoreSegment(start, data) for start, data in made.code)
    return ProgramWork(KnownConstants(control_flow(CoreProgram("", code, generation)))), made


def of_start(work: ProgramWork) -> BundleWork:
    start = work.functions()[0]
    assert start.work is not None, start.missing
    return start.work


def counted(made: Assembled) -> Interpreter:
    """The program behind its run."""
    memory = DataMemory([np.zeros(WINDOW_BYTES, np.uint8) for _ in range(4)])
    core = Interpreter(load(made.generation), made.code[0][1], memory)
    core.write("p0", 0x70000)
    assert list(core.run(10_000)) == []
    return core


@pytest.mark.parametrize("what", TOLD)
@pytest.mark.parametrize("generation", GENERATIONS)
def test_bundles_issue_as_often_as_the_code_tells(what, generation):
    source, trips = TOLD[what]
    work, made = read(source, generation)
    assert [loop.trips for loop in work.loops] == list(trips)
    issued = of_start(work)
    core = counted(made)
    assert issued.bundles == core.bundles
    assert issued.loads == sum(core.counts[at] for at in core.counts if "lda" in text_at(work, at))


def text_at(work: ProgramWork, address: int) -> str:
    return bundle_text(work.program.generation, work.program.bundles[address])


@pytest.mark.parametrize("reason", NOT_TOLD)
def test_what_the_code_does_not_tell_is_said(reason):
    start, *_ = read(NOT_TOLD[reason], "aie2p")[0].functions()
    assert (start.work, start.missing) == (None, reason)


@pytest.mark.parametrize("what", BESIDE)
def test_a_loop_that_may_run_otherwise_has_no_count(what):
    loops = read(BESIDE[what], "aie2p")[0].loops
    assert loops
    assert {loop.trips for loop in loops} == {None}


def test_calls_that_double_and_that_nest_are_bounded():
    """The work of a function is summed up once; calls one in another are followed as far as any program has them."""
    names = [f"f{i}" for i in range(60)]
    bodies = "".join(f"{ALIGN}{one}: jl #{two}\n{FIVE}jl #{two}\n{FIVE}ret\n{FIVE}" for one, two in pairwise(names))
    source = f"jl #f0\n{DONE}{bodies}{ALIGN}{names[-1]}: ret\n{FIVE}"
    work, _ = read(source, "aie2p")
    assert of_start(work).bundles == 7 + sum(18 * 2**i for i in range(59)) + 6 * 2**59
    chain = "".join(f"{ALIGN}f{i}: jl #f{i + 1}\n{FIVE}ret\n{FIVE}" for i in range(80))
    start, *_ = read(f"jl #f0\n{DONE}{chain}{ALIGN}f80: ret\n{FIVE}", "aie2p")[0].functions()
    assert "nest too deeply" in start.missing


PRODUCTS = [  # generation, number of conf, instruction, product, MACs (the AIE API's shapes)
    ("aie2p", 0x308, "vmac dm0, dm0, x0, x1, r4", "8x8x8 int8 x int8", 512),
    ("aie2p", 0x31A, "vmul dm0, x0, x1, r4", "4x4x8 int16 x int16", 128),
    ("aie2p", 60, "vmac.f dm0, dm0, y0, y1, r4", "64 lanes bf16", 64),
    ("aie2p", 780, "vmac.f dm0, dm0, ex0, ex2, r4", "8x8x8 bfp16", 512),
    ("aie2", 0x308, "vmac cm0, cm0, x0, x1, r4", "4x8x8 int8 x int8", 256),
    ("aie2", 0x1C, "vmac.f bml0, bml0, x0, x1, r4", "4x8x4 bf16", 128),
]


@pytest.mark.parametrize(("generation", "conf", "instruction", "product", "macs"), PRODUCTS)
def test_a_product_is_told_by_the_constant_in_its_register(generation, conf, instruction, product, macs):
    loop = f"movx r7, #3\n{ALIGN}l: add r7, r7, #-1\n{instruction}\njnz r7, #l\n{FIVE}done\n"
    work, _ = read(f"movxm r4, #{conf}\n{loop}", generation)
    issued = of_start(work)
    assert (issued.products, issued.macs, issued.unknown) == ({product: 3}, 3 * macs, 0)
    assert work.own[work.loops[0]].macs_per_bundle == macs / 8


def test_a_program_of_no_bundles_does_nothing():
    nothing = ProgramWork(KnownConstants(control_flow(CoreProgram("", (CoreSegment(0, b"\xff" * 16),), "aie2p"))))
    assert (nothing.functions(), nothing.loops, nothing.open_forms(), dict(nothing.own)) == ([], [], {}, {})


def test_a_product_whose_register_is_loaded_is_counted_apart():
    issued = of_start(read("lda r4, [p0, #0]\nvmac dm0, dm0, x0, x1, r4\ndone\n", "aie2p")[0])
    assert (issued.products, issued.macs, issued.unknown) == ({}, 0, 1)


def test_open_forms_are_told_with_their_addresses():
    work, _ = read(2 * "nop\nvldb.fillx.512 r30, [p0, lf0, r24]\n" + "done\n", "aie2p")
    assert {name[:10]: places for name, places in work.open_forms().items()} == {"VLDB_FILLX": [2, 8]}
