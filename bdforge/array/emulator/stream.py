"""Streams: one source port, one or many sinks, each with a small finite buffer.

A word leaves its source only when every sink has room for it. A sink whose DMA is in the middle of a BD *demands*
the rest of that BD: such words go straight to memory, so whole BDs move at once; the buffer matters when they
cannot. Both are schedules that the hardware may follow, and values are the same.

The sinks of a circuit stay; those of a packet-switched source change with every packet
(`bdforge.array.emulator.packet`).
"""

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from bdforge.array.emulator.bd_access import Order
from bdforge.array.emulator.scheduler import Agent, PlainWait, Scheduler
from bdforge.devices.capacities import Capacity, StreamCapacities

if TYPE_CHECKING:
    from bdforge.array.emulator.packet import Arbiter, PacketSource

TLAST = np.zeros(0, np.uint32)
"""Among the words that a sink holds: the word before it was the last of its packet."""


@dataclass(slots=True, eq=False)
class Sink:
    """The receiving end of a stream: an S2MM channel's input.

    `source` is the circuit's, or whose packet is arriving at the `arbiter`. TLAST matters only where it `finishes` a
    transfer; then `over` tells that the last word taken carried it.
    """

    owner: Agent
    receive: Callable[[np.ndarray], None]
    capacities: StreamCapacities
    demand: int = 0
    bd_waits: bool = False
    held: int = 0
    chunks: deque[np.ndarray] = field(default_factory=deque)
    source: "Stream | None" = None
    arbiter: "Arbiter | None" = None
    finishes: bool = False
    over: bool = False

    @property
    def capacity(self) -> Capacity:
        """Words that it holds beyond those that it demands, by the kind of path that leads to it."""
        holds = self.capacities
        if self.arbiter is None:
            return holds.circuit if self.bd_waits else holds.circuit_without_bd
        return holds.packet if self.bd_waits else holds.packet_without_bd

    def room(self) -> int:
        return self.demand + max(0, self.capacity.words - self.held)  # without a waiting BD paths hold fewer words

    def wait_for_bd(self, waits: bool) -> None:
        """The owner's BD waits for its lock, or does so no longer: then the stream holds more, or less."""
        self.bd_waits = waits
        if waits and self.source is not None:  # more room only: with less, what is held already stays
            self.source.changed()

    def deliver(self, words: np.ndarray, scheduler: Scheduler, last: bool) -> None:
        """Take words from the source: what is demanded goes to memory, the rest is held. `last` is TLAST."""
        if direct := min(self.demand, len(words)):
            self.receive(words[:direct])
            self.demand -= direct
            if self.finishes:
                self.over = last and direct == len(words)
                self.demand = 0 if self.over else self.demand
            if not self.demand:
                scheduler.wake(self.owner)
        if direct < len(words):
            self.chunks.append(words[direct:])
            self.held += len(words) - direct
            if last and self.finishes:
                self.chunks.append(TLAST)

    def take(self, limit: int) -> np.ndarray:
        """Up to `limit` held words, oldest first."""
        words = self.chunks.popleft()
        if len(words) > limit:
            self.chunks.appendleft(words[limit:])
            words = words[:limit]
        self.held -= len(words)
        ended = bool(self.chunks) and not len(self.chunks[0])  # TLAST
        if ended:
            self.chunks.popleft()
        self.over = ended and self.finishes
        return words

    def fill(self, count: int, where: Callable[[], str]) -> Iterator[None]:
        """Steps of the owner until it has received `count` words, or fewer where TLAST has ended them."""
        while self.held and count:
            words = self.take(count)
            self.receive(words)
            count -= len(words)
            if self.over:
                return
        self.demand = count
        if self.source is not None:
            self.source.changed()
        while self.demand:
            self.owner.waiting = PlainWait(partial(self._missing, where), self._senders)
            yield

    def _missing(self, where: Callable[[], str]) -> str:
        if self.source is not None:
            packet = "" if self.arbiter is None else ", whose packet is arriving"
            return f"waits for {self.demand} words from {self.source.owner.name}{packet}{where()}"
        if self.arbiter is None:
            return f"waits for {self.demand} words, but no flow leads to it{where()}"
        senders = "; or ".join(_expected(source, self) for source in self.arbiter.sources)
        return f"waits for {self.demand} words in a packet {senders}{where()}"

    def _senders(self) -> list[Agent]:
        if self.source is not None:
            return [self.source.owner]
        return [] if self.arbiter is None else [source.owner for source in self.arbiter.sources]


