"""Designs that only the dialect's form from mlir-aie 1.4 on can say, on the emulated array."""

import numpy as np
import pytest

import bdforge
from support.differences import same

DATA = np.arange(100, 116, dtype=np.int32)

SEND = """aie.device({device}) {{
  %m = aie.tile(1, 1)
  %c = aie.tile(1, 2)
  %a = aie.buffer(%m) {{sym_name = "a"}} : memref<16xi32> = dense<[{values}]>
  %x = aie.buffer(%c) {{sym_name = "x"}} : memref<16xi32>
  %free = aie.lock(%m, 0) {{init = 9 : i32}}
  %done = aie.lock(%m, 1)
  aie.flow(%m, DMA : 0, %c, DMA : 0)
  aie.memtile_dma(%m) {{
    %one = arith.constant 1 : i32
    {start}
    aie.use_lock(%free, AcquireGreaterEqual, %one)
    {bd}
    aie.use_lock(%done, Release, %one)
    {end}
    aie.end
  }}
  aie.mem(%c) {{
    aie.dma_start(S2MM, 0, ^bd, ^end)
  ^bd:
    aie.dma_bd(%x : memref<16xi32> len = 16)
    aie.next_bd ^end
  ^end:
    aie.end
  }}
}}
"""
BLOCK = {"start": "aie.dma_start(MM2S, 0, ^bd, ^end{}) {}\n  ^bd:", "end": "aie.next_bd ^end\n  ^end:"}
REGION = {"start": "aie.dma(MM2S, 0) {} [{{", "end": "}]"}
PAD = (
    "aie.dma_bd(%a : memref<16xi32> offset = 0 len = 16 sizes = [13] strides = [1] "
    "pad [<const_pad_before = 2, const_pad_after = 1>])"
)


def text(start: str, bd: str, end: str, device: str = "npu2_2col") -> str:
    return SEND.format(device=device, values=", ".join(map(str, DATA)), start=start, bd=bd, end=end)


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


def test_several_sources_of_one_packet_flow_all_arrive():
    sender = """aie.mem(%{t}) {{
      aie.dma_start(MM2S, 0, ^bd, ^end)
    ^bd:
      aie.dma_bd(%b{t} : memref<4xi32> len = 4) {{packet = #aie.packet_info<pkt_type = 0, pkt_id = 3>}}
      aie.next_bd ^end
    ^end:
      aie.end
    }}
    %b{t} = aie.buffer(%{t}) {{sym_name = "b{t}"}} : memref<4xi32> = dense<{value}>"""
    parts = [sender.format(t=tile, value=value) for tile, value in (("p", 7), ("q", 9))]
    design = """aie.device(npu2_2col) {
    %p = aie.tile(0, 2)
    %q = aie.tile(0, 3)
    %c = aie.tile(1, 2)
    %x = aie.buffer(%c) {sym_name = "x"} : memref<8xi32>
    """ + "\n".join(line for part in parts for line in reversed(part.rsplit("\n", 1))) + """
    aie.packet_flow(3) {
      aie.packet_source<%p, DMA : 0>
      aie.packet_source<%q, DMA : 0>
      aie.packet_dest<%c, DMA : 0>
    }
    aie.mem(%c) {
      aie.dma_start(S2MM, 0, ^bd, ^end)
    ^bd:
      aie.dma_bd(%x : memref<8xi32> offset = 0 len = 8)
      aie.next_bd ^end
    ^end:
      aie.end
    }
  }"""  # fmt: skip
    assert sorted(bdforge.emulate(design, []).buffers["x"]) == [7] * 4 + [9] * 4


@pytest.mark.parametrize("count", [1, 3])
def test_a_core_releases_as_often_as_its_data_says(count):
    design = f"""aie.device(npu2_1col) {{
      %c = aie.tile(0, 2)
      %n = aie.buffer(%c) {{sym_name = "n"}} : memref<1xi32> = dense<{count}>
      %x = aie.buffer(%c) {{sym_name = "x"}} : memref<4xi32>
      %l = aie.lock(%c, 0)
      %r = aie.core(%c) {{
        %zero = arith.constant 0 : index
        %one = arith.constant 1 : index
        %seven = arith.constant 7 : i32
        %word = memref.load %n[%zero] : memref<1xi32>
        aie.use_lock(%l, Release, %word)
        %times = arith.index_cast %word : i32 to index
        scf.for %i = %zero to %times step %one {{
          %single = arith.constant 1 : i32
          aie.use_lock(%l, AcquireGreaterEqual, %single)
          memref.store %seven, %x[%i] : memref<4xi32>
        }}
        aie.use_lock(%l, Release, %word)
        aie.use_lock(%l, AcquireGreaterEqual, %word)
        aie.end
      }}
    }}"""
    assert bdforge.emulate(design, []).buffers["x"].tolist() == [7] * count + [0] * (4 - count)
