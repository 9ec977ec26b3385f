"""From the inner loop to the blocks of C around it: what loading and storing the accumulators adds to each block.

A block is the set of micro-tiles of C whose accumulators live through one inner loop. Two lengths are computed by
placing every instruction in its slot and ports:

- *sequential*: a block starts when the one before has stored all of C, as in code compiled from nested loops;
- *overlapped*: epilogue, C stores, C loads and the next prologue share bundles, the inner loops staying whole.

Not in either: stalls on memory banks (a few percent on AIE2), scalar set-up that spare slots hide.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from math import gcd

from bdforge.perf.kernels.initiation_interval import LoopSchedule, schedule
from bdforge.perf.kernels.loop import Loop, Operation, ScheduleError
from bdforge.perf.kernels.scheduled_forms import TimedForm

SETTLING_BLOCKS = 4  # placed before the period is read; the first two already overlap as all later ones
HORIZON_CYCLES = 4096  # an instruction that finds no free place within is an error of the description

Chain = tuple[TimedForm, ...]
"""Instructions, each using the result of the one before, that move one part of an accumulator to or from memory."""


@dataclass(frozen=True, eq=False)
class Block:
    """An inner loop and the accumulators `tiles` it adds to, in the order in which they are loaded and stored.

    `load` and `store` move one micro-tile. `accumulators` is how many the core has for tiles of this size: those beyond
    `tiles` can hold a tile of the next block or of the one before. ScheduleError if the tiles exceed them.
    """

    loop: Loop
    tiles: tuple[str, ...]
    load: tuple[Chain, ...]
    store: tuple[Chain, ...]
    accumulators: int

    def __post_init__(self):
        if len(self.tiles) > self.accumulators:
            raise ScheduleError(
                f"{self.loop.name}: a block of {len(self.tiles)} micro-tiles exceeds the {self.accumulators} free "
                "accumulators of a core; make blocks smaller"
            )

    @cached_property
    def pipelined(self) -> LoopSchedule:
        """The schedule of the inner loop."""
        return schedule(self.loop)

    @cached_property
    def variants(self) -> tuple[LoopSchedule, ...]:
        """That schedule and, if it is as fast, the one whose loads keep to their first unit: the other is C's."""
        body = tuple(replace(o, forms=o.forms[:1]) for o in self.loop.body)
        single = schedule(replace(self.loop, body=body))
        return (self.pipelined, *([single] if single.interval == self.pipelined.interval else []))

    @cached_property
    def products(self) -> tuple[tuple[int, ...], ...]:
        """Of each tile, the operations that add to it."""
        return tuple(
            tuple(i for i, o in enumerate(self.loop.body) if tile in o.writes) for tile in self.tiles
        )  # fmt: skip

    def sequential_cycles(self, trips: int) -> int:
        """Cycles of one block alone with `trips` iterations, from its first load to its last store."""
        timelines = [_Timeline(self, pipelined, trips) for pipelined in self.variants]
        for timeline in timelines:
            timeline.add()
        return min(timeline.end for timeline in timelines)

    def overlapped_cycles(self, trips: int) -> float:
        """Cycles from one block to the next in the steady state of overlapped blocks."""
        return min(self._period(pipelined, trips) for pipelined in self.variants)

    def _period(self, pipelined: LoopSchedule, trips: int) -> float:
        """Mean distance of blocks over one turn of the accumulators: after it the tiles meet the same ones again."""
        turn = self.accumulators // gcd(self.accumulators, len(self.tiles))
        timeline = _Timeline(self, pipelined, trips)
        starts = [timeline.add() for _ in range(SETTLING_BLOCKS + turn)]
        return (starts[-1] - starts[SETTLING_BLOCKS - 1]) / turn

    def settled_trips(self) -> int:
        """Iterations from which on more of them add only their interval: all of C's traffic fits in fewer."""
        traffic = sum(len(chain) for chain in (*self.load, *self.store)) * len(self.tiles)
        return self.pipelined.stages + -(-(traffic + self.pipelined.span) // self.pipelined.interval) + 1


class _Timeline:
    """Blocks placed one after another, each as early as slots, ports and accumulators allow."""

    def __init__(self, block: Block, pipelined: LoopSchedule, trips: int):
        self.block = block
        self.pipelined = pipelined
        self.trips = trips
        self.busy: set[tuple[str, int]] = set()
        self.stores: list[list[int]] = []
        self.start: int | None = None
        self.end = 0

    def add(self) -> int:
        """Place the next block; returns the cycle of its first operand load."""
        loads = self._load_tiles()
        start = self._body_start(loads)
        self.busy.update(self._body_cells(start))
        self.start = start
        self._store_tiles(start)
        return start

    def _load_tiles(self) -> list[list[tuple[TimedForm, int]]]:
        return [self._load_tile(len(self.stores) + index) for index in range(len(self.block.tiles))]

    def _load_tile(self, tile: int) -> list[tuple[TimedForm, int]]:
        """TimedForm of the last instruction of each part's chain, after the accumulator's former tile has left it."""
        before = tile - self.block.accumulators
        placed = []
        for part, chain in enumerate(self.block.load):
            lead = sum(_after(a, b) for a, b in pairwise(chain))
            free = self._part_free(before, part, chain[-1]) if before >= 0 else 0
            placed.append((chain[-1], self._place_chain(chain, max(0, free - lead), free)))
        return placed

    def _part_free(self, tile: int, part: int, last: TimedForm) -> int:
        """Earliest issue of a load into the part of an accumulator that `tile` held: after the store reads it."""
        stores = self.stores[tile]
        parts = len(self.block.load)
        until = max(stores[i] for i in range(len(stores)) if i * parts // len(stores) <= part)
        return until + self.block.store[0][0].read_cycle("src") - _written(last)

    def _body_start(self, loads: Iterable[list[tuple[TimedForm, int]]]) -> int:
        pipelined = self.pipelined
        bounds = [0] if self.start is None else [self.start + pipelined.interval * self.trips]
        for products, parts in zip(self.block.products, loads, strict=True):
            first = min(products, key=lambda i: pipelined.issues[i])
            reader = self.block.loop.body[first].form
            bounds += [at + form.distance_to(reader, "acc1") - pipelined.issues[first] for form, at in parts]
        earliest = max(bounds)
        for start in range(earliest, earliest + HORIZON_CYCLES):
            if self.busy.isdisjoint(self._body_cells(start)):
                return start
        raise ScheduleError(f"{self.block.loop.name}: no place for the inner loop after cycle {earliest}")

    def _body_cells(self, start: int) -> Iterable[tuple[str, int]]:
        return ((name, start + cycle) for name, cycle in self.pipelined.uses(self.trips))

    def _store_tiles(self, start: int) -> None:
        pipelined = self.pipelined
        for products in self.block.products:
            last = max(products, key=lambda i: pipelined.issues[i])
            done = start + pipelined.interval * (self.trips - 1) + pipelined.issues[last]
            source = self.block.loop.body[last].form
            parts = []
            for chain in self.block.store:
                parts.append(self._place(chain[0], done + source.distance_to(chain[0], "src")))
                at = parts[-1]
                for before, form in pairwise(chain):
                    at = self._place(form, at + _after(before, form))
            self.stores.append(parts)

    def _place_chain(self, chain: Chain, earliest: int, last_earliest: int) -> int:
        at = self._place(chain[0], earliest if len(chain) > 1 else max(earliest, last_earliest))
        for before, form in pairwise(chain):
            at = self._place(form, max(at + _after(before, form), last_earliest))
        return at

    def _place(self, form: TimedForm, earliest: int) -> int:
        for at in range(max(0, earliest), max(0, earliest) + HORIZON_CYCLES):
            for place in Operation((form,)).places:
                cells = {(name, at + cycle) for name, cycle in place}
                if self.busy.isdisjoint(cells):
                    self.busy |= cells
                    self.end = max(self.end, at + 1)
                    return at
        raise ScheduleError(f"{self.block.loop.name}: no free place for {form.name}")


def _after(before: TimedForm, form: TimedForm) -> int:
    """Cycles from one instruction of a chain to the next; one that writes no register leaves its result in a FIFO."""
    if before.write_cycle is None:
        return 1
    return before.distance_to(form, "src" if "src" in form.reads else "s1")


def _written(form: TimedForm) -> int:
    if form.write_cycle is None:
        raise ScheduleError(f"{form.name}: loads no accumulator")
    return form.write_cycle
