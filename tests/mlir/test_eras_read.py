"""Texts of both eras of the dialect: up to mlir-aie 1.3.4, and from 1.4 on. Forms: upstream's tests of 1.4."""

import pytest
from mlir_texts import bd, core, device, every, only, sequence

from bdforge.array.mlir import Era, MlirError, era_of, parse, print_module
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.dma_ops import DmaStartOp
from bdforge.array.mlir.memory_ops import UseLockOp
from bdforge.array.mlir.register_ops import NpuAddressPatchOp, NpuMaskWrite32Op, NpuWrite32Op
from bdforge.array.mlir.sequence_ops import NpuRtpWriteOp
from bdforge.array.mlir.stream_ops import PacketFlowOp

BUFFER = "%b = aie.buffer(%c) : memref<64xi32>\n%free = aie.lock(%c)\n%full = aie.lock(%c)\n"
MEM = """aie.mem(%c) {{
      %one = arith.constant 1 : i32
      %0 = aie.dma_start(S2MM, 0, ^bd, ^end)
    ^bd:
      {}
      {}
      {}
      aie.next_bd ^bd
    ^end:
      aie.end
    }}""".format
MARCH_MEM = MEM(
    "aie.use_lock(%free, AcquireGreaterEqual, 1)",
    "aie.dma_bd(%b : memref<64xi32>, 0, 64, [<size = 4, stride = 16>, <size = 16, stride = 1>]) {bd_id = 0 : i32}",
    "aie.use_lock(%full, Release, 1)",
).replace("%one = arith.constant 1 : i32", "")
MODERN_MEM = MEM(
    "aie.use_lock(%free, AcquireGreaterEqual, %one)",
    "aie.dma_bd(%b : memref<64xi32> offset = 0 len = 64 sizes = [4, 16] strides = [16, 1]) {bd_id = 0 : i32}",
    "aie.use_lock(%full, Release, %one)",
)
GENERIC_MEM = MEM(
    '"aie.use_lock"(%free, %one) <{action = 2 : i32}> : (index, i32) -> ()',
    '"aie.dma_bd"(%b) <{bd_id = 0 : i32, operandSegmentSizes = array<i32: 1, 0, 0, 0, 0>, static_len = 64 : i32, '
    "static_offset = 0 : i32, static_sizes = array<i64: 4, 16>, static_strides = array<i64: 16, 1>}> "
    ": (memref<64xi32>) -> ()",
    '"aie.use_lock"(%full, %one) {action = 1 : i32} : (index, i32) -> ()',
)
RTP_MARCH, RTP_MODERN = "aiex.npu.rtp_write(@b, 0, 5)", "aiex.npu.rtp_write(@b, 0, %c5) : i32"


def same(one: str, other: str) -> bool:
    return parse(one).is_structurally_equivalent(parse(other))


def refused(text: str) -> str:
    with pytest.raises(MlirError) as caught:
        parse(text, "design.mlir")
    return str(caught.value)


@pytest.mark.parametrize("other", [MODERN_MEM, GENERIC_MEM], ids=["custom", "generic"])
def test_a_dma_program_of_either_era_is_one_module(other):
    march = device(BUFFER + MARCH_MEM)
    assert same(march, device(BUFFER + other))
    assert era_of(parse(march)) is Era.MARCH
    assert era_of(parse(device(BUFFER + other))) is Era.MODERN
    assert era_of(parse(device(BUFFER))) is None


def test_generic_register_operations_of_either_era_are_one_module():
    march = '"aiex.npu.write32"() <{address = 4 : ui32, value = 7 : ui32}> : () -> ()'
    modern = '%a = arith.constant 4 : i32\n%v = arith.constant 7 : i32\n"aiex.npu.write32"(%a, %v) : (i32, i32) -> ()'
    assert same(sequence(march), sequence(modern))


@pytest.mark.parametrize("literal", ["0xDEADBEEF", "3735928559", "-559038737"])
def test_register_values_are_unsigned_however_constants_print(literal):
    text = f"%v = arith.constant {literal} : i32\naiex.npu.write32(%v, %v) : i32, i32\n"
    text += "aiex.npu.maskwrite32(%v, %v, %v) : i32, i32, i32\naiex.npu.rtp_write(@b, 0, %v) : i32"
    module = parse(sequence(text))
    write, mask = only(module, NpuWrite32Op), only(module, NpuMaskWrite32Op)
    assert [write.address, write.value, mask.address, mask.value, mask.mask] == [0xDEADBEEF] * 5
    assert only(module, NpuRtpWriteOp).value % (1 << 32) == 0xDEADBEEF


