"""VSHUFFLE: transposes of matrices of elements in one register or a pair.

An element has W bits, the matrix R x C. Result element p is source element (p mod R) * C + p div R: a row-major R x C
matrix becomes its transpose. Modes in pairs give the low and the high half of a transpose of both registers, others
transpose groups of R * C elements of the first. Rule and numbers equal 48 of 48 routings measured on AIE2 silicon
(FIM43-Redeye/xdna-emu 7380bd56); those from 48 on are AIE2P's, of which 48 to 51, 54 and 55 follow from their names.
"""

from functools import cache

from bdforge.core.isa.meaning.lanes import VECTOR_BITS, vbroadcast, vextract_broadcast
from bdforge.core.isa.meaning.semantics import joined, lanes, open_if, operation

_PAIRS = {
    0: "8_64x2", 2: "16_32x2", 4: "32_16x2", 6: "64_8x2", 8: "128_4x2", 10: "256_2x2", 12: "128_2x4", 14: "64_2x8",
    16: "32_2x16", 18: "16_2x32", 20: "8_2x64", 22: "512_1x2", 24: "16_16x4", 26: "16_4x16", 30: "32_8x4",
    32: "32_4x8", 52: "16_8x8",
}  # fmt: skip
_SINGLE = {
    28: "16_8x4", 29: "16_4x8", 34: "32_4x4", 35: "8_8x8", 36: "8_16x4", 37: "8_4x16", 39: "16_4x4", 40: "16_4x2",
    41: "16_2x4", 42: "16_8x2", 43: "16_2x8", 44: "16_16x2", 45: "16_2x16", 46: "8_8x4", 47: "8_4x8", 48: "32_8x2",
    49: "32_2x8", 50: "64_4x2", 51: "64_2x4",
}  # fmt: skip
_FLIPS = {38: "16_1x2", 54: "32_1x16", 55: "8_1x4"}
AIE2_MODES = 48
MODES = 56


@cache
def routing(mode: int) -> tuple[int, tuple[int, ...]]:
    """(bits of an element, source element of each result element); sources count through s1 and then s2."""
    if mode in _FLIPS:
        bits, _, columns = _numbers(_FLIPS[mode])
        count = VECTOR_BITS // bits
        return bits, tuple(p // columns * columns + columns - 1 - p % columns for p in range(count))
    if mode in _SINGLE:
        bits, rows, columns = _numbers(_SINGLE[mode])
        size = rows * columns
        sources = [_source(p % size, rows, columns) + p // size * size for p in range(VECTOR_BITS // bits)]
        return bits, tuple(sources)
    bits, rows, columns = _numbers(_PAIRS[mode if mode in _PAIRS else mode - 1])
    half = rows * columns // 2
    return bits, tuple(_source(p + (0 if mode in _PAIRS else half), rows, columns) for p in range(half))


def routed_bytes(mode: int) -> bytes:
    """The source byte of each byte of a mode's result."""
    bits, sources = routing(mode)
    size = bits // 8
    return bytes(source * size + i for source in sources for i in range(size))


def is_of_two(mode: int) -> bool:
    """Whether a mode transposes two registers, of which it gives a half."""
    return mode in _PAIRS or mode - 1 in _PAIRS


def _numbers(name: str) -> tuple[int, int, int]:
    bits, shape = name.split("_")
    rows, columns = shape.split("x")
    return int(bits), int(rows), int(columns)


def _source(place: int, rows: int, columns: int) -> int:
    return place % rows * columns + place // rows


@operation("vshuffle")
def vshuffle(options: tuple[int, ...], s1: int, s2: int, mode: int) -> int:
    """A shuffle; options: (modes that there are,)."""
    open_if(mode >= options[0], f"shuffle mode {mode} is unassigned: there are 0 to {options[0] - 1}")
    bits, sources = routing(mode)
    elements = lanes(s1 | s2 << VECTOR_BITS, bits, 2 * VECTOR_BITS // bits)
    return joined([elements[source] for source in sources], bits)


@operation("vbroadcast_shuffle")
def vbroadcast_shuffle(options: tuple[int, ...], source: int, mode: int) -> int:
    """A broadcast, shuffled; options: (bits of a lane, modes that there are)."""
    bits, modes = options
    return _shuffled_alone(modes, vbroadcast((bits,), source), mode)


@operation("vextract_broadcast_shuffle")
def vextract_broadcast_shuffle(options: tuple[int, ...], s1: int, index: int, mode: int) -> int:
    """A lane in all lanes, shuffled; options as for `vbroadcast_shuffle`."""
    bits, modes = options
    return _shuffled_alone(modes, vextract_broadcast((bits,), s1, index), mode)


def _shuffled_alone(modes: int, s1: int, mode: int) -> int:
    open_if(is_of_two(mode), f"shuffle mode {mode} is of two registers: what the second is behind a broadcast is open")
    return vshuffle((modes,), s1, 0, mode)
