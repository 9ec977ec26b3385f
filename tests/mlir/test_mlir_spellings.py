"""Spellings that aie-opt takes mean the same here."""

import pytest
from mlir_texts import bd, core, device, fault, only, sequence

from bdforge.array.mlir import parse, print_generic, print_module
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.device_ops import DeviceOp
from bdforge.array.mlir.sequence_ops import RuntimeSequenceOp


def alike(one: str, other: str) -> bool:
    return parse(one).is_structurally_equivalent(parse(other))


REGION = "[{ aie.use_lock(%l, Acquire) aie.dma_bd(%b : memref<4xi8>) aie.use_lock(%l, Release) }]"
PARTS = "%b = aie.buffer(%c) : memref<4xi8>\n%l = aie.lock(%c)\n"
SAME = [
    (device(f"{PARTS}aie.mem(%c) {{ aie.dma(S2MM, 0) {REGION} aie.end }}"),
     device(f"{PARTS}aie.mem(%c) {{ aie.dma(S2MM, 0) {{loop = true, repeat_count = 0 : i32}} {REGION} aie.end }}")),
    (device("aie.buffer(%c) {address = 16 : i32, sym_name = \"b\"} : memref<4xi8>"),
     device("aie.buffer(%c) {sym_name = \"b\", address = 0x10 : i32} : memref<4xi8>")),
    (device("aie.flow(%s, DMA : 0, %m, DMA : 1)"), device('aie.flow (%s,"DMA":0,%m , "DMA" :0x1)')),
    (device("%l = aie.lock(%c, 3) {init = 2 : i32}"), device("aie.lock(%c, 0x3) {init = 0x2 : i32}")),
    (device("%l = aie.lock(%c, 3)"), device("%l = aie.lock(%c) {lockID = 3 : i32}")),
    (device("aie.shim_dma_allocation @a(%s, MM2S, 0, <pkt_type = 1, pkt_id = 2>)"),
     device("aie.shim_dma_allocation @a(%s, MM2S, 0) {packet = #aie.packet_info<pkt_type = 1, pkt_id = 2>}")),
    (bd(", 0, 16)").replace("^end)", "^end, repeat_count = 4)", 1),
     bd(", 0, 16)").replace("^end)", "^end) {repeat_count = 4 : i32}", 1)),
    (device("aie.packet_flow(1) { aie.packet_source<%m, DMA : 0> aie.packet_dest<%c, DMA : 0> }"),
     device('aie.packet_flow(0x1) {\naie.packet_source < %m , "DMA":0 >\naie.packet_dest<%c, DMA:0>\naie.end\n}')),
    (device("aie.shim_dma_allocation @a(%s, MM2S, 0, <pkt_type = 0, pkt_id = 3>)"),
     device('aie.shim_dma_allocation @a (%s, "MM2S", 0, <pkt_id = 3, pkt_type = 0>)')),
    (core("aie.use_lock(%l, AcquireGreaterEqual, 1)"), core('aie.use_lock (%l, "AcquireGreaterEqual", 1)')),
    (bd(", 0, 16, [<size = 4, stride = 4>, <size = 4, stride = 1>])"),
     bd(",0,16,[<stride = 0x4, size=4>,<size=4,stride=1>])")),
    (bd(", 4, 16)"), bd(") {len = 16 : i32, offset = 4 : i32}")),
    (bd(", 4, 16)"), bd(", 4) {len = 16 : i32}")),
    (bd(", 0, 16, [<size = 4, stride = 4>])"),
     bd(", 0, 16) {dimensions = #aie<bd_dim_layout_array[<size = 4, stride = 4>]>}")),
    (bd(", 0, 16) {packet = #aie.packet_info<pkt_type = 1, pkt_id = 2>}"),
     "#p = #aie<packet_info<pkt_id = 2, pkt_type = 1>>\n" + bd(", 0, 16) {packet = #p}")),
    (device("%b = aie.buffer(%c) : memref<2x2xi32> = dense<[[1, 2], [3, 4]]>"),
     device('%b = aie.buffer(%c) : memref<2x2xi32> = dense<"0x01000000020000000300000004000000">')),
    (device("%b = aie.buffer(%c) : memref<2xi32> = dense<7>"),
     device("%b = aie.buffer(%c) {initial_value = dense<[7, 7]> : tensor<2xi32>} : memref<2xi32>")),
    (device("%b = aie.buffer(%c) : memref<2xi32> = dense<[4294967295, -1]>"),
     device("%b = aie.buffer(%c) : memref<2xi32> = dense<[0xffffffff, 4294967295]>")),
    (device("%b = aie.buffer(%c) : memref<2xi32>"), "!t = memref<2xi32>\n" + device("%b = aie.buffer(%c) : !t")),
    (device("", "npu2"), device("", '"npu2"')),
    ("aie.device(npu1) @d {}", 'aie.device(npu1) {} {sym_name = "d"}'),
    ("module { aie.device(npu1) {} }", "aie.device(npu1) { aie.end }"),
    (sequence("aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {id = 0 : i64, metadata = @a}"
              ": memref<8xi32>",
              "%x: memref<8xi32>"),
     sequence("aiex.npu.dma_memcpy_nd (%x [0,0,0,0] [1,1,1,8]\n[0,0,0,1]) {id = 0, metadata = @a} : memref<8xi32>",
              "%x: memref<8xi32>")),
    (sequence("aiex.npu.push_queue(0, 0, MM2S : 0) {issue_token = false, repeat_count = 0 : i32, bd_id = 0 : i32}"),
     sequence('aiex.npu.push_queue (0,0,"MM2S":0) {bd_id = 0 : i32, issue_token = false, repeat_count = 0 : i32}')),
    (core("%r = scf.for %n = %c0 to %c1 step %c1 iter_args(%a = %i) -> (i32) { scf.yield %a : i32 }"),
     core("%r = scf.for %n = %c0 to %c1 step %c1 iter_args(%a = %i) ->\n i32 { scf.yield %a : i32 }")),
    (core("%r = scf.if %p -> (i32) { scf.yield %i : i32 } else { scf.yield %i : i32 }"),
     core("%r = scf.if %p -> i32 { scf.yield %i : i32 } else { scf.yield %i : i32 }")),
    (device("%b = aie.buffer(%c) : memref<4x8xi32, 1>"), device("%b = aie.buffer(%c) : memref< 4 x 8x i32 , 1>")),
    (sequence("aiex.npu.rtp_write(@b, 0, 50)"), sequence("aiex.npu.rtp_write (@b, 0x0, 0x32)")),
]  # fmt: skip


