"""TLAST: where packets end, and what that means for receiving BDs."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import DmaError
from support.array_text import (
    MEMTILE_OWN_WORDS,
    SUPPRESS_TLAST,
    Task,
    acquire,
    bd,
    buffer,
    flow,
    lock,
    module,
    packet_flow,
    program,
    push,
    sequence,
    tile,
    write_word,
    writebd,
)
from support.differences import same

DEVICES = ("npu1_3col", "npu2_3col")
TILES = (tile(0, 1), tile(0, 2), tile(1, 2))
DATA = np.random.default_rng(6).integers(-(2**31), 2**31, 16, np.int32)


def run(device: str, *parts: str, **options) -> dict[str, np.ndarray]:
    return dict(bdforge.emulate(module(device, *TILES, *parts), **options).buffers)


PIECES = ((0, 5), (5, 8), (13, 2))  # (start, words) of what three packets carry
ENDED = [*DATA[:5], *[0] * 3, *DATA[5:13], *DATA[13:15], *[0] * 6]  # each in a BD of its own


def received(device: str, mode: int, packets: bool, early: bool, **options) -> np.ndarray:
    """What three BDs hold after packets, or words of a circuit, of 5, 8 and 2 words in a mode of their channel."""
    connection = packet_flow(1, "01 DMA : 0", "02 DMA : 0") if packets else flow("01 DMA : 0", "02 DMA : 0")
    chain = [
        acquire("send") + "\n" + bd("a", 15, f"{start}, {count}", 1 if packets else None) for start, count in PIECES
    ]
    opened = ["aiex.set_lock(%send, 3)", "aiex.set_lock(%go, 3)"]
    return run(
        device,
        buffer("a", "01", 15, DATA[:15]),
        buffer("x", "02", 24),
        lock("go", "02", 0),
        lock("send", "01", 0),
        connection,
        program("01", Task("MM2S", 0, chain)),
        program("02", Task("S2MM", 0, [acquire("go") + "\n" + bd("x", 24, f"{8 * i}, 8") for i in range(3)])),
        sequence(write_word("02", 0x1DE00, mode << 16), *(opened if early else reversed(opened))),
        **options,
    )["x"]


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("packets", [False, True], ids=["circuit", "packets"])
@pytest.mark.parametrize("early", [False, True], ids=["waiting", "late"])
def test_tlast_ends_a_receiving_bd_only_in_a_finishing_mode(device, mode, packets, early):
    """With a mode each piece fills its own BD; `late` receivers find the words in the stream's buffer."""
    same(received(device, mode, packets, early), ENDED if mode else [*DATA[:15], *[0] * 9])


@pytest.mark.parametrize("seed", range(4))
def test_tlast_ends_bds_whatever_the_schedule(seed):
    same(received("npu2_3col", 1, True, True, schedule="random", seed=seed), ENDED)


@pytest.mark.parametrize("device", DEVICES)
def test_a_sending_channel_cannot_finish_on_tlast(device):
    with pytest.raises(DmaError, match=r"core \(0, 2\) MM2S 1: finish_on_tlast = 2, but only S2MM channels"):
        run(device, sequence(write_word("02", 0x1DE18, 2 << 16)))


def test_a_packet_without_tlast_keeps_others_waiting():
    """Core (0, 2)'s words come in two BDs, the first without TLAST; the other core's packet may not come between."""
    suppressed = write_word("02", 0x1D014, SUPPRESS_TLAST, SUPPRESS_TLAST)
    found = run(
        "npu2_3col",
        buffer("a", "02", 8, DATA[:8]),
        buffer("b", "12", 4, DATA[8:12]),
        buffer("x", "01", 12),
        lock("go", "12", 0),
        packet_flow(1, "02 DMA : 0", "01 DMA : 0"),
        packet_flow(2, "12 DMA : 0", "01 DMA : 0"),
        program("01", Task("S2MM", 0, [bd("x", 12)])),
        program("12", Task("MM2S", 0, [acquire("go") + "\n" + bd("b", 4, "", 2)])),
        sequence(
            writebd("02", 0, buffer_length=4, enable_packet=1, packet_id=1),
            suppressed,
            push("02", "MM2S", 0, 0),
            "aiex.set_lock(%go, 1)",
            writebd("02", 1, buffer_length=4, buffer_offset=16),
            push("02", "MM2S", 0, 1),
        ),
    )
    same(found["x"], DATA[:12])


def sent(bd_number: int, start: int, count: int, **fields: int) -> list[str]:
    """The memtile sends words of its buffer by one BD."""
    fields |= {"buffer_length": count, "buffer_offset": MEMTILE_OWN_WORDS + start}
    return [writebd("01", bd_number, **fields), push("01", "MM2S", 0, bd_number)]


HEADER = 1 << 16 | 9
PACKET = {"enable_packet": 1, "packet_id": 9}
FINISH = write_word("02", 0x1DE00, 1 << 16)
NO_TLAST = write_word("01", 0xA0008, SUPPRESS_TLAST, SUPPRESS_TLAST)  # of BD 0
FIRST = [*DATA[:4], HEADER, HEADER, 5, 6, *DATA[8:]]
ENDS = {  # whether packets are sent, the words that a BD takes, operations, what three BDs hold then
    "a header, then a chain of two BDs of which the second ends the packet, and a third of its own": (
        True, 13, [
            writebd("01", 0, buffer_length=4, buffer_offset=MEMTILE_OWN_WORDS, use_next_bd=1, next_bd=1, **PACKET),
            NO_TLAST, writebd("01", 1, buffer_length=3, buffer_offset=MEMTILE_OWN_WORDS + 8),
            push("01", "MM2S", 0, 0), *sent(2, 12, 4, **PACKET),
        ], [HEADER, *FIRST[:4], *FIRST[8:11], HEADER, *FIRST[12:]],
    ),
    "3 words without and 2 with TLAST fill one BD, whose rest stays; the next one begins behind them": (
        False, 8, [FINISH, writebd("01", 0, buffer_length=3, buffer_offset=MEMTILE_OWN_WORDS), NO_TLAST,
                   push("01", "MM2S", 0, 0), *sent(1, 3, 2), *sent(2, 8, 4)],
        [*FIRST[:5], 0, 0, 0, *FIRST[8:12], 0, 0, 0, 0],
    ),
    "a header in memory that is a whole BD ends its packet, and so what receives it": (
        True, 8, [FINISH, *sent(0, 4, 1), *sent(1, 5, 3)], [HEADER, *[0] * 7, HEADER, 5, 6, *[0] * 5],
    ),
}  # fmt: skip


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(("packets", "size", "operations", "expected"), ENDS.values(), ids=ENDS)
def test_a_packet_ends_with_the_bd_that_has_tlast(device, packets, size, operations, expected):
    assert HEADER.bit_count() % 2 == 1
    way = "01 DMA : 0", "02 DMA : 0"
    found = run(
        device, buffer("a", "01", 16, FIRST), buffer("x", "02", 3 * size),
        packet_flow(9, *way, keep=True) if packets else flow(*way),
        program("02", Task("S2MM", 0, [bd("x", 3 * size, f"{size * i}, {size}") for i in range(3)])),
        sequence(*operations),
    )  # fmt: skip
    same(found["x"][: len(expected)], expected)
