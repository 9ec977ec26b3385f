"""Do elements of any bit width make up granules, the 32-bit words in which a DMA counts?

A DMA moves whole granules only, so elements narrower than 32 bits travel in runs that fill words.
"""

from bd_patterns.pattern import Pattern
from bdforge.devices.limits import GRANULE_BITS


def granule_faults(pattern: Pattern, element_bits: int) -> list[str]:
    """Every reason why `pattern`, as written, does not consist of whole granules of `element_bits`-wide elements."""
    if element_bits < 1:
        return [f"element width {element_bits} bit is below 1"]
    faults = []
    if pattern.offset * element_bits % GRANULE_BITS:
        faults.append(f"offset {_not_whole(pattern.offset, element_bits)}; move it to a multiple of a word")
    for axis, (size, stride) in enumerate(pattern.dims()):
        if axis == pattern.rank - 1:
            faults += _inner_faults(pattern, size, stride, element_bits)
        elif size > 1 and stride * element_bits % GRANULE_BITS:
            faults.append(
                f"stride {_not_whole(stride, element_bits)} in dimension {axis}; pad rows to a multiple of a word"
            )
    return faults


def _inner_faults(pattern: Pattern, size: int, stride: int, element_bits: int) -> list[str]:
    if element_bits % GRANULE_BITS == 0:
        return []
    axis, faults = pattern.rank - 1, []
    if stride != 1:
        faults.append(
            f"stride {stride} in innermost dimension {axis} of {element_bits}-bit elements must be 1, "
            "since a word is moved as a whole; put the contiguous dimension innermost"
        )
    if size * element_bits % GRANULE_BITS:
        faults.append(
            f"size {_not_whole(size, element_bits)} in innermost dimension {axis}; lengthen the contiguous run"
        )
    return faults


def _not_whole(elements: int, element_bits: int) -> str:
    bits = elements * element_bits
    return f"{elements} x {element_bits} bit = {bits} bit is no multiple of {GRANULE_BITS} bit"
