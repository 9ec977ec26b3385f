"""Packet switching: what arrives where, in which order, against words put together by hand."""

import re

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import Deadlock, DmaError, LoadError
from bdforge.array.emulator.packet import Arbiter
from bdforge.array.emulator.scheduler import Agent, Scheduler
from bdforge.array.emulator.stream import Sink, Stream
from bdforge.devices.capacities import StreamCapacities
from support.array_text import (
    Task,
    acquire,
    bd,
    buffer,
    flow,
    header,
    lock,
    memcpy,
    module,
    packet_flow,
    program,
    release,
    tile,
)
from support.differences import same

DEVICES = ("npu1_3col", "npu2_3col")
HOLDS = StreamCapacities.uniform(16)
DATA = np.random.default_rng(7).integers(-(2**31), 2**31, 64, np.int32)


def memory(*parts: str, device: str = "npu2_3col", **options) -> dict[str, np.ndarray]:
    return dict(bdforge.emulate(module(device, *TILES, *parts), **options).buffers)


TILES = (tile(0, 0), tile(0, 1), tile(0, 2), tile(0, 3), tile(1, 1), tile(1, 2))


def sends(at: str, name: str, size: int, packets: list[tuple[int, int, int]], channel: int = 0, repeat: int = 0) -> str:
    """A program that sends (offset, length, id) packets of one buffer."""
    chain = [bd(name, size, f"{offset}, {length}", number) for offset, length, number in packets]
    return program(at, Task("MM2S", channel, chain, repeat=repeat))


def fills(at: str, name: str, size: int, pieces: list[tuple[int, int]] | None = None, channel: int = 0) -> str:
    """A program that receives (offset, length) pieces of a buffer, by default all of it."""
    chain = [bd(name, size, f"{offset}, {length}") for offset, length in pieces or [(0, size)]]
    return program(at, Task("S2MM", channel, chain))


@pytest.mark.parametrize("device", DEVICES)
def test_a_packet_reaches_all_destinations_of_its_id(device):
    """One flow with two destinations and another flow of the same id and source: three copies."""
    found = memory(
        buffer("a", "01", 40, DATA[:40]),
        buffer("x", "02", 40),
        buffer("y", "03", 40),
        buffer("z", "12", 40),
        packet_flow(4, "01 DMA : 2", "02 DMA : 0", "03 DMA : 1"),
        packet_flow(4, "01 DMA : 2", "12 DMA : 0"),
        sends("01", "a", 40, [(0, 40, 4)], channel=2),
        fills("02", "x", 40),
        fills("03", "y", 40, channel=1),
        fills("12", "z", 40),
        device=device,
    )
    for name in "xyz":
        same(found[name], DATA[:40])


def test_only_flows_that_keep_headers_store_them():
    found = memory(
        buffer("a", "12", 6, DATA[:6]),
        buffer("x", "02", 6),
        buffer("y", "03", 7),
        packet_flow(9, "12 DMA : 1", "02 DMA : 0"),
        packet_flow(9, "12 DMA : 1", "03 DMA : 0", keep=True),
        sends("12", "a", 6, [(0, 6, 9)], channel=1),
        fills("02", "x", 6),
        fills("03", "y", 7),
    )
    same(found["x"], DATA[:6])
    same(found["y"], [header(1, 2, 9), *DATA[:6]])


@pytest.mark.parametrize(("kind", "number"), [(0, 0), (7, 31), (1, 2), (3, 16)])
def test_a_header_holds_source_type_and_id_with_odd_parity(kind, number):
    """`aie.dma_bd_packet` gives the type before the id."""
    found = memory(
        buffer("a", "12", 1, [5]),
        buffer("x", "02", 2),
        packet_flow(number, "12 DMA : 0", "02 DMA : 0", keep=True),
        program("12", Task("MM2S", 0, [f"aie.dma_bd_packet({kind}, {number})\n{bd('a', 1)}"])),
        fills("02", "x", 2),
    )
    same(found["x"], [header(1, 2, number, kind), 5])


