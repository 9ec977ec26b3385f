"""Random packet traffic: every destination gets each sender's packets, whole and in the order in which they left."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bdforge
from bdforge.array.emulator import LoadError
from support.array_text import Task, bd, buffer, header, module, packet_flow, program, tile

SENDERS = ("01", "02", "12")
RECEIVERS = ("03 DMA : 0", "03 DMA : 1", "13 DMA : 0")
TILES = tuple(tile(int(at[0]), int(at[1])) for at in ("01", "02", "12", "03", "13"))


@dataclass(frozen=True)
class Traffic:
    """Per sender: which receivers each of its ids reaches, and the (id, words) of its packets in order."""

    routes: tuple[dict[int, tuple[int, ...]], ...]
    packets: tuple[tuple[tuple[int, int], ...], ...]

    def arriving(self, receiver: int) -> list[list[list[int]]]:
        """Per sender, the packets that reach a receiver: header, then words that tell sender, packet and place."""
        found = []
        for sender, (routes, packets) in enumerate(zip(self.routes, self.packets, strict=True)):
            kept = [(n, number, size) for n, (number, size) in enumerate(packets) if receiver in routes[number]]
            column, row = map(int, SENDERS[sender])
            found.append([[header(column, row, number), *words(sender, n, size)] for n, number, size in kept])
        return found


def words(sender: int, packet: int, size: int) -> list[int]:
    return [sender << 16 | packet << 8 | place for place in range(size)]


@st.composite
def traffics(draw) -> Traffic:
    routes, packets = [], []
    for _ in SENDERS:
        ids = draw(st.lists(st.integers(0, 31), min_size=1, max_size=3, unique=True))
        reach = st.lists(st.sampled_from(range(len(RECEIVERS))), min_size=1, max_size=3, unique=True).map(tuple)
        routes.append({number: draw(reach) for number in ids})
        packet = st.tuples(st.sampled_from(ids), st.integers(1, 40))
        packets.append(tuple(draw(st.lists(packet, max_size=4))))
    return Traffic(tuple(routes), tuple(packets))


def text_of(traffic: Traffic) -> str:
    parts = [*TILES]
    fills: dict[str, list[Task]] = {}
    for number, end in enumerate(RECEIVERS):
        size = sum(len(packet) for packets in traffic.arriving(number) for packet in packets)
        parts.append(buffer(f"x{number}", end[:2], size + 1))
        if size:
            receive = bd(f"x{number}", size + 1, f"0, {size}")
            fills.setdefault(end[:2], []).append(Task("S2MM", int(end[-1]), [receive]))
    parts += [program(at, *tasks) for at, tasks in fills.items()]
    for sender, (at, routes, packets) in enumerate(zip(SENDERS, traffic.routes, traffic.packets, strict=True)):
        parts += [
            packet_flow(number, f"{at} DMA : 0", *(RECEIVERS[place] for place in reach), keep=True)
            for number, reach in routes.items()
        ]
        data = [word for n, (_, size) in enumerate(packets) for word in words(sender, n, size)]
        parts.append(buffer(f"a{sender}", at, len(data) + 1, [*data, 0]))
        starts = np.cumsum([0, *(size for _, size in packets)])
        chain = [
            bd(f"a{sender}", len(data) + 1, f"{start}, {size}", number)
            for start, (number, size) in zip(starts, packets, strict=False)
        ]
        if chain:
            parts.append(program(at, Task("MM2S", 0, chain)))
    return module("npu2_2col", *parts)


def check(traffic: Traffic, buffers) -> None:
    """Take packet after packet from what arrived: the next one of the sender that its header names."""
    for number in range(len(RECEIVERS)):
        waiting = traffic.arriving(number)
        arrived = [int(word) for word in buffers[f"x{number}"][:-1]]
        while arrived:
            sender = next(s for s, packets in enumerate(waiting) if packets and packets[0][0] == arrived[0])
            packet = waiting[sender].pop(0)
            assert arrived[: len(packet)] == packet
            arrived = arrived[len(packet) :]
        assert not any(waiting)


def may_block(traffic: Traffic) -> bool:
    """Whether packets of two senders go to both tiles: each may hold the arbiter of one and wait for the other's."""
    both = [
        any(len({RECEIVERS[place][:2] for place in routes[number]}) > 1 for number, _ in packets)
        for routes, packets in zip(traffic.routes, traffic.packets, strict=True)
    ]
    return sum(both) > 1


def check_run(traffic: Traffic, text: str, **options: Any) -> None:
    """A run, which may stop only where packets may block each other, and then says so."""
    result = bdforge.emulate(text, **options)
    if may_block(traffic) and any("stopped in the middle" in warning for warning in result.warnings):
        return
    check(traffic, result.buffers)


@pytest.mark.slow
@settings(deadline=None, derandomize=True, max_examples=8)
@given(traffics(), st.integers(0, 1000))
def test_all_packets_arrive_whole_and_in_order(traffic, seed):
    text = text_of(traffic)
    try:
        check_run(traffic, text)
    except LoadError:
        return  # more rules than a slave port has
    check_run(traffic, text, schedule="random", seed=seed)


BUSY = Traffic(
    ({1: (0, 1), 2: (2,)}, {1: (1, 0), 3: (0, 2)}, {9: (0, 1, 2)}),
    (((1, 30), (2, 4), (1, 5)), ((3, 20), (1, 3), (3, 9)), ((9, 25), (9, 2))),
)


def test_busy_traffic_arrives_whole_and_in_order():
    check(BUSY, bdforge.emulate(text_of(BUSY)).buffers)
