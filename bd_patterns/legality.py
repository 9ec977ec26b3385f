"""Does a pattern fit a buffer descriptor? Every reason why not, against the limits of a tile kind.

Two sets of rules meet here: what the registers hold (`TileLimits`; steps and sizes in granules), and what mlir-aie
accepts: its verifier of a static `aie.dma_bd` (AIEDialect.cpp) or of the runtime sequence's transfers
(AIEXDialect.cpp), both at 5ff2ab97. Patterns are judged as written; a message says when coalescing would help.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

from bd_patterns.granules import granule_faults
from bd_patterns.pattern import Pattern, PatternError
from bdforge.devices.limits import (
    GRANULE_BITS,
    RUNTIME_ELEMENT_BITS_MAX,
    SHIM,
    STATIC_STRIDE_END,
    TASK_REPEAT_MAX,
    TileKind,
    TileLimits,
)
from bdforge.devices.rules import Bound, exceeded, fits

Padding = Sequence[tuple[int, int]]
"""Zero elements before and after, one pair for each dimension, outermost first."""


@dataclass(frozen=True, slots=True)
class Runs:
    """A pattern split into what a BD walks in one run and how often it runs.

    Each run starts `stride` elements after the one before (0: the same place again).
    """

    bd: Pattern
    count: int
    stride: int

    @classmethod
    def of(cls, pattern: Pattern, limits: TileLimits, *, static: bool) -> "Runs":
        """Split `pattern`: at run time an outermost stride of 0, or one dimension more than the BD has, means runs.

        A runtime transfer has four sizes, of which the outermost is the runs, on every kind of tile.
        """
        more_dims = pattern.rank == bd_dims(limits, static=static) + 1
        repeats = pattern.rank > 1 and pattern.sizes[0] > 1 and pattern.strides[0] == 0
        if static or not (more_dims or repeats):
            return cls(pattern, 1, 0)
        bd = Pattern(pattern.sizes[1:], pattern.strides[1:], pattern.offset)
        return cls(bd, pattern.sizes[0], pattern.strides[0])


def bd_dims(limits: TileLimits, *, static: bool) -> int:
    """Dimensions of one BD: a runtime transfer describes three, as a shim BD has, even for a memtile."""
    return limits.dims if static else min(limits.dims, SHIM.dims)


def problems(
    pattern: Pattern,
    limits: TileLimits,
    element_bits: int,
    *,
    static: bool,
    buffer_elements: int | None = None,
    repeat: int = 1,
    padding: Padding | None = None,
) -> list[str]:
    """Every reason why `pattern` is no legal BD of this kind of tile; empty when it is.

    `static` chooses the rules of `aie.dma_bd` outside a runtime sequence, otherwise those of a task in one, whose
    outermost dimension may be the task's runs. A static one-dimensional contiguous pattern is meant to be written
    without dimension list (`offset, len`). `repeat` is how often the task queue runs the whole pattern. Padding makes
    zeros around the data of a memtile's MM2S; the caller knows the direction.
    """
    if element_bits < 1:
        return [f"element width {element_bits} bit is below 1"]

    def judge(candidate: Pattern) -> list[str]:
        return _judge(candidate, limits, element_bits, static, buffer_elements, repeat, padding)

    found, coalesced = judge(pattern), pattern.coalesced()
    if not found or padding or coalesced == pattern or judge(coalesced):
        return found
    return [*found[:-1], f"{found[-1]}; coalesced as {coalesced} it fits"]


def _judge(
    pattern: Pattern,
    limits: TileLimits,
    element_bits: int,
    static: bool,
    buffer_elements: int | None,
    repeat: int,
    padding: Padding | None,
) -> list[str]:
    runs = Runs.of(pattern, limits, static=static)
    found = list(_rank_problems(pattern, limits, static))
    found += granule_faults(pattern, element_bits)
    found += _run_problems(runs, limits, element_bits, repeat)
    if not _needs_no_dims(runs.bd, padding, static):
        over = exceeded(limits, dims=_in_words(runs.bd, element_bits))
        found += _size_problems(pattern, runs.bd, over, limits, element_bits)
        found += _step_problems(pattern, runs.bd, over, limits, static)
        found += _static_problems(pattern, limits, element_bits, buffer_elements) if static else []
    found += [] if static else _runtime_problems(pattern, runs.bd, element_bits)
    found += _length_problems(runs.bd, limits, element_bits, padding)
    found += _bounds_problems(pattern, buffer_elements)
    found += _padding_problems(pattern, runs.bd, limits, element_bits, padding) if padding else []
    return found


def static_fits(sizes: Sequence[Any], strides: Sequence[Any], element_bits: int, limits: TileLimits) -> Any:
    """Whether static patterns have no `problems`: numbers, or arrays of many patterns side by side.

    Of patterns whose innermost stride is 1, whose strides stay in their buffer and whose offset is a whole granule.
    """
    *outer, (size, stride) = zip(sizes, strides, strict=True)
    words = [*((s, _granules(t, element_bits)) for s, t in outer), (_granules(size, element_bits), 1)]
    held = fits(limits, dims=words) & (size * element_bits % GRANULE_BITS == 0)
    linear, step = (size == 1) | (stride == 1), size
    for size, stride in reversed(outer):
        held = held & ((size == 1) | (stride * element_bits % GRANULE_BITS == 0)) & (stride < STATIC_STRIDE_END)
        linear = linear & ((size == 1) | (stride == step))
        step = step * size
    for size in sizes:
        held = held & (size <= limits.static_size)
    linear = linear & (step * element_bits % GRANULE_BITS == 0)
    return (linear | held) & fits(limits, length=_granules(step, element_bits))


def require_legal(
    pattern: Pattern,
    limits: TileLimits,
    element_bits: int,
    *,
    static: bool,
    buffer_elements: int | None = None,
    repeat: int = 1,
    padding: Padding | None = None,
) -> None:
    """PatternError with all of `problems(...)`, if there are any."""
    found = problems(
        pattern,
        limits,
        element_bits,
        static=static,
        buffer_elements=buffer_elements,
        repeat=repeat,
        padding=padding,
    )
    if found:
        what = f"pattern {pattern} of {element_bits}-bit elements is no {_where(limits, static)}"
        raise PatternError("\n  - ".join([f"{what}:", *found]))


def _where(limits: TileLimits, static: bool) -> str:
    return f"{'static' if static else 'runtime'} {limits.kind} BD"


def _needs_no_dims(bd: Pattern, padding: Padding | None, static: bool) -> bool:
    """Whether offset and length say it all; at run time also in sizes `[1, 1, n]`, whatever the outer strides."""
    plain = bd.rank == 1 if static else _outer_sizes_are_1(bd)
    return plain and bd.strides[-1] == 1 and not padding


def _outer_sizes_are_1(bd: Pattern) -> bool:
    return all(size == 1 for size in bd.sizes[:-1])


def _rank_problems(pattern: Pattern, limits: TileLimits, static: bool) -> Iterator[str]:
    allowed = bd_dims(limits, static=static)
    total = allowed if static else allowed + 1
    if pattern.rank <= total:
        return
    extra = "" if static else " and one of runs"
    yield (
        f"{pattern.rank} dimensions exceed the {allowed} of a {limits.kind} BD{extra}; "
        "share the reorder with the DMA's partner"
    )


def _named(pattern: Pattern, bd: Pattern) -> Iterator[tuple[int, str, int, int]]:
    """(register dimension, name, size, stride) of the BD's dimensions, outermost first; names count in `pattern`."""
    for axis, (size, stride) in enumerate(bd.dims()):
        number = bd.rank - 1 - axis
        yield number, f"dimension {axis + pattern.rank - bd.rank} (d{number})", size, stride


