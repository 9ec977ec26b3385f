"""The one table of what a tile and its registers hold: whoever refuses a number asks here, and says where it stands.

A document is judged by `design.check`, a text by the rules of `array.mlir`; what is made of them is not judged again,
but for texts that mlir-aie takes though registers cannot hold what they say: those are judged where they are lowered.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import reduce
from operator import and_
from typing import Any, NamedTuple

from bdforge.devices.limits import PACKET_IDS, PACKET_TYPES, TASK_REPEAT_MAX, TileLimits

Pair = tuple[Any, Any]


class Range(NamedTuple):
    """Numbers from 0 to `last` of a tile, and what these are; `{}` stands for the tile's kind."""

    last: Callable[[TileLimits], int]
    what: str


_BDS = Range(lambda tile: tile.bds - 1, "the BDs of a {}")
_HEADER = "what the header's field holds"
RANGES: Mapping[str, Range] = {
    "bd_id": _BDS,
    "next_bd_id": _BDS,
    "channel": Range(lambda tile: tile.channels - 1, "the channels of a {} in each direction"),
    "lock": Range(lambda tile: tile.locks - 1, "the locks of a {}"),
    "lock value": Range(lambda tile: tile.lock_value_max, "what a lock holds"),
    "repeat_count": Range(lambda _: TASK_REPEAT_MAX - 1, "what the queue's field holds"),
    "pkt_id": Range(lambda _: PACKET_IDS - 1, _HEADER),
    "pkt_type": Range(lambda _: PACKET_TYPES - 1, _HEADER),
}
"""By name, all that is counted from 0."""


def outside(name: str, value: int, tile: TileLimits) -> str | None:
    """Why a tile has no such number, with its range; None where it has."""
    last, what = RANGES[name].last(tile), RANGES[name].what.format(tile.kind)
    return None if 0 <= value <= last else f"{name} = {value} is outside 0 to {last}, {what}"


# What the registers of a BD hold, for one BD in integers or many in arrays. All values are in words as hardware counts
# them: (size, step) of dimensions outermost first, (runs, step) of the iteration, (before, after) of padding (outer
# ones in positions). Registers keep steps minus 1; these are whole.


class Bound(NamedTuple):
    """A value and the largest that its field holds. `number` counts dimensions from the innermost, as registers do."""

    field: str
    number: int
    value: Any
    most: int


def bounds(
    limits: TileLimits, *, length: Any = None, dims: Sequence[Pair] = (), iteration: Pair | None = None,
    padding: Sequence[Pair] = (), wraps: Sequence[int] | None = None,
) -> list[tuple[str, int, Any, int]]:  # fmt: skip
    """Every value that is given with its field's limit, as in `Bound`: sizes, steps, both outermost first, the rest.

    A dimension beyond those with a wrap has no size field; its length ends it. `wraps` replaces the limits of sizes.
    """
    held = limits.wraps if wraps is None else wraps
    last, sized = len(dims) - 1, len(held)
    found = [("size", last - i, dim[0], held[last - i]) for i, dim in enumerate(dims) if last - i < sized]
    found += [("step", last - i, dim[1], limits.step_max) for i, dim in enumerate(dims)]
    if iteration is not None:
        found.append(("runs", len(dims), iteration[0], limits.iteration_wrap_max))
        found.append(("run step", len(dims), iteration[1], limits.step_max))
    if length is not None:
        found.append(("length", 0, length, limits.length_max))
    for place, (before, after) in enumerate(padding):
        number = len(padding) - 1 - place
        most = limits.pad_max[number] if number < len(limits.pad_max) else 0
        found += [("padding before", number, before, most), ("padding after", number, after, most)]
    return found


def exceeded(limits: TileLimits, **words: Any) -> list[Bound]:
    """The bounds of one BD in integers that do not hold; `words` as `bounds` takes them."""
    return [Bound(*bound) for bound in bounds(limits, **words) if bound[2] > bound[3]]


def fits(limits: TileLimits, **words: Any) -> Any:
    """Whether all bounds hold: a bool for integers, an array of them where any value is one."""
    return reduce(and_, (value <= most for _, _, value, most in bounds(limits, **words)), True)
