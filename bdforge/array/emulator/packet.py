"""Packet switching: the first word of a packet, its header, chooses the sinks of the words up to TLAST.

A source sends one packet after the other. A destination takes one packet at a time: its arbiter belongs to a source
from the header to TLAST, then to the next source that waits, in turn (RT, 020; hardware facts 1.7). A packet with
several destinations takes their arbiters one after the other, in the order in which the flows first name them; real
switches take them as the header travels. Arbiters that flows share on the way depend on the routes: they are left out
where routes are the router's choice, and taken first where the design gives its routes (the physical form).
"""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from bdforge.array.emulator.errors import DmaError, LoadError
from bdforge.array.emulator.scheduler import Agent, PlainWait
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.devices.registers import PACKET_HEADER

_ID = PACKET_HEADER.fields["id"]


def packet_id(header: int) -> int:
    return _ID.extract([header])


@dataclass(slots=True, eq=False)
class Arbiter:
    """Decides whose packet goes on: at a destination, `sink`, or at a switch on the way of packets (physical form).

    `sources` are those that flows lead from, in order of the text.
    """

    sink: Sink | None
    number: int
    sources: list[Stream] = field(default_factory=list)
    holder: Stream | None = None
    waiters: list[Stream] = field(default_factory=list)
    place: str = ""  # of one at a switch

    def take(self, source: Stream) -> bool:
        """Give the destination to `source` now, or queue it: it is woken when it holds the destination."""
        if self.holder is None:
            self._give(source)
        elif self.holder is not source:
            self.waiters.append(source)
        return self.holder is source

    def release(self) -> None:
        """The packet has ended: the next source in turn that waits goes on."""
        assert self.holder is not None
        last, count = self.sources.index(self.holder), len(self.sources)
        self.holder = None
        if self.sink is not None:
            self.sink.source = None
        if not self.waiters:
            return
        chosen = min(self.waiters, key=lambda source: (self.sources.index(source) - last - 1) % count)
        self.waiters.remove(chosen)
        self._give(chosen)
        chosen.scheduler.wake(chosen.owner)

    def forget(self, source: Stream) -> None:
        """`source` wants nothing any more."""
        if source in self.waiters:
            self.waiters.remove(source)
        if self.holder is source:
            self.release()

    def wait_for_turn(self, packet: int, to: list[Sink], where: Callable[[], str]) -> PlainWait:
        """Why a packet of that id to these sinks cannot go on before that of another source has ended."""

        def sentence() -> str:
            holder = "nobody" if self.holder is None else self.holder.owner.name
            way = f"to {' and '.join(sink.owner.name for sink in to)} past {self.place}, which"
            if self.sink is not None:
                way = f"to {self.sink.owner.name}, whose arbiter"
            return f"waits to send a packet of id {packet} {way} {holder} holds until its packet ends{where()}"

        return PlainWait(sentence, lambda: [] if self.holder is None else [self.holder.owner])

    def _give(self, source: Stream) -> None:
        self.holder = source
        if self.sink is not None:
            self.sink.source = source


@dataclass(slots=True)
class Route:
    """Where packets of one id go; `keepers` are the sinks that get the header too.

    `way` are the arbiters of switches before them, where the design gives its routes.
    """

    sinks: list[Sink] = field(default_factory=list)
    keepers: list[Sink] = field(default_factory=list)
    way: list[Arbiter] = field(default_factory=list)

    def arbiters(self) -> list[Arbiter]:
        """Arbiters on the way and of the sinks, in the order in which they are to be taken."""
        found = [sink.arbiter for sink in self.sinks if sink.arbiter is not None]
        return [*self.way, *sorted(found, key=lambda arbiter: arbiter.number)]


