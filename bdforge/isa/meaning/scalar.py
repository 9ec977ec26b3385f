"""Operations on scalars: 32-bit patterns in and out, as the reference model has them."""

from bdforge.isa.meaning.model import Partly, operation, signed

_WORD = (1 << 32) - 1
_BITS = 32


@operation("move")
def move(_: tuple[int, ...], source: int) -> int:
    """A copy; the destination's width cuts it or zeros extend it. Negative immediates extend with ones."""
    return source & ((1 << 2048) - 1)


@operation("low_half")
def low_half(_: tuple[int, ...], source: int) -> Partly:
    """16 bytes into 32, of which no source tells the upper ones."""
    return Partly(source & ((1 << 128) - 1), 0b10)


@operation("polled")
def polled(_: tuple[int, ...], answer: int) -> tuple[int | Partly, int]:
    """A word, and whether there was one (bit 32 of the answer)."""
    there = answer >> _BITS & 1
    return (answer & _WORD if there else Partly(0, 1)), there


@operation("add")
def add(_: tuple[int, ...], s0: int, s1: int) -> tuple[int, int]:
    """Sum and carry."""
    return _sum(s0, s1, 0)


@operation("adc")
def adc(_: tuple[int, ...], s0: int, s1: int, carry: int) -> tuple[int, int]:
    """Sum with the carry of before."""
    return _sum(s0, s1, carry)


@operation("sub")
def sub(_: tuple[int, ...], s0: int, s1: int) -> tuple[int, int]:
    """Difference; the carry is that of s0 + ~s1 + 1 (no source states its polarity)."""
    return _sum(s0, ~s1, 1)


@operation("sbc")
def sbc(_: tuple[int, ...], s0: int, s1: int, carry: int) -> tuple[int, int]:
    """s0 + ~s1 + carry."""
    return _sum(s0, ~s1, carry)


@operation("add_nc")
def add_nc(_: tuple[int, ...], s0: int, s1: int) -> int:
    """Sum without carry."""
    return s0 + s1 & _WORD


def _sum(s0: int, s1: int, carry: int) -> tuple[int, int]:
    total = (s0 & _WORD) + (s1 & _WORD) + carry
    return total & _WORD, total >> _BITS


@operation("mul")
def mul(_: tuple[int, ...], s0: int, s1: int) -> int:
    """Low half of the product."""
    return s0 * s1 & _WORD


@operation("mac")
def mac(options: tuple[int, ...], a0: int, s0: int, s1: int) -> int:
    """a0 + s0 * s1, or minus; options: (1 for minus,)."""
    return a0 + (-1 if options[0] else 1) * s0 * s1 & _WORD


@operation("and")
def and_(_: tuple[int, ...], s0: int, s1: int) -> int:
    """Bitwise and."""
    return s0 & s1 & _WORD


@operation("or")
def or_(_: tuple[int, ...], s0: int, s1: int) -> int:
    """Bitwise or."""
    return (s0 | s1) & _WORD


@operation("xor")
def xor(_: tuple[int, ...], s0: int, s1: int) -> int:
    """Bitwise exclusive or."""
    return (s0 ^ s1) & _WORD


@operation("eq")
def eq(_: tuple[int, ...], s0: int, s1: int) -> int:
    """1 if equal."""
    return int((s0 ^ s1) & _WORD == 0)


@operation("ne")
def ne(_: tuple[int, ...], s0: int, s1: int) -> int:
    """1 if not equal."""
    return int((s0 ^ s1) & _WORD != 0)


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


@operation("abs")
def abs_(_: tuple[int, ...], s0: int) -> int:
    """Magnitude; the least number is its own."""
    return abs(signed(s0, _BITS)) & _WORD


@operation("clz")
def clz(_: tuple[int, ...], s0: int) -> int:
    """Leading zeros."""
    return _BITS - (s0 & _WORD).bit_length()


@operation("clb")
def clb(_: tuple[int, ...], s0: int) -> int:
    """Leading bits equal to the sign, minus one."""
    value = signed(s0, _BITS)
    return _BITS - 1 - (value if value >= 0 else ~value).bit_length()


@operation("popcount")
def popcount(_: tuple[int, ...], s0: int) -> int:
    """Bits that are 1."""
    return (s0 & _WORD).bit_count()


@operation("eqz")
def eqz(options: tuple[int, ...], s0: int) -> int:
    """1 if zero; options: (negate,)."""
    return int((s0 & _WORD == 0) != bool(options[0]))


@operation("extend")
def extend(options: tuple[int, ...], s0: int) -> int:
    """Low bits, extended to 32; options: (bits, signed)."""
    bits, sign = options
    return signed(s0, bits) & _WORD if sign else s0 & ((1 << bits) - 1)


@operation("select")
def select(options: tuple[int, ...], s0: int, s1: int, condition: int) -> int:
    """s0 if the condition is zero, else s1; options: (negate,)."""
    return s0 if (condition & _WORD == 0) != bool(options[0]) else s1


@operation("decrement")
def decrement(_: tuple[int, ...], s0: int) -> tuple[int, int]:
    """s0 - 1, with the carry of `sub`."""
    return _sum(s0, ~1, 1)


@operation("none")
def none(_: tuple[int, ...]) -> tuple[int, ...]:
    """Nothing."""
    return ()


@operation("store_low")
def store_low(options: tuple[int, ...], source: int) -> int:
    """What a store takes of a register; options: (bits,)."""
    return source & ((1 << options[0]) - 1)
