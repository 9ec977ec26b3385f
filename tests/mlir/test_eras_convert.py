"""Texts of one era written in the other: one design, its comments kept."""

import pytest
from mlir_texts import DATA, VECTORS, bd, core, device, every, only, sequence
from xdsl.dialects.builtin import IntegerAttr, i32

from bdforge.array.mlir import Era, MlirError, convert, era_of, parse, print_module
from bdforge.array.mlir.dma_ops import DmaStartOp
from bdforge.array.mlir.memory_ops import UseLockOp
from oracle.array_text import mlir
from oracle.random_designs import random_design

MARCH = """module {
  aie.device(npu2) {
    %s = aie.tile(0, 0)
    %c = aie.tile(0, 2)
    %b = aie.buffer(%c) {sym_name = "b"} : memref<64xi32>  // what arrives
    %free = aie.lock(%c, 0) {init = 1 : i32}
    %full = aie.lock(%c, 1)
    aie.shim_dma_allocation @in (%s, MM2S, 0)
    %m = aie.mem(%c) {
      // one buffer
      %0 = aie.dma_start(S2MM, 0, ^bd, ^end)  // from the host
    ^bd:
      aie.use_lock(%free, AcquireGreaterEqual, 1)  // wait
      aie.dma_bd(%b : memref<64xi32>, 0, 64, [<size = 4, stride = 16>, <size = 16, stride = 1>]) {bd_id = 0 : i32}
      aie.use_lock(%full, Release, 2)
      aie.next_bd ^bd
    ^end:
      aie.end
    }
    %r = aie.core(%c) { aie.use_lock(%full, AcquireGreaterEqual, 2) aie.end }
    aie.runtime_sequence @s(%a: memref<64xi32>) {
      // parameters
      aiex.npu.rtp_write(@b, 0, -7)
      aiex.set_lock(%free, 1)
      %t = aiex.dma_configure_task_for @in {
          aie.dma_bd(%a : memref<64xi32>, 0, 64) {bd_id = 3 : i32}
          aie.end
      } {issue_token = true}
      aiex.npu.sync {channel = 0 : i32, column = 0 : i32, column_num = 1 : i32, direction = 1 : i32, row = 0 : i32, row_num = 1 : i32}
    }
  }
}
"""  # noqa: E501

MODERN = """module {
  aie.device(npu2) {
    %s = aie.tile(0, 0)
    %c = aie.tile(0, 2)
    %b = aie.buffer(%c) {sym_name = "b"} : memref<64xi32>  // what arrives
    %free = aie.lock(%c, 0) {init = 1 : i32}
    %full = aie.lock(%c, 1)
    aie.shim_dma_allocation @in (%s, MM2S, 0)
    %m = aie.mem(%c) {
      %c1_i32 = arith.constant 1 : i32
      %c2_i32 = arith.constant 2 : i32
      // one buffer
      %0 = aie.dma_start(S2MM, 0, ^bd, ^end)  // from the host
    ^bd:
      aie.use_lock(%free, AcquireGreaterEqual, %c1_i32)  // wait
      aie.dma_bd(%b : memref<64xi32> offset = 0 len = 64 sizes = [4, 16] strides = [16, 1]) {bd_id = 0 : i32}
      aie.use_lock(%full, Release, %c2_i32)
      aie.next_bd ^bd
    ^end:
      aie.end
    }
    %r = aie.core(%c) { %c2_i32 = arith.constant 2 : i32 aie.use_lock(%full, AcquireGreaterEqual, %c2_i32) aie.end }
    aie.runtime_sequence @s(%a: memref<64xi32>) {
      %c-7_i32 = arith.constant -7 : i32
      %c0_i32 = arith.constant 0 : i32
      %c1_i32 = arith.constant 1 : i32
      // parameters
      aiex.npu.rtp_write(@b, 0, %c-7_i32) : i32
      aiex.set_lock(%free, 1)
      %t = aiex.dma_configure_task_for @in {
          aie.dma_bd(%a : memref<64xi32> offset = 0 len = 64) {bd_id = 3 : i32}
          aie.end
      } {issue_token = true}
      aiex.npu.sync(%c0_i32, %c0_i32, %c1_i32, %c0_i32, %c1_i32, %c1_i32) : i32, i32, i32, i32, i32, i32
    }
  }
}
"""


