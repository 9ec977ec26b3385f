"""Operations on scalars: 32-bit patterns in and out, as the reference model has them."""

from collections.abc import Mapping

from bdforge.core.isa.meaning.semantics import OPERATIONS, Operation, Partly, operation, signed

_BITS = 32
_WORD = (1 << _BITS) - 1


def _sum(s0: int, s1: int, carry: int) -> tuple[int, int]:
    """Sum and carry."""
    total = (s0 & _WORD) + (s1 & _WORD) + carry
    return total & _WORD, total >> _BITS


_BY_NAME: Mapping[str, Operation] = {
    "none": lambda _: (),
    # The destination's width cuts a copy or zeros extend it. Negative immediates extend with ones.
    "move": lambda _, source: source & ((1 << 2048) - 1),
    # 16 bytes into 32, of which no source tells the upper ones.
    "low_half": lambda _, source: Partly(source & ((1 << 128) - 1), 0b10),
    # What a store takes of a register; options: (bits,).
    "store_low": lambda options, source: source & ((1 << options[0]) - 1),
    "add": lambda _, s0, s1: _sum(s0, s1, 0),
    "adc": lambda _, s0, s1, carry: _sum(s0, s1, carry),
    "add_nc": lambda _, s0, s1: s0 + s1 & _WORD,
    # The carry of a difference is that of s0 + ~s1 + 1 (no source states its polarity).
    "sub": lambda _, s0, s1: _sum(s0, ~s1, 1),
    "sbc": lambda _, s0, s1, carry: _sum(s0, ~s1, carry),
    "decrement": lambda _, s0: _sum(s0, ~1, 1),
    "mul": lambda _, s0, s1: s0 * s1 & _WORD,
    # a0 + s0 * s1, or minus; options: (1 for minus,).
    "mac": lambda options, a0, s0, s1: a0 + (-1 if options[0] else 1) * s0 * s1 & _WORD,
    "and": lambda _, s0, s1: s0 & s1 & _WORD,
    "or": lambda _, s0, s1: (s0 | s1) & _WORD,
    "xor": lambda _, s0, s1: (s0 ^ s1) & _WORD,
    "eq": lambda _, s0, s1: int((s0 ^ s1) & _WORD == 0),
    "ne": lambda _, s0, s1: int((s0 ^ s1) & _WORD != 0),
    # Options: (negate,).
    "eqz": lambda options, s0: int((s0 & _WORD == 0) != bool(options[0])),
    # s0 if the condition is zero, else s1; options: (negate,).
    "select": lambda options, s0, s1, condition: s0 if (condition & _WORD == 0) != bool(options[0]) else s1,
    # The least number is its own magnitude.
    "abs": lambda _, s0: abs(signed(s0, _BITS)) & _WORD,
    # Leading zeros; leading bits equal to the sign, minus one; bits that are 1.
    "clz": lambda _, s0: _BITS - (s0 & _WORD).bit_length(),
    "clb": lambda _, s0: _BITS - 1 - max(signed(s0, _BITS), ~signed(s0, _BITS)).bit_length(),
    "popcount": lambda _, s0: (s0 & _WORD).bit_count(),
}
OPERATIONS.update(_BY_NAME)


@operation("polled")
def polled(_: tuple[int, ...], answer: int) -> tuple[int | Partly, int]:
    """A word, and whether there was one (bit 32 of the answer)."""
    there = answer >> _BITS & 1
    return (answer & _WORD if there else Partly(0, 1)), there


@operation("divide_step")
def divide_step(_: tuple[int, ...], s0: int, s1: int, quotient: int) -> tuple[int, int]:
    """A step of a division by s1: (rest, quotient) of the rest s0 and of what is left of the dividend, then quotient.

    32 steps from a rest of 0 divide. A 33rd bit of the rest is dropped.
    """
    rest, made = (s0 << 1 | quotient >> _BITS - 1) & _WORD, quotient << 1 & _WORD
    return (rest - s1, made | 1) if rest >= s1 else (rest, made)


@operation("lt")
def lt(options: tuple[int, ...], s0: int, s1: int) -> int:
    """1 if s0 < s1; options: (signed, negate): negated it is s0 >= s1."""
    sign, negate = options
    less = signed(s0, _BITS) < signed(s1, _BITS) if sign else s0 & _WORD < s1 & _WORD
    return int(less != bool(negate))


@operation("shift")
def shift(options: tuple[int, ...], s0: int, s1: int) -> int:
    """Left by a positive count, right by a negative one, modulo 32; options: (arithmetic,)."""
    count = signed(s1, _BITS)
    if count >= 0:
        return s0 << count % _BITS & _WORD
    value = signed(s0, _BITS) if options[0] else s0 & _WORD
    return value >> -count % _BITS & _WORD


@operation("extend")
def extend(options: tuple[int, ...], s0: int) -> int:
    """Low bits, extended to 32; options: (bits, signed)."""
    bits, sign = options
    return signed(s0, bits) & _WORD if sign else s0 & ((1 << bits) - 1)