def test_clauses_may_be_left_out_and_be_constants():
    values = {"%o": 4, "%n": 12, "%size": 3, "%step": 4}
    constants = "".join(f"{n} = arith.constant {v} : {'i32' if n in '%o%n' else 'i64'}\n" for n, v in values.items())
    texts = {
        "": (0, 64, []),
        " len = 4": (0, 4, []),
        " offset = 8": (8, 64, []),
        " offset = %o len = %n sizes = [%size, 4] strides = [%step, 1]": (4, 12, [(3, 4), (4, 1)]),
        " len = 12 sizes = [] strides = []": (0, 12, []),
    }
    for clauses, (offset, length, dims) in texts.items():
        text = sequence(constants + "aiex.dma_configure_task_for @a {\naie.dma_bd(%x : memref<64xi32>" + clauses
                        + ")\naie.end\n}", "%x: memref<64xi32>")  # fmt: skip
        found = only(parse(text), DmaBdOp)
        assert (found.offset, found.length, found.dims) == (offset, length, dims), clauses


def test_generic_clauses_may_be_operands_in_order():
    text = """%o = arith.constant 4 : i32
    %t = arith.constant 8 : index
    aiex.dma_configure_task_for @a {
      "aie.dma_bd"(%x, %o, %t) <{operandSegmentSizes = array<i32: 1, 1, 0, 0, 1>, static_len = 16 : i32,
        static_sizes = array<i64: 2, 8>, static_strides = array<i64: -9223372036854775808, 1>}>
        : (memref<64xi32>, i32, index) -> ()
      aie.end
    }"""
    found = only(parse(sequence(text, "%x: memref<64xi32>")), DmaBdOp)
    assert (found.offset, found.length, found.dims) == (4, 16, [(2, 8), (8, 1)])


PAD = "sizes = [13] strides = [1] pad [<const_pad_before = 2, const_pad_after = 1>]"


def test_pad_values_are_read_in_all_three_homes():
    march = bd(", 0, 16, [<size = 13, stride = 1>], [<const_pad_before = 2, const_pad_after = 1>], pad_value = 42)")
    early = bd(f" offset = 0 len = 16 {PAD} pad_value = 42)")
    late = bd(f" offset = 0 len = 16 {PAD})").replace("^end)\n", "^end) {pad_value = 42 : i32}\n")
    assert only(parse(march), DmaBdOp).pad_value == only(parse(early), DmaBdOp).pad_value == 42
    assert only(parse(late), DmaStartOp).pad_value == 42
    assert "AIE2 pads with 0" in refused(late.replace("npu2", "npu1"))
    assert "only a memtile's MM2S channels pad" in refused(late.replace("MM2S", "S2MM"))


def test_several_sources_of_a_packet_flow_are_several_flows():
    flow = "aie.packet_flow(3) {{ {} aie.packet_dest<%c, DMA : 0> }}\n"
    sources = [f"aie.packet_source<%{tile}, DMA : 0>" for tile in ("s", "m", "m1")]
    text = device(BUFFER + MODERN_MEM + flow.format(" ".join(sources)))
    flows = every(parse(text), PacketFlowOp)
    assert [(f.source.tile.column, f.source.tile.row) for f in flows] == [(0, 0), (0, 1), (1, 1)]
    assert same(text, device(BUFFER + MODERN_MEM + "".join(flow.format(source) for source in sources)))
    assert "exactly one aie.packet_source, has 3" in refused(
        device(BUFFER + MARCH_MEM + flow.format(" ".join(sources)))
    )


MIXED = "mixes two forms of the dialect"


def test_a_mixed_text_is_refused_with_a_place_of_each_form():
    mixed = device(BUFFER + MODERN_MEM.replace("offset = 0 len = 64 sizes = [4, 16] strides = [16, 1]", ", 0, 64"))
    message = refused(mixed.replace("memref<64xi32> ,", "memref<64xi32>,"))
    assert MIXED in message
    assert "1.3.5.devN" in message
    assert "aie.dma_bd at design.mlir:16:7 has the form up to mlir-aie 1.3.4" in message
    assert "aie.use_lock at design.mlir:15:7 has the form from mlir-aie 1.4 on" in message


@pytest.mark.parametrize(
    "text",
    [
        device(BUFFER + MODERN_MEM + "aie.runtime_sequence() {\n" + RTP_MARCH + "\n}"),
        device(BUFFER + MARCH_MEM + "aie.runtime_sequence() {\n%c5 = arith.constant 5 : i32\n"
               + RTP_MODERN + "\n}"),
        device(BUFFER + MARCH_MEM.replace("^end)", "^end) {pad_value = 1 : i32}")),
        device(BUFFER + MODERN_MEM.replace(" offset = 0 len = 64 sizes = [4, 16] strides = [16, 1])", ")").replace(
            "{bd_id = 0 : i32}", "{len = 8 : i32}")),
        device(BUFFER + GENERIC_MEM.replace("static_len", "len")),
        device(BUFFER + MARCH_MEM.replace("{bd_id = 0 : i32}", "{static_len = 8 : i32}")),
    ],
    ids=["literals in registers", "constants in registers", "pad value", "braces", "generic length", "static"],
)  # fmt: skip
def test_no_part_of_the_other_era_is_read_in_silence(text):
    message = refused(text)
    assert MIXED in message or "means nothing from mlir-aie 1.4 on" in message


