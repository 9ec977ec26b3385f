"""Operations on vectors of integer lanes in registers of 512 bits, and their masks."""

import operator
from collections.abc import Callable, Sequence

from bdforge.core.isa.meaning.semantics import joined, lanes, open_if, operation

VECTOR_BITS = 512
_INFINITY = 0x7F80


@operation("vadd")
def vadd(options: tuple[int, ...], s1: int, s2: int) -> int:
    """Lane-wise sum, wrapped; options: (bits, subtract)."""
    bits, subtract = options
    step: Callable[[int, int], int] = operator.sub if subtract else operator.add
    return joined(list(map(step, _of(s1, bits), _of(s2, bits))), bits)


@operation("vadd_or_subtract")
def vadd_or_subtract(options: tuple[int, ...], s1: int, s2: int, mask: int) -> int:
    """Lane-wise difference where the mask has a 1, else the sum, wrapping; options: (bits,)."""
    both = zip(_of(s1, options[0]), _of(s2, options[0]), strict=True)
    return joined([a - b if mask >> i & 1 else a + b for i, (a, b) in enumerate(both)], options[0])


def _of(value: int, bits: int, sign: object = False) -> list[int]:
    return lanes(value, bits, VECTOR_BITS // bits, sign)


def _mask(conditions: Sequence[bool]) -> int:
    return sum(1 << i for i, holds in enumerate(conditions) if holds)


operation("vand")(lambda _, s1, s2: s1 & s2)
operation("vor")(lambda _, s1, s2: s1 | s2)


@operation("vcompare")
def vcompare(options: tuple[int, ...], s1: int, s2: int, sign: int) -> int:
    """Mask of s1 < s2, or of s1 >= s2; options: (bits, negate)."""
    bits, negate = options
    return _mask([(a < b) != bool(negate) for a, b in zip(_of(s1, bits, sign), _of(s2, bits, sign), strict=True)])


@operation("vchoose")
def vchoose(options: tuple[int, ...], s1: int, s2: int, sign: int) -> tuple[int, int]:
    """Greater lanes with the mask of <, or smaller ones with that of >=; options as for `vcompare`."""
    mask = vcompare(options, s1, s2, sign)
    return vselect(options, s1, s2, mask), mask


@operation("vmarked")
def vmarked(options: tuple[int, ...], s1: int, s2: int, sign: int) -> tuple[int, int]:
    """What `ARITHMETIC` makes of lanes, with the mask of a condition on them; options: (bits, which, condition).

    Of one operand, both are the same. Lanes beyond the range of the result are open.
    """
    bits, which, condition = options
    pairs = list(zip(_of(s1, bits, sign), _of(s2, bits, sign), strict=True))
    arithmetic, wraps = ARITHMETIC[which]
    made = [arithmetic(a, b) for a, b in pairs]
    top = 1 << bits - 1 if sign or which == _ABS else 1 << bits
    open_if(not wraps and any(value >= top for value in made), "a lane beyond the greatest number is open")
    return joined(made, bits), _mask([CONDITIONS[condition](a, b) for a, b in pairs])


ARITHMETIC: tuple[tuple[Callable[[int, int], int], bool], ...] = (
    (lambda a, b: a - b, True), (lambda a, b: max(a - b, 0), True), (lambda a, b: abs(b), False),
    (lambda a, b: -b, False), (lambda a, b: ~b, True),
)  # fmt: skip
"""Difference, positive difference, magnitude, negative, inverse of lanes; whether results wrap."""

_ABS = 2
CONDITIONS: tuple[Callable[[int, int], bool], ...] = (
    lambda a, b: a < b, lambda a, b: a >= b, lambda a, b: b > 0, lambda a, b: b < 0,
)  # fmt: skip


@operation("veqz")
def veqz(options: tuple[int, ...], s2: int) -> int:
    """Mask of the lanes that are zero; options: (bits,)."""
    return _mask([lane == 0 for lane in _of(s2, options[0])])


@operation("vselect")
def vselect(options: tuple[int, ...], s1: int, s2: int, mask: int) -> int:
    """Lanes of s2 where the mask has a 1, else of s1; options: (bits, ...)."""
    pairs = zip(_of(s1, options[0]), _of(s2, options[0]), strict=True)
    return joined([b if mask >> i & 1 else a for i, (a, b) in enumerate(pairs)], options[0])


@operation("vcompare_bf16")
def vcompare_bf16(options: tuple[int, ...], s1: int, s2: int) -> int:
    """As `vcompare`, of bf16 lanes; options: (negate,)."""
    pairs = zip(_floats(s1), _floats(s2), strict=True)
    return _mask([(a < b) != bool(options[0]) for a, b in pairs])


@operation("vchoose_bf16")
def vchoose_bf16(options: tuple[int, ...], s1: int, s2: int) -> tuple[int, int]:
    """As `vchoose`, of bf16 lanes; options: (negate,)."""
    mask = vcompare_bf16(options, s1, s2)
    return vselect((16,), s1, s2, mask), mask


def _floats(value: int) -> list[int]:
    """bf16 lanes as integers in the order of their values; both zeros are 0."""
    found = []
    for lane in _of(value, 16):
        magnitude = lane & 0x7FFF
        open_if(magnitude > _INFINITY, "comparisons with a NaN are open")
        found.append(-magnitude if lane >> 15 else magnitude)
    return found


@operation("vbroadcast")
def vbroadcast(options: tuple[int, ...], source: int) -> int:
    """A scalar's low bits in all lanes; options: (bits,)."""
    bits = options[0]
    return joined([source] * (VECTOR_BITS // bits), bits)


@operation("vextract")
def vextract(options: tuple[int, ...], s1: int, index: int, sign: int) -> int:
    """A lane, extended to 64 bits; options: (bits,)."""
    _check_lane(options[0], index)
    return _of(s1, options[0], sign)[index] & ((1 << 64) - 1)


@operation("vinsert")
def vinsert(options: tuple[int, ...], s1: int, source: int, index: int) -> int:
    """s1 with a lane replaced; options: (bits,)."""
    bits = options[0]
    _check_lane(bits, index)
    found = _of(s1, bits)
    found[index] = source
    return joined(found, bits)


@operation("vextract_broadcast")
def vextract_broadcast(options: tuple[int, ...], s1: int, index: int) -> int:
    """A lane in all lanes; options: (bits,)."""
    _check_lane(options[0], index)
    return vbroadcast(options, _of(s1, options[0])[index])


def _check_lane(bits: int, index: int) -> None:
    count = VECTOR_BITS // bits
    open_if(not 0 <= index < count, f"lane {index} of {count}: what an index beyond the last lane does is open")


# s1 one lane down, the scalar s2 on top; or s2 one lane up, the scalar s1 in lane 0; options: (bits,).
operation("vpush_high")(lambda options, s1, s2: joined([*_of(s1, options[0])[1:], s2], options[0]))
operation("vpush_low")(lambda options, s1, s2: joined([s1, *_of(s2, options[0])[:-1]], options[0]))


@operation("vshift")
def vshift(_: tuple[int, ...], s1: int, s2: int, shift: int) -> int:
    """Bytes from `shift` on of s1 followed by s2."""
    open_if(shift > VECTOR_BITS // 8, f"shifts by more than {VECTOR_BITS // 8} bytes are open, this one is by {shift}")
    return (s1 | s2 << VECTOR_BITS) >> 8 * shift & ((1 << VECTOR_BITS) - 1)


_ALIGN_STEPS = (0, 4, 8, 16, 32)  # bytes


@operation("vshift_align")
def vshift_align(_: tuple[int, ...], s1: int, step: int, s2: int, shift: int) -> int:
    """s1 some bytes down, zeros from the top, and over its high `shift` bytes the low ones of s2; `vshift` of step 0.

    The low three bits of `step` choose: 4, 8, 16 or 32 bytes. A shift of 64 or more leaves nothing of s1.
    """
    step &= 7
    if not step:
        return vshift((), s1, s2, shift)
    open_if(step >= len(_ALIGN_STEPS), f"step {step} of an aligned shift is open: known are 0 to 4")
    high = 8 * min(shift, VECTOR_BITS // 8)
    low = s1 >> 8 * _ALIGN_STEPS[step] & ((1 << VECTOR_BITS - high) - 1)
    return low | (s2 & ((1 << high) - 1)) << VECTOR_BITS - high
