"""A pattern as the fields of a buffer descriptor, named as in `bdforge.devices.registers`.

Meaning of the fields (aie-rt register lists; mlir-aie AIEDmaToNpu.cpp): `length` granules are moved; granule i is
decomposed by the wraps, innermost first, and the positions are multiplied by the steps, which are stored minus 1. The
last dimension of a tile kind has no wrap field, the length ends it; a wrap of 0 never wraps. Each run of the BD
moves the base by `iteration_step`; after `iteration_wrap` runs (both stored minus 1) it returns.
"""

from bd_patterns.granules import to_granules, whole_granules
from bd_patterns.legality import Padding, Runs
from bd_patterns.pattern import Pattern, PatternError
from bdforge.devices.limits import TileLimits

_PAD_NAMES = ("pad_before", "pad_after")


def encode_dims(
    pattern: Pattern, limits: TileLimits, element_bits: int, *, static: bool, padding: Padding | None = None
) -> dict[str, int]:
    """Length, wraps, steps, iteration and padding of `pattern`; the caller adds address, locks and the rest.

    Every wrap and step field of the tile kind is present. A pattern that is linear once coalesced has only a length. A
    dimension that has a wrap field gets its size there, outermost or not, as the toolchain writes it. The number of
    runs goes to the task queue: `Runs.of(...).count` times the task's repeat. PatternError when the pattern has no
    such fields; whether values fit their fields is for `problems()` and `Layout.encode` to say.
    """
    runs = Runs.of(pattern, limits, static=static)
    words = to_granules(runs.bd, element_bits)
    fields = {f"d{number}_step": 0 for number in range(limits.dims)}
    fields |= {f"d{number}_wrap": 0 for number in range(len(limits.wraps))}
    fields |= _iteration(runs, element_bits)
    if not padding:
        return fields | {"length": words.count} | ({} if words.is_linear else _dims(words, limits))
    if len(padding) != words.rank:
        raise PatternError(
            f"{len(padding)} pairs of padding for {words.rank} dimensions of {pattern}; give one for each"
        )
    return fields | _dims(words, limits) | _padding(words, padding, limits, element_bits)


def _dims(words: Pattern, limits: TileLimits) -> dict[str, int]:
    if words.rank > limits.dims:
        raise PatternError(f"pattern {words} of granules exceeds the {limits.dims} dimensions of a {limits.kind} BD")
    fields = {}
    for number, (size, stride) in enumerate(reversed(list(words.dims()))):
        if size > 1 and stride == 0:
            raise PatternError(f"pattern {words} of granules has stride 0 inside the BD; steps are stored minus 1")
        fields[f"d{number}_step"] = stride - 1 if size > 1 else 0
        if number < len(limits.wraps):
            fields[f"d{number}_wrap"] = size
    return fields


def _iteration(runs: Runs, element_bits: int) -> dict[str, int]:
    if runs.count == 1 or runs.stride == 0:
        return {"iteration_wrap": 0, "iteration_step": 0}
    return {"iteration_wrap": runs.count - 1, "iteration_step": whole_granules(runs.stride, element_bits) - 1}


def _padding(words: Pattern, padding: Padding, limits: TileLimits, element_bits: int) -> dict[str, int]:
    fields = {"length": 1}
    for number, (size, pair) in enumerate(zip(reversed(words.sizes), reversed(padding), strict=True)):
        counts = [whole_granules(elements, element_bits) for elements in pair] if number == 0 else pair
        fields["length"] *= size + sum(counts)
        if number < len(limits.pad_max):
            fields |= {f"d{number}_{name}": count for name, count in zip(_PAD_NAMES, counts, strict=True)}
        elif any(counts):
            raise PatternError(f"padding {pair} in d{number} has no field in a {limits.kind} BD")
    return fields
