"""Streams under time: a source, its sinks, and what each can hold.

Words move in pieces: as many as every sink demands, or else as many as every sink can hold. A piece takes the cycles
of the slowest port on its way, or what DRAM gives, and arrives as a whole. It reaches a sink after the crossings of the
switches between the two tiles (shortest way). A sink holds as many words as one of the functional run did at most, and
those that are on the way to it; a shim channel without a task holds none.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from bdforge.array.emulator.timed.bank_conflicts import Banks
from bdforge.array.emulator.timed.dram import Dram, Way
from bdforge.array.emulator.timed.timed_run import Clock, TimedParty, Verb
from bdforge.array.emulator.trace import DramAccess
from bdforge.devices.limits import GRANULE_BYTES
from bdforge.devices.timing import Timing

TRANSFER, DRAM, NO_DATA, NO_ROOM, BD_CHANGE = "transfer", "DRAM", "no data", "back-pressure", "BD change"


@dataclass(slots=True, eq=False)
class _End:
    """An end of a stream, and the transfer there: its words, when it began, and what waiting for DRAM has cost."""

    runner: TimedParty
    words: int = 0
    access: DramAccess | None = None
    begin: float = 0.0
    dram: float = 0.0
    epoch: int = 0

    def start(self, now: float) -> None:
        self.begin, self.dram, self.epoch = now, 0.0, self.runner.epoch


@dataclass(slots=True, eq=False)
class Inlet(_End):
    """A party's receiving end. `demand` and `held` are words, as in the functional run."""

    demand: int = 0
    held: int = 0
    link: "Link | None" = None


@dataclass(slots=True, eq=False)
class Link(_End):
    """A party's sending end during one `send`."""

    left: int = 0
    moving: int = 0
    rate: float = 1.0  # words per cycle
    inlets: list[Inlet] = field(default_factory=list)
    delays: list[float] = field(default_factory=list)
    rooms: list[int] = field(default_factory=list)


