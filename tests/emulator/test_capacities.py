"""What streams hold for receivers that do not take it: where designs begin to hang.

Two shapes that were run on silicon: words for one buffer ahead of those that the core wants first, and a packet longer
than the only BD of its receiver.
"""

import re
from dataclasses import fields

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import ArgumentError, Deadlock, DmaError, TimingOptions
from bdforge.devices import AIE2, AIE2P
from bdforge.devices.capacities import StreamCapacities
from support.array_text import (
    MEMTILE_OWN_WORDS,
    Task,
    acquire,
    bd,
    buffer,
    flow,
    lock,
    module,
    packet_flow,
    program,
    release,
    ring,
    sequence,
    tile,
    writebd,
)  # fmt: skip
from support.differences import same

HEAD_OF_LINE = """
    %core = aie.core(%t02) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %end = arith.constant {words} : index
      aie.use_lock(%b_full, AcquireGreaterEqual, 1)
      scf.for %i = %c0 to %end step %c1 {{
        aie.use_lock(%a_full, AcquireGreaterEqual, 1)
        %value = memref.load %a[%c0] : memref<1xi32>
        memref.store %value, %got[%i] : memref<64xi32>
        aie.use_lock(%a_free, Release, 1)
      }}
      aie.end
    }}
    aie.runtime_sequence @sequence(%x: memref<64xi32>) {{
      aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][1, 1, 1, {words}][0, 0, 0, 1]{packet_a})
        {{id = 0 : i64, metadata = @in_a, issue_token = true}} : memref<64xi32>
      {wait_a}
      aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 60][1, 1, 1, 4][0, 0, 0, 1]{packet_b})
        {{id = 1 : i64, metadata = @in_b, issue_token = true}} : memref<64xi32>
      {waits_b}
    }}
"""
PACKET = ", packet = <pkt_id = {}, pkt_type = 0>"
WAIT = "aiex.npu.dma_wait {symbol = @in_a}"


def head_of_line(words: int, device: str, *, packets: bool) -> str:
    """`words` for `a`, one at a time, then four for `b`, which the core wants first.

    Packets share a shim's channel; circuits have one each, and the host awaits the first.
    """
    channel = 0 if packets else 1
    ways = [("00 DMA : 0", "02 DMA : 0"), (f"00 DMA : {channel}", "02 DMA : 1")]
    shared = [WAIT, WAIT] if packets else ["aiex.npu.dma_wait {symbol = @in_b}"]
    return module(
        device, tile(0, 0), tile(0, 2), buffer("a", "02", 1), buffer("b", "02", 4), buffer("got", "02", 64),
        *(lock(f"{name}_{state}", "02", i, init) for i, (name, state, init) in enumerate(LOCKS)),
        *(packet_flow(i + 1, *way) if packets else flow(*way) for i, way in enumerate(ways)),
        "aie.shim_dma_allocation @in_a (%t00, MM2S, 0)", f"aie.shim_dma_allocation @in_b (%t00, MM2S, {channel})",
        program("02", *(
            ring("S2MM", i, acquire(f"{name}_free"), bd(name, size), release(f"{name}_full"))
            for i, (name, size) in enumerate([("a", 1), ("b", 4)])
        )),
        HEAD_OF_LINE.format(
            words=words, packet_a=PACKET.format(1) if packets else "", packet_b=PACKET.format(2) if packets else "",
            wait_a="" if packets else WAIT, waits_b="\n".join(shared),
        ),
    )  # fmt: skip


LOCKS = [("a", "free", 1), ("a", "full", 0), ("b", "free", 1), ("b", "full", 0)]


def runs_head_of_line(words: int, device: str, packets: bool, **options) -> bool:
    """Whether it ends, with the right words if so."""
    data = np.arange(100, 164, dtype=np.int32)
    try:
        found = bdforge.emulate(head_of_line(words, device, packets=packets), [data], **options).buffers
    except Deadlock:
        return False
    same(found["got"][:words], data[:words])
    same(found["b"], data[60:])
    return True


BEFORE_A_WAITING_BD = [
    # device, packets, capacity, words that the stream holds
    ("npu2", True, "known", 8), ("npu2_1col", True, "known", 8), ("npu1_1col", True, "known", 16),
    ("npu2", False, "known", 8), ("npu1_1col", False, "known", 16),
    *((device, packets, words, words) for device in ("npu2", "npu1_1col") for packets in (True, False)
      for words in (0, 1, 8, 30)),
]  # fmt: skip


@pytest.mark.daily(every=3)
@pytest.mark.parametrize(("device", "packets", "capacity", "held"), BEFORE_A_WAITING_BD)
@pytest.mark.parametrize("seed", [None, pytest.param(1, marks=pytest.mark.slow), 2])
def test_so_many_words_pass_ahead_of_those_that_a_core_wants_first_and_one_more_hangs(
    device, packets, capacity, held, seed
):
    """One word is in the BD's buffer, the others are in the stream."""
    options = {"capacity": capacity} | ({} if seed is None else {"schedule": "random", "seed": seed})
    ends = [runs_head_of_line(words, device, packets, **options) for words in (held + 1, held + 2)]
    assert ends == [True, False]