def _expected(source: "Stream", sink: Sink) -> str:
    """Which packets of a source would reach a sink, and which it has sent."""
    packets = source.packets
    assert packets is not None
    ids = ", ".join(map(str, packets.ids_to(sink)))
    sent = ", ".join(f"{count} of id {number}" for number, count in sorted(packets.sent.items()))
    return f"of id {ids} from {source.owner.name}, which has sent {sent or 'none'}"


def _holding(sink: Sink) -> str:
    holds = sink.capacity
    return f"{sink.owner.name} (holds {holds.words} words{'' if holds.known else ', assumed'})"


@dataclass(slots=True, eq=False)
class Stream:
    """The sending end: an MM2S channel's output and all its sinks.

    With `packets` it is packet-switched: `sinks` are those of the current packet. `lost` raises where not all that is
    sent arrives.
    """

    owner: Agent
    scheduler: Scheduler
    sinks: list[Sink] = field(default_factory=list)
    blocked: bool = False
    listed: bool = False
    packets: "PacketSource | None" = None
    lost: Callable[[], None] | None = None

    def connect(self, sink: Sink) -> None:
        self.sinks.append(sink)
        sink.source = self

    def wanted(self) -> int:
        """Words that every sink demands."""
        return min((sink.demand for sink in self.sinks), default=0)

    def room(self) -> int:
        """Words that every sink can take, buffers included."""
        return min((sink.room() for sink in self.sinks), default=0)

    def send(self, words: np.ndarray, last: bool = False) -> None:
        """Hand words, no more than `room()`, to every sink; `last` marks the final one with TLAST."""
        for sink in self.sinks:
            sink.deliver(words, self.scheduler, last)

    def notify_send(self, words: int, dram: tuple[Order, int] | None = None) -> None:
        """Tell that the owner sends; `dram` is the order and the address of what comes from there."""
        if self.owner.observed:
            self.owner.notify("send", words, [sink.owner for sink in self.sinks], dram)

    def changed(self) -> None:
        """A sink demands more or has freed room: a blocked source may go on."""
        if not self.blocked:
            return
        if self.wanted():
            self.blocked = False
            self.scheduler.wake(self.owner)
        elif self.room():
            self.scheduler.wake_when_idle(self)

    def push(self, words: np.ndarray, where: Callable[[], str], last: bool = False) -> Iterator[None]:
        """Steps of the owner that send a few words, as soon as every sink can take them."""
        self.notify_send(len(words))
        left = iter(words)
        yield from self.drain(len(words), lambda count: np.fromiter(left, np.uint32, count), where, last)

    def drain(
        self, left: int, fetch: Callable[[int], np.ndarray], where: Callable[[], str], last: bool,
        portion: Callable[[int], int] = int,
    ) -> Iterator[None]:  # fmt: skip
        """Steps of the owner that send `left` words as sinks take them; `fetch` gives the next ones.

        `portion` tells how many of those that sinks take go at once.
        """
        if self.lost is not None:
            self.lost()
        while left:
            count = min(left, self.room() if self.owner.pressed else self.wanted())
            self.owner.pressed = False
            if count:
                count = portion(count)
                self.send(fetch(count), last and count == left)
                left -= count
                continue
            self.owner.waiting = self.wait_for_room(left, where)
            self.blocked = True
            self.changed()
            yield

    def wait_for_room(self, left: int, where: Callable[[], str]) -> PlainWait:
        """Why the owner cannot send the words that are left."""

        def sentence() -> str:
            full = ", ".join(map(_holding, self._full())) or self._others()
            of = "" if self.packets is None else f" of a packet of id {self.packets.id}"
            return f"has {left} words left{of} and waits for {full}{where()}"

        return PlainWait(sentence, lambda: [sink.owner for sink in self._full()])

    def _others(self) -> str:
        """Of what it waits for while no sink is full: sinks may have room and ask for nothing yet."""
        names = ", ".join(sink.owner.name for sink in self.sinks)
        return f"{names} to take them" if names else "a flow, but none leads away from it"

    def _full(self) -> list[Sink]:
        return [sink for sink in self.sinks if not sink.room()]
