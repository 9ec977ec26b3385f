"""Assembler and disassembler: layout, symbols, ELFs, and bytes that come back from listings."""

import io
import random
from contextlib import suppress

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.array.images.programs import read_programs
from bdforge.common.binary import ImageError
from bdforge.core import isa
from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.disassembler import disassemble, latency, pieces
from bdforge.core.isa.elf import CoreProgram, CoreSegment, core_elf, core_segments, generation_of, program_of
from bdforge.core.isa.errors import AssemblyError
from support.images import IMAGES
from support.instructions import draw

SOURCE = """
        .globl  main
width = 64
main:   movxm p0, #buffer + 64 ; nopa       // a comment; with a semicolon
        movxm ls, #loop
        jl #f
        nop
        nop
        nop
        nop
        nop
        done
        .p2align 4
loop:   padda [p0], #width
        .p2align 4
f:      ret
        nop
        nop
        nop
        nop
        nop
        .data
buffer: .word   1, 2, main + 4, -1
text:   .asciz  "a,b//c" /* over
        two lines */
half:   .short  0xffff
        .section .rodata, 0x74000
table:  .quad   0x0123456789abcdef
        .bss
scratch: .zero  32
"""


def test_layout_symbols_and_data():
    program = assemble(SOURCE)
    symbols = program.symbols
    assert (symbols["main"], symbols["loop"] % 16, symbols["width"]) == (0, 0, 64)
    assert symbols["buffer"] == 0x70000
    assert symbols["table"] == 0x74000
    assert symbols["scratch"] >= 0x74008
    assert dict(program.data)[0x70000] == bytes.fromhex("010000000200000004000000ffffffff") + b"a,b//c\0\xff\xff"
    assert dict(program.data)[0x74000] == 0x0123456789ABCDEF.to_bytes(8, "little")
    assert program.zeros == ((symbols["scratch"], 32),)
    decoded = [b for _, b in isa.load("aie2p").decode_program(program.code[0][1])]
    assert next(iter(decoded[0]))["i"] == 0x70040
    assert next(iter(decoded[1]))["i"] == symbols["loop"]
    assert next(iter(decoded[2]))["i"] == symbols["f"]
    assert {source.line.text.split()[0] for source in program.sources.values()} >= {"main:", "jl", "f:"}


def test_the_elf_loads_by_the_loaders_rules_and_keeps_names():
    program = assemble(SOURCE)
    segments, generation, names = core_segments(program.elf())
    assert generation == "aie2p"
    code = segments[0].data
    assert code == program.code[0][1] + bytes(-len(program.code[0][1]) % 4)
    loaded = {segment.address: segment.data for segment in segments[1:]}
    assert loaded == dict(program.data) | {address: bytes(size) for address, size in program.zeros}
    assert names[0] == "main"
    assert names[program.symbols["f"]] == "f"


def test_pyelftools_reads_the_elf():
    file = ELFFile(io.BytesIO(assemble(SOURCE).elf()))
    assert [s.name for s in file.iter_sections()][:4] == ["", ".text", ".data", ".data"]
    table = file.get_section_by_name(".symtab")
    assert isinstance(table, SymbolTableSection)
    symbols = {s.name: s["st_value"] for s in table.iter_symbols()}
    assert symbols["buffer"] == 0x70000
    assert file["e_flags"] == 3


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_a_listing_of_random_bundles_assembles_to_the_same_bytes(generation):
    isa_ = isa.load(generation)
    rng = random.Random(11)
    by_slot = {slot: [f for f in isa_.forms.values() if f.slot == slot] for slot in isa_.nops}
    code = b"".join(
        isa_.encode([draw(rng.choice(by_slot[slot]), rng) for slot, _, _ in fmt.lanes])
        for fmt in isa_.formats.values()
        for _ in range(3)
    )
    program = CoreProgram("", (CoreSegment(0, code[:800]), CoreSegment(0x1000, code[:640])), generation)
    for latencies in (False, True):
        text = "\n".join(disassemble(program, latencies=latencies))
        assert assemble(text, generation).code == ((0, code[:800]), (0x1000, code[:640]))


@pytest.mark.parametrize("generation", isa.GENERATIONS)
def test_a_listing_of_random_bytes_assembles_to_the_same_bytes(generation):
    rng = random.Random(12)
    for length in (1, 15, 300, 2000):
        code = rng.randbytes(length)
        text = "\n".join(disassemble(CoreProgram("", (CoreSegment(0, code),), generation)))
        assert assemble(text, generation).code == ((0, code),)


def test_the_generation_of_unmarked_code_is_found():
    for generation in isa.GENERATIONS:
        isa_ = isa.load(generation)
        rng = random.Random(13)
        forms = [f for f in isa_.forms.values() if f.slot != "nop"]
        code = b"".join(isa_.encode([draw(rng.choice(forms), rng)]) for _ in range(60))
        assert generation_of(CoreProgram("", (CoreSegment(0, code),))) == generation


