"""DRAM under time: resources that shim channels share.

A flow is what one shim channel moves between two events. Each byte of it takes some time of several resources: the
port to DRAM (reads, writes, both ways; what DRAM serves run by run) and the requests of its shim (`Timing` has the
prices). All flows under way get equal shares of what all shims use, by the resource that they need most of, or less
where their channel or shim is slower (dominant resource fairness, Ghodsi et al. 2011, filled up step by step).
Resources of one flow that are busy at the same time make it wait for each: its rate falls as `joined_times` says, with
the same exponent as in the closed form.
"""

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from bdforge.array.emulator.timed.timed_run import Clock
from bdforge.array.emulator.trace import DramAccess
from bdforge.devices.timing import Timing, joined_times

_EXHAUSTED_BYTES = 1e-6  # less than this is left by rounding only
_FULL = 1 - 1e-9
READ, WRITE, BOTH, RUNS = "read", "write", "both", "runs"
PORT = (READ, WRITE, BOTH, RUNS)
Resource = str | tuple[str, int]


class Way(NamedTuple):
    """One end of a flow that lies in DRAM: how it goes through it, in which direction, by the shim of which column."""

    access: DramAccess
    write: bool
    column: int


@dataclass(slots=True, eq=False)
class DramFlow:
    """Bytes on their way: cycles that each takes of each resource, and its channel's most bytes per cycle."""

    left_bytes: float
    prices: dict[Resource, float]
    fastest: float
    done: Callable[..., Any]
    arguments: tuple[Any, ...]
    rate: float = 0.0  # bytes per cycle


@dataclass(slots=True)
class _Seen:
    """What was shown so far: shims that read, by the row of a matrix that they read in, by a way through DRAM."""

    shims: set[int] = field(default_factory=set)
    rows: dict[tuple[int, int], set[int]] = field(default_factory=lambda: defaultdict(set))
    ways: dict[tuple[float, int, bool], set[int]] = field(default_factory=lambda: defaultdict(set))


class Dram:
    """The shared resources of an array of so many columns.

    `busy_cycles` are how much of each was used, `moved_bytes` by whether they are written.
    """

    def __init__(self, clock: Clock, timing: Timing, columns: int):
        self._clock, self._timing, self._columns = clock, timing, columns
        self._flows: list[DramFlow] = []
        self._settled = clock.now
        self._version = 0
        self._seen = _Seen()
        self.moved_bytes = {False: 0, True: 0}
        self.busy_cycles: dict[Resource, float] = defaultdict(float)

    def add(self, size_bytes: int, ways: Sequence[Way], slowest: float, done: Callable, *arguments: Any) -> None:
        """Move bytes and call `done`; `slowest` is cycles per byte of the stream."""
        prices: dict[Resource, float] = defaultdict(float)
        per_ns = self._timing.array_hz / 1e9
        for way in ways:
            for resource, price_ns in self._prices_ns(way).items():
                prices[resource] += price_ns * per_ns
            channel = self._timing.channel_ns(1.0, way.access.run_bytes, write=way.write) * per_ns
            slowest = max(slowest, float(channel))
            self.moved_bytes[way.write] += size_bytes
        for resource, price in prices.items():
            self.busy_cycles[resource] += price * size_bytes
        self._settle()
        self._flows.append(DramFlow(size_bytes, dict(prices), 1 / slowest, done, arguments))
        self._share()

    def _prices_ns(self, way: Way) -> dict[Resource, float]:
        """Nanoseconds that a byte takes of each resource."""
        timing, run, stride, seen = self._timing, way.access.run_bytes, way.access.stride_bytes, self._seen
        row = set() if way.write else seen.rows[way.access.row]
        alike = seen.ways[run, stride, way.write]
        row.add(way.column)
        alike.add(way.column)
        runs = float(timing.run_ns(run, stride, len(row) > 1, len(alike) / self._columns)) / run
        both = {BOTH: 1 / timing.dram_gb_s}
        if runs > both[BOTH]:  # what takes no longer than its bytes waits for the port alone
            both[RUNS] = runs
        if way.write:
            return {WRITE: 1 / timing.dram_write_gb_s, **both}
        seen.shims.add(way.column)
        requests = float(timing.shim_ns(1.0, run, len(seen.shims)))
        return {READ: 1 / timing.dram_read_gb_s, ("shim", way.column): requests, **both}

    def _settle(self) -> None:
        """Let the flows have moved until now."""
        passed = self._clock.now - self._settled
        self._settled = self._clock.now
        if passed:
            for flow in self._flows:
                flow.left_bytes -= passed * flow.rate

    def _share(self) -> None:
        """Divide the resources and ask to be called when the first flow ends."""
        self._version += 1
        if not self._flows:
            return
        _fill(self._flows, self._timing.memory_exponent)
        first = min(flow.left_bytes / flow.rate for flow in self._flows)
        self._clock.at(self._clock.now + max(first, 0.0), self._end, self._version)

    def _end(self, version: int) -> None:
        if version != self._version:  # flows came or went since: the end has another time
            return
        self._settle()
        ended = [flow for flow in self._flows if flow.left_bytes <= _EXHAUSTED_BYTES]
        self._flows = [flow for flow in self._flows if flow.left_bytes > _EXHAUSTED_BYTES]
        self._share()
        for flow in ended:
            flow.done(*flow.arguments)


def _fill(flows: Sequence[DramFlow], exponent: float) -> None:
    """Set the rates of `flows`: raise equal shares of what all use until something is full, fix its flows, go on."""
    names = list(dict.fromkeys(name for flow in flows for name in flow.prices))
    prices = np.array([[flow.prices.get(name, 0.0) for name in names] for flow in flows])  # cycles a byte
    fastest = np.array([flow.fastest for flow in flows])
    everyones = [name in PORT for name in names]
    dominant = prices[:, everyones].max(axis=1)
    rates, open_ = np.zeros(len(flows)), np.ones(len(flows), bool)
    while open_.any():
        left = 1 - rates @ prices
        wanted = np.where(open_, 1 / dominant, 0.0) @ prices  # of each resource, for a whole share of every open flow
        level = min(np.min(left[wanted > 0] / wanted[wanted > 0], initial=np.inf), np.min((fastest * dominant)[open_]))
        grown = np.where(open_, np.maximum(level, 0.0) / dominant, rates)
        full = prices[:, grown @ prices >= _FULL].any(axis=1) | (grown >= fastest * _FULL)
        rates, closed = grown, open_ & full
        if not closed.any():
            break
        open_ &= ~closed
        rates = np.where(open_, 0.0, rates)
    used = (rates @ prices)[None, :] * (prices > 0)
    port = [names.index(name) for name in PORT if name in names]
    parts = [*np.delete(used, port, axis=1).T, used[:, port].max(axis=1), rates / fastest]
    slowed = np.maximum.reduce(parts) / joined_times(parts, exponent)
    for flow, rate in zip(flows, rates * slowed, strict=True):
        flow.rate = float(rate)
