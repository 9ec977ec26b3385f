"""Directives, sections and hazards at their limits: the last that is taken, and the first that is not."""

import struct
from dataclasses import replace

import pytest

from bdforge.common.binary import ImageError
from bdforge.core.isa import GENERATIONS, RegisterAccess, load
from bdforge.core.isa.assembler import Assembled, assemble
from bdforge.core.isa.effects import after_read, distance
from bdforge.core.isa.elf import core_elf, core_segments
from bdforge.core.isa.errors import AssemblyError, DecodeError, EncodeError
from bdforge.core.isa.hazards import check_source
from bdforge.core.isa.operand_kinds import Immediate
from bdforge.core.isa.syntax import match


def told(source: str) -> Assembled | str:
    """The program, or why there is none."""
    try:
        return assemble(source, "aie2p", "k.s")
    except AssemblyError as error:
        return str(error)


WIDTHS = {".byte": 1, ".short": 2, ".hword": 2, ".half": 2, ".long": 4, ".int": 4, ".word": 4, ".quad": 8}


@pytest.mark.parametrize("name", WIDTHS)
def test_numbers_have_the_width_of_their_directive(name: str):
    bits = 8 * WIDTHS[name]
    low, high = -(1 << bits - 1), (1 << bits) - 1
    program = told(f".data\n{name} {low}, {high}, 1, -1\n")
    values = [value % (1 << bits) for value in (low, high, 1, -1)]
    data = b"".join(value.to_bytes(bits // 8, "little") for value in values)
    assert isinstance(program, Assembled), f"{name}: {program}"
    assert program.data == ((0x70000, data),), f"{name} writes {program.data[0][1].hex()}, not {data.hex()}"
    for value in (low - 1, high + 1):
        assert f"{value} does not fit {bits} bits" in str(told(f".data\n{name} {value}\n")), f"{name} {value}"


NONE = "is no alignment: a power of two up to 65536"
EXPONENT = "is no alignment: an exponent of two from 0 to 16"
LINES = {  # source of data: bytes from 0x70000 on, or why it is refused
    ".balign 1\n.byte 1": b"\1", ".balign 0": NONE, ".balign -4": NONE, ".balign 3": NONE, ".balign 131072": NONE,
    ".byte 1\n.balign 8\n.byte 2": b"\1" + bytes(7) + b"\2", ".byte 1\n.p2align 3\n.byte 2": b"\1" + bytes(7) + b"\2",
    ".byte 1\n.align 1\n.byte 2": b"\1\0\2", ".byte 1\n.p2align 0\n.byte 2": b"\1\2",
    ".byte 1\n.balign 4\n.balign 4\n.byte 2": b"\1\0\0\0\2", ".balign 65536\n.byte 1": b"\1",
    ".p2align 16\n.byte 1": b"\1", ".p2align 17": f"17 {EXPONENT}", ".p2align -1": f"-1 {EXPONENT}",
    ".byte 1\n.balign 2\n.byte 2": b"\1\0\2",
    ".zero 3\n.byte 1": b"\0\0\0\1", ".skip 2, 0x101\n.byte 7": b"\1\1\7", ".space 0\n.byte 1": b"\1",
    ".zero -1": "-1 bytes do not fit any memory", ".zero 0x40001": "262145 bytes do not fit any memory",
    '.ascii "ab"': b"ab", '.asciz "ab"': b"ab\0", '.string "a", "b"': b"a\0b\0", '.ascii "\\n\\u00e9"': b"\n\xc3\xa9",
    ".byte 1, 2\n.org 2\n.byte 3": b"\1\2\3", ".byte 1, 2\n.org 1": "lies before 0x2",
    ".org 0x80000": "or outside of all memories", "a = 1\na = 2\n.byte a": b"\2",
    "a: .byte 1\na = 2": "a is defined twice", "a = 2\na: .byte 1": "a is defined twice",
    ".set a": ".set takes 2 arguments", ".byte b": "symbol 'b' is not defined",
    ".byte c - a\na = 3\nb = a * 2\nc = b + 1": b"\4", ".section .bss\n.zero 4, 1": ".bss holds zeros only",
    '.section .bss.x\n.ascii "a"': ".bss.x holds zeros only", ".bss\n.word 0, 1": ".bss holds zeros only",
}  # fmt: skip


@pytest.mark.parametrize("source", LINES)
def test_directives_lay_out_data_up_to_their_limits(source: str):
    found, wanted = told(f".data\n{source}\n"), LINES[source]
    if isinstance(wanted, str):
        assert wanted in str(found), f"{source!r}: {found}"
        return
    assert isinstance(found, Assembled), f"{source!r}: {found}"
    assert found.data == ((0x70000, wanted),), f"{source!r} gives {found.data}, not {wanted!r}"


@pytest.mark.parametrize("widest", [".balign 65536", ".p2align 16", ".align 16"])
def test_the_widest_alignment_is_a_whole_memory(widest: str):
    found = assemble(f".section .data, 0x40000\n.byte 1\n{widest}\n.byte 2")
    assert [(address, len(data), data[0], data[-1]) for address, data in found.data] == [(0x40000, 65537, 1, 2)]


PLACES = {  # section and address, bytes: whether it fits
    (".text", 0x3FF0, 16): True, (".text", 0x3FF0, 18): False, (".data", 0x7FFFC, 4): True,
    (".data", 0x7FFFC, 5): False, (".data", 0x40000, 4): True, (".data", 0x3FFFC, 4): False,
    (".bss", 0x7FFF0, 16): True, (".bss", 0x7FFF0, 17): False, (".data", 0x40000, 0x40000): True,
}  # fmt: skip


@pytest.mark.parametrize("place", PLACES, ids=str)
def test_sections_end_with_their_memory(place: tuple[str, int, int]):
    name, address, size = place
    lines = "nop\n" * (size // 2) if name == ".text" else f".zero {size}\n"
    found = told(f".section {name}, {address:#x}\n{lines}")
    assert isinstance(found, Assembled) == PLACES[place], f"{place}: {found}"
    if isinstance(found, str):
        assert "beyond program memory (0x0 to 0x4000)" in found or "beyond data memory (0x40000 to 0x80000)" in found


def test_sections_without_an_address_follow_one_another():
    """Code at multiples of 16, data at multiples of 64 behind what has an address, zeros last."""
    found = assemble(
        ".section .bss.a\n.zero 4\n.section .text.b\nnop\n.section .data.c\n.byte 1\n"
        ".section .data.d, 0x70100\n.byte 2\n.section .data.e\n.byte 3\n.text\nnop\n.section .bss.f\n.zero 4\n"
    )
    assert [address for address, _ in found.code] == [0x0, 0x10] or [a for a, _ in found.code] == [0x10, 0x0]
    assert dict(found.data) == {0x70000: b"\1", 0x70100: b"\2", 0x70140: b"\3"}
    assert found.zeros == ((0x70180, 4), (0x701C0, 4))


def elf(segments: list[tuple[int, int, int, bytes]], rest: bytes = b"", flags: int = 3, machine: int = 0x108) -> bytes:
    """A core's ELF of (address, bytes in the file, bytes in memory, data) with `rest` behind the last."""
    at, headers, body = 52 + 32 * len(segments), b"", b""
    for address, in_file, size, data in segments:
        headers += struct.pack("<8I", 1, at + len(body), 0, address, in_file, size, 5, 16)
        body += data
    counts = struct.pack("<6H", 52, 32, len(segments), 40, 0, 0)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    return ident + struct.pack("<HHIIIII", 2, machine, 1, 0, 52, 0, flags) + counts + headers + body + rest


@pytest.mark.parametrize("size", range(4, 9))
def test_a_segment_is_completed_to_a_word_by_what_follows_in_the_file(size: int):
    data = bytes(range(1, 9))
    (found,), _, _ = core_segments(elf([(16, size, size, data)]))
    assert (found.address, found.data, found.tail) == (16, data[:size], data[size : size + -size % 4])


def test_a_segment_is_as_large_as_its_memory_size_and_no_larger_than_all_memories():
    """Bytes come from the file, zeros only where it has none of the segment; empty ones are left out."""
    (zeros,), _, _ = core_segments(elf([(0x40000, 0, 1 << 18, b"")]))
    assert zeros.data == bytes(1 << 18)
    with pytest.raises(ImageError, match="segment 1 has 0x40001 bytes; a core's memories hold 0x40000"):
        core_segments(elf([(0, 0, 0, b""), (0x40000, 0, (1 << 18) + 1, b"")]))
    (longer,), _, _ = core_segments(elf([(0, 4, 6, b"abcdefgh"), (64, 0, 0, b"")]))
    assert longer.data == b"abcdef"
    with pytest.raises(ImageError, match="segment 0"):
        core_segments(elf([(0, 9, 9, b"abcdefgh")]))


@pytest.mark.parametrize(("flags", "generation"), [(2, "aie2"), (3, "aie2p"), (6, "aie2"), (0, None), (1, None)])
def test_the_generation_is_told_by_two_bits_of_the_flags(flags: int, generation: str | None):
    assert core_segments(elf([(0, 4, 4, bytes(4))], flags=flags))[1] == generation
    with pytest.raises(ImageError, match="machine 0x109 instead of 0x108"):
        core_segments(elf([], flags=flags, machine=0x109))


WRITTEN, READ = RegisterAccess("x0", 7, "dst"), RegisterAccess("x0", 2, "src")
FORWARDED, READY = replace(WRITTEN, bypass="MV"), replace(READ, bypass="MV")


@pytest.mark.parametrize(
    ("write", "read", "cycles"),
    [(WRITTEN, READ, 6), (FORWARDED, READY, 5), (FORWARDED, READ, 6), (WRITTEN, READY, 6),
     (FORWARDED, replace(READ, bypass="VEC"), 6), (replace(WRITTEN, stage=1), replace(READ, stage=1), 1)],
)  # fmt: skip
def test_a_read_sees_a_result_behind_its_stage_or_with_it_where_it_is_forwarded(write, read, cycles: int):
    """A cycle less and it sees the old value: so many cycles later the write may issue at the earliest."""
    assert (distance(write, read), after_read(write, read)) == (cycles, 1 - cycles)


def rules(source: str, generation: str = "aie2p") -> list[str]:
    return sorted({hazard.rule for hazard in check_source(assemble(f"{source}\nnop\n", generation, "k.s"))})


FULL = "nopa ; nopb ; nops ; nopx ; nopm ; nopv\n"
END = "nop\n" * 10 + "done\n"


@pytest.mark.parametrize("full", range(3, 9))
def test_a_loop_s_registers_are_set_seven_bundles_before_its_last(full: int):
    head = "movxm ls, #last\nmovxm le, #last\n" + "nop\n" * 8
    source = f"{head}.p2align 4\nset: movx lc, #4 ; nopa ; nopb ; nops ; nopm ; nopv\n{FULL * full}last: {FULL}{END}"
    program = assemble(source, "aie2p", "k.s")
    apart = sum(program.symbols["set"] <= at < program.symbols["last"] for at in program.sources)
    assert apart == full + 1
    found = [hazard.message for hazard in check_source(program) if hazard.rule == "loop"]
    assert bool(found) == (apart < 7), f"{apart} bundles before the last: {found}"


ADDRESSES = {0x40000: [], 0x3FFC0: ["no-memory"], 0x7FFC0: [], 0x80000: ["no-memory"], 0x70020: ["misaligned"]}


@pytest.mark.parametrize("address", ADDRESSES, ids=hex)
def test_vectors_lie_whole_in_data_memory(address: int):
    assert rules(f"movxm p0, #{address:#x}\nvlda x0, [p0, #0]\n{END}") == ADDRESSES[address], hex(address)


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("between", range(6))
def test_locks_need_four_cycles_of_their_port(between: int, generation: str):
    nops = "nop\n" * between
    found = rules(f"movx r0, #1\nrel #48, r0\n{nops}rel #49, r0\n{END}", generation)
    assert found == (["locks-too-close"] if between < 3 else []), f"{between} bundles between"


WALKS = {0xFFFC0: [], -64: [], 64: ["no-memory"]}


@pytest.mark.parametrize("step", WALKS)
def test_pointers_of_twenty_bits_go_round(step: int):
    """From 64 bytes into the last memory's end: back, by a negative step or by its twenty bits, or on and out."""
    source = f"movxm p0, #0x7ffc0\nmovxm m0, #{step}\nvlda x0, [p0], m0\nvlda x1, [p0, #0]\n{END}"
    assert rules(source) == WALKS[step]


def walk(start: int) -> str:
    """Three passes over four vectors each, in memory from `start` on."""
    between = "nop\n" * 5
    return (
        f"movxm p0, #{start}\nmovx r1, #3\nmovxm m0, #-256\n"
        f".p2align 4\nouter: movx r2, #4\n"
        f".p2align 4\ninner: vlda x0, [p0], #64\nadd r2, r2, #-1\njnz r2, #inner\n{between}"
        f"padda [p0], m0\nvlda x1, [p0, #0]\nadd r1, r1, #-1\njnz r1, #outer\n{between}{END}"
    )


@pytest.mark.parametrize(("start", "found"), [(0x40000, []), (0x3FFC0, ["no-memory"])])
def test_what_a_loop_steps_is_that_of_all_its_passes(start: int, found: list[str]):
    """The first pass is not the last one: pointers that go back by what all passes step do not leave memory."""
    assert rules(walk(start)) == found


@pytest.mark.parametrize("between", range(4, 9))
def test_a_narrow_store_keeps_memory_for_six_cycles(between: int):
    nops = "nop\n" * between
    found = rules(f"movxm p0, #0x70000\nmovx r0, #1\nst.s8 r0, [p0, #0]\n{nops}vst x0, [p0, #64]\n{END}")
    assert ("store-window" in found) == (between < 6), f"{between} bundles between"


WORDS = {"0x7fffffff": 2**31 - 1, "0x80000000": -(2**31), "0xffffffff": -1, "-1": -1, "-0x80000000": -(2**31), "0": 0}


@pytest.mark.parametrize("generation", GENERATIONS)
@pytest.mark.parametrize("text", WORDS)
def test_a_word_may_be_written_without_its_sign(text: str, generation: str):
    register, value = sorted(match(load(generation), f"movxm r3, #{text}", {}).operands.values(), key=str)[::-1]
    assert (register, value) == ("r3", WORDS[text])


@pytest.mark.parametrize("text", ["0x100000000", "-0x80000001"])
def test_more_than_a_word_is_refused(text: str):
    with pytest.raises(EncodeError, match="is outside -2147483648 to 2147483647"):
        match(load("aie2p"), f"movxm r3, #{text}", {})


IMMEDIATES = [(bits, step, signed, negative) for bits in (1, 4, 7) for step in (1, 4, 64)
              for signed, negative in ((False, False), (True, False), (False, True))]  # fmt: skip


@pytest.mark.parametrize("facts", IMMEDIATES, ids=str)
def test_numbers_of_a_field_are_those_of_its_bits_and_steps(facts: tuple[int, int, bool, bool]):
    bits, step, signed, negative = facts
    kind = Immediate("imm", *facts)
    count, half = 1 << bits, 1 << bits - 1
    numbers = range(-count, 0) if negative else range(-half, half) if signed else range(count)
    values = [number * step for number in numbers]
    assert (kind.low, kind.high) == (values[0], values[-1])
    for value in values:
        assert kind.encode(value) == value // step % (1 << bits), f"{facts}: {value}"
        assert kind.decode(kind.encode(value)) == value, f"{facts}: {value}"
    for value in (values[0] - step, values[-1] + step):
        with pytest.raises(EncodeError, match=f"#{value} is outside {values[0]} to {values[-1]} in steps of {step}"):
            kind.encode(value)
    if step > 1:
        with pytest.raises(EncodeError, match=f"#{values[0] + 1} is not a multiple of {step}"):
            kind.encode(values[0] + 1)


@pytest.mark.parametrize("generation", GENERATIONS)
def test_bundles_end_with_their_code(generation: str):
    isa = load(generation)
    for size in range(2, 17, 2):
        code = bytes(isa.nop(size))
        bundle = isa.decode(code)
        assert (len(code), bundle.size, list(bundle), isa.size(code[0])) == (size, size, [], size)
        with pytest.raises(DecodeError, match=f"a bundle of {size} bytes starts here, but .* ends at {size - 1:#x}"):
            isa.decode(code[:-1])
        with pytest.raises(DecodeError, match=f"the code ends at {size:#x}"):
            isa.decode(code, size)
    for size in (0, 1, 3, 18):
        with pytest.raises(EncodeError, match=f"no bundle has {size} bytes; sizes are 2, 4, ... 16"):
            isa.nop(size)


@pytest.mark.parametrize("sizes", [(2, 5, 3), (16, 16, 16), (18, 1, 64), (4, 0, 15)], ids=str)
def test_segments_begin_at_multiples_of_16_in_the_file(sizes: tuple[int, int, int]):
    """What follows a segment in the file never counts as its own: bytes are as many as in memory."""
    code, data, more = (bytes([i + 1]) * size for i, size in enumerate(sizes))
    elf_ = core_elf("aie2", [(0, code)], [(0x70000, data), (0x70100, more)], [(0x70200, 9)], {"a": 0})
    headers = [struct.unpack_from("<8I", elf_, 52 + 32 * i) for i in range(4)]
    assert [(header[1] % 16, header[7]) for header in headers] == [(0, 16)] * 4
    assert [elf_[at : at + size] for _, at, _, _, size, *_ in headers] == [
        code + bytes(-len(code) % 4), data, more, b"",
    ]  # fmt: skip
    assert (struct.unpack_from("<I", elf_, 32)[0] % 4, struct.unpack_from("<I", elf_, 36)[0]) == (0, 2)
    ends = [(segment.address, len(segment.data)) for segment in core_segments(elf_)[0]]
    words = -(-sizes[0] // 4) * 4
    kept = [(0, words), (0x70000, sizes[1]), (0x70100, sizes[2]), (0x70200, 9)]
    assert ends == [place for place in kept if place[1]]


@pytest.mark.parametrize(
    "name", ["file", "type", "size", "ident", "addrsig", "addrsig_sym", "loc", "weak", "local", "hidden"]
)
def test_what_compilers_say_for_others_is_left_out(name: str):
    found = told(f".{name} main, 1\nnop\n.{name.upper()}\n")
    assert isinstance(found, Assembled), found
    assert (found.code, found.exported) == (assemble("nop").code, frozenset())