FAN_IN = (
    *TILES,
    buffer("a", "02", 20, DATA[:20]),
    buffer("b", "03", 20, DATA[20:40]),
    buffer("c", "12", 20, DATA[40:60]),
    buffer("x", "01", 3 * 4 * 21),
    fills("01", "x", 252),
    packet_flow(1, "02 DMA : 0", "01 DMA : 3", keep=True),
    packet_flow(2, "03 DMA : 0", "01 DMA : 3", keep=True),
    packet_flow(3, "12 DMA : 0", "01 DMA : 3", keep=True),
    sends("02", "a", 20, [(0, 20, 1)], repeat=3),
    sends("03", "b", 20, [(0, 20, 2)], repeat=3),
    sends("12", "c", 20, [(0, 20, 3)], repeat=3),
)
SENDERS = {header(0, 2, 1): DATA[:20], header(0, 3, 2): DATA[20:40], header(1, 2, 3): DATA[40:60]}


def test_packets_of_several_sources_stay_whole_and_take_turns():
    text = module("npu2_3col", *FAN_IN).replace("S2MM, 0", "S2MM, 3")
    packets = bdforge.emulate(text).buffers["x"].reshape(12, 21)
    for packet in packets:
        same(packet[1:], SENDERS[packet[0]])
    rounds = packets[:, 0].reshape(4, 3)
    same(rounds, np.broadcast_to(rounds[0], rounds.shape))
    assert set(rounds[0]) == set(SENDERS)


def test_a_packet_header_on_a_circuit_is_a_word_like_any_other():
    found = memory(
        buffer("a", "01", 4, DATA[:4]),
        buffer("x", "02", 5),
        flow("01 DMA : 0", "02 DMA : 0"),
        sends("01", "a", 4, [(0, 4, 6)]),
        fills("02", "x", 5),
    )
    same(found["x"], [header(0, 1, 6), *DATA[:4]])


def test_an_id_without_a_flow_is_named_with_its_bd():
    with pytest.raises(DmaError, match=r"\(0, 1\) MM2S 0, BD 0 .*: packet id 5 .* matches no .*carry 0, 1, 2, 3"):
        memory(
            buffer("a", "01", 4),
            packet_flow(2, "01 DMA : 0", "02 DMA : 0"),
            packet_flow(1, "01 DMA : 0", "02 DMA : 0"),
            sends("01", "a", 4, [(0, 4, 5)]),
        )


def test_a_first_word_that_is_no_known_header_is_named():
    with pytest.raises(DmaError, match=r"MM2S 0, BD 0 .*: packet id 13 \(header 0x0000002d\) matches no"):
        memory(
            buffer("a", "01", 4, [0x2D, 1, 2, 3]),
            packet_flow(2, "01 DMA : 0", "02 DMA : 0"),
            program("01", Task("MM2S", 0, [bd("a", 4)])),
        )


def test_a_flow_of_a_fifo_is_refused():
    with pytest.raises(LoadError, match=r"flows of bundle FIFO are not emulated"):
        memory(packet_flow(1, "01 DMA : 0", "02 FIFO : 0"))


def test_a_packet_without_words_is_refused():
    with pytest.raises(DmaError, match=r"BD 0 .* inserts a packet header but moves no words"):
        memory(buffer("a", "01", 4), packet_flow(1, "01 DMA : 0", "02 DMA : 0"), sends("01", "a", 4, [(0, 0, 1)]))


SHIM = """
  aie.shim_dma_allocation @in (%t00, MM2S, 0{allocation})
  aie.shim_dma_allocation @out (%t00, S2MM, 1)
  aie.runtime_sequence(%a: memref<24xi32>, %b: memref<24xi32>) {{
    aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, {out}][0, 0, 0, 1])
      {{id = 1 : i64, metadata = @out}} : memref<24xi32>
    {send}
    aiex.npu.dma_wait {{symbol = @out}}
  }}"""
