"""Packets of several sources into one sink: any order of packets, but each whole, and each source's in order."""

from random import Random

import numpy as np
import pytest

from oracle.array_design import Bd, Buffer, Chain, Design, Flow, Port, Program, Tile
from oracle.comparison import emulated
from oracle.slow_array import Outcome, SlowArray, packet_header

SINK = Port(Tile(1, 1), "S2MM", 0)
SOURCES = [Tile(0, 1), Tile(0, 2), Tile(1, 2), Tile(1, 3), Tile(0, 4), Tile(2, 3)]


def fan_in(seed: int) -> tuple[Design, dict[int, list[tuple[int, ...]]]]:
    """A design, and the packets of each source by their header."""
    random = Random(seed)
    buffers, flows, programs, packets = [], [], [], {}
    for number, tile in enumerate(random.sample(SOURCES, random.randint(2, 4))):
        port = Port(tile, "MM2S", random.randint(0, 1))
        lengths = [random.randint(1, 24) for _ in range(random.randint(1, 4))]
        runs = random.randint(1, 4)
        values = tuple(1000 * (number + 1) + i for i in range(sum(lengths)))
        packet = random.randrange(8), number
        buffers.append(Buffer(f"data{number}", tile, "i32", len(values), values))
        flows.append(Flow(port, (SINK,), number, keep_header=True))
        starts = np.cumsum([0, *lengths])
        bds = [Bd(f"data{number}", "i32", int(s), n, packet=packet) for s, n in zip(starts, lengths, strict=False)]
        programs.append(Program(port, (Chain(tuple(bds), runs),)))
        own = [values[int(s) : int(s) + n] for s, n in zip(starts, lengths, strict=False)]
        packets[packet_header(port, *packet)] = own * runs
    words = sum(len(p) + 1 for own in packets.values() for p in own)
    buffers.append(Buffer("sink", SINK.tile, "i32", words))
    programs.append(Program(SINK, (Chain((Bd("sink", "i32", 0, words),)),)))
    return Design("npu2_3col", tuple(buffers), (), tuple(flows), tuple(programs), ()), packets


def check(memory: bytes, packets: dict[int, list[tuple[int, ...]]]) -> None:
    """Every packet arrives whole and in its source's order."""
    left = {header: list(own) for header, own in packets.items()}
    words = np.frombuffer(memory, np.uint32).tolist()
    while words:
        header = words.pop(0)
        assert left.get(header), f"no packet of {header:#x} is due; {len(words)} words follow"
        expected = left[header].pop(0)
        assert tuple(words[: len(expected)]) == expected
        del words[: len(expected)]
    assert not any(left.values())


@pytest.mark.parametrize("seed", range(6))
def test_packets_of_many_sources_arrive_whole_and_in_order(seed):
    design, packets = fan_in(seed)
    check(emulated(design).memory["sink"], packets)


@pytest.mark.parametrize("seed", range(2))
def test_the_slow_interpreter_keeps_packets_whole_too(seed):
    design, packets = fan_in(seed)
    array = SlowArray(design, seed, fifo_words=2)
    assert array.run() is Outcome.DONE
    check(bytes(array.memory["sink"]), packets)