@pytest.mark.parametrize("pair", range(len(SAME)))
def test_both_spellings_load_to_the_same_module(pair: int):
    assert alike(*SAME[pair])


ACCEPTED = {
    "comments": "// one\naie.device(npu1) { // two\n} // three",
    "module with a name": "module @top { aie.device(npu1) {} }",
    "several devices": "aie.device(npu1) @a {}\naie.device(npu2) @b {}",
    "no result name": device("aie.tile(3, 3)\naie.lock(%c)\naie.buffer(%c) : memref<4xi8>"),
    "location": device('aie.lock(%c) loc("f.mlir":3:4)\naie.lock(%c) loc(fused["a", #loc1])')
    + '#loc1 = loc("x":1:2)\n#loc2 = loc(callsite(#loc1 at "y"))',
    "location of an argument": device('aie.runtime_sequence(%x: memref<4xi8> loc("x"), %y: i32) {}'),
    "unknown attributes": device("aie.lock(%c) {mine = [1, 2], other}\naie.tile(0, 4) {controller_id = 3 : i8}"),
    "ranks and memory spaces": device("aie.buffer(%c) : memref<i32>\naie.buffer(%c) : memref<2x3x4xi8, 1>\n"
    "aie.buffer(%c) : memref<4xi8, 2 : i32>\naie.buffer(%c) : memref<4x4xi8, strided<[4, 1], offset: 0>>"),
    "element types": device("\n".join(f"aie.buffer(%c) : memref<4x{t}>" for t in (
        "i8", "ui8", "i16", "i32", "ui32", "i64", "bf16", "f16", "f32", "index", '!aiex.bfp<"v8bfp16ebs8">'))),
    "unranked argument": sequence("", "%x: memref<*xi32>"),
    "scalar argument": sequence("", "%x: memref<4xi32>, %n: i32"),
    "several sequences": device("aie.runtime_sequence() {}\naie.runtime_sequence @other() {}"),
    "constants in a transfer": sequence(
        "%n = arith.constant 8 : i64\n%z = arith.constant 0 : i64\n"
        "aiex.npu.dma_memcpy_nd(%x[0, 0, 0, %z][1, 1, 1, %n][0, 0, 0, 1]) {id = 0, metadata = @a} : memref<8192xi32>"),
    "a token in a nested region": sequence("scf.for %i = %n to %n step %n : i64 { aiex.npu.dma_wait {symbol = @a} }",
                                           "%n: i64"),
    "numeric labels": bd(", 0, 16)").replace("^bd", "^7").replace("^end", "^0"),
    "lock in a DMA program": bd(", 0, 16)").replace(
        "aie.dma_bd(", "%k = aie.lock(%m)\naie.use_lock(%k, Release)\naie.dma_bd("),
    "same names in sibling regions": core(
        "scf.if %p { %y = arith.addi %i, %i : i32 } else { %y = arith.constant 2 : i8 }"),
    "symbols before definition": device("aie.runtime_sequence() { aiex.npu.dma_wait {symbol = @late} }\n"
                                        "aie.shim_dma_allocation @late(%s, MM2S, 0)"),
    "locks by value of a function": device("func.func @f(%l: index) {\naie.use_lock(%l, Release)\nreturn\n}"),
    "names of a function are its own": device("func.func @f(%s: i32) -> i32 {\nreturn %s : i32\n}"),
}  # fmt: skip