MEMCPY = (
    "aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 12][0, 0, 0, 1]{packet}) "
    "{{id = 0 : i64, metadata = @in}} : memref<24xi32>"
)
TASK = """%t = aiex.dma_configure_task(%t00, MM2S, 0{task}) {{
      aie.dma_bd(%a : memref<24xi32>, 0, 12){bd}
      aie.end
    }}
    aiex.dma_start_task(%t)"""


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    ("allocation", "send"),
    [
        ("", MEMCPY.format(packet=", packet = <pkt_id = 6, pkt_type = 2>")),
        (", <pkt_type = 2, pkt_id = 6>", MEMCPY.format(packet="")),
        ("", TASK.format(task=", <pkt_type = 2, pkt_id = 6>", bd="")),
        ("", TASK.format(task="", bd=" {packet = #aie.packet_info<pkt_type = 2, pkt_id = 6>}")),
    ],
    ids=["memcpy", "allocation", "task", "bd"],
)
def test_a_shim_sends_packets_from_the_host_and_back(device, allocation, send):
    """To a memtile without the header, and back to the host with that of the memtile."""
    a, b = DATA[:24].copy(), np.zeros(24, np.int32)
    hop = Task("MM2S", 1, [acquire("full") + "\n" + bd("hop", 12, "0, 12", 1)])
    parts = [
        *TILES,
        buffer("hop", "01", 12),
        lock("full", "01", 0),
        packet_flow(6, "00 DMA : 0", "01 DMA : 0"),
        packet_flow(1, "01 DMA : 1", "00 DMA : 1", keep=True),
        program("01", Task("S2MM", 0, [bd("hop", 12) + "\n" + release("full")]), hop),
        SHIM.format(allocation=allocation, send=send, out=13),
    ]
    bdforge.emulate(module(device, *parts), [a, b])
    same(b[:13], [header(0, 1, 1), *DATA[:12]])
    same(b[13:], 0)


AWAITED = f"""aie.shim_dma_allocation @out (%t00, S2MM, 0)
  aie.runtime_sequence(%b: memref<4xi32>) {{
    {memcpy("b", "out", 1, 4)}
    aiex.npu.dma_wait {{symbol = @out}}
  }}"""


def test_a_deadlock_names_who_holds_the_arbiter():
    """The second packet for core (0, 3) waits behind one whose receiver has no room for it."""
    parts = [
        *TILES,
        buffer("a", "02", 40),
        buffer("c", "12", 4),
        buffer("x", "01", 4),
        lock("full", "01", 0),
        packet_flow(1, "02 DMA : 0", "03 DMA : 0"),
        packet_flow(2, "12 DMA : 0", "03 DMA : 0", "01 DMA : 0"),
        sends("02", "a", 40, [(0, 40, 1)]),
        sends("12", "c", 4, [(0, 4, 2)]),
        program(
            "01",
            Task("S2MM", 0, [bd("x", 4) + "\n" + release("full")]),
            Task("MM2S", 0, [acquire("full") + "\n" + bd("x", 4)]),
        ),
        flow("01 DMA : 0", "00 DMA : 0"),
        AWAITED,
    ]
    with pytest.raises(Deadlock) as fault:
        bdforge.emulate(module("npu2_3col", *parts), [np.zeros(4, np.int32)])
    text = str(fault.value)
    assert re.search(
        r"core \(1, 2\) MM2S 0 waits to send a packet of id 2 to .*core \(0, 3\) S2MM 0.* past arbiter \d of the "
        r"switch of \(\d, \d\), which core \(0, 2\) MM2S 0 holds until its packet ends",
        text,
    )
    assert "core (0, 2) MM2S 0 has 35 words left of a packet of id 1 and waits for core (0, 3) S2MM 0" in text


def test_who_waits_for_packets_names_all_senders():
    parts = [
        *TILES,
        buffer("x", "01", 4),
        packet_flow(1, "02 DMA : 0", "00 DMA : 0"),
        packet_flow(2, "12 DMA : 0", "00 DMA : 0"),
        AWAITED,
    ]
    with pytest.raises(
        Deadlock,
        match=r"in a packet of id 1 from core \(0, 2\) MM2S 0, which has sent none; or of id 2 from core \(1, 2\)",
    ):
        bdforge.emulate(module("npu2_3col", *parts), [np.zeros(4, np.int32)])


