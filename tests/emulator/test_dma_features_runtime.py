"""DMA features that need a runtime sequence: shims, iteration, raw register writes; against loops over indices."""

import numpy as np
import pytest

import bdforge
from bdforge.array.emulator import DmaError, LoadError
from support.array_text import (
    MEMTILE_OWN_WORDS,
    Task,
    acquire,
    bd,
    buffer,
    dimensions,
    flow,
    lock,
    module,
    packet_flow,
    program,
    push,
    release,
    sequence,
    tile,
    visited,
    write_word,
    writebd,
)
from support.differences import same

DEVICES = ("npu1_3col", "npu2_3col")
SENDERS = ("01", "02")
TILES = (tile(0, 0), tile(0, 1), tile(0, 2), tile(1, 1), tile(1, 2), tile(2, 1))
DATA = np.random.default_rng(5).integers(-(2**31), 2**31, 1024, np.int32)


def run(device: str, *parts: str, args=(), **options) -> dict[str, np.ndarray]:
    return dict(bdforge.emulate(module(device, *TILES, *parts), args, **options).buffers)


SHIM = """aie.shim_dma_allocation @in (%t00, MM2S, 1)
  aie.shim_dma_allocation @out (%t00, S2MM, 0)
  aie.runtime_sequence(%a: memref<400xi32>, %b: memref<400xi32>) {{
    aiex.npu.dma_memcpy_nd(%b[0, 0, 0, {offset}]{receive}) {{id = 1 : i64, metadata = @out}} : memref<400xi32>
    aiex.npu.dma_memcpy_nd(%a[0, 0, 0, {offset}]{send}) {{id = 0 : i64, metadata = @in}} : memref<400xi32>
    aiex.npu.dma_wait {{symbol = @out}}
  }}"""


def memcpy_text(dims: list[tuple[int, int]]) -> str:
    return f"[{', '.join(str(size) for size, _ in dims)}][{', '.join(str(stride) for _, stride in dims)}]"


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize(
    "dims", [[(3, 90), (2, 31), (4, 5), (3, 1)], [(2, 7), (3, 80), (2, 30), (6, 3)], [(4, 0), (1, 0), (6, 3), (3, 1)]]
)
@pytest.mark.parametrize("scatter", [False, True], ids=["gather", "scatter"])
def test_a_shim_walks_three_dimensions_and_iterates(device, dims, scatter):
    """Through a memtile's FIFO of one word per BD; a stride of 0 repeats, which as a target leaves the last round.

    The offset counts in the innermost stride.
    """
    walk = visited(dims, offset=5 * dims[3][1])
    linear = [(1, 0), (1, 0), (1, 0), (len(walk), 1)]
    hop = [bd("hop", 1)]
    a, b = DATA[:400].copy(), np.zeros(400, np.int32)
    ends = (linear, dims) if scatter else (dims, linear)
    parts = [
        buffer("hop", "01", 1),
        lock("free", "01", 0, 1),
        lock("full", "01", 1),
        flow("00 DMA : 1", "01 DMA : 0"),
        flow("01 DMA : 0", "00 DMA : 0"),
        program(
            "01",
            Task("S2MM", 0, ["\n".join([acquire("free"), *hop, release("full")])], loop=True),
            Task("MM2S", 0, ["\n".join([acquire("full"), *hop, release("free")])], loop=True),
        ),
        SHIM.format(offset=5, send=memcpy_text(ends[0]), receive=memcpy_text(ends[1])),
    ]
    run(device, *parts, args=[a, b])
    expected = np.zeros(400, np.int32)
    for step, place in enumerate(walk):
        source, target = (5 + step, place) if scatter else (place, 5 + step)
        expected[target] = a[source]
    same(b, expected)


def task(at: str, name: str, size: int, dims: list[tuple[int, int]], length: int, repeat: int) -> str:
    return f"""%task = aiex.dma_configure_task(%t{at}, MM2S, 0) {{
      aie.dma_bd(%{name} : memref<{size}xi32>, 4, {length}, {dimensions(dims)})
      aie.end
    }} {{issue_token = true, repeat_count = {repeat} : i32}}
    aiex.dma_start_task(%task)
    aiex.dma_await_task(%task)"""