@pytest.mark.parametrize("spelling", ACCEPTED)
def test_accepted_spellings_read_and_print(spelling: str):
    module = parse(ACCEPTED[spelling])
    for text in (print_module(module), print_generic(module)):
        assert module.is_structurally_equivalent(parse(text))


REFUSED = {
    "typed position": (device("aie.lock(%c, 3 : i32)"), "Expected ')'"),
    "untyped id": (sequence("aiex.npu.write32 {address = 4, value = 1 : ui32}"), "write 'address = 4 : ui32'"),
    "signless level": (sequence("aiex.npu.preempt {level = 1 : i8}"), "write 'level = 1 : ui8'"),
    "bare boolean": (sequence("aiex.npu.load_pdi {device_ref}"), "cannot be unit"),
    "missing attribute": (sequence("aiex.npu.sync {column = 0 : i32}"), "needs 'row', as in 'row = 1 : i32'"),
    "value given twice": (bd(", 0, 16) {len = 16 : i32}"), "given twice"),
    "optional value given twice": (device("aie.lock(%c, 2) {lockID = 3 : i32}"), "'lockID' is given twice"),
    "unknown word": (device("aie.flow(%s, DNA : 0, %m, DMA : 0)"), "'DNA' is not a PortBundle; expected one of Core,"),
    "unknown field": (bd(", 0, 16, [<size = 4, step = 1>])"), "'step' is unknown here; expected one of size, stride"),
    "missing field": (bd(", 0, 16, [<size = 4>])"), "'stride = ...' is missing"),
    "constant of block floats": (
        device('aie.buffer(%c) : memref<2x!aiex.bfp<"v8bfp16ebs8">> = dense<0>'), "there are no constants"),
    "undefined value": (device("aie.lock(%gone)"), "%gone is used but never defined"),
    "undefined label": (bd(", 0, 16)").replace("^end:", "^fin:"), "block ^end is used but never defined"),
    "label twice": (bd(", 0, 16)").replace("^end:", "^bd:\naie.end\n^end:"), "block ^bd is already defined in line 11"),
    "name twice": (device("%c = aie.lock(%m)"), "%c is already defined"),
    "undefined alias": (device("aie.buffer(%c) : !t"), "undefined symbol alias"),
    "number of results": (device("%x, %y = aie.lock(%c)"), "has 1 results, not 2"),
}  # fmt: skip


@pytest.mark.parametrize("spelling", REFUSED)
def test_refused_spellings_say_why(spelling: str):
    text, words = REFUSED[spelling]
    assert words in fault(text)


def test_defaults_are_the_same_in_both_forms():
    module = parse("aie.device(npu2) { aie.runtime_sequence() {} }")
    assert only(module, DeviceOp).symbol == "main"
    assert only(module, RuntimeSequenceOp).symbol == "sequence"
    generic = '"aie.device"() <{device = 8 : i32}> ({\n "aie.runtime_sequence"() ({ ^bb0: }) : () -> ()\n'
    assert module.is_structurally_equivalent(parse(generic + ' "aie.end"() : () -> ()\n}) : () -> ()'))


def test_a_comment_may_hold_anything():
    text = 'aie.device(npu1) { // "quoted ^%#!@ \\\n}'
    assert only(parse(text), DeviceOp).device.columns == 4


def test_bd_without_length_takes_the_whole_buffer():
    assert only(parse(bd(")", buffer="memref<4x8xi16>")), DmaBdOp).length == 32
