"""Designs that only the dialect's form from mlir-aie 1.4 on can say, on the emulated array."""

import numpy as np
import pytest

import bdforge
from support.array_text import Task, buffer, core, flow, lock, module, program, tile
from support.differences import same

DATA = np.arange(100, 116, dtype=np.int32)

BLOCK = {"start": "aie.dma_start(MM2S, 0, ^bd, ^end{}) {}\n  ^bd:", "end": "aie.next_bd ^end\n  ^end:"}
REGION = {"start": "aie.dma(MM2S, 0) {} [{{", "end": "}]"}
PAD = (
    "aie.dma_bd(%a : memref<16xi32> offset = 0 len = 16 sizes = [13] strides = [1] "
    "pad [<const_pad_before = 2, const_pad_after = 1>])"
)


def text(start: str, bd: str, end: str) -> str:
    """A memtile sends to a core, in one of the two forms of a DMA program."""
    return module(
        "npu2_2col", tile(1, 1), tile(1, 2), buffer("a", "11", 16, DATA), buffer("x", "12", 16),
        lock("free", "11", 0, 9), lock("done", "11", 1), flow("11 DMA : 0", "12 DMA : 0"),
        "aie.memtile_dma(%t11) {", "%one = arith.constant 1 : i32", start,
        "aie.use_lock(%free, AcquireGreaterEqual, %one)", bd, "aie.use_lock(%done, Release, %one)", end, "aie.end", "}",
        program("12", Task("S2MM", 0, ["aie.dma_bd(%x : memref<16xi32> len = 16)"])),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("start", "end"),
    [
        (BLOCK["start"].format("", "{pad_value = -77 : i32}"), BLOCK["end"]),
        (REGION["start"].format("{loop = false, pad_value = -77 : i32}"), REGION["end"]),
    ],
    ids=["block form", "region form"],
)
def test_a_channel_pads_with_the_value_that_it_names(start, end):
    found = bdforge.emulate(text(start, PAD, end), []).buffers["x"]
    same(found, [-77, -77, *DATA[:13], -77])


def test_each_run_of_a_bd_with_iteration_goes_on():
    iteration = (
        "aie.dma_bd(%a : memref<16xi32> len = 4) {iteration = #aie.bd_iteration<size = 4, stride = 4, current = 0>}"
    )
    found = bdforge.emulate(text(BLOCK["start"].format(", repeat_count = 3", ""), iteration, BLOCK["end"]), [])
    same(found.buffers["x"], DATA)


PACKET = "{packet = #aie.packet_info<pkt_type = 0, pkt_id = 3>}"


def test_several_sources_of_one_packet_flow_all_arrive():
    senders = {"02": 7, "03": 9}
    sources = " ".join(f"aie.packet_source<%t{at}, DMA : 0>" for at in senders)
    design = module(
        "npu2_2col", *(tile(*place) for place in ((0, 2), (0, 3), (1, 2))),
        *(buffer(f"b{at}", at, 4, [value] * 4) for at, value in senders.items()),
        buffer("x", "12", 8), f"aie.packet_flow(3) {{ {sources} aie.packet_dest<%t12, DMA : 0> }}",
        *(program(at, Task("MM2S", 0, [f"aie.dma_bd(%b{at} : memref<4xi32> len = 4) {PACKET}"])) for at in senders),
        program("12", Task("S2MM", 0, ["aie.dma_bd(%x : memref<8xi32> offset = 0 len = 8)"])),
    )  # fmt: skip
    assert sorted(bdforge.emulate(design, []).buffers["x"]) == [7] * 4 + [9] * 4


@pytest.mark.parametrize("count", [1, 3])
def test_a_core_releases_as_often_as_its_data_says(count):
    body = """%seven = arith.constant 7 : i32
      %word = memref.load %n[%c0] : memref<1xi32>
      aie.use_lock(%l, Release, %word)
      %times = arith.index_cast %word : i32 to index
      scf.for %i = %c0 to %times step %c1 {
        %single = arith.constant 1 : i32
        aie.use_lock(%l, AcquireGreaterEqual, %single)
        memref.store %seven, %x[%i] : memref<4xi32>
      }
      aie.use_lock(%l, Release, %word)
      aie.use_lock(%l, AcquireGreaterEqual, %word)"""
    design = module(
        "npu2_1col", tile(0, 2), buffer("n", "02", 1, [count]), buffer("x", "02", 4),
        lock("l", "02", 0), core("02", body),
    )  # fmt: skip
    assert bdforge.emulate(design, []).buffers["x"].tolist() == [7] * count + [0] * (4 - count)