def test_gaps_before_functions_do_not_hide_their_first_bundles():
    """AIE2 takes six zero bytes for the start of a bundle of 16."""
    isa_ = isa.load("aie2")
    start = 32
    function = isa_.encode([isa_.instruction("RET")])
    head = isa_.encode([isa_.instruction("JL", imm=start)]) + bytes(isa_.nop(2)) * 5
    head += isa_.encode([isa_.instruction("DONE")])
    code = head + bytes(start - len(head)) + function + bytes(isa_.nop(2)) * 5
    assert isa_.size(code[len(head)]) > start - len(head)
    lines = list(disassemble(CoreProgram("", (CoreSegment(0, code),), "aie2")))
    assert any(line.startswith("\tret") for line in lines)
    assert assemble("\n".join(lines), "aie2").code == ((0, code),)


def test_what_is_no_bundle_ends_where_a_target_may_stand():
    code = CoreProgram("", (CoreSegment(4, b"\xff" * 40),), "aie2p")
    (found,) = pieces(isa.load("aie2p"), code)
    assert [(piece.address, len(piece.data)) for piece in found] == [(4, 12), (16, 16), (32, 12)]


def test_latencies_tell_results_and_what_is_read_behind_the_first_cycle():
    aie2p = isa.load("aie2p")
    assert latency(aie2p.instruction("MAC", d0="r4", s0="r5", s1="r6")) == "MAC: r4 after 2; reads r4 at 2"
    assert latency(aie2p.instruction("MUL", d0="r4", s0="r5", s1="r6")) == "MUL: r4 after 2"


@pytest.mark.parametrize(("name", "label"), [("main", "main:"), ("a.b_c$", "a.b_c$:"), ("1st", None), ("a b", None)])
def test_names_that_assembly_can_say_are_labels(name, label):
    code = bytes(isa.load("aie2p").nop(2)) * 4
    lines = list(disassemble(CoreProgram("", (CoreSegment(0, code),), "aie2p", {0: name})))
    assert [line for line in lines if line.endswith(":")] == ([label] if label else [])


def test_names_of_addresses_are_global_ones_and_each_is_said_once():
    """Of two names of an address the exported one is told; of two addresses of a name the first is labelled."""
    for exported in ("one", "two"):
        elf = core_elf("aie2p", [(0, bytes(16))], [], [], {"one": 8, "two": 8, "three": 0}, frozenset({exported}))
        assert program_of(elf).symbols == {0: "three", 8: exported}
    code = bytes(isa.load("aie2p").nop(2)) * 4
    lines = list(disassemble(CoreProgram("", (CoreSegment(0, code),), "aie2p", {2: "twice", 4: "twice", 6: "more"})))
    assert [line for line in lines if line.endswith(":")] == ["twice:", "more:"]


def test_names_of_a_program_are_those_of_its_memory():
    symbols = {"main": 0, "last": 0x3FFC, "data": 0x4000, "far": 0x70400}
    pieces = [(0, bytes(16)), (0x3FFC, bytes(4))], [(0x4000, bytes(4)), (0x70400, bytes(4))]
    (program,) = read_programs(core_elf("aie2p", *pieces, [], symbols))
    assert program.symbols == {0: "main", 0x3FFC: "last"}


def test_programs_of_containers():
    (core,) = read_programs(IMAGES["core_elf_small"])
    assert (core.generation, len(core.code), core.code[0].address) == ("aie2p", 1, 0)
    (tile,) = read_programs(IMAGES["pdi_core"])
    assert tile.name == "tile (1, 2)"
    assert tile.code[0].data[: len(core.code[0].data)] == core.code[0].data
    for empty in ("xclbin_small", "full_elf_small"):  # designs without a core's program
        with pytest.raises(ImageError, match="writes no program memory"):
            read_programs(IMAGES[empty])


@pytest.mark.parametrize("name", list(IMAGES))
def test_broken_containers_end_with_a_reason(name):
    rng = random.Random(14)
    whole = IMAGES[name]
    for _ in range(150):
        broken = bytearray(whole[: rng.choice([len(whole), rng.randrange(len(whole))])])
        for _ in range(rng.randrange(1, 5)):
            if broken:
                broken[rng.randrange(len(broken))] = rng.randrange(256)
        with suppress(ImageError):
            for program in read_programs(bytes(broken)):
                assert list(disassemble(program, "aie2p"))


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("nop\nfoo r0\n", "source.s:2: aie2p has no instruction 'foo'"),
        ("mova r0, #1 ; mova r1, #2", "both need slot lda"),
        ("a:\na:", "a is defined twice"),
        (".data\n nop", "an instruction in .data, which is data"),
        (".banana", "unknown directive .banana"),
        (".word", ".word takes an argument"),
        (".ascii abc", "abc is no string in quotation marks"),
        ('.ascii "abc', "quotation mark is never closed"),
        ("nop ; ; nop", "an instruction is missing"),
        (".old banana\n nop", "banana is no register of aie2p"),
    ],
)
def test_wrong_source_is_refused_by_line(source, message):
    with pytest.raises(AssemblyError) as caught:
        assemble(source)
    assert message in str(caught.value)
    assert len(str(caught.value)) < 4096


def test_many_errors_are_listed_together_and_bounded():
    with pytest.raises(AssemblyError) as caught:
        assemble("foo\n" * 5000)
    assert "source.s:1:" in str(caught.value)
    assert "and 4988 more" in str(caught.value)
    assert len(str(caught.value)) < 4096
