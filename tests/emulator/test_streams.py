"""A stream by itself: words that are demanded, words that are held, the room for more, and where packets end."""

import numpy as np
import pytest

from bdforge.emulator.scheduler import Agent, Scheduler
from bdforge.emulator.stream import Sink, Stream


class Watched:
    """A sink with the words that it handed on."""

    def __init__(self, demand: int = 0, *, finishes: bool = False):
        self.scheduler = Scheduler()
        self.got: list[int] = []
        self.owner = Agent("owner", self.scheduler)
        self.sink = Sink(self.owner, lambda words: self.got.extend(words.tolist()), demand, finishes=finishes)

    def deliver(self, *words: int, last: bool = False) -> None:
        self.sink.deliver(np.array(words, np.uint32), self.scheduler, last)

    def take(self, limit: int) -> list[int]:
        return self.sink.take(limit).tolist()


def test_what_is_demanded_goes_on_at_once_and_the_rest_is_held():
    watched = Watched(2)
    watched.deliver(1)
    assert (watched.got, watched.sink.demand, watched.owner.scheduled) == ([1], 1, False)
    watched.deliver(2, 3, 4)
    assert (watched.got, watched.sink.demand, watched.sink.held) == ([1, 2], 0, 2)
    assert watched.owner.scheduled
    assert (watched.take(1), watched.take(9), watched.sink.held) == ([3], [4], 0)


@pytest.mark.parametrize("finishes", [False, True])
def test_a_packets_end_ends_a_transfer_only_where_it_finishes_one(finishes: bool):
    watched = Watched(5, finishes=finishes)
    watched.deliver(1, 2, last=True)
    assert (watched.got, watched.sink.over) == ([1, 2], finishes)
    assert watched.sink.demand == (0 if finishes else 3)


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
    found = [(watched.take(limit), watched.sink.over) for limit in (1, 9, 9, 9)]
    assert found == [([1], False), ([2], True), ([3], False), ([4], True)]
    assert (watched.sink.held, len(watched.sink.chunks)) == (0, 0)


@pytest.mark.parametrize(("limit", "taken", "over"), [(1, [1], False), (2, [1, 2], True), (3, [1, 2], True)])
@pytest.mark.parametrize("last", [False, True])
def test_taking_all_that_is_held_ends_a_transfer_only_at_the_end_of_its_packet(limit, taken, over, last):
    watched = Watched(finishes=True)
    watched.deliver(1, 2, last=last)
    assert (watched.take(limit), watched.sink.over) == (taken, over and last)
    assert watched.sink.held == 2 - len(taken)


def test_a_mark_of_no_mode_is_not_held():
    watched = Watched(finishes=False)
    watched.deliver(1, last=True)
    assert len(watched.sink.chunks) == 1
    assert (watched.take(5), watched.sink.over) == ([1], False)


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
    assert (stream.room_of(first.sink), stream.room_of(second.sink), stream.room()) == (7, 0, 0)
    assert first.sink.source is second.sink.source is stream