def test_data_without_a_packet_on_a_way_of_packets_says_where_its_header_came_from():
    text = head_of_line(1, "npu2_1col", packets=True).replace(PACKET.format(1), "")
    with pytest.raises(DmaError, match=r"its BD has no packet, so .* header: packet id 4 .* matches no packet rule"):
        bdforge.emulate(text, [np.arange(100, 164, dtype=np.int32)])


def overrun(words: int, device: str, *, packets: bool, repeat: int = 0) -> str:
    """`words` from a memtile into the only BD of a core's S2MM, which takes 256; when they have left, 256 to the other.

    With `repeat` they go so many times more, as a packet each, whose header is kept.
    """
    ways = [("01 DMA : 0", "02 DMA : 0"), ("01 DMA : 2", "02 DMA : 1")]
    own = [{"buffer_offset": MEMTILE_OWN_WORDS, "buffer_length": size} for size in (words, 256)]
    own = [registers | ({"enable_packet": 1, "packet_id": i + 1} if packets else {}) for i, registers in enumerate(own)]
    operations = []
    for number, registers in enumerate(own):
        place = f"column = 0 : i32, row = 1 : i32, direction = 1 : i32, channel = {2 * number} : i32"
        options = f"issue_token = true, repeat_count = {0 if number else repeat} : i32, bd_id = {number} : i32"
        operations += [
            writebd("01", number, **registers),
            f"aiex.npu.push_queue(0, 1, MM2S : {2 * number}) {{{options}}}",
            f"aiex.npu.sync {{{place}, column_num = 1 : i32, row_num = 1 : i32}}",
        ]
    return module(
        device, tile(0, 0), tile(0, 1), tile(0, 2), buffer("sent", "01", 512, range(512)), buffer("x", "02", 256),
        buffer("y", "02", 256), packet_flow(26, "01 TileControl : 0", "00 South : 0", keep=True),
        *(packet_flow(i + 1, *way, keep=bool(repeat)) if packets else flow(*way) for i, way in enumerate(ways)),
        program("02", Task("S2MM", 0, [bd("x", 256)]), Task("S2MM", 1, [bd("y", 256)])),
        sequence(*operations),
    )  # fmt: skip


def runs_overrun(words: int, device: str, packets: bool, repeat: int = 0, **options) -> bool:
    try:
        result = bdforge.emulate(overrun(words, device, packets=packets, repeat=repeat), **options)
    except Deadlock:
        return False
    if not repeat:
        same(result.buffers["x"], range(256))
        same(result.buffers["y"], range(256))
    left = (words + 1) * (repeat + 1) - 256 if repeat else words - 256
    told = re.findall(r"(\d+) words were left in the input of core \(0, 2\) S2MM 0", " ".join(result.warnings))
    assert told == ([str(left)] if left else [])
    return True


@pytest.mark.daily(every=4)
@pytest.mark.parametrize(
    ("device", "packets", "words", "repeat", "ends"),
    [("npu2", True, 256 + n, 0, n <= 5) for n in (0, 1, 4, 5, 6, 16)]  # all but the first were run on silicon
    + [("npu2", True, 32, 7, False), ("npu2", True, 28, 8, True), ("npu2", True, 130, 1, False)]
    + [("npu2", False, 256 + n, 0, n <= 5) for n in (5, 6)]
    + [("npu1_1col", packets, 256 + n, 0, n <= 16) for n in (16, 17) for packets in (True, False)],
)
@pytest.mark.parametrize("seed", [None, 1])
def test_a_receiver_without_a_bd_holds_fewer_words(device, packets, words, repeat, ends, seed):
    """The headers of eight packets of 32 words are eight words too many, as on silicon."""
    options = {} if seed is None else {"schedule": "random", "seed": seed}
    assert runs_overrun(words, device, packets, repeat, **options) == ends


@pytest.mark.parametrize("packets", [True, False])
@pytest.mark.parametrize("capacity", [0, "known", 40])
def test_what_streams_hold_changes_no_value_of_timed_and_poisoned_runs(packets, capacity):
    """One word beside those held passes everywhere; a replay holds as much as the run did."""
    words = 41 if capacity == 40 else 1
    assert runs_head_of_line(words, "npu2", packets, capacity=capacity, poison=True, timing=TimingOptions())


@pytest.mark.parametrize("capacity", [-1, 1.5, True, "0", None, np.float32(2), "x" * 5000])
def test_a_capacity_that_is_no_number_of_words_is_refused(capacity):
    with pytest.raises(ArgumentError, match="capacity must be"):
        bdforge.emulate(head_of_line(1, "npu2", packets=True), [np.zeros(64, np.int32)], capacity=capacity)


def test_an_array_takes_the_facts_of_its_generation():
    """Words by kind of path, and whether anybody saw them."""
    found = {
        generation.name: [
            (kind.words, kind.known)
            for kind in (getattr(generation.capacities, field.name) for field in fields(StreamCapacities))
        ]
        for generation in (AIE2, AIE2P)
    }
    assert found == {
        "AIE2": [(16, False), (16, False), (16, True), (16, False)],
        "AIE2P": [(8, True), (5, True), (8, False), (5, False)],
    }