class Links:
    """All streams of the array."""

    def __init__(
        self, runners: list[TimedParty], clock: Clock, timing: Timing, dram: Dram, banks: Banks, held_words: int
    ):
        self._clock, self._timing, self._dram, self._banks = clock, timing, dram, banks
        self._runners, self._held_words = runners, held_words
        self._links: dict[TimedParty, Link] = {}
        self._inlets: dict[TimedParty, Inlet] = {}
        self._moved_before: set[TimedParty] = set()
        self._ways: dict[tuple[TimedParty, tuple[int, ...]], tuple[list[Inlet], list[float], list[int], float]] = {}
        self.verbs: dict[str, Verb] = {"send": self._send, "receive": self._receive, "touches": self._banks.touches}

    def _send(self, runner: TimedParty, words: int, sinks: tuple[int, ...], access: DramAccess | None) -> bool:
        if not words:
            return True
        link = self._links.setdefault(runner, Link(runner))
        link.inlets, link.delays, link.rooms, link.rate = self._way(runner, sinks)
        link.left = link.words = words
        link.access = access
        self._change(runner, self._begin_sending, link)
        return False

    def _begin_sending(self, link: Link) -> None:
        link.start(self._clock.now)
        link.runner.block(NO_ROOM)
        for inlet in link.inlets:
            inlet.link = link
        self._move(link)

    def _receive(self, runner: TimedParty, words: int, access: DramAccess | None) -> bool:
        if not words:
            return True
        inlet = self._inlet(runner)
        inlet.words = words
        self._change(runner, self._begin_receiving, inlet, access)
        return False

    def _begin_receiving(self, inlet: Inlet, access: DramAccess | None) -> None:
        taken = min(inlet.held, inlet.words)
        inlet.held -= taken
        inlet.demand, inlet.access = inlet.words - taken, access
        inlet.start(self._clock.now)
        inlet.runner.block(NO_DATA)
        if not inlet.demand:
            end = inlet.begin + inlet.words / self._rate(inlet.runner)
            self._clock.at(end, self._received, inlet, inlet.epoch)
        if inlet.link is not None:
            self._move(inlet.link)

    def _change(self, runner: TimedParty, begin: Callable[..., None], *arguments: Any) -> None:
        """Begin the next transfer of a party; a channel that has had one before changes its BD first."""
        change = self._timing.bd_change_cycles if runner in self._moved_before and runner.party.kind == "channel" else 0
        self._moved_before.add(runner)
        if not change:
            begin(*arguments)
            return
        now = self._clock.now
        runner.stall(BD_CHANGE, now, now + change)
        self._clock.at(now + change, begin, *arguments)

    def _inlet(self, runner: TimedParty) -> Inlet:
        return self._inlets.setdefault(runner, Inlet(runner))

    def _way(self, runner: TimedParty, sinks: tuple[int, ...]) -> tuple[list[Inlet], list[float], list[int], float]:
        """Ends, delays in cycles, buffers in words, and the rate in words per cycle of a set of sinks."""
        if (runner, sinks) not in self._ways:
            inlets = [self._inlet(self._runners[sink]) for sink in sinks]
            delays = [self._delay(runner, inlet.runner) for inlet in inlets]
            rates = [self._rate(inlet.runner) for inlet in inlets]
            rate = min([self._rate(runner), *rates])
            rooms = [
                _room(inlet.runner, self._held_words, delay * own)
                for inlet, delay, own in zip(inlets, delays, rates, strict=True)
            ]
            self._ways[runner, sinks] = inlets, delays, rooms, rate
        return self._ways[runner, sinks]

    def _delay(self, source: TimedParty, sink: TimedParty) -> float:
        """Cycles across the switches from tile to tile."""
        (column, row), (to_column, to_row) = source.party.place, sink.party.place
        hops = abs(column - to_column) + abs(row - to_row)
        if not hops:
            return self._timing.switch_local_cycles
        return hops * self._timing.switch_cycles + self._timing.switch_local_cycles

    def _rate(self, runner: TimedParty) -> float:
        """Words per cycle of a port: a DMA's, or that of a core or control port."""
        timing = self._timing
        is_dma = runner.party.kind == "channel"
        return (timing.stream_bytes_per_cycle if is_dma else timing.control_bytes_per_cycle) / GRANULE_BYTES

    def _move(self, link: Link) -> None:
        """Start the next piece, if every sink has room."""
        if link.moving or not link.left or not link.inlets:
            return
        count = min(inlet.demand for inlet in link.inlets)
        if not count:
            pairs = zip(link.inlets, link.rooms, strict=True)
            count = min(inlet.demand + room - inlet.held for inlet, room in pairs)
        count = min(count, link.left)
        if count <= 0:
            return
        link.moving = count
        now, ways = self._clock.now, [] if link.access is None else [_way_of(link.runner, link.access, write=False)]
        ways += [_way_of(inlet.runner, inlet.access, write=True) for inlet in link.inlets if inlet.access is not None]
        if not ways:
            self._clock.at(now + count / link.rate, self._moved, link, now)
            return
        slowest = 1 / (link.rate * GRANULE_BYTES)
        self._dram.add(count * GRANULE_BYTES, ways, slowest, self._moved, link, now)

    def _moved(self, link: Link, start: float) -> None:
        count, now = link.moving, self._clock.now
        link.moving = 0
        link.left -= count
        slowed = max(0.0, now - start - count / link.rate)
        link.dram += slowed
        for inlet, delay in zip(link.inlets, link.delays, strict=True):
            self._deliver(inlet, count, slowed, delay)
        if link.left:
            self._move(link)
        else:
            self._sent(link)

    def _deliver(self, inlet: Inlet, count: int, slowed: float, delay: float) -> None:
        direct = min(inlet.demand, count)
        inlet.held += count - direct
        if not direct:
            return
        inlet.demand -= direct
        inlet.dram += slowed
        if not inlet.demand:
            arrived = self._clock.now + delay
            end = max(arrived, inlet.begin + inlet.words / self._rate(inlet.runner))
            self._clock.at(end, self._received, inlet, inlet.epoch)

    def drop(self, runner: TimedParty) -> None:
        """A channel is reset: its transfer ends where it is; words on their way still arrive."""
        if runner in self._inlets:
            self._inlets[runner].demand, self._inlets[runner].access = 0, None
        if runner in self._links:
            self._links[runner].left = self._links[runner].moving

    def _sent(self, link: Link) -> None:
        if link.epoch != link.runner.epoch:
            return
        self._account(link.runner, f"send {link.words} words", link.begin, link.words / link.rate, link.dram, NO_ROOM)
        link.runner.advance()

    def _received(self, inlet: Inlet, epoch: int) -> None:
        if epoch != inlet.runner.epoch:
            return
        moving = inlet.words / self._rate(inlet.runner)
        self._account(inlet.runner, f"receive {inlet.words} words", inlet.begin, moving, inlet.dram, NO_DATA)
        inlet.access = None
        inlet.runner.advance()

    def _account(self, runner: TimedParty, what: str, begin: float, moving: float, dram: float, other: str) -> None:
        """Divide the time of a transfer into words that move, waiting for DRAM, and waiting for the other end."""
        now = self._clock.now
        runner.blocked = None
        moved = now - min(moving, now - begin)
        slowed = max(begin, moved - dram)
        runner.show(what, begin, now, moving=now - moved, dram=moved - slowed)
        runner.spend(TRANSFER, moved, now)
        self._banks.moved(runner, moved, now)
        runner.stall(DRAM, slowed, moved, visible=False)
        runner.stall(other, begin, slowed, visible=False)


def _way_of(runner: TimedParty, access: DramAccess, *, write: bool) -> Way:
    return Way(access, write, runner.party.place[0])


def _room(runner: TimedParty, held_words: int, on_the_way: float) -> int:
    return 0 if runner.party.tile_kind == "shim" else int(held_words + on_the_way)
