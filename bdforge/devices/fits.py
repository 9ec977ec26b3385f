"""Whether the registers of a buffer descriptor hold what it is to say: for one BD in integers, or many in arrays.

All values are in words as hardware counts them: (size, step) of dimensions outermost first, (runs, step) of the
iteration, (before, after) of padding (outer ones in positions). Registers keep steps minus 1; these are whole.
"""

from collections.abc import Iterator, Sequence
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

from bdforge.devices.limits import TileLimits

Pair = tuple[Any, Any]


class Bound(NamedTuple):
    """A value and the largest that its field holds. `number` counts dimensions from the innermost, as registers do."""

    field: str
    number: int
    value: Any
    most: int


def bounds(
    limits: TileLimits, *, length: Any = None, dims: Sequence[Pair] = (), iteration: Pair | None = None,
    padding: Sequence[Pair] = (),
) -> Iterator[Bound]:  # fmt: skip
    """Every value that is given with its field's limit: sizes, then steps, both outermost first, then the rest.

    A dimension beyond those with a wrap has no size field; its length ends it.
    """
    numbered = [(len(dims) - 1 - place, size, step) for place, (size, step) in enumerate(dims)]
    yield from (Bound("size", n, size, limits.wraps[n]) for n, size, _ in numbered if n < len(limits.wraps))
    yield from (Bound("step", n, step, limits.step_max) for n, _, step in numbered)
    if iteration is not None:
        yield Bound("runs", len(dims), iteration[0], limits.iteration_wrap_max)
        yield Bound("run step", len(dims), iteration[1], limits.step_max)
    if length is not None:
        yield Bound("length", 0, length, limits.length_max)
    for place, pair in enumerate(padding):
        number = len(padding) - 1 - place
        most = limits.pad_max[number] if number < len(limits.pad_max) else 0
        yield from (
            Bound(f"padding {side}", number, n, most) for side, n in zip(("before", "after"), pair, strict=True)
        )


def exceeded(limits: TileLimits, **words: Any) -> Iterator[Bound]:
    """The bounds of one BD in integers that do not hold; `words` as `bounds` takes them."""
    return (bound for bound in bounds(limits, **words) if bound.value > bound.most)


def fits(limits: TileLimits, **words: Any) -> Any:
    """Whether all bounds hold: a bool for integers, an array of them where any value is one."""
    return reduce(and_, (bound.value <= bound.most for bound in bounds(limits, **words)), True)
