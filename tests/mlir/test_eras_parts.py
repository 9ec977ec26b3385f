"""Single operations of one era written in the other, each as a whole line."""

import re

import pytest
from mlir_texts import bd, core, device, sequence

from bdforge.array.mlir import Era, MlirError, convert, era_of, parse

CONSTANT = re.compile(r" *%\S+ = arith\.constant [^\n]*\n")


def forms(text: str, *eras: Era) -> str:
    """The text in the form of each era, one after the other; constants that have no other use are left out."""
    for era in eras:
        text = convert(text, era)
        parse(text)
    return CONSTANT.sub("", text)


LINES = {  # up to 1.3.4: from 1.4 on
    "aiex.npu.rtp_write(@b, 3, -7)": "aiex.npu.rtp_write(@b, 3, %c-7_i32) : i32",
    "aiex.npu.write32 {address = 16 : ui32, column = 0 : i32, row = 2 : i32, value = 9 : ui32}":
        "aiex.npu.write32(%c16_i32, %c9_i32) {column = 0 : i32, row = 2 : i32} : i32, i32",
    "aiex.npu.write32 {address = 8 : ui32, buffer = @b, value = 1 : ui32}":
        "aiex.npu.write32(%c8_i32, %c1_i32) {buffer = @b} : i32, i32",
    "aiex.npu.maskwrite32 {address = 16 : ui32, mask = 6 : ui32, value = 9 : ui32}":
        "aiex.npu.maskwrite32(%c16_i32, %c9_i32, %c6_i32) : i32, i32, i32",
    "aiex.npu.address_patch {addr = 118788 : ui32, arg_idx = 1 : i32, arg_plus = 64 : i32}":
        "aiex.npu.address_patch(%c64_i32 : i32) {addr = 118788 : ui32, arg_idx = 1 : i32}",
    "aiex.npu.push_queue(2, 1, S2MM : 3) {bd_id = 5 : i32, issue_token = true, repeat_count = 4 : i32}":
        "aiex.npu.push_queue(2, 1, S2MM : 3) bd_id %c5_i32 repeat %c4_i32 {issue_token = true} : i32, i32",
    "aiex.npu.sync {channel = 3 : i32, column = 0 : i32, column_num = 4 : i32, direction = 1 : i32, row = 2 : i32, "
    "row_num = 5 : i32}":
        "aiex.npu.sync(%c0_i32, %c2_i32, %c1_i32, %c3_i32, %c4_i32, %c5_i32) : i32, i32, i32, i32, i32, i32",
}  # fmt: skip


@pytest.mark.parametrize("march", LINES, ids=lambda text: re.split(r"[ ({]", text)[0])
def test_register_operations_have_a_line_in_each_form(march: str):
    lines = {
        "1.4": forms(sequence(march), Era.MODERN).splitlines(),
        "1.3": forms(sequence(march), Era.MODERN, Era.MARCH).splitlines(),
    }
    for era, wanted in (("1.4", LINES[march]), ("1.3", march)):
        found = next(line.strip() for line in lines[era] if "aiex." in line)
        assert sorted(re.split(r"[{}, ]+", found)) == sorted(re.split(r"[{}, ]+", wanted)), f"{era}: {found}"
        assert found.split("{")[0] == wanted.split("{")[0], f"{era}: {found}"
    assert parse(convert(sequence(march), Era.MODERN)).is_structurally_equivalent(parse(sequence(march)))


