"""DRAM: budgets that all shim channels share.

A flow is what one shim channel moves between two events. It has two prices, what a byte takes of the budget of lines
and of that of pages (`Timing`), and a fastest rate, that of its channel. Both budgets work at the same time. All flows
under way get the same share of the budget that they need most of, or less where their channel is slower: max-min
fairness, as with an arbiter that serves channels in turn (dominant resource fairness, Ghodsi et al. 2011).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from bdforge.devices.timing import Timing
from bdforge.emulator.timed.clock import Clock
from bdforge.emulator.trace import Access

_EXHAUSTED_BYTES = 1e-6  # less than this is left by rounding only


class Price(NamedTuple):
    """Cycles that a byte takes of each budget, and of its channel alone."""

    lines: float
    pages: float
    channel: float


@dataclass(slots=True, eq=False)
class Flow:
    """Bytes on their way. `main` is the higher price; `wanted` the share of that budget which its channel can use."""

    left_bytes: float
    lines: float
    pages: float
    main: float
    wanted: float
    done: Callable[..., Any]
    arguments: tuple[Any, ...]
    rate: float = 0.0  # bytes per cycle


class Dram:
    """The shared budgets. `lines_cycles`, by direction, and `pages_cycles` are how much of them was used."""

    def __init__(self, clock: Clock, timing: Timing):
        self._clock, self._timing = clock, timing
        self._flows: list[Flow] = []
        self._settled = clock.now
        self._version = 0
        self.moved_bytes = {False: 0, True: 0}  # by whether they are written
        self.lines_cycles = {False: 0.0, True: 0.0}
        self.pages_cycles = 0.0
        self._prices: dict[tuple[Access, bool], Price] = {}

    def add(
        self, size_bytes: int, ways: Sequence[tuple[Access, bool]], slowest: float, done: Callable, *arguments: Any
    ) -> None:
        """Move bytes and call `done`. `ways` are accesses and whether they write; `slowest` is cycles per byte."""
        lines = pages = 0.0
        for access, write in ways:
            price = self._price(access, write)
            lines, pages, slowest = lines + price.lines, pages + price.pages, max(slowest, price.channel)
            self.moved_bytes[write] += size_bytes
            self.lines_cycles[write] += price.lines * size_bytes
        self.pages_cycles += pages * size_bytes
        self._settle()
        main = max(lines, pages)
        self._flows.append(Flow(size_bytes, lines, pages, main, main / slowest, done, arguments))
        self._share()

    def _price(self, access: Access, write: bool) -> Price:
        if (access, write) not in self._prices:
            self._prices[access, write] = price_of(self._timing, access, write)
        return self._prices[access, write]

    def _settle(self) -> None:
        """Let the flows have moved until now."""
        passed = self._clock.now - self._settled
        self._settled = self._clock.now
        if passed:
            for flow in self._flows:
                flow.left_bytes -= passed * flow.rate

    def _share(self) -> None:
        """Divide the budgets and ask to be called when the first flow ends."""
        self._version += 1
        if not self._flows:
            return
        flows = sorted(self._flows, key=lambda flow: flow.wanted)
        share = min(_level(flows, [flow.lines for flow in flows]), _level(flows, [flow.pages for flow in flows]))
        for flow in flows:
            flow.rate = min(flow.wanted, share) / flow.main
        first = min(flow.left_bytes / flow.rate for flow in flows)
        self._clock.at(self._clock.now + max(first, 0.0), self._end, self._version)

    def _end(self, version: int) -> None:
        if version != self._version:
            return
        self._settle()
        ended = [flow for flow in self._flows if flow.left_bytes <= _EXHAUSTED_BYTES]
        self._flows = [flow for flow in self._flows if flow.left_bytes > _EXHAUSTED_BYTES]
        self._share()
        for flow in ended:
            flow.done(*flow.arguments)


def price_of(timing: Timing, access: Access, write: bool) -> Price:
    """What a byte of an access takes. The way to a BD's first run opens a page like a gap of a page."""
    per_ns = timing.array_hz / 1e9
    page, run = timing.dram_page_bytes, access.run_bytes
    gap = (page + sum(min(size, page) * count for size, count in access.gaps)) / access.runs
    return Price(
        timing.dram_lines_ns(1, run, write=write) * per_ns,
        timing.dram_pages_ns(1, run, run + gap, write=write) * per_ns,
        timing.channel_ns(1, run) * per_ns,
    )


def _level(flows: Sequence[Flow], prices: Sequence[float]) -> float:
    """The share for each flow at which one budget is used up; `flows` stand in the order of what they can use.

    A flow with share s uses s · price / main of this budget, and never more than its channel can.
    """
    weights = [price / flow.main for flow, price in zip(flows, prices, strict=True)]
    left, weight = 1.0, sum(weights)
    for flow, own in zip(flows, weights, strict=True):
        if flow.wanted * weight > left:
            return left / weight
        left, weight = left - flow.wanted * own, weight - own
    return float("inf")
