"""Numbers of assembly as expressions."""

import io

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.core.isa.assembler import assemble
from bdforge.core.isa.assembly_text import evaluate, unknown
from bdforge.core.isa.errors import AssemblyError, EncodeError

NAMES = {"A": 8, "b.c": 3, "$d": -5}
VALUES = {
    "7": 7, " 0x10 ": 16, "0b101": 5, "-4": -4, "- 0x40": -64, "A": 8, "A + 1": 9, "A-1": 7, "2*(A + b.c)": 22,
    "A * b.c - $d": 29, "1 << A": 256, "A / b.c": 2, "-7 / 2": -4, "A % 5": 3, "-7 % 4": 1, "7 // 2": 3,
    "+A": 8, "6 & 3": 2, "6 | 3": 7, "6 ^ 3": 5, "-8 >> 1": -4, "~0 & 0xff": 255, "A | 3 ^ 1": 10,
    "256 >> b.c >> 1": 16,
}  # fmt: skip


@pytest.mark.parametrize("text", VALUES)
def test_expressions_have_values(text):
    assert evaluate(text, NAMES) == VALUES[text]


@pytest.mark.parametrize("text", [
    "", "1 2", "(", "A b.c", "2 ** 9", "1 / 0", "1 << 65", "1.5", "'8'", "[A]", "A < 9", "(" * 150, "010", "1or 2",
    "0x1for", "1;2", "1_", "\u0663", "12(3)",
])  # fmt: skip
def test_what_is_no_number_is_refused(text):
    with pytest.raises(EncodeError, match="is no number"):
        evaluate(text, NAMES)


def test_the_longest_text_and_the_farthest_shift_have_values():
    assert evaluate("1 << 64", {}) == 1 << 64
    assert evaluate("7".rjust(200), {}) == 7
    with pytest.raises(EncodeError, match="an expression of 201 characters; at most 200 are read"):
        evaluate("7".rjust(201), {})


def test_unknown_symbols_are_named():
    assert unknown("A + E * 0xf", NAMES) == ["E"]
    with pytest.raises(EncodeError, match="symbol 'E' is not defined"):
        evaluate("A + E", NAMES)


def test_sources_take_expressions_and_symbols_from_outside():
    text = "half = SIZE / 2\nmovxm r0, #half * (2 + 1)\nlda r1, [p0, #SIZE - 4]\n.section .data\n.word SIZE | 1"
    ((_, code),), plain = assemble(text, symbols={"SIZE": 16}).code, "movxm r0, #24\nlda r1, [p0, #12]\n"
    assert code == assemble(plain).code[0][1]
    assert assemble(text, symbols={"SIZE": 16}).data[0][1] == bytes([17, 0, 0, 0])
    with pytest.raises(AssemblyError, match="half: defined by SIZE, not defined"):
        assemble(text)
    with pytest.raises(AssemblyError, match="a, b: defined by each other"):
        assemble("a = b + 1\nb = a - 1\nnop")


@pytest.mark.parametrize(("value", "kept"), [
    (-1, 0xFFFFFFFF), (-(1 << 31), 1 << 31), (0xFFFFFFFF, 0xFFFFFFFF), (1 << 32, None), (-(1 << 31) - 1, None),
])  # fmt: skip
def test_symbols_of_an_elf_are_constants_of_32_bits(value: int, kept: int | None):
    """A negative one is its two's complement, as other assemblers keep it; wider ones are for `.quad`."""
    for program in (assemble(f"A = {value}\nnop"), assemble("nop", symbols={"A": value})):
        table = ELFFile(io.BytesIO(program.elf())).get_section_by_name(".symtab")
        assert isinstance(table, SymbolTableSection)
        assert {s.name: s["st_value"] for s in table.iter_symbols()}.get("A") == kept


def test_negative_constants_keep_their_sign_in_instructions():
    ((_, code),) = assemble("mova r0, #A\nmova r1, #-A\nmova r2, #2*A-1", symbols={"A": -5}).code
    assert code == assemble("mova r0, #-5\nmova r1, #5\nmova r2, #-11").code[0][1]


@pytest.mark.parametrize(("source", "said"), [
    ("A = 1/0\nnop", "s.s:1: '1/0' is no number"), ("B = 0\nA = 1/B\nnop", "A: '1/B' is no number"),
    ("A = 10000000000000000000000\nnop", "s.s:1: .* more than 64 bits"),
    (f"A = {'(' * 20000}1\nnop", "s.s:1: an expression of"),
    (f"nop\nA = B + {'(' * 20000}1\nB = 1", "A: an expression of 20005 characters"),
    (".data\n.zero 0x40000\n.zero 0x40000\n.zero 1\nnop", "s.s:4: .data grows beyond 0x80000"),
])  # fmt: skip
def test_what_cannot_be_assembled_is_said_by_its_line(source: str, said: str):
    with pytest.raises(AssemblyError, match=said) as refused:
        assemble(source, file="s.s")
    assert len(str(refused.value)) < 4000


@pytest.mark.parametrize("source", ["", "// nop", "A = 1", ".data\n.word 1"])
def test_a_program_has_instructions(source: str):
    with pytest.raises(AssemblyError, match="no instructions"):
        assemble(source).elf()


def test_long_chains_of_constants_take_no_time():
    """Each is defined by the next one: 2,000 rounds of 2,000 expressions would take a minute."""
    chain = "\n".join(f"c{i} = c{i + 1} + 1" for i in range(2000))
    assert assemble(f"{chain}\nc2000 = 0\nnop").symbols["c0"] == 2000
