"""`convert` reads spellings of mlir-aie from 2023 to 2025: as the same designs in the form of 1.3.4."""

import re

import numpy as np
import pytest

import bdforge
from bdforge.array.mlir import Era, MlirError, convert, parse, print_module
from support.differences import same
from support.small_designs import loopback

OF_2023 = """// an add-one of 2023
module @copy {
  AIE.device(ipu) {
    %t00 = AIE.tile(0, 0)
    %t01 = AIE.tile(0, 1)
    %b = AIE.buffer(%t01) {sym_name = "b"} : memref<16xi32>
    %free = AIE.lock(%t01, 0) {init = 1 : i32, sym_name = "free"}
    %full = AIE.lock(%t01, 1) {init = 0 : i32, sym_name = "full"}
    AIE.flow(%t00, "DMA" : 0, %t01, "DMA" : 0)
    AIE.flow(%t01, DMA : 0, %t00, DMA : 0)
    AIE.shimDMAAllocation("into", "MM2S", 0, 0)
    AIE.shimDMAAllocation @out(S2MM, 0, 0) // AIE.useLock
    %d = AIE.memTileDMA(%t01) {
      %0 = AIE.dmaStart("S2MM0", ^in, ^next)
    ^next:
      %1 = AIE.dmaStart(MM2S, 0, ^away, ^end)
    ^in:
      AIE.useLock(%free, "AcquireGreaterEqual", 1)
      AIE.dmaBd(<%b : memref<16xi32>, 0, 16>, 0)
      AIE.useLock(%full, "Release", 1)
      AIE.nextBd ^in
    ^away:
      AIE.useLock(%full, "AcquireGreaterEqual", 1)
      AIE.dmaBd(<%b : memref<16xi32>, 0, 16>, 0, [<2, 1>, <8, 2>])
      AIE.useLock(%free, "Release", 1)
      AIE.nextBd ^away
    ^end:
      AIE.end
    }
    func.func @sequence(%a : memref<16xi32>, %c : memref<16xi32>) {
      %c0 = arith.constant 0 : i32
      %c1 = arith.constant 1 : i32
      %c16 = arith.constant 16 : i32
      AIEX.ipu.dma_memcpy_nd (%c0, %c0, %c[%c0,%c0,%c0,%c0][%c1,%c1,%c1,%c16][%c0,%c0,%c0]) { metadata = @out, id = 1 : i32 } : (i32, i32, memref<16xi32>, [i32,i32,i32,i32], [i32,i32,i32,i32], [i32,i32,i32])
      AIEX.ipu.dma_memcpy_nd (%c0, %c0, %a[%c0,%c0,%c0,%c0][%c1,%c1,%c1,%c16][%c0,%c0,%c0]) { metadata = @into, id = 0 : i32 } : (i32, i32, memref<16xi32>, [i32,i32,i32,i32], [i32,i32,i32,i32], [i32,i32,i32])
      AIEX.ipu.sync { column = 0 : i32, row = 0 : i32, direction = 0 : i32, channel = 0 : i32, column_num = 1 : i32, row_num = 1 : i32 }
      return
    }
  }
}
"""  # noqa: E501 - as such texts are
OF_2024 = """module {
  aie.device(npu1_4col) {
    aie.shim_dma_allocation @into(MM2S, 0, 0)
    aie.shim_dma_allocation @out(S2MM, 0, 0)
    %t01 = aie.tile(0, 1)
    %t00 = aie.tile(0, 0)
    %b = aie.buffer(%t01) {sym_name = "b"} : memref<16xi32>
    %free = aie.lock(%t01, 0) {init = 1 : i32, sym_name = "free"}
    %full = aie.lock(%t01, 1) {init = 0 : i32, sym_name = "full"}
    aie.flow(%t00, DMA : 0, %t01, DMA : 0)
    aie.flow(%t01, DMA : 0, %t00, DMA : 0)
    %d = aie.memtile_dma(%t01) {
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^away, ^end)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<16xi32>, 0, 16)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^in
    ^away:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<16xi32>, 0, 16, [<2, 1>, <8, 2>])
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^away
    ^end:
      aie.end
    }
    aiex.runtime_sequence(%a : memref<16xi32>, %c : memref<16xi32>) {
      aiex.npu.dma_memcpy_nd (0, 0, %c[0, 0, 0, 0][1, 1, 1, 16][0, 0, 0]) {id = 1 : i64, metadata = @out} : memref<16xi32>
      aiex.npu.dma_memcpy_nd (0, 0, %a[0, 0, 0, 0][1, 1, 1, 16][0, 0, 0, 1]) {id = 0 : i64, metadata = @into} : memref<16xi32>
      aiex.npu.dma_wait {symbol = @out}
    }
  }
}
"""  # noqa: E501


@pytest.mark.parametrize("text", [OF_2023, OF_2024])
@pytest.mark.parametrize("era", Era)
def test_whole_designs_of_old_run(text: str, era: Era):
    with pytest.raises(MlirError):
        parse(text)
    a, c = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    bdforge.emulate(convert(text, era), [a, c])
    same(c, a.reshape(8, 2).T.ravel())


def test_comments_and_lines_stay():
    converted = convert(OF_2023, Era.MARCH)
    assert converted.startswith("// an add-one of 2023\nmodule @copy {\n  aie.device(npu1) {\n")
    assert "@out (%t00, S2MM, 0) // AIE.useLock\n" in converted
    assert len(converted.splitlines()) == len(OF_2023.splitlines()) - 1  # func.func's return