LOCKED = "%l = aie.lock(%c)\naie.core(%c) {{{} aie.use_lock(%l, Release, {})\naie.end\n}}".format
FLOWS = (
    "  aie.packet_flow(3) { aie.packet_source<%s, DMA : 0> aie.packet_source<%m, DMA : 1> "
    "aie.packet_dest<%c, DMA : 0> }"
)
BACK = {  # of a text from 1.4 on: what is there up to 1.3.4, and what is not
    "logical tile": (
        device("%q = aie.logical_tile<CoreTile>(3, 4)\n" + LOCKED("%n = arith.constant 2 : i32\n", "%n")),
        "%q = aie.tile(3, 4)\n", "logical"),
    "attributes of a sequence": (
        sequence("%v = arith.constant 1 : i32\naiex.npu.rtp_write(@b, 0, %v) : i32").replace(
            "xi32>) {", "xi32>) attributes {emit_parameter_sync = false} {"),
        "aie.runtime_sequence(%x: memref<8192xi32>) {\n", "attributes"),
    "flows of several sources": (
        device(LOCKED("%n = arith.constant 2 : i32\n", "%n") + f"\n{FLOWS}"),
        "  aie.packet_flow(3) {\n    aie.packet_source<%s, DMA : 0>\n    aie.packet_dest<%c, DMA : 0>\n  }\n"
        "  aie.packet_flow(3) {\n    aie.packet_source<%m, DMA : 1>\n    aie.packet_dest<%c, DMA : 0>\n  }\n",
        "<%s, DMA : 0> aie"),
    "a text without a last newline": (
        "aie.device(npu2) { %c = aie.tile(0, 2) %l = aie.lock(%c) aie.core(%c) {\n%n = arith.constant 2 : i32 "
        "aie.use_lock(%l, Release, %n) aie.end } }", "aie.core(%c) {\n aie.use_lock(%l, Release, 2) aie.end } }", "%n"),
}  # fmt: skip


@pytest.mark.parametrize("name", BACK)
def test_what_1_4_added_is_written_as_before(name: str):
    text, there, gone = BACK[name]
    found = convert(text, Era.MARCH)
    parse(found)
    assert there in found, f"{name}: {found}"
    assert gone not in found, f"{name}: {found}"


CHAINED = """%t = aiex.dma_configure_task(%c, MM2S, 0) {
  aie.use_lock(%l, AcquireGreaterEqual, 1)
  aie.dma_bd(%b : memref<8xi32>, 0, 8)
  aie.next_bd ^two
^two:
  aie.use_lock(%l, Release, 1)
  aie.dma_bd(%b : memref<8xi32>, 0, 8)
  aie.end
}"""
HOMES = {  # where the constants of a text up to 1.3.4 go
    "a brace in a comment": (
        device(LOCKED(" // {\n ", 3)),
        "aie.core(%c) {\n  %c3_i32 = arith.constant 3 : i32 // {\n  aie.use_lock(%l, Release, %c3_i32)"),
    "a brace in a comment before": (
        device(LOCKED("\n ", 3).replace("aie.core(%c) {", "aie.core(%c) // {\n  {")),
        "// {\n  {\n  %c3_i32 = arith.constant 3 : i32\n  aie.use_lock(%l, Release, %c3_i32)"),
    "a label in front": (
        device(LOCKED("\n^first:\n ", 3)),
        "^first:\n  %c3_i32 = arith.constant 3 : i32\n  aie.use_lock(%l, Release, %c3_i32)"),
    "a loop in a core": (
        core("scf.for %j = %c0 to %c1 step %c1 { aie.use_lock(%l, Release, 3) }"),
        "aie.core(%c) {\n          %c3_i32 = arith.constant 3 : i32\n"),
    "two BDs of a task": (
        sequence(CHAINED).replace("aie.shim", "%l = aie.lock(%c)\n%b = aie.buffer(%c) : memref<8xi32>\naie.shim", 1),
        "^two:\n  %c1_i32_bd_1 = arith.constant 1 : i32\n  aie.use_lock(%l, Release, %c1_i32_bd_1)"),
}  # fmt: skip


@pytest.mark.parametrize("name", HOMES)
def test_constants_stand_where_their_operations_see_them(name: str):
    text, there = HOMES[name]
    found = convert(text, Era.MODERN)
    parse(found)
    assert there in found, f"{name}: {found}"


