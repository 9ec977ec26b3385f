"""Vector registers for the values of a block that follows itself: colours of arcs on a circle as long as its period."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bdforge.core.codegen.pipeline.dataflow import DataflowOp, Value, touches
from bdforge.core.isa import Isa


@dataclass(frozen=True, slots=True)
class Life:
    """Cycles, from the first with the value in its register to the last that reads it, `end` not included."""

    value: Value
    start: int
    end: int


def lives(isa: Isa, ops: Sequence[DataflowOp], issues: Sequence[int]) -> list[Life]:
    """When values occupy registers, in the order of their starts.

    A register can be loaded again while its old value is still read: what counts is when results land.
    """
    starts: dict[Value, int] = {}
    ends: dict[Value, int] = {}
    for touch in touches(isa, ops):
        if len(touch.place) == 2:
            # the cycle of a read, or the first one whose reads see what is written
            value, at = touch.place[0], issues[touch.op] + touch.access.stage
            if touch.writes:
                at += touch.access.bypass is None
                starts[value] = min(starts.get(value, at), at)
                at += touch.access.bypass is not None  # nothing else may land in the cycle in which it is forwarded
            ends[value] = max(ends.get(value, at), at)
    return sorted((Life(value, starts[value], ends[value] + 1) for value in starts), key=lambda life: life.start)


def coloured(found: Sequence[Life], period: int, registers: Sequence[int]) -> dict[Value, int] | None:
    """A register for each value so that no two values of this or following blocks meet; None if none was found.

    Arcs are taken in the order of their starts from a cut on; each goes where the least time is lost. All cuts are
    tried, for on a circle the first arc limits the last one.
    """
    for cut in sorted({life.start % period for life in found}):
        colours = _from_cut(found, period, registers, cut)
        if colours is not None:
            return colours
    return None


def meet(found: Sequence[Life], period: int, registers: Mapping[Value, tuple[str, int]]) -> bool:
    """Whether two values of this or following blocks meet in a register, of a file with a number."""
    arcs: dict[tuple[str, int], list[tuple[int, int]]] = {}
    for life in found:
        first = life.start % period
        arcs.setdefault(registers[life.value], []).append((first, first + life.end - life.start))
    return any(
        end > start
        for row in map(sorted, arcs.values())
        for (_, end), (start, _) in pairwise([*row, (row[0][0] + period, 0)])
    )


def _from_cut(found: Sequence[Life], period: int, registers: Sequence[int], cut: int) -> dict[Value, int] | None:
    free, limit, colours = dict.fromkeys(registers, 0), {}, {}
    moved = [(life, (life.start - cut) % period) for life in found]  # in cycles behind the cut
    for life, start in sorted(moved, key=lambda pair: (pair[1], pair[0].end - pair[0].start)):
        end = start + life.end - life.start
        fitting = [r for r in registers if free[r] <= start and end <= limit.get(r, start + period)]
        if not fitting:
            return None
        best = max(fitting, key=lambda r: (free[r], -r))
        limit.setdefault(best, start + period)
        colours[life.value], free[best] = best, end
    return colours