def _split_hint(size: int, limit: int) -> str:
    inner = next((d for d in range(min(limit, size), 1, -1) if size % d == 0), 1)
    return f"split it as ({size // inner}, {inner})" if inner > 1 else f"choose a size with a factor up to {limit}"


def _size_problems(
    pattern: Pattern, bd: Pattern, over: list[Bound], limits: TileLimits, element_bits: int
) -> Iterator[str]:
    for field, number, words, limit in over:
        if field != "size":
            continue
        name, size = {n: (name, size) for n, name, size, _ in _named(pattern, bd)}[number]
        unit = f" elements = {words} granules" if number == 0 else ""
        largest = limit * GRANULE_BITS // element_bits if number == 0 else limit
        yield f"size {size}{unit} in {name} exceeds the {limit} of a {limits.kind} BD; {_split_hint(size, largest)}"


def _in_words(bd: Pattern, element_bits: int) -> list[tuple[int, int]]:
    """(size, step) as registers count them, rounded up where words break."""
    *outer, (size, stride) = bd.dims()
    inner = (_granules(size, element_bits) if stride == 1 else size, _granules(stride, element_bits))
    return [*((size, _granules(stride, element_bits)) for size, stride in outer), inner]


def _granules(elements: Any, element_bits: int) -> Any:
    return -(-elements * element_bits // GRANULE_BITS)


def _step_problems(pattern: Pattern, bd: Pattern, over: list[Bound], limits: TileLimits, static: bool) -> Iterator[str]:
    for _, name, size, stride in _named(pattern, bd):
        if size > 1 and stride == 0:
            yield (
                f"stride 0 in {name} cannot be expressed, since steps are stored minus 1; "
                f"repeat with {'repeat_count of the task' if static else 'the outermost dimension or the task'}"
            )
    for field, number, words, limit in over:
        if field == "step":
            name, stride = {n: (name, stride) for n, name, _, stride in _named(pattern, bd)}[number]
            yield (
                f"stride {stride} elements = {words} granules in {name} exceeds the {limit} of a {limits.kind} BD; "
                "lay the data out closer or use one BD for each position"
            )


def _run_problems(runs: Runs, limits: TileLimits, element_bits: int, repeat: int) -> Iterator[str]:
    if repeat < 1:
        yield f"repeat {repeat} is below 1"
    iteration = (runs.count, _granules(runs.stride, element_bits))
    for field, _, value, limit in exceeded(limits, iteration=iteration):
        if field == "runs":
            yield (
                f"size {value} in dimension 0 (runs of the task) exceeds the {limit} "
                f"of the iteration; {_split_hint(value, limit)} in several tasks"
            )
        else:
            yield (
                f"stride {runs.stride} elements = {value} granules in dimension 0 (runs of the task) exceeds the "
                f"{limit} of the iteration step; use one task for each run"
            )
    if runs.count * repeat > TASK_REPEAT_MAX:
        yield (
            f"{runs.count} x {repeat} runs exceed the {TASK_REPEAT_MAX} of one task queue entry; "
            f"use several tasks of at most {TASK_REPEAT_MAX} runs"
        )


def _static_problems(
    pattern: Pattern, limits: TileLimits, element_bits: int, buffer_elements: int | None
) -> Iterator[str]:
    for _, name, size, stride in _named(pattern, pattern):
        if size > limits.static_size:
            yield (
                f"size {size} in {name} exceeds the {limits.static_size} that aie.dma_bd takes on a {limits.kind}; "
                f"{_split_hint(size, limits.static_size)}"
            )
        if stride < 1 and size == 1:
            yield f"stride 0 in {name} is below 1, which aie.dma_bd refuses; leave out the dimension of size 1"
        if stride >= STATIC_STRIDE_END:
            yield f"stride {stride} in {name} is not below {STATIC_STRIDE_END} elements, which aie.dma_bd demands"
        if buffer_elements is not None and stride > buffer_elements:
            yield f"stride {stride} in {name} exceeds the buffer's {buffer_elements} elements; check the buffer"
    if element_bits > GRANULE_BITS and pattern.strides[-1] != 1:
        yield f"innermost stride {pattern.strides[-1]} of {element_bits}-bit elements must be 1 for aie.dma_bd"


def _runtime_problems(pattern: Pattern, bd: Pattern, element_bits: int) -> Iterator[str]:
    size, stride = bd.sizes[-1], bd.strides[-1]
    if _outer_sizes_are_1(bd) and size > 1 and stride > 1:
        yield (
            f"stride {stride} in dimension {pattern.rank - 1} (d0) would be dropped, since mlir-aie takes a task whose "
            f"outer sizes are 1 as linear; write ({size}, 1, 1):({stride}, 0, 1)"
        )
    if element_bits > RUNTIME_ELEMENT_BITS_MAX:
        yield f"elements of {element_bits} bit exceed the {RUNTIME_ELEMENT_BITS_MAX} of a runtime transfer; use i32"
    for axis, (size, stride) in enumerate(zip(pattern.sizes[:-1], pattern.strides[:-1], strict=True)):
        if size == 1 and stride * element_bits % GRANULE_BITS:
            yield f"stride {stride} in dimension {axis} of size 1 is no whole number of words; write 0"


def _length_problems(bd: Pattern, limits: TileLimits, element_bits: int, padding: Padding | None) -> Iterator[str]:
    sizes = bd.sizes
    if padding and len(padding) == bd.rank:
        sizes = tuple(size + before + after for size, (before, after) in zip(sizes, padding, strict=True))
    for _, _, words, limit in exceeded(limits, length=_granules(prod(sizes), element_bits)):
        yield (
            f"length {words} granules exceeds the {limit} of a {limits.kind} BD; "
            "slice the outermost dimension into several BDs"
        )


def _bounds_problems(pattern: Pattern, buffer_elements: int | None) -> Iterator[str]:
    last = pattern.span[1]
    if buffer_elements is not None and last >= buffer_elements:
        yield f"last index {last} is outside the buffer of {buffer_elements} elements; shorten the pattern"


def _padding_problems(
    pattern: Pattern, bd: Pattern, limits: TileLimits, element_bits: int, padding: Padding
) -> Iterator[str]:
    if limits.kind is not TileKind.MEMTILE:
        yield f"padding needs a memtile's MM2S; a {limits.kind} BD has none"
        return
    if len(padding) != bd.rank:
        yield f"{len(padding)} pairs of padding for {bd.rank} dimensions; give one pair for each"
        return
    for (number, name, _, _), pair in zip(_named(pattern, bd), padding, strict=True):
        for side, elements in zip(("before", "after"), pair, strict=True):
            yield from _pad_problems(number, f"padding {elements} {side} in {name}", elements, element_bits)
    *outer, (before, after) = padding
    words = [*outer, (_granules(before, element_bits), _granules(after, element_bits))]
    named = [name for _, name, _, _ in _named(pattern, bd)][::-1]
    for field, number, _, limit in exceeded(limits, padding=words):
        side = field.split()[1]
        elements = padding[::-1][number][side == "after"]
        unit = " granules" if number == 0 else ""
        yield (
            f"padding {elements} {side} in {named[number]} exceeds the {limit}{unit} of a {limits.kind} BD; "
            "pad in the kernel or on the host"
        )


def _pad_problems(number: int, what: str, elements: int, element_bits: int) -> Iterator[str]:
    if elements < 0:
        yield f"{what} is negative"
    elif number == 0 and elements * element_bits % GRANULE_BITS:
        yield f"{what} is {elements * element_bits} bit, no multiple of {GRANULE_BITS} bit"
