"""Listings of whole programs: the same bytes, marked loops, cycles of blocks, and where blocks lead."""

import random
import re

import pytest

from bdforge.array.images.programs import distinct, read_programs
from bdforge.core.isa import GENERATIONS
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.disassembler import control_flow
from bdforge.core.isa.elf import CoreProgram, CoreSegment
from bdforge.core.isa.flow_graph import blocks_of
from bdforge.core.isa.program_listing import listing_of
from bdforge.core.isa.program_work import ProgramWork
from support.coded_folders import coded
from support.machine_code_designs import gemm_elf

FIVE, ALIGN = "nop\n" * 5, ".p2align 4\n"
LOOPS = f"""
main:   movxm p0, #back
        movx r1, #2
        movx r7, #3
        {ALIGN}
in:     add r7, r7, #-1
        nop
        jnz r7, #in
        {FIVE}
        jl #f
        {FIVE}
        {ALIGN}
back:   jnzd r1, r1, p0
        {FIVE}
        movxm ls, #first
        movxm le, #last
        movxm lc, #6
        {FIVE}nop
        {ALIGN}
first:  nop
        {ALIGN}
last:   nopa ; nopb ; nops ; nopx ; nopm ; nopv
        done
        {ALIGN}
f:      ret
        {FIVE}"""


def made(source: str, generation: str = "aie2p") -> CoreProgram:
    return CoreProgram("", tuple(CoreSegment(*piece) for piece in assemble(source, generation).code), generation)


def pieces(program: CoreProgram) -> tuple[tuple[int, bytes], ...]:
    return tuple((segment.address, segment.data) for segment in program.code)


def same_bytes(program: CoreProgram, generation: str) -> bool:
    return assemble(listing_of(program, "p", "", generation).assembly, generation).code == pieces(program)


def foreign(generation: str) -> dict[str, tuple[tuple[int, bytes], ...]]:
    """Programs as nobody's tools write them."""
    rng = random.Random(5)
    code = assemble(LOOPS, generation).code[0][1]
    return {
        "behind a gap": ((0x30, code),),
        "two with a gap between": ((0, code), (0x1000, code)),
        "at odd addresses": ((1, code), (0x403, code[:37])),
        "cut in a bundle": ((0, code[:-3]),),
        "data in the gap of a function": (
            (0, assemble(f"j #l\n{FIVE}.byte 0xff, 1\n{ALIGN}l: done\n", generation).code[0][1]),
        ),
        "words that are no bundle": ((0, b"\xff" * 24 + code + rng.randbytes(101)),),
        "random bytes": ((0, rng.randbytes(3000)),),
        "zeros to the end": ((0, code + bytes(0x800 - len(code))),),
        "a jump into the middle of a bundle": ((0, assemble("jl #18\n", generation).code[0][1] + code),),
    }


@pytest.mark.parametrize("what", foreign("aie2p"))
@pytest.mark.parametrize("generation", GENERATIONS)
def test_foreign_programs_come_back_from_their_listings(what, generation):
    code = tuple(CoreSegment(*piece) for piece in foreign(generation)[what])
    assert same_bytes(CoreProgram("tile (0, 2)", code), generation)


def test_a_program_of_an_image_comes_back_from_its_listing(tmp_path):
    xclbin = next(coded(tmp_path, "norm").folder.glob("*.xclbin")).read_bytes()
    found = distinct(read_programs(xclbin))
    assert [len(program.same) for program in found] == [1]
    assert same_bytes(found[0].program, "aie2p")


@pytest.mark.parametrize("generation", GENERATIONS)
def test_programs_of_elfs_come_back_with_their_names(generation):
    (found,) = distinct(read_programs(gemm_elf(generation)))
    assert same_bytes(found.program, generation)
    assert re.search(r"^rows:$", listing_of(found.program, "p", "").assembly, re.MULTILINE)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_loops_and_functions_are_marked_and_targets_have_labels(generation):
    text = listing_of(made(LOOPS, generation), "p", "one core").assembly
    assert text.startswith(f"// one core\n// `bdforge asm p.s --unchecked --arch {generation} -o p.elf` makes the same")
    lines = [re.sub(r", \d+ bytes", "", re.sub(r"0x\w+", "AT", line)).strip() for line in text.splitlines()]
    for mark in (
        "// loop to AT, 3 times: 8 bundles", "// loop to AT, 3 times: 6 bundles",
        "// hardware loop to AT, 6 times: 3 bundles", "// function of 6 bundles; a call issues 6 bundles",
    ):  # fmt: skip
        assert lines[lines.index(mark) + 1].endswith(":"), mark


def test_cycles_count_from_the_start_of_each_block():
    text = listing_of(made(f"nop\nnop\njz r0, #l\n{FIVE}nop\n{ALIGN}l: nop\ndone\n"), "p", "").assembly
    margins = re.findall(r"// 0x\w{4} +(\d+):", text)
    assert margins == [*"01234567", *margins[8:-2], "0", "1"]


def test_blocks_lead_where_control_goes():
    work = ProgramWork(KnownConstants(control_flow(made(LOOPS))))
    symbols = assemble(LOOPS).symbols
    at = {address: name for name, address in symbols.items()}
    edges = {
        (at.get(block.start, "-"), at.get(edge.target, "-"), edge.kind)
        for block in blocks_of(work) for edge in block.edges
    }  # fmt: skip
    assert edges >= {
        ("main", "in", "next"), ("in", "in", "jump"), ("-", "f", "call"), ("-", "back", "next"),
        ("back", "back", "jump"), ("-", "first", "next"), ("first", "first", "loop"),
    }  # fmt: skip
    assert not [edge for edge in edges if edge[0] == "f"], "nobody follows a return"
    graph = listing_of(made(LOOPS), "p", "").graph
    assert f'b{symbols["first"]:x} -> b{symbols["first"]:x} [label="loop"];' in graph
    assert "style=dashed" in graph


def test_equal_programs_are_one():
    def tile(row: int, data: bytes) -> CoreProgram:
        return CoreProgram(f"tile (0, {row})", (CoreSegment(0, data),), tile=(0, row))

    found = distinct([tile(2, b"ab"), tile(3, b"cd"), tile(4, b"ab")])
    assert [(program.program.name, program.tiles) for program in found] == [
        ("tile (0, 2)", [(0, 2), (0, 4)]), ("tile (0, 3)", [(0, 3)]),
    ]  # fmt: skip