@dataclass(slots=True, eq=False)
class PacketSource:
    """What makes a stream packet-switched: its routes by packet id, and that of the packet under way."""

    stream: Stream
    routes: dict[int, Route] = field(default_factory=dict)
    lost: dict[int, str] = field(default_factory=dict)  # why packets of an id do not arrive (physical form)
    current: Route | None = None
    id: int = 0  # of the packet that was started last
    sent: Counter[int] = field(default_factory=Counter)

    def ids_to(self, sink: Sink) -> list[int]:
        return sorted(number for number, route in self.routes.items() if sink in route.sinks)

    def start(self, header: int, where: Callable[[], str], last: bool = False) -> Iterator[None]:
        """Steps that begin a packet: find the route, take its arbiters, hand the header to those who keep it.

        `last` says that the packet is nothing but its header.
        """
        route = self.routes.get(packet_id(header))
        if (lost := self.lost.get(packet_id(header))) is not None:
            sender = self.stream.owner.name
            raise DmaError(f"{where()}: packets {packet_id(header)} of {sender} do not arrive everywhere: {lost}")
        if route is None:
            known = ", ".join(map(str, sorted(self.routes)))
            raise DmaError(
                f"{where()}: packet id {packet_id(header)} (header {header:#010x}) matches no packet rule behind "
                f"{self.stream.owner.name} (each aie.packet_flow makes one), whose rules carry {known}"
            )
        self.id = packet_id(header)
        self.sent[self.id] += 1
        if self.stream.owner.observed:
            self.stream.owner.notify("take", _owners(route))
        for arbiter in route.arbiters():
            granted = arbiter.take(self.stream)
            while not granted:
                self.stream.owner.waiting = arbiter.wait_for_turn(self.id, route.sinks, where)
                yield
                granted = arbiter.holder is self.stream
        self.stream.sinks = route.keepers
        if route.keepers:
            yield from self.stream.push(np.array([header], np.uint32), where, last)
        self.current, self.stream.sinks = route, route.sinks

    def end(self) -> Iterator[None]:
        """Steps after the packet's last word has left: sources that share a destination let each other go first."""
        route, self.current = self.current, None
        self.stream.sinks = []
        arbiters = [] if route is None else route.arbiters()
        if self.stream.owner.observed and route is not None:
            self.stream.owner.notify("give", _owners(route))
        for arbiter in arbiters:
            arbiter.release()
        if any(len(arbiter.sources) > 1 for arbiter in arbiters):
            self.stream.scheduler.wake(self.stream.owner)
            yield

    def forget(self) -> None:
        """The source was reset. A packet under way stays open, for its TLAST never left; one that waited is gone."""
        if self.current is not None:
            return
        self.stream.sinks = []
        for route in self.routes.values():
            for arbiter in route.arbiters():
                arbiter.forget(self.stream)


def _owners(route: Route) -> list[Agent]:
    """The parties behind a route's arbiters, in the order in which those are taken."""
    return [arbiter.sink.owner for arbiter in route.arbiters() if arbiter.sink is not None]


def connect_packets(source: Stream, sink: Sink, ids: int, keep_header: bool, number: int, where: str) -> None:
    """Let packets of id `ids` go from `source` to `sink`; LoadError where a circuit has either of them already."""
    if source.packets is None:
        if source.sinks:
            raise LoadError(f"{where}: packets leave {source.owner.name}, which a circuit (aie.flow) uses already")
        source.packets = PacketSource(source)
    if sink.arbiter is None:
        if sink.source is not None:
            raise LoadError(f"{where}: packets arrive at {sink.owner.name}, where a circuit (aie.flow) ends already")
        sink.arbiter = Arbiter(sink, number)
    if source not in sink.arbiter.sources:
        sink.arbiter.sources.append(source)
    route = source.packets.routes.setdefault(ids, Route())
    if sink in route.sinks:
        raise LoadError(f"{where}: packets of id {ids} from {source.owner.name} go to {sink.owner.name} already")
    route.sinks.append(sink)
    if keep_header:
        route.keepers.append(sink)
