"""A stream by itself: words that are demanded, words that are held, the room for more, and where packets end."""

from functools import partial
from typing import Any, cast

import numpy as np
import pytest

from bdforge.array.emulator import LoadError
from bdforge.array.emulator.array import Array
from bdforge.array.emulator.host import HostBuffers
from bdforge.array.emulator.packet import Arbiter, PacketSource, Route, connect_packets
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.array.emulator.streams import WrittenStreams
from bdforge.array.emulator.strictness import Strictness
from bdforge.array.lower.array_state import ArrayState
from bdforge.array.routing.nets import SwitchPort
from bdforge.devices import PortBundle, mlir_device_named
from bdforge.devices.capacities import StreamCapacities

HOLDS = StreamCapacities.uniform(16)


class Watched:
    """A sink with the words that it handed on."""

    def __init__(self, demand: int = 0, *, finishes: bool = False):
        self.scheduler = Scheduler()
        self.got: list[int] = []
        self.owner = Agent("owner", self.scheduler)
        self.sink = Sink(self.owner, lambda words: self.got.extend(words.tolist()), HOLDS, demand, finishes=finishes)

    def deliver(self, *words: int, last: bool = False) -> None:
        self.sink.deliver(np.array(words, np.uint32), self.scheduler, last)

    def take(self, limit: int) -> list[int]:
        return self.sink.take(limit).tolist()


def test_the_end_of_a_packet_belongs_to_its_last_word():
    """Two of three words are demanded: the transfer ends by its length, the packet with the word that is held."""
    watched = Watched(2, finishes=True)
    watched.deliver(1, 2, 3, last=True)
    assert (watched.got, watched.sink.demand, watched.sink.over) == ([1, 2], 0, False)
    assert (watched.take(4), watched.sink.over) == ([3], True)


def test_held_packets_end_one_after_the_other():
    watched = Watched(finishes=True)
    watched.deliver(1, 2, last=True)
    watched.deliver(3, last=False)
    watched.deliver(4, last=True)
    found = [(watched.take(limit), watched.sink.over) for limit in (1, 1, 9, 9)]
    assert found == [([1], False), ([2], True), ([3], False), ([4], True)]
    assert (watched.sink.held, len(watched.sink.chunks)) == (0, 0)


def test_a_stream_moves_what_its_fullest_sink_can_take():
    """A sink takes what it demands and 16 words more, less those that it holds."""
    first, second = Watched(7), Watched(0)
    stream = Stream(Agent("source", first.scheduler), first.scheduler)
    assert (stream.wanted(), stream.room()) == (0, 0)
    stream.connect(first.sink)
    assert (stream.wanted(), stream.room()) == (7, 23)
    stream.connect(second.sink)
    assert (stream.wanted(), stream.room()) == (0, 16)
    stream.send(np.arange(16, dtype=np.uint32))
    assert (first.got, first.sink.held, second.sink.held) == (list(range(7)), 9, 16)
    assert (first.sink.room(), second.sink.room(), stream.room()) == (7, 0, 0)
    assert first.sink.source is second.sink.source is stream


@pytest.mark.parametrize(("demands", "full"), [((0, 0), [0, 1]), ((0, 3), [0]), ((1, 0), [1]), ((2, 3), [])])
def test_a_source_waits_for_those_that_are_full_and_not_for_all(demands: tuple[int, int], full: list[int]):
    """Each holds 16 words; one that demands some can take as many."""
    ends = [Watched(), Watched()]
    source = Agent("source", ends[0].scheduler)
    stream = Stream(source, ends[0].scheduler)
    for number, (end, demand) in enumerate(zip(ends, demands, strict=True)):
        end.owner.name = f"sink {number}"
        end.deliver(*range(16))
        end.sink.demand = demand
        stream.connect(end.sink)
    wait = stream.wait_for_room(5, lambda: " (here)")
    assert list(wait.providers()) == [ends[number].owner for number in full]
    named = ", ".join(f"sink {number} (holds 16 words)" for number in full) or "sink 0, sink 1 to take them"
    assert wait.sentence() == f"has 5 words left and waits for {named} (here)"
    alone = Stream(source, ends[0].scheduler).wait_for_room(5, lambda: " (here)")
    assert alone.sentence() == "has 5 words left and waits for a flow, but none leads away from it (here)"