SHORT = {
    "aie.useLock(%l, Release, 1)": "aie.use_lock(%l, Release, 1)",
    "AIE.packet_flow(1) { AIE.packet_source<%c, DMA : 0> AIE.packet_dest<%m, DMA : 0> }":
        "aie.packet_flow(1) { aie.packet_source<%c, DMA : 0> aie.packet_dest<%m, DMA : 0> }",
    'AIE.switchbox(%c) { %x = AIE.amsel<0> (0) AIE.masterset(DMA : 0, %x) {keep_pkt_header = "true"} '
    "AIE.packetrules(South : 0) { AIE.rule(31, 1, %x) } }":
        "aie.switchbox(%c) { %x = aie.amsel<0> (0) aie.masterset(DMA : 0, %x) {keep_pkt_header = true} "
        "aie.packet_rules(South : 0) { aie.rule(31, 1, %x) } }",
    "AIE.shimmux(%s) { AIE.connect<DMA : 0, North : 3> }": "aie.shim_mux(%s) { aie.connect<DMA : 0, North : 3> }",
    "AIE.shimDMA(%s) { AIE.end }": "aie.shim_dma(%s) { aie.end }",
    "%e = AIE.external_buffer : memref<4xi32>": "%e = aie.external_buffer : memref<4xi32>",
    'aie.runtime_sequence() { aiex.npu.rtp_write(0, 2, 3, 7) {buffer_sym_name = "b"} }':
        "aie.runtime_sequence() { aiex.npu.rtp_write(@b, 3, 7) }",
    'aie.runtime_sequence() { aiex.npu.rtp_write("b", 3, 7) }':
        "aie.runtime_sequence() { aiex.npu.rtp_write(@b, 3, 7) }",
    "aie.shim_dma_allocation @x(MM2S, 1, 0)": "aie.shim_dma_allocation @x (%s, MM2S, 1)",
    "aie.shim_dma_allocation @x(MM2S, 1, 4)\naie.shim_dma_allocation @y(S2MM, 1, 4)":
        "%shim_tile_4_0 = aie.tile(4, 0)\naie.shim_dma_allocation @x (%shim_tile_4_0, MM2S, 1)\n"
        "aie.shim_dma_allocation @y (%shim_tile_4_0, S2MM, 1)",
    "aie.core(%c) { %f = arith.constant 1.0 : f32 %g = arith.maxf %f, %f : f32 aie.end }":
        "aie.core(%c) { %f = arith.constant 1.0 : f32 %g = arith.maximumf %f, %f : f32 aie.end }",
    "aie.tile(3, 3) {controller_id = #AIE.packet_info<pkt_type = 0, pkt_id = 5>}":
        "aie.tile(3, 3) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 5>}",
}  # fmt: skip
AROUND = """aie.device(npu2) {{
%s = aie.tile(0, 0)
%m = aie.tile(0, 1)
%c = aie.tile(0, 2)
%l = aie.lock(%c, 0)
%b = aie.buffer(%c) {{sym_name = "b"}} : memref<8xi32>
{}
}}
"""


@pytest.mark.parametrize("old", SHORT)
def test_each_spelling_becomes_the_one_of_today(old: str):
    new = SHORT[old]
    if "Lock" in old:
        old, new = (f"aie.core(%c) {{ {line} aie.end }}" for line in (old, new))
    assert convert(AROUND.format(old), Era.MARCH) == AROUND.format(new)


def test_declarations_before_a_sequence_and_attributes_of_a_shim_stay():
    body = """func.func private @k(memref<8xi32>)
func.func @twice(%x: i32) -> i32 { %y = arith.addi %x, %x : i32 return %y : i32 }
aie.shim_dma_allocation @f(MM2S, 0, 1)
%u = aie.tile(1, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 9>} %v = aie.tile(1, 1)
aie.runtime_sequence(%a: memref<8xi32>) { aiex.npu.dma_wait {symbol = @f} }"""
    converted = convert(AROUND.format(body), Era.MARCH)
    moved = (
        "%u = aie.tile(1, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 9>}\naie.shim_dma_allocation @f"
    )
    assert f"{moved} (%u, MM2S, 0)\n %v = aie.tile(1, 1)\n" in converted
    assert converted.count("func.func") == 2


def test_a_text_of_today_stays_as_it_is():
    for text in (loopback(), AROUND.format("aie.flow(%m, DMA : 0, %c, DMA : 0) // AIE.flow")):
        assert convert(text, Era.MARCH) == text


@pytest.mark.parametrize("name", ["AIE.objectFifo @f(%s, {%m}, 2 : i32)", "aie.objectfifo @f(%s, {%m}, 2 : i32)"])
def test_object_fifos_stay_refused(name: str):
    with pytest.raises(MlirError, match=r"'aie.objectfifo' is not explicit: lower it"):
        convert(AROUND.format(name), Era.MARCH)


def test_an_entry_that_is_no_constant_stays():
    entries = "%a[0, 0, 0, %x][1, 1, 1, 4][0, 0, 0]"
    line = f"aiex.npu.dma_memcpy_nd(0, 0, {entries}) {{id = 0 : i64, metadata = @f}} : memref<8xi32>"
    text = AROUND.format(
        f"aie.shim_dma_allocation @f (%s, MM2S, 0)\naie.runtime_sequence(%a: memref<8xi32>, %x: i64) {{\n{line}\n}}"
    )
    with pytest.raises(MlirError, match=r"offsets of aiex.npu.dma_memcpy_nd must be constants"):
        convert(text, Era.MARCH)
    literal = convert(text.replace("%x]", "4]"), Era.MARCH)
    assert re.search(r"dma_memcpy_nd\(%a\[0, 0, 0, 4\]\[1, 1, 1, 4\]\[0, 0, 0, 1\]\)", literal)
    assert print_module(parse(literal))
