"""Operations that change the width of lanes: UPS and SRS, PACK and UNPACK, bf16 and fp32.

Rounding modes are those of crRnd; saturation those of crSat: 0 wraps, 1 saturates, 3 saturates symmetrically.
"""

import numpy as np

from bdforge.core.isa.meaning.semantics import joined, lanes, open_if, operation, signed

_ROUNDINGS = (0, 1, 2, 3, 8, 9, 10, 11, 12, 13)
_SHIFT_BITS = 0x3F
_SRS_BIAS = 4  # of what SRS shifts by: 60 to 63 are shifts up by 4 to 1
_INFINITY = 0x7F800000


@operation("ups")
def ups(options: tuple[int, ...], source: int, shift: int, saturate: int, wide: int, sign: int) -> int:
    """Lanes shifted left into lanes of an accumulator; options: (bits of the source, bits of the result).

    `wide` chooses lanes of 64 bits instead of 32. The shift wraps; what saturation would make of it is open.
    """
    source_bits, result_bits = options
    lane = 64 if wide else 32
    count = result_bits // lane
    shifted = [value << (shift & _SHIFT_BITS) for value in lanes(source, source_bits // count, count, sign)]
    fits = all(-1 << lane - 1 <= value < 1 << lane - 1 for value in shifted)
    open_if(saturate and not fits, "what saturation makes of a shift that overflows a lane is open")
    return joined(shifted, lane)


@operation("srs")
def srs(options: tuple[int, ...], source: int, shift: int, rounding: int, saturate: int, wide: int, sign: int) -> int:
    """Lanes of an accumulator shifted right, rounded and clamped; options: (bits of source, bits of result).

    round((lane << 4) >> (shift + 4) % 64): shifts are 0 to 59, or 4 to 1 to the left. Those of lanes of 32 bits are
    not cut to 0 to 31.
    """
    _check_modes(rounding, saturate)
    source_bits, result_bits = options
    lane = 64 if wide else 32
    count, step = source_bits // lane, shift + _SRS_BIAS & _SHIFT_BITS
    bits = result_bits // count
    rounded = [_rounded(value << _SRS_BIAS, step, rounding) for value in lanes(source, lane, count, True)]
    return joined([_clamped(value, bits, saturate, sign) for value in rounded], bits)


def _check_modes(rounding: int, saturate: int) -> None:
    open_if(rounding not in _ROUNDINGS, f"crRnd is {rounding}, which no source assigns a rounding")
    open_if(saturate == 2, "crSat is 2, which no source explains")


def _rounded(value: int, shift: int, rounding: int) -> int:
    quotient, rest = value >> shift, value & ((1 << shift) - 1)
    if not rest:
        return quotient
    half = 1 << shift - 1
    if rounding < 8:
        up = (False, True, value < 0, value >= 0)[rounding]
    elif rest != half:
        up = rest > half
    else:
        up = (False, True, value < 0, value >= 0, quotient % 2 == 1, quotient % 2 == 0)[rounding - 8]
    return quotient + up


def _clamped(value: int, bits: int, saturate: int, sign: int) -> int:
    if not saturate:
        return value
    high = (1 << bits - 1) - 1 if sign else (1 << bits) - 1
    low = (-high if saturate == 3 else -high - 1) if sign else 0
    return min(max(value, low), high)


@operation("unpack")
def unpack(options: tuple[int, ...], source: int, bytes_: int, sign: int) -> int:
    """Lanes of 4 bits (of 8 if `bytes_`) to twice the width, low nibble first; options: (bits of the source,)."""
    bits = 8 if bytes_ else 4
    return joined(lanes(source, bits, options[0] // bits, sign), 2 * bits)


@operation("pack")
def pack(options: tuple[int, ...], source: int, saturate: int, words: int, sign: int) -> int:
    """Lanes of 8 bits (of 16 if `words`) to half the width, clamped as by SRS; options: (bits of the source,)."""
    open_if(saturate == 2, "crSat is 2, which no source explains")
    bits = 16 if words else 8
    narrow = [_clamped(value, bits // 2, saturate, sign) for value in lanes(source, bits, options[0] // bits, True)]
    return joined(narrow, bits // 2)


@operation("widen_bf16")
def widen_bf16(options: tuple[int, ...], source: int) -> int:
    """bf16 lanes to fp32; options: (lanes,)."""
    return joined([lane << 16 for lane in lanes(source, 16, options[0])], 32)


@operation("narrow_bf16")
def narrow_bf16(options: tuple[int, ...], source: int, rounding: int) -> int:
    """fp32 lanes to bf16, rounded by crRnd with numbers read as signed; options: (lanes,)."""
    _check_modes(rounding, 0)
    found = []
    for lane in lanes(source, 32, options[0]):
        negative, magnitude = lane >> 31, lane & 0x7FFFFFFF
        open_if(magnitude > _INFINITY, "a NaN made narrower is open")
        found.append(negative << 15 | abs(_rounded(-magnitude if negative else magnitude, 16, rounding)))
    return joined(found, 16)


_BLOCK, _FLOOR, _EVEN, _SEVEN = 8, 0, 12, 7
_SIGN, _FRACTION, _INFINITE = 1 << 31, (1 << 23) - 1, 255


@operation("blocks_bfp16")
def blocks_bfp16(_: tuple[int, ...], source: int, rounding: int) -> int:
    """64 fp32 lanes to block floats: mantissas of 8 bits, then the greatest exponent of each 8 of them."""
    open_if(rounding not in (_FLOOR, _EVEN), f"crRnd {rounding} of block floats is open")
    words = lanes(source, 32, 64)
    blocks = [_block(words[i : i + _BLOCK], rounding) for i in range(0, len(words), _BLOCK)]
    mantissas = [mantissa for made, _ in blocks for mantissa in made]
    return joined(mantissas, 8) | joined([exponent for _, exponent in blocks], 8) << 512


def _block(words: list[int], rounding: int) -> tuple[list[int], int]:
    """(mantissas, exponent) of eight numbers; one that rounds beyond the greatest mantissa raises the exponent."""
    exponents = [_exponent(word) for word in words]
    rare = any(e == _INFINITE or (not e and word & _FRACTION) for e, word in zip(exponents, words, strict=True))
    open_if(rare, "block floats of subnormal or infinite numbers or of none are open")
    shared = max(exponents)
    zeros = [word for word, e in zip(words, exponents, strict=True) if not e]
    small = 0 < shared < _SEVEN or (rounding == _FLOOR and any(word & _SIGN for word in zeros))
    open_if(zeros and small, "a zero among block floats is open where it is negative or all are small")
    made = [_mantissa(word, shared, rounding) for word in words]
    if max(made) > 127:
        shared += 1
        made = [_mantissa(word, shared, rounding) for word in words]
    open_if(shared == _INFINITE, "block floats that overflow are open")
    return made, shared


def _exponent(word: int) -> int:
    return word >> 23 & _INFINITE


def _mantissa(word: int, shared: int, rounding: int) -> int:
    """Two's complement, rounded down; or the magnitude to nearest even."""
    exponent = _exponent(word)
    if not exponent:
        return 0
    magnitude, shift = _FRACTION + 1 | word & _FRACTION, 17 + shared - exponent
    sign = -1 if word & _SIGN else 1
    return sign * magnitude >> shift if rounding == _FLOOR else sign * _rounded(magnitude, shift, rounding)


@operation("floor_bf16")
def floor_bf16(_: tuple[int, ...], source: int, shift: int) -> int:
    """16 bf16 lanes times a power of two to int32, rounded down."""
    open_if(shift >= 32, f"a scale by {shift} is open: known are 0 to 31")
    found = []
    for lane in lanes(source, 16, 16):
        exponent, fraction = lane >> 7 & _INFINITE, lane & 0x7F
        open_if(
            exponent == _INFINITE or (not exponent and fraction), "floats to integers are open but of normal numbers"
        )
        magnitude = 128 | fraction if exponent else 0
        power = exponent - 134 + shift
        value = -magnitude if lane >> 15 else magnitude
        value = value << min(power, 64) if power >= 0 else value >> -power
        open_if(not -(1 << 31) <= value < 1 << 31, "floats beyond the range of integers are open")
        found.append(value)
    return joined(found, 32)


@operation("to_float")
def to_float(_: tuple[int, ...], source: int, shift: int) -> int:
    """An integer that a float holds, as a float."""
    open_if(shift, f"a scale by {shift} of a scalar is open")
    value = signed(source, 32)
    found = np.float32(value)
    open_if(int(found) != value, "an integer that is rounded to a float is open")
    return int(found.view(np.uint32))


@operation("to_integer")
def to_integer(_: tuple[int, ...], source: int, shift: int) -> int:
    """A float that is an integer, as one."""
    open_if(shift, f"a scale by {shift} of a scalar is open")
    value = float(np.uint32(source).view(np.float32))
    whole = -(2.0**31) <= value < 2.0**31 and value == int(value)
    open_if(not whole, "a float that is no integer of 32 bits is open")
    return int(value) & 0xFFFFFFFF