@pytest.mark.parametrize(
    ("demand", "held", "blocked", "woken", "listed"),
    [(3, 16, True, True, False), (0, 15, True, False, True), (0, 16, True, False, False), (3, 0, False, False, False)],
)
def test_a_blocked_source_goes_on_for_words_that_are_demanded_and_late_for_room(demand, held, blocked, woken, listed):
    end = Watched(demand)
    end.sink.held = held
    source = Agent("source", end.scheduler)
    stream = Stream(source, end.scheduler, blocked=blocked)
    stream.connect(end.sink)
    stream.changed()
    assert (source.scheduled, stream.listed, stream.blocked) == (woken, listed, blocked and not woken)


@pytest.mark.parametrize(
    ("state", "holder", "waiting"),
    [("under way", "it", ["other"]), ("holds", "other", []), ("waits", "other", []), ("idle", "other", [])],
)
def test_a_source_that_was_reset_gives_up_what_it_waits_for_but_not_a_packet_under_way(state, holder, waiting):
    """A packet under way stays open: its TLAST never left."""
    scheduler = Scheduler()
    it, other = (Stream(Agent(name, scheduler), scheduler) for name in ("it", "other"))
    arbiter = Arbiter(Watched().sink, 0, [it, other])
    route = Route([cast("Sink", arbiter.sink)])
    cast("Sink", arbiter.sink).arbiter = arbiter
    packets = PacketSource(it, {5: route}, current=route if state == "under way" else None)
    it.sinks = route.sinks
    first, second = (other, it) if state in ("waits", "idle") else (it, other)
    assert arbiter.take(first)
    if state != "idle":
        assert not arbiter.take(second)
    packets.forget()
    assert arbiter.holder is not None
    assert (arbiter.holder.owner.name, [source.owner.name for source in arbiter.waiters]) == (holder, waiting)
    assert it.sinks == (route.sinks if state == "under way" else [])


def connected(*flows: tuple[str, str, int, bool]) -> dict[str, Stream]:
    """Sources `a` and `b` after packet flows between sources and sinks `x` and `y`; `c` leads to `z` by a circuit."""
    scheduler = Scheduler()
    sources = {name: Stream(Agent(name, scheduler), scheduler) for name in "abc"}
    sinks = {name: Sink(Agent(name, scheduler), print, HOLDS) for name in "xyz"}
    sources["c"].connect(sinks["z"])
    for number, (source, sink, packet, keep) in enumerate(flows):
        connect_packets(sources[source], sinks[sink], packet, keep, number, "d.mlir:7:3")
    return sources


TOGETHER = {
    "from a circuit": ([("c", "x", 1, False)], "packets leave c, which a circuit"),
    "to a circuit": ([("a", "z", 1, False)], "packets arrive at z, where a circuit"),
    "the same again": ([("a", "x", 1, False), ("a", "x", 1, True)], "packets of id 1 from a go to x already"),
}


@pytest.mark.parametrize(("flows", "message"), TOGETHER.values(), ids=TOGETHER)
def test_packets_and_circuits_do_not_meet_and_no_flow_is_there_twice(flows: list, message: str):
    with pytest.raises(LoadError, match=f"d.mlir:7:3: {message}"):
        connected(*flows)


@pytest.mark.parametrize("second", [False, True])
def test_a_sink_takes_one_circuit(second: bool):
    """A source may lead to any number of sinks."""
    array: Any = Array(mlir_device_named("npu2"), HostBuffers(), Scheduler(), Strictness())
    streams = WrittenStreams(array, ArrayState())
    dma = partial(SwitchPort, bundle=PortBundle.DMA)
    streams._circuit(dma(0, 1, channel=2), dma(0, 2, channel=1), "d.mlir:6:3")
    streams._circuit(dma(0, 1, channel=2), dma(0, 3, channel=1), "d.mlir:7:3")
    assert len(array.tile(0, 1).channels["MM2S", 2].stream.sinks) == 2
    if second:
        with pytest.raises(LoadError, match=r"d.mlir:8:3: two circuits end in core \(0, 2\) S2MM 1; a port takes one"):
            streams._circuit(dma(0, 1, channel=3), dma(0, 2, channel=1), "d.mlir:8:3")
