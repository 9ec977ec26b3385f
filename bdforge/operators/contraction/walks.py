"""From loops over memory to the BDs of a shim's task.

Loops come outermost first, as (start, count, stride) segments: several where the last tile moves back. What no BD
holds, three dimensions and the runs of its task, becomes several BDs, whose offsets may be as far apart as they like.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bdforge.devices import TileLimits
from bdforge.devices.limits import GRANULE_BITS
from bdforge.devices.rules import fits

Segment = tuple[int, int, int]
Loop = tuple[int, int]
MOST_BDS = 6
"""Of one chain; with more a shim has no room for the next step's."""


class WalkReason(Exception):
    """Why no BDs walk an operand; not for users: plans tell it."""


@dataclass(frozen=True, slots=True)
class ShimBd:
    """Sizes and strides of a BD, elements, outermost first; `offset` from the walk's start."""

    offset: int
    sizes: tuple[int, ...]
    strides: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Chain:
    """BDs that are walked one after the other, `turns` times; each turn moves them on by `stride` elements."""

    bds: tuple[ShimBd, ...]
    turns: int = 1
    stride: int = 0


def chain(levels: Sequence[Sequence[Segment]], bits: int, limits: TileLimits, iterates: bool = True) -> Chain:
    """The shortest chain that walks `levels` of loops over elements of `bits` bits; WalkReason tells why none does.

    With `iterates` the outermost loop may become runs of the task.
    """
    pieces = list(_pieces(levels))
    turns, stride = 1, 0
    if iterates and len(pieces) == 1 and (found := _iterated(pieces[0][1], bits, limits)) is not None:
        turns, stride, rest = found
        pieces = [(pieces[0][0], rest)]
    bds = [bd for offset, loops in pieces for bd in _bds(offset, loops, bits, limits)]
    if len(bds) > MOST_BDS:
        raise WalkReason(f"takes {len(bds)} BDs a tile, at most {MOST_BDS} leave room for the next")
    return Chain(tuple(bds), turns, stride)


def _pieces(levels: Sequence[Sequence[Segment]]) -> Iterator[tuple[int, list[Loop]]]:
    """(offset, loops) without segments, in order."""
    last = max((number for number, level in enumerate(levels) if len(level) > 1), default=-1)
    started = [(0, [])] if last < 0 else list(_started(levels[: last + 1]))
    behind = sum(level[0][0] for level in levels[last + 1 :])
    for offset, loops in started:
        rest = [(count, stride) for _, count, stride in (level[0] for level in levels[last + 1 :])]
        yield offset + behind, merged([*loops, *rest])


def _started(levels: Sequence[Sequence[Segment]], offset: int = 0) -> Iterator[tuple[int, list[Loop]]]:
    for start, count, stride in levels[0]:
        if len(levels) == 1:
            yield offset + start, [(count, stride)]
            continue
        for turn in range(count):
            yield from _started(levels[1:], offset + start + turn * stride)


def merged(loops: Sequence[Loop]) -> list[Loop]:
    """Loops without those of one turn, neighbours joined that are one walk."""
    found: list[Loop] = []
    for count, stride in loops:
        if count == 1:
            continue
        if found and found[-1][1] == count * stride:
            found[-1] = (found[-1][0] * count, stride)
        else:
            found.append((count, stride))
    return found


def _iterated(loops: list[Loop], bits: int, limits: TileLimits) -> tuple[int, int, list[Loop]] | None:
    """The fewest turns of the outermost loop that leave what one BD holds, or all of it; None where none are needed."""
    if _fits(loops, bits, limits) is not None:
        return None
    (count, stride), rest = loops[0], loops[1:]
    turns = [turn for turn in _divisors(count, limits.iteration_wrap_max) if turn > 1]
    ways = [(turn, count // turn * stride, merged([(count // turn, stride), *rest])) for turn in turns]
    ways = [way for way in ways if _words(way[1], bits) <= limits.step_max]
    return next((way for way in ways if _fits(way[2], bits, limits)), ways[-1] if ways else None)


def _divisors(count: int, most: int) -> list[int]:
    return [number for number in range(1, min(count, most) + 1) if count % number == 0]


def _bds(offset: int, loops: list[Loop], bits: int, limits: TileLimits) -> Iterator[ShimBd]:
    """One BD, or as many as it takes: the outermost loop unrolled, as little of it as will do."""
    if (dims := _fits(loops, bits, limits)) is not None:
        yield ShimBd(offset, tuple(count for count, _ in dims), tuple(stride for _, stride in dims))
        return
    if len(loops) < 2 or _odd(loops, bits):
        raise WalkReason(_too_far(loops, bits, limits))
    (count, stride), rest = loops[0], loops[1:]
    ways = [(turns, [(count // turns, stride), *rest]) for turns in _divisors(count, MOST_BDS)]
    turns, left = next((way for way in ways if way[0] > 1 and _fits(way[1], bits, limits)), (count, rest))
    if turns > MOST_BDS:
        told = _too_far(loops[:1], bits, limits) if _words(stride, bits) > limits.step_max else ""
        raise WalkReason(told or f"has {len(loops)} loops a tile, of which the outermost turns {count} times: too many")
    for turn in range(turns):
        yield from _bds(offset + turn * (count // turns) * stride, merged(left), bits, limits)


def _too_far(loops: Sequence[Loop], bits: int, limits: TileLimits) -> str:
    far = max((_words(stride, bits) for _, stride in loops), default=0)
    if far > limits.step_max:
        advice = "stage it, reorder its labels, or split that one, so that it is an offset"
        return f"steps {far} words, a BD's longest step is {limits.step_max}; {advice}"
    steps = ", ".join(str(stride) for _, stride in loops)
    return f"steps {steps} elements of {bits} bits, no whole words one after the other; stage it"


def _odd(loops: Sequence[Loop], bits: int) -> bool:
    """Whether some loop steps through parts of words."""
    *outer, (count, stride) = loops or [(1, 1)]
    part = bits != GRANULE_BITS and (stride != 1 or count * bits % GRANULE_BITS != 0)
    return part or any(step * bits % GRANULE_BITS for _, step in outer)


def _words(elements: int, bits: int) -> int:
    return elements * bits // GRANULE_BITS


def _fits(loops: Sequence[Loop], bits: int, limits: TileLimits) -> list[Loop] | None:
    """The loops as the dimensions of one BD; None where it does not hold them."""
    if _odd(loops, bits):
        return None
    *outer, inner = loops or [(1, 1)]
    if not outer and inner[1] == 1:
        return [inner]
    dims = _wrapped(inner, bits, limits.wraps[0], limits.step_max)
    for loop in reversed(outer):
        wrap = limits.wraps[len(dims)] if len(dims) < len(limits.wraps) else loop[0]
        reach = limits.step_max * GRANULE_BITS // bits
        dims = [*_wrapped(loop, GRANULE_BITS, wrap, reach), *dims]
    in_words = [
        *((count, _words(stride, bits)) for count, stride in dims[:-1]),
        (_words(dims[-1][0], bits), dims[-1][1]),
    ]
    return dims if len(dims) <= limits.dims and fits(limits, dims=in_words) else None


def _wrapped(loop: Loop, bits: int, most: int, reach: int) -> list[Loop]:
    """A loop as two where its size is more than a wrap holds, the outer one's step at most `reach` words."""
    count, stride = loop
    words, each = count * bits // GRANULE_BITS, max(GRANULE_BITS // bits, 1)
    if words <= most:
        return [loop]
    inner = max(d for d in _divisors(words, most) if d == 1 or d * stride <= reach) * each
    return [(count // inner, stride * inner), (inner, stride)]