PAD = "[<size = 13, stride = 1>], [<const_pad_before = 2, const_pad_after = 1>], pad_value = {}"
REGION = device(
    "%b = aie.buffer(%m) : memref<64xi32>\n%l = aie.lock(%m)\naie.memtile_dma(%m) {\naie.dma(MM2S, 0) [{\n"
    f"aie.use_lock(%l, Acquire)\naie.dma_bd(%b : memref<64xi32>, 0, 16, {PAD.format(5)})\naie.use_lock(%l, Release)\n"
    "}]\naie.end\n}"
)
TWO = bd(f", 0, 16, {PAD.format(5)})").replace(
    "aie.next_bd ^end",
    f"aie.next_bd ^two\n^two:\naie.dma_bd(%b : memref<64xi32>, 0, 16, {PAD.format(7)})\naie.next_bd ^end",
)
TASK = (
    f"%t = aiex.dma_configure_task(%m, MM2S, 0) {{ aie.dma_bd(%x : memref<8192xi32>, 0, 16, {PAD.format(7)}) aie.end }}"
)
HOST = device("aie.trace.host_config buffer_size = 8192\n" + LOCKED("%n = arith.constant 2 : i32\n", "%n"))
REFUSED = {
    "two values of a channel": (TWO, Era.MODERN, "aie.dma_start: its BDs pad with 5, 7; a channel has one"),
    "none beside a value": (TWO.replace(", pad_value = 7", ""), Era.MODERN, "its BDs pad with 0, 5; a channel has one"),
    "value of a task": (sequence(TASK), Era.MODERN, "no task has a place for pad_value = 7"),
    "size of a trace": (HOST, Era.MARCH, "up to mlir-aie 1.3.1 buffer_size stands behind aie.trace; move it"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_the_other_form_cannot_say_is_refused_by_name(name: str):
    text, era, words = REFUSED[name]
    try:
        told = convert(text, era)
    except MlirError as error:
        told = error.message
    assert words in told, f"{name}: {told}"


def test_pad_values_move_to_a_channel_in_region_form():
    found = convert(REGION, Era.MODERN)
    assert "aie.dma(MM2S, 0) {pad_value = 5 : i32} [{" in found
    parse(found)
    same = TWO.replace("pad_value = 7", "pad_value = 5")
    assert convert(same, Era.MODERN).count("pad_value = 5") == 1
    bare = TWO.replace(PAD.format(7), "[<size = 16, stride = 1>]")
    assert convert(bare, Era.MODERN).count("pad_value = 5") == 1, "a BD that does not pad has no say in the value"


def test_values_of_several_results_keep_their_numbers():
    kinds = "memref<8xi32>, memref<8xi32>"
    yielded = f"{{ scf.yield %x, %y : {kinds} }}"
    text = sequence(
        f"%p = arith.constant true\n%r:2 = scf.if %p -> ({kinds}) {yielded} else {yielded}\n"
        "%t = aiex.dma_configure_task(%s, MM2S, 0) {\naie.dma_bd(%r#1 : memref<8xi32>, 0, 8)\naie.end\n}",
        "%x: memref<8xi32>, %y: memref<8xi32>",
    )
    found = convert(text, Era.MODERN)
    assert "aie.dma_bd(%r#1 : memref<8xi32> offset = 0 len = 8)" in found, found
    assert "aie.dma_bd(%r#1 : memref<8xi32>, 0, 8)" in convert(found, Era.MARCH)


def test_a_patch_by_buffer_is_of_the_newest_form_however_it_is_written():
    patch = '"aiex.npu.address_patch"(ARGS) <{addr = 4 : ui32, arg_plus = 1 : i32MORE}> : (TYPES) -> ()'
    by_buffer = patch.replace("ARGS", "%x").replace("TYPES", "memref<8192xi32>").replace("MORE", "")
    by_number = patch.replace("ARGS", "").replace("TYPES", "").replace("MORE", ", arg_idx = 0 : i32")
    eras = [era_of(parse(sequence(text))) for text in (by_buffer, by_number)]
    assert eras == [Era.MODERN, Era.MARCH]
