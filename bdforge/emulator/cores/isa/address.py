"""Addresses and their walks: 20 bits, all sums wrap."""

from collections.abc import Mapping

from bdforge.isa.meaning import Meaning, Walk

ADDRESS_BITS = 20
_MASK = (1 << ADDRESS_BITS) - 1


def walked(meaning: Meaning, values: Mapping[str, int]) -> tuple[int, dict[str, int]]:
    """(address, what becomes of pointer and counters) of a form's address operands.

    A walk `d` holds m, dn, dj, dc in 20 bits each, the second dimension of a 3D walk above the first.
    """
    base = values.get("ptr", values.get("sp", 0))
    offset = values.get(meaning.offset, 0)
    match meaning.walk:
        case Walk.NONE:
            return 0, {}
        case Walk.INDEX | Walk.STACK:
            return base + offset & _MASK, {}
        case Walk.STACK_STEP:
            return base, {"sp": base + offset & _MASK}
        case Walk.POST:
            return base, {"ptr_out": base + offset & _MASK}
        case Walk.WALK_2D:
            return base, _step_2d(base, _fields(offset))
        case Walk.WALK_3D:
            return base, _step_3d(base, _fields(offset), _fields(offset >> 4 * ADDRESS_BITS))


def _fields(walk: int) -> tuple[int, int, int, int]:
    m, dn, dj, dc = (walk >> ADDRESS_BITS * i & _MASK for i in range(4))
    return m, dn, dj, dc


def _step_2d(base: int, walk: tuple[int, int, int, int]) -> dict[str, int]:
    m, dn, dj, dc = walk
    if dc == dn:
        return {"ptr_out": base + m & _MASK, "dc": 0}
    return {"ptr_out": base + dj & _MASK, "dc": dc + 1 & _MASK}


def _step_3d(base: int, low: tuple[int, int, int, int], high: tuple[int, int, int, int]) -> dict[str, int]:
    m, dn, dj, dc = low
    _, dn_high, dj_high, dc_high = high
    if dc != dn:
        return {"ptr_out": base + dj & _MASK, "dcl": dc + 1 & _MASK, "dch": dc_high}
    if dc_high != dn_high:
        return {"ptr_out": base + dj_high & _MASK, "dcl": 0, "dch": dc_high + 1 & _MASK}
    return {"ptr_out": base + m & _MASK, "dcl": 0, "dch": 0}
