"""Numbers of assembly as expressions."""

import pytest

from bdforge.isa.assembler import assemble
from bdforge.isa.errors import AssemblyError, EncodeError
from bdforge.isa.expression import evaluate, unknown

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


@pytest.mark.parametrize(
    "text", ["", "1 2", "(", "A b.c", "2 ** 9", "1 / 0", "1 << 65", "1.5", "'8'", "[A]", "A < 9", "(" * 150, "010"]
)
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
    with pytest.raises(EncodeError, match="an expression of 400 characters"):
        evaluate("1+1+" * 100, NAMES)


def test_sources_take_expressions_and_symbols_from_outside():
    text = "half = SIZE / 2\nmovxm r0, #half * (2 + 1)\nlda r1, [p0, #SIZE - 4]\n.section .data\n.word SIZE | 1"
    ((_, code),), plain = assemble(text, symbols={"SIZE": 16}).code, "movxm r0, #24\nlda r1, [p0, #12]\n"
    assert code == assemble(plain).code[0][1]
    assert assemble(text, symbols={"SIZE": 16}).data[0][1] == bytes([17, 0, 0, 0])
    with pytest.raises(AssemblyError, match="half: defined by SIZE, not defined"):
        assemble(text)
    with pytest.raises(AssemblyError, match="a, b: defined by each other"):
        assemble("a = b + 1\nb = a - 1\n")
