"""Designs that only the dialect's form from mlir-aie 1.4 on can say, on the emulated array."""

import numpy as np
import pytest

import bdforge
from bdforge.array.txn.lower import lower_module
from bdforge.devices.txn_format.operations import BlockWrite, Patch, Write
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


SEQUENCE = """aie.device(npu2_1col) {{
  %s = aie.tile(0, 0)
  aie.shim_dma_allocation @in (%s, MM2S, 0)
  aie.runtime_sequence(%x: memref<4096xi32>) {{
    {body}
  }}
}}
"""


def operations(body: str):
    return lower_module(bdforge.array.mlir.parse(SEQUENCE.format(body=body)))[1]


def task(attributes: str = "", clauses: str = "len = 64", start: str = "") -> list:
    return operations(
        "%t = aiex.dma_configure_task_for @in {\naie.dma_bd(%x : memref<4096xi32> " + clauses + ") {bd_id = 1 : i32"
        + attributes + "}\naie.end\n} {issue_token = true, repeat_count = 3 : i32}\naiex.dma_start_task(%t)" + start
    )  # fmt: skip


def words(found: list) -> tuple[int, ...]:
    return next(op.words for op in found if isinstance(op, BlockWrite))


def test_iteration_and_a_fourth_dimension_make_the_same_words():
    given = task(", iteration = #aie.bd_iteration<size = 4, stride = 1024>")
    fourth = task(clauses="len = 64 sizes = [4, 1, 1, 64] strides = [1024, 0, 0, 1]")
    assert words(given) == words(fourth)
    with pytest.raises(ValueError, match="one iteration"):
        task(
            ", iteration = #aie.bd_iteration<size = 4, stride = 8>",
            "len = 64 sizes = [4, 1, 1, 64] strides = [8, 0, 0, 1]",
        )


def test_a_cache_code_replaces_the_usual_one():
    assert words(task())[5] >> 24 & 15 == 2
    for axcache in (5, 0):
        assert words(task(f", axcache = {axcache} : i32"))[5] >> 24 & 15 == axcache


def test_a_start_may_repeat_otherwise_and_send_no_token():
    *_, usual = task()
    *_, other = task(start=" {repeat_count = 7 : i32, no_token}")
    assert isinstance(usual, Write)
    assert isinstance(other, Write)
    assert (usual.value >> 16 & 0xFF, usual.value >> 31) == (3, 1)
    assert (other.value >> 16 & 0xFF, other.value >> 31) == (7, 0)


def test_a_patch_by_buffer_finds_the_argument_and_its_offset():
    (patch,) = operations(
        "%plus = arith.constant 8 : i32\n%v = memref.subview %x[16] [64] [1] : memref<4096xi32> to "
        "memref<64xi32, strided<[1], offset: 16>>\naiex.npu.address_patch(%plus : i32) buffer %v : "
        "memref<64xi32, strided<[1], offset: 16>> {addr = 118788 : ui32}"
    )
    assert isinstance(patch, Patch)
    assert (patch.argument, patch.plus) == (0, 64 + 8)