@pytest.mark.parametrize(("device", "at"), [("npu1_3col", "02"), ("npu2_3col", "02"), ("npu2_3col", "01")])
def test_a_task_iterates_over_its_repeats(device, at):
    """Five runs of an iteration of three start over; each run walks three dimensions."""
    dims = [(3, 50), (2, 20), (3, 6), (4, 1)]
    rounds = [DATA[visited(dims[1:], offset=4 + 50 * (number % 3))] for number in range(5)]
    found = run(
        device,
        buffer("a", at, 200, DATA[:200]),
        buffer("x", "12", 120),
        flow(f"{at} DMA : 0", "12 DMA : 0"),
        packet_flow(26 if at == "01" else 27, f"{at} TileControl : 0", "00 South : 0", keep=True),
        program("12", Task("S2MM", 0, [bd("x", 120)])),
        f"aie.runtime_sequence() {{ {task(at, 'a', 200, dims, 24, 4)} }}",
    )
    same(found["x"], np.concatenate(rounds))


@pytest.mark.parametrize("device", DEVICES)
def test_an_iteration_starts_at_its_current_step(device):
    """Steps 1, 2, 0, 1 of three, 10 words apart."""
    found = run(
        device,
        buffer("a", "01", 30, DATA[:30]),
        buffer("x", "12", 16),
        flow("01 DMA : 0", "12 DMA : 0"),
        program("12", Task("S2MM", 0, [bd("x", 16)])),
        sequence(
            writebd(
                "01",
                3,
                buffer_length=4,
                buffer_offset=MEMTILE_OWN_WORDS,
                iteration_current=1,
                iteration_size=2,
                iteration_stride=9,
            ),
            push("01", "MM2S", 0, 3, repeat=3),
        ),
    )
    same(found["x"], np.concatenate([DATA[10 * i : 10 * i + 4] for i in (1, 2, 0, 1)]))


@pytest.mark.parametrize(
    ("operations", "message"),
    [
        ([write_word("01", 0xA0600, 1 << 3)], "memtile .0, 1. S2MM 0: out_of_order = 1 .* is not emulated"),
        ([write_word("02", 0x1DE00, 1 << 4)], "core .0, 2. S2MM 0: compression = 1 .* is not emulated"),
        (
            [
                writebd("02", 0, buffer_length=4, enable_packet=1, packet_id=1, out_of_order_id=5),
                push("02", "MM2S", 0, 0),
            ],
            "MM2S 0, BD 0 .*: it puts out-of-order id 5 into its packet header, which is not emulated",
        ),
        (
            [writebd("02", 0, buffer_length=4), write_word("02", 0x1D004, 1 << 31, 1 << 31), push("02", "MM2S", 0, 0)],
            "MM2S 0, BD 0 .*: it compresses or expands data, which is not emulated",
        ),
        (
            [
                writebd("01", 0, buffer_length=4, buffer_offset=MEMTILE_OWN_WORDS, d0_size=2, d1_zero_after=1),
                push("01", "MM2S", 0, 0),
            ],
            "it pads behind dimension 1, which has no wrap",
        ),
        (
            [
                writebd("01", 0, buffer_length=4, buffer_offset=MEMTILE_OWN_WORDS, d1_zero_before=1),
                push("01", "MM2S", 0, 0),
            ],
            "it pads behind dimension 0, which has no wrap",
        ),
        ([writebd("02", 0, buffer_length=4, valid_bd=0), push("02", "MM2S", 0, 0)], "the BD is not valid"),
    ],
)
def test_what_is_not_emulated_is_refused_by_name(operations, message):
    with pytest.raises((DmaError, LoadError), match=message):
        run("npu2_3col", flow("02 DMA : 0", "12 DMA : 0"), flow("01 DMA : 0", "12 DMA : 1"), sequence(*operations))