def test_runtime_values_are_refused_by_where_they_come_from():
    text = sequence("aiex.npu.rtp_write(@b, 0, %n) : i32", "%x: memref<4xi32>, %n: i32")
    assert "aiex.npu.rtp_write: 'value' is %n, which is no constant; an argument gives it" in refused(text)
    text = sequence("%one = arith.constant 1 : i32\n%two = arith.addi %one, %one : i32\naiex.npu.rtp_write(@b, 0, %two)"
                    " : i32")  # fmt: skip
    assert "arith.addi at design.mlir:" in refused(text)
    sum_ = MODERN_MEM.replace("%0 = aie", "%two = arith.addi %one, %one : i32\n%0 = aie", 1)
    assert "'value' is %two" in refused(device(BUFFER + sum_.replace("Release, %one", "Release, %two")))


def test_a_core_may_release_what_only_it_knows():
    module = parse(core("%n = memref.load %b[%c0] : memref<64xi32>\naie.use_lock(%l, Release, %n)"))
    assert only(module, UseLockOp).amount is not None
    assert era_of(module) is Era.MODERN


def test_constants_of_other_operations_stay():
    text = core("aie.use_lock(%l, Release, %i)\n%u = arith.addi %i, %i : i32")
    assert "%i = arith.constant 1 : i32" in print_module(parse(text))
    assert "arith.constant 1 : i32" not in print_module(parse(text.replace("%u = arith.addi %i, %i : i32", "")))


ADDITIONS = {
    "attributes of a sequence": sequence("").replace("xi32>) {", "xi32>) attributes {emit_parameter_sync = false} {"),
    "a lock set by a constant": sequence("%v = arith.constant 1 : i32\naiex.set_lock(%l, %v)").replace(
        "aie.shim_dma", "%l = aie.lock(%c)\naie.shim_dma", 1),
    "kernel on its function": device('func.func private @k(memref<4xi32>) attributes {link_with = "k.o", '
                                     'link_with_mode = "merge"}'),
    "buffers": device("aie.buffer(%c) {aligned = false, mem_bank = 1 : i32} : memref<4xi8>"),
    "visibility": device('aie.lock(%c) {sym_name = "l", sym_visibility = "private"}'),
    "patch by buffer": sequence("%v = arith.constant 1 : i64\naiex.npu.address_patch(%v : i64) buffer %x : "
                                "memref<8192xi32> {addr = 4 : ui32}"),
}  # fmt: skip


@pytest.mark.parametrize("name", ADDITIONS)
def test_additions_are_read(name):
    parse(ADDITIONS[name])


def test_a_logical_tile_with_its_place_is_that_tile():
    text = device("")
    assert same(text, text.replace("%c = aie.tile(", "%c = aie.logical_tile<CoreTile>("))
    assert "input_physical.mlir" in refused(
        text.replace("%c = aie.tile(0, 2)", "%c = aie.logical_tile<CoreTile>(?, ?)")
    )
    assert "'Core' is no kind of tile" in refused(text.replace("%c = aie.tile", "%c = aie.logical_tile<Core>"))


REFUSED = {
    "aiex.dma_channel_reset(%c, S2MM, 0)": "'aiex.dma_channel_reset' of newer mlir-aie cannot be run",
    "aie.flow(%s, DMA : 0, %m, DMA : 0) via [%c]": "the router's choice",
    "aie.flow(%s, DMA : 0, %m, DMA : 0) {via = [1]}": "the router's choice",
    "aie.packet_flow(0x10, mask = 0x1c) {}": "write one aie.packet_flow for each id",
    "%l = aie.lock(%c)\naie.mem(%c) { aie.dma_start(S2MM, @e, ^a, ^a)\n^a:\n aie.end }": "write the channel's number",
    "aie.mem(%c) { aie.dma_start(S2MM, 0, ^a, ^a) {out_of_order}\n^a:\n aie.end }": "out-of-order BDs",
    "aie.runtime_sequence() { aiex.npu.load_pdi {device_ref = @m, expand_mode = 3 : i32} }": (
        "expand_mode = 3 : i32: is none of none, write32, ctrlpkt"
    ),
    "aie.shim_dma_allocation @a(%s, MM2S, 0)\naie.runtime_sequence(%x: memref<4xi32>, %n: i32) {\n"
    "aiex.dma_configure_task(%s, MM2S, 0) repeat %n : i32 {\naie.end\n} }": "{repeat_count = n : i32} behind its body",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_cannot_be_run_says_what_to_do(text):
    assert REFUSED[text] in refused(device(text))


def test_patches_by_buffer_tell_that_they_have_one():
    patch = only(parse(ADDITIONS["patch by buffer"]), NpuAddressPatchOp)
    assert patch.buffer is not None
    assert (patch.argument, patch.offset_bytes) == (None, 1)
