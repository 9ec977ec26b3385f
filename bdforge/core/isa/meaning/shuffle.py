"""VSHUFFLE: transposes of matrices of elements in one register or a pair.

An element has W bits, the matrix R x C. Result element p is source element (p mod R) * C + p div R: a row-major R x C
matrix becomes its transpose. Modes in pairs give the low and the high half of a transpose of both registers, others
transpose groups of R * C elements of the first. Rule and numbers equal 48 of 48 routings measured on AIE2 silicon
(FIM43-Redeye/xdna-emu 7380bd56); those from 48 on are AIE2P's, of which 48 to 51, 54 and 55 follow from their names.
"""

from functools import cache

from bdforge.core.isa.isa_tables import rows
from bdforge.core.isa.meaning.lanes import VECTOR_BITS, vbroadcast, vextract_broadcast
from bdforge.core.isa.meaning.semantics import joined, lanes, open_if, operation

_MATRICES = {
    int(row["mode"]): (row["of"], int(row["bits"]), int(row["rows"]), int(row["columns"])) for row in rows("shuffles")
}
"""By mode: what it is of, and its elements' bits and matrix. Behind a pair's mode is that of its upper half."""

MODES = 56  # of AIE2P; AIE2 has the first 48
_MODE_CODES = 64  # behind a broadcast, a mode is cut to six bits


@cache
def routing(mode: int) -> tuple[int, tuple[int, ...]]:
    """(bits of an element, source element of each result element); sources count through s1 and then s2."""
    kind, bits, rows_, columns = _MATRICES.get(mode) or _MATRICES[mode - 1]
    count, size = VECTOR_BITS // bits, rows_ * columns
    if kind == "flip":
        return bits, tuple(p // columns * columns + columns - 1 - p % columns for p in range(count))
    first = 0 if mode in _MATRICES else count  # of a pair's halves
    places = range(first, first + count) if kind == "pair" else range(count)
    return bits, tuple(p % size % rows_ * columns + p % size // rows_ + p // size * size for p in places)


def routed_bytes(mode: int) -> bytes:
    """The source byte of each byte of a mode's result."""
    bits, sources = routing(mode)
    size = bits // 8
    return bytes(source * size + i for source in sources for i in range(size))


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
    """Modes of two registers have zeros for the second."""
    return vshuffle((modes,), s1, 0, mode % _MODE_CODES)