def test_an_arbiter_serves_its_waiters_in_turn_and_not_by_arrival():
    scheduler = Scheduler()
    streams = [Stream(Agent(name, scheduler), scheduler) for name in "abcd"]
    a, b, c, d = streams
    arbiter = Arbiter(Sink(a.owner, print, HOLDS), 0, streams)
    assert arbiter.take(b)
    assert not any(arbiter.take(stream) for stream in (d, a, c))
    served = ""
    for again in (b, d, None, None):
        arbiter.release()
        served += "nobody" if arbiter.holder is None else arbiter.holder.owner.name
        if again is not None:
            assert not arbiter.take(again) or again is arbiter.holder
    assert served == "cdab"


def test_a_held_tlast_means_nothing_once_the_mode_is_off():
    scheduler = Scheduler()
    sink = Sink(Agent("sink", scheduler), print, HOLDS, finishes=True)
    sink.deliver(np.arange(3, dtype=np.uint32), scheduler, True)
    sink.finishes = False
    assert list(sink.take(8)) == [0, 1, 2]
    assert not sink.over


def test_a_reset_channel_no_longer_waits_for_its_turn():
    """Core (1, 2) waits behind a packet of core (0, 2), is reset, and sends another packet later."""
    control = "address = 0x1DE10 : ui32, column = 1 : i32, row = 2 : i32"
    parts = [
        *TILES,
        buffer("a", "02", 40, DATA[:40]),
        buffer("b", "12", 8, DATA[40:48]),
        buffer("x", "03", 48),
        lock("go", "03", 0),
        packet_flow(1, "02 DMA : 0", "03 DMA : 0"),
        packet_flow(2, "12 DMA : 0", "03 DMA : 0"),
        sends("02", "a", 40, [(0, 40, 1)]),
        program("12", Task("MM2S", 0, [bd("b", 8, "0, 4", 2)]), Task("MM2S", 0, [bd("b", 8, "4, 4", 2)])),
        program("03", Task("S2MM", 0, [acquire("go") + "\n" + bd("x", 48)])),
        f"""aie.runtime_sequence() {{
          aiex.npu.write32 {{{control}, value = 2 : ui32}}
          aiex.npu.write32 {{{control}, value = 0 : ui32}}
          aiex.set_lock(%go, 1)
          aiex.npu.push_queue(1, 2, MM2S : 0) {{issue_token = false, repeat_count = 0 : i32, bd_id = 1 : i32}}
        }}""",
    ]
    found = bdforge.emulate(module("npu2_3col", *parts)).buffers["x"]
    same(found, [*DATA[:40], *DATA[44:48], *[0] * 4])


def test_a_core_that_gets_a_packet_from_its_stream_sees_the_header():
    body = "\n".join(
        f"%v{i} = aie.get_stream(%port : i32) : i32\nmemref.store %v{i}, %x[%c{i}] : memref<3xi32>" for i in range(3)
    )
    constants = "\n".join(f"%c{i} = arith.constant {i} : index" for i in range(3))
    found = memory(
        buffer("a", "01", 2, DATA[:2]),
        buffer("x", "02", 3),
        packet_flow(8, "01 DMA : 0", "02 Core : 0"),
        sends("01", "a", 2, [(0, 2, 8)]),
        f"%core = aie.core(%t02) {{\n%port = arith.constant 0 : i32\n{constants}\n{body}\naie.end\n}}",
    )
    same(found["x"], [header(0, 1, 8), *DATA[:2]])


def test_packets_from_a_core_are_refused_by_name():
    with pytest.raises(LoadError, match=r"aie.put_stream cannot end a packet, so packets from Core : 0 are not emul"):
        memory(packet_flow(8, "02 Core : 0", "01 DMA : 0"))