def one_design(text: str) -> str:
    """A design's text, which is that design in the other form and back, in the other form."""
    modern = convert(text, Era.MODERN)
    second = parse(modern)
    assert era_of(second) is Era.MODERN or modern == text
    for march in (text, convert(modern, Era.MARCH)):
        first = parse(march)
        for use in every(first, UseLockOp):
            use.properties.setdefault("value", IntegerAttr(1, i32))  # which only the older form leaves out
        assert first.is_structurally_equivalent(second)
    return modern


def test_only_what_differs_is_written_anew():
    assert convert(MARCH, Era.MODERN) == MODERN


def test_the_way_back_takes_the_constants_out():
    back = convert(MODERN, Era.MARCH)
    assert print_module(parse(back)) == print_module(parse(MARCH))
    assert back == MARCH.replace("{ aie.use_lock", "{  aie.use_lock")


def test_a_text_of_the_wanted_form_stays():
    assert convert(MARCH, Era.MARCH) == MARCH
    assert convert(MODERN, Era.MODERN) == MODERN
    assert convert(device(""), Era.MODERN) == device("")


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("text", VECTORS.values(), ids=VECTORS)
def test_vectors_are_one_design_in_both_forms(text: str):
    one_design(text)


@pytest.mark.daily(every=4)
@pytest.mark.parametrize("seed", [s if s < 3 else pytest.param(s, marks=pytest.mark.slow) for s in range(24)])
def test_random_designs_are_one_design_in_both_forms(seed):
    one_design(mlir(random_design(seed)))


PADDED = ", 0, 16, [<size = 13, stride = 1>], [<const_pad_before = 2, const_pad_after = 1>], pad_value = 42)"


def test_pad_values_move_to_their_channel():
    modern = convert(bd(PADDED), Era.MODERN)
    assert "aie.dma_start(MM2S, 0, ^bd, ^end) {pad_value = 42 : i32}" in modern
    assert only(parse(modern), DmaStartOp).pad_value == 42
    assert "pad_value = 42 : i32, mine" in convert(bd(PADDED).replace("^end)\n", "^end) {mine}\n"), Era.MODERN)
    with pytest.raises(MlirError, match=r"aie\.dma_start has no form up to mlir-aie 1\.3\.4"):
        convert(modern, Era.MARCH)


def test_constants_stand_in_the_block_of_a_tasks_bd():
    body = """%t = aiex.dma_configure_task(%c, MM2S, 0) {
      aie.use_lock(%l, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<8xi32>, 0, 8)
      aie.use_lock(%l, Release, 1)
      aie.end
    }"""
    memory = "%l = aie.lock(%c)\n%b = aie.buffer(%c) : memref<8xi32>\naie.shim"
    modern = convert(sequence(body).replace("aie.shim", memory, 1), Era.MODERN)
    assert "MM2S, 0) {\n      %c1_i32_bd = arith.constant 1 : i32\n      aie.use_lock(%l, Acq" in modern


def test_names_of_constants_are_free():
    text = core("%c3_i32 = arith.constant 9 : i32\naie.use_lock(%l, Release, 3)")
    assert "%c3_i32_1 = arith.constant 3 : i32" in convert(text, Era.MODERN)


def test_generic_text_becomes_custom():
    modern = convert((DATA / "chain.generic.mlir").read_text(), Era.MODERN)
    assert '"aie.dma_bd"' not in modern
    assert '"aie.tile"' in modern


TRACE = device("aie.trace @t(%c) buffer_size = 8192 {\n}\n%l = aie.lock(%c)\n"
               "aie.core(%c) { aie.use_lock(%l, Release, 1)\naie.end }")  # fmt: skip


def test_what_has_no_place_in_the_other_form_is_refused():
    with pytest.raises(MlirError, match=r"buffer_size stands in aie\.trace\.host_config"):
        convert(TRACE, Era.MODERN)
    runtime = core("%n = memref.load %b[%c0] : memref<64xi32>\naie.use_lock(%l, Release, %n)")
    with pytest.raises(MlirError, match=r"aie\.use_lock has no form up to mlir-aie 1\.3\.4"):
        convert(runtime, Era.MARCH)
