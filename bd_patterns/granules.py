"""From elements of any bit width to granules, the 32-bit words in which a DMA counts.

A DMA moves whole granules only, so elements narrower than 32 bits travel in runs that fill words.
"""

from bd_patterns.pattern import Pattern, PatternError
from bdforge.devices.limits import GRANULE_BYTES

GRANULE_BITS = 8 * GRANULE_BYTES


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


def whole_granules(elements: int, element_bits: int) -> int:
    """Granules that `elements` fill; PatternError when they do not fill the last one."""
    if elements * element_bits % GRANULE_BITS:
        raise PatternError(_not_whole(elements, element_bits))
    return elements * element_bits // GRANULE_BITS


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


def with_coalescing_hint(faults: list[str], pattern: Pattern, element_bits: int) -> list[str]:
    """`faults`, the last one with the coalesced pattern if that consists of whole granules."""
    coalesced = pattern.coalesced()
    if not faults or coalesced == pattern or granule_faults(coalesced, element_bits):
        return faults
    return [*faults[:-1], f"{faults[-1]}; coalesced as {coalesced} it fits"]


def _not_whole(elements: int, element_bits: int) -> str:
    bits = elements * element_bits
    return f"{elements} x {element_bits} bit = {bits} bit is no multiple of {GRANULE_BITS} bit"


def to_granules(pattern: Pattern, element_bits: int) -> Pattern:
    """`pattern` over 32-bit words: the words in the order in which their elements are visited.

    `element_bits` may be any width: elements narrower than a word (or no multiple of one) need innermost stride 1 and
    an innermost run of whole words, whose size is scaled; wider ones scale the strides and add their words as a
    dimension where they are not contiguous. PatternError lists every offset, stride and size that is not whole words.
    """
    if faults := with_coalescing_hint(granule_faults(pattern, element_bits), pattern, element_bits):
        raise PatternError(f"pattern {pattern} of {element_bits}-bit elements: {'; '.join(faults)}")
    strides = [stride * element_bits // GRANULE_BITS for stride in pattern.strides]
    offset = pattern.offset * element_bits // GRANULE_BITS
    if pattern.strides[-1] == 1:
        sizes = (*pattern.sizes[:-1], pattern.sizes[-1] * element_bits // GRANULE_BITS)
        return Pattern(sizes, (*strides[:-1], 1), offset)
    if element_bits == GRANULE_BITS:
        return Pattern(pattern.sizes, tuple(strides), offset)
    return Pattern((*pattern.sizes, element_bits // GRANULE_BITS), (*strides, 1), offset)
