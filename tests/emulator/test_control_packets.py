"""Control packets: words that a tile's control port takes as writes and reads."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import LoadError, RegisterAccessError
from bdforge.array.mlir import MlirError
from support.array_text import Task, bd, buffer, flow, lock, module, packet_flow, program, tile
from support.differences import same

DEVICES = ("npu1_3col", "npu2_3col")
WRITE, READ, INCREMENT, BLOCK = range(4)
TILES = (tile(0, 0), tile(0, 1), tile(0, 2), tile(1, 2))


def odd(word: int) -> int:
    """The word as int32 with bit 31 such that its number of ones is odd."""
    word |= 0 if bin(word).count("1") % 2 else 1 << 31
    return word - (1 << 32) if word >> 31 else word


def control(operation: int, offset: int, words: int = 1, answer: int = 0) -> int:
    """A control word as hardware facts 1.7 lay it out."""
    return odd(answer << 24 | operation << 22 | (words - 1) << 20 | offset)


def signed(words) -> list[int]:
    return [int(np.uint32(word % 2**32).astype(np.int32)) for word in words]


def write(offset: int, *values: int, operation: int = WRITE) -> list[int]:
    return [control(operation, offset, len(values)), *signed(values)]


def controlled(packets: list[list[int]], *parts: str, device: str = "npu2_3col", to: str = "02", **options):
    """Memtile (0, 1) sends packets of these words to a tile's control port, in order, then releases lock `told`."""
    words = [word for packet in packets for word in packet]
    starts = np.cumsum([0, *(len(packet) for packet in packets)])
    chain = [bd("ctrl", len(words), f"{at}, {len(packet)}", 6) for at, packet in zip(starts, packets, strict=False)]
    common = (
        *TILES,
        buffer("ctrl", "01", len(words), words),
        packet_flow(6, "01 DMA : 0", f"{to} TileControl : 0"),
        program("01", Task("MM2S", 0, chain)),
    )
    return bdforge.emulate(module(device, *common, *parts), **options)


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("operation", [WRITE, INCREMENT, BLOCK])
@pytest.mark.parametrize("count", [1, 4])
def test_a_write_stores_its_words_one_after_the_other(device, operation, count):
    values = [0x80000001, 2, 3, 0xFFFFFFFF][:count]
    found = controlled([write(0x10C, *values, operation=operation)], buffer("x", "02", 128), device=device).buffers["x"]
    assert list(found[0x10C // 4 :][:count]) == signed(values)
    assert np.count_nonzero(found) == count


@pytest.mark.parametrize("device", DEVICES)
def test_control_packets_configure_and_start_a_dma(device):
    """BD 5 of core (0, 2): 6 words from byte 16, then a push to MM2S 1's queue, two runs."""
    descriptor = [(16 // 4) << 14 | 6, 0, 0, 0, 0, 1 << 25]
    data = np.arange(100, 116, dtype=np.int32)
    found = controlled(
        [
            write(0x1D000 + 0x20 * 5, *descriptor[:4]),
            write(0x1D000 + 0x20 * 5 + 16, *descriptor[4:]),
            write(0x1DE1C, 1 << 16 | 5),
        ],
        buffer("a", "02", 16, data),
        buffer("x", "12", 20),
        flow("02 DMA : 1", "12 DMA : 0"),
        program("12", Task("S2MM", 0, [bd("x", 20)])),
        device=device,
    ).buffers["x"]
    same(found, [*data[4:10], *data[4:10], *[0] * 8])


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("keep", "number"), [(False, 0), (True, 31)])
def test_a_read_is_answered_by_a_packet_with_the_response_id(device, keep, number):
    """Three words of core memory, then the lock's value; the header names the tile that answers."""
    packets = [[control(READ, 0x8, 3, answer=number)], [control(READ, 0x1F000 + 0x10 * 2, 1, answer=number)]]
    answers = [[7, -8, 9], [5]]
    header = [odd(1 << 21 | 2 << 16 | number)] if keep else []
    expected = [word for answer in answers for word in [*header, *answer]]
    found = controlled(
        packets,
        buffer("a", "12", 6, [0, 0, 7, -8, 9, 0]),
        lock("five", "12", 2, 5),
        buffer("x", "02", len(expected)),
        packet_flow(number, "12 TileControl : 0", "02 DMA : 0", keep=keep),
        program("02", Task("S2MM", 0, [bd("x", len(expected))])),
        device=device,
        to="12",
    ).buffers["x"]
    same(found, expected)


@pytest.mark.parametrize("schedule", [{}, {"schedule": "random", "seed": 3}, {"schedule": "random", "seed": 4}])
def test_packets_may_follow_one_another_in_one_transfer(schedule):
    """The second header is a word of the data: only the first one routes."""
    words = [*write(0x10, 1, 2), odd(6), *write(0x20, 3), odd(6), *write(0x14, 4)]
    found = controlled([words], buffer("x", "02", 16), **schedule).buffers["x"]
    assert {place: int(found[place]) for place in np.flatnonzero(found)} == {4: 1, 5: 4, 8: 3}


@pytest.mark.parametrize("device", DEVICES)
def test_the_host_writes_a_tile_through_its_shim(device):
    """The shim's BD inserts the header; a read brings the word back to the host."""
    send = np.array([*write(0x40, 123, 456), control(READ, 0x44, 1, answer=9)], np.int32)
    back = np.zeros(2, np.int32)
    parts = [
        *TILES,
        packet_flow(1, "00 DMA : 0", "12 TileControl : 0"),
        packet_flow(9, "12 TileControl : 0", "00 DMA : 1"),
        """aie.shim_dma_allocation @in (%t00, MM2S, 0, <pkt_type = 0, pkt_id = 1>)
        aie.shim_dma_allocation @out (%t00, S2MM, 1)
        aie.runtime_sequence(%a: memref<4xi32>, %b: memref<2xi32>) {
          aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 1][0, 0, 0, 1]) {id = 2 : i64, metadata = @out} : memref<2xi32>
          aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in} : memref<4xi32>
          aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 3][1, 1, 1, 1][0, 0, 0, 1]) {id = 1 : i64, metadata = @in} : memref<4xi32>
          aiex.npu.dma_wait {symbol = @out}
        }""",
    ]
    bdforge.emulate(module(device, *parts), [send, back])
    same(back, [456, 0])


def test_circuits_carry_headers_in_their_data_and_in_the_answer():
    words = [odd(0), *write(0x30, 77), odd(0), control(READ, 0x30, 1, answer=4)]
    parts = [
        *TILES,
        buffer("ctrl", "01", 5, words),
        buffer("x", "02", 2),
        flow("01 DMA : 0", "12 TileControl : 0"),
        flow("12 TileControl : 0", "02 DMA : 0"),
        program("01", Task("MM2S", 0, [bd("ctrl", 5)])),
        program("02", Task("S2MM", 0, [bd("x", 2)])),
    ]
    found = bdforge.emulate(module("npu2_3col", *parts)).buffers["x"]
    same(found, [odd(1 << 21 | 2 << 16 | 4), 77])


@pytest.mark.parametrize(
    ("packet", "message"),
    [
        (
            [write(0, 1)[0] ^ -(2**31), 1],
            r"control port of core \(0, 2\): the control word 0x.* has an even number of ones",
        ),
        ([*write(0, 1, 2, 3)[:2]], r"control port of core \(0, 2\): control word .* announces 3 words, but .* after 1"),
        ([write(0, 1)[0]], r"announces 1 words, but its packet ends after 0"),
        ([*write(0, 1), 6, *write(0, 1)], r"the packet header 0x00000006 has an even number of ones"),
        ([*write(0, 1), odd(6)], r"the packet with header 0x80000006 ends without a control word"),
        (write(2, 1), r"core \(0, 2\): offset 0x2 is not a multiple of 4 \(control packet 0x.*\)"),
        ([control(READ, 0, 1, answer=3)], r"a read at 0x0 has no way back"),
        ([control(READ, 0, 1, answer=32)], r"response id 32 is outside 0 to 31"),
    ],
)
def test_a_malformed_control_packet_is_an_error(packet, message):
    with pytest.raises(RegisterAccessError, match=message):
        controlled([packet])


def test_a_tile_has_one_control_port():
    with pytest.raises(LoadError, match=r"core \(0, 2\) has master ports TileControl 0 to 0, not 1"):
        bdforge.emulate(module("npu2_3col", *TILES, packet_flow(1, "01 DMA : 0", "02 TileControl : 1")))


def test_control_packets_of_a_runtime_sequence_are_refused_by_name():
    """No pass of the ordinary flow lowers them; an instruction stream has no such operation."""
    operation = "aiex.control_packet {address = 0 : ui32, data = array<i32: 1>, opcode = 0 : i32, stream_id = 0 : i32}"
    with pytest.raises(MlirError, match=r"aiex.control_packet: has no form in an instruction stream"):
        bdforge.emulate(module("npu2_3col", f"aie.runtime_sequence() {{ {operation} }}"))
