"""Runtime sequences become the words that mlir-aie makes of them."""

import re

import numpy as np
import pytest
from txn_array import ARRAY, END, FIRST_LINE, design, lowered, task

from bdforge.array.emulator.strictness import Strictness
from bdforge.array.mlir import parse
from bdforge.array.mlir.register_ops import WRITEBD_FIELDS
from bdforge.array.txn.lower import LoweringError, lower_module
from bdforge.array.txn.target import ControllerIds
from bdforge.devices import mlir_device_named
from bdforge.devices.bd_registers import CORE_BD, MEMTILE_BD, SHIM_BD
from bdforge.devices.registers import address
from bdforge.devices.txn_format.codec import decode, encode
from bdforge.devices.txn_format.describe import diff
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, MaskWrite, Patch, Preempt, Sync, Write
from support.differences import same
from support.txn_vectors import STREAM_VECTORS, encode_mlir


@pytest.mark.parametrize("name", STREAM_VECTORS)
def test_words_equal_those_of_the_real_compiler(name: str):
    vector = STREAM_VECTORS[name]
    words = encode_mlir(vector.mlir, name, controller_ids=ControllerIds.TEXT)
    assert not diff(decode(vector.words), decode(words))
    same(words, vector.words)


def test_operations_know_their_mlir_lines():
    operations = lowered(
        "aiex.npu.rtp_write(@cb, 1, 5)",
        *task("aie.dma_bd(%x : memref<64xi32>, 0, 64)"),
    )
    places = [str(operation.location) for operation in operations]
    first = FIRST_LINE
    assert places == [
        f"design.mlir:{first}:7", f"design.mlir:{first + 2}:7", f"design.mlir:{first + 2}:7",
        f"design.mlir:{first + 5}:7",
    ]  # fmt: skip


def test_arguments_are_counted_by_position_scalars_included():
    operations = lowered(*task("aie.dma_bd(%y : memref<8x16xi32>, 16, 64)"))
    assert operations[1] == Patch(0x1D004, 2, 64)


def test_raw_operations_become_themselves():
    operations = lowered(
        "%d = memref.get_global @words : memref<3xi32>",
        "aiex.npu.blockwrite(%d) {address = 256 : ui32, column = 3 : i32, row = 2 : i32} : memref<3xi32>",
        "aiex.npu.blockwrite(%d) {address = 4096 : ui32} : memref<3xi32>",
        "aiex.npu.write32 {address = 3 : ui32, buffer = @cb, value = 4294967295 : ui32}",
        "aiex.npu.write32 {address = 34603016 : ui32, value = 1 : ui32}",
        "aiex.npu.maskwrite32 {address = 0x1001D200 : ui32, column = 1 : i32, row = 0 : i32, mask = 7 : ui32, "
        "value = 5 : ui32}",
        "aiex.npu.preempt {level = 2 : ui8}",
        "aiex.set_lock(%ml, 63)",
        "aiex.set_lock(%ck, 1)",
        "aiex.npu.rtp_write(@cb, 2, -7)",
        "aiex.npu.sync {channel = 1 : i32, column = 0 : i32, column_num = 2 : i32, direction = 1 : i32, "
        "row = 2 : i32, row_num = 3 : i32}",
    )
    data = (1, 0xFFFFFFFE, 0xFFFFFFFF)
    assert operations == [
        BlockWrite(address(3, 2, 256), data, hint=0x203), BlockWrite(4096, data),
        Write(address(0, 2, 2048 + 12), 0xFFFFFFFF), Write(34603016, 1), MaskWrite(address(1, 0, 0x1D200), 5, 7),
        Preempt(2), Write(address(0, 1, 0xC0030), 63), Write(address(0, 2, 0x1F020), 1),
        Write(address(0, 2, 2048 + 8), 0xFFFFFFF9), Sync(1, 2, 0, 3, 2, 1),
    ]  # fmt: skip


def test_raw_bds_put_fields_where_they_belong():
    """Every field by itself stands in test_txn_bd."""

    def write_bd(**given: int):
        values = dict.fromkeys(WRITEBD_FIELDS, 0) | given
        return lowered(f"aiex.npu.writebd {{{', '.join(f'{name} = {value} : i32' for name, value in values.items())}}}")

    (block,) = write_bd(row=1, bd_id=40, buffer_offset=0x20400, d2_size=9, d2_stride=3, d1_zero_after=31)
    assert block.address == address(0, 1, 0xA0000 + 40 * 0x20)
    values = MEMTILE_BD.decode(block.words)
    assert {name: value for name, value in values.items() if value} == {
        "address": 0x20400, "d2_step": 3, "d1_pad_after": 31,
    }  # fmt: skip
    with pytest.raises(LoweringError, match="d0_zero_before = 1, but a core BD has no such field"):
        write_bd(row=2, d0_zero_before=1)
    with pytest.raises(LoweringError, match="d0_wrap = 1024 does not fit"):
        write_bd(d0_size=1024)


def test_push_queue_and_address_patch_are_written_out():
    operations = lowered(
        "aiex.npu.address_patch {addr = 118788 : ui32, arg_idx = 3 : i32, arg_plus = 20 : i32}",
        "aiex.npu.push_queue(0, 1, S2MM : 5) {bd_id = 15 : i32, issue_token = true, repeat_count = 255 : i32}",
    )
    assert operations == [Patch(118788, 3, 20), Write(address(0, 1, 0xA0600 + 40 + 4), 0x80FF000F)]


PUSH = "aiex.npu.push_queue({}, {}, S2MM : 1) {{bd_id = 3 : i32, issue_token = {}, repeat_count = 0 : i32}}"


@pytest.mark.parametrize(
    ("tile", "register", "id_"),
    [((0, 0), 0x1D208, 15), ((1, 0), 0x1D208, 5), ((0, 1), 0xA0608, 26), ((0, 2), 0x1DE08, 27)],
    ids=str,
)
def test_tiles_without_a_controller_id_get_that_of_their_row(tile, register, id_):
    push = PUSH.format(*tile, "true")
    write, queue = lowered(push, controller_ids=ControllerIds.AIECC)
    assert write == MaskWrite(address(tile[0], tile[1], register), id_ << 8, 0x1F00)
    assert lower_module(parse(design(push)))[1] == [write, queue]
    assert lowered(push) == ([write, queue] if tile == (1, 0) else [queue])


def test_only_tokens_of_tiles_that_the_text_declares_have_a_controller_id():
    pushes = PUSH.format(0, 0, "false"), PUSH.format(3, 0, "true")
    assert [type(op) for op in lowered(*pushes, controller_ids=ControllerIds.AIECC)] == [Write, Write]


def test_packets_come_from_the_transfer_or_the_allocation():
    memcpy = (
        "aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][1, 1, 1, 64][0, 0, 0, 1]{}) "
        "{{id = 2 : i64, metadata = @tagged}} : memref<64xi32>"
    )
    own, named, configured, written = (
        lowered(*lines)[0]
        for lines in (
            [memcpy.format(", packet = <pkt_id = 3, pkt_type = 1>")],
            [memcpy.format("")],
            ["%t = aiex.dma_configure_task_for @tagged {", "aie.dma_bd(%x : memref<64xi32>, 0, 4)", "aie.end", "}"],
            task(
                "aie.dma_bd(%x : memref<64xi32>, 0, 4) {packet = #aie.packet_info<pkt_type = 4, pkt_id = 31>}",
                channel="MM2S, 0, <pkt_type = 1, pkt_id = 1>",
            ),
        )
    )
    fields = ("packet_enable", "packet_type", "packet_id")
    decoded = [SHIM_BD.decode(block.words) for block in (own, named, configured, written)]
    packets = [tuple(values[name] for name in fields) for values in decoded]
    assert packets == [(1, 1, 3), (1, 2, 6), (1, 2, 6), (1, 4, 31)]


def test_memtile_tasks_point_into_their_own_window():
    bd = (
        "aie.use_lock(%ml, AcquireGreaterEqual, 2)  "
        "aie.dma_bd(%mb : memref<1024xi32>, 8, 48, "
        "[<size = 3, stride = 64>, <size = 2, stride = 16>, <size = 8, stride = 1>])  "
        "aie.use_lock(%mk, Release, 1)"
    )
    block, mask, push = lowered(*task(bd, "%m0", "MM2S, 2", "{repeat_count = 6 : i32}"))
    values = MEMTILE_BD.decode(block.words)
    del values["address"]  # replaced by the masked write
    assert {name: value for name, value in values.items() if value} == {
        "length": 48, "d0_wrap": 8, "d1_wrap": 2, "d1_step": 15, "d2_step": 63, "valid": 1,
        "acquire_enable": 1, "acquire_value": -2, "acquire_id": 67, "release_value": 1, "release_id": 68,
    }  # fmt: skip
    assert mask == MaskWrite(address(0, 1, 0xA0004), (0x80000 + 4096 + 32) // 4, 0x7FFFF)
    assert push == Write(address(0, 1, 0xA0630 + 16 + 4), 6 << 16)
    _, mask, _ = lowered(*task(bd, "%m0", "MM2S, 2"), device="npu1")
    assert mask.value == (4096 + 32) // 4


def test_core_tile_tasks_use_six_words_and_their_own_memory():
    bd = (
        "aie.use_lock(%cl, Acquire, 1)  aie.dma_bd(%cb : memref<256xi16>, 4, 64, [<size = 8, stride = 32>, "
        "<size = 8, stride = 1>])  aie.use_lock(%ck, Release, 3)"
    )
    block, mask, push = lowered(*task(bd, "%c0", "S2MM, 1", "{issue_token = true}"))
    assert len(block.words) == 6
    values = CORE_BD.decode(block.words)
    del values["address"]
    assert {name: value for name, value in values.items() if value} == {
        "length": 32, "d0_wrap": 4, "d1_wrap": 8, "d1_step": 15, "valid": 1,
        "acquire_enable": 1, "acquire_value": 1, "acquire_id": 9, "release_value": 3, "release_id": 2,
    }  # fmt: skip
    assert mask == MaskWrite(address(0, 2, 0x1D000), (2048 + 8) // 4 << 14, 0x0FFFC000)
    assert push == Write(address(0, 2, 0x1DE0C), 0x80000000)


def test_padding_is_counted_in_words():
    bd = (
        "aie.dma_bd(%mb : memref<1024xi32>, 0, 60, [<size = 4, stride = 8>, <size = 8, stride = 1>], "
        "[<const_pad_before = 1, const_pad_after = 0>, <const_pad_before = 1, const_pad_after = 3>])"
    )
    block, *_ = lowered(*task(bd, "%m0", "MM2S, 0"))
    values = MEMTILE_BD.decode(block.words)
    names = ("d1_pad_before", "d1_pad_after", "d0_pad_before", "d0_pad_after", "length")
    assert [values[name] for name in names] == [1, 0, 1, 3, 60]


def test_a_first_block_with_only_next_bd_lets_a_chain_loop():
    operations = lowered(
        "%t = aiex.dma_configure_task(%s0, MM2S, 0) {",
        "aie.next_bd ^a",
        "^a:", "aie.dma_bd(%x : memref<64xi32>, 0, 32)", "aie.next_bd ^b",
        "^b:", "aie.dma_bd(%x : memref<64xi32>, 32, 32)", "aie.next_bd ^a",
        "}",
        "aiex.dma_start_task(%t)",
    )  # fmt: skip
    blocks = [operation for operation in operations if isinstance(operation, BlockWrite)]
    links = [(values["use_next"], values["next"]) for values in (SHIM_BD.decode(block.words) for block in blocks)]
    assert links == [(1, 1), (1, 0)]
    assert operations[-1] == Write(0x1D214, 0)


CHAINS = {  # blocks, and the offsets of the BDs that the task has
    "second": ("^a: A aie.end ^b: B aie.end", [0]),
    "first, by a block without a BD": ("aie.next_bd ^b ^a: A aie.end ^b: B aie.end", [32]),
    "by a block with a constant": ("%one = arith.constant 1 : i32 aie.next_bd ^b ^a: A aie.end ^b: B aie.end", [32]),
    "between": ("^a: A aie.next_bd ^c ^b: B aie.next_bd ^c ^c: C aie.end", [0, 48]),
    "before what it leads to": ("aie.next_bd ^c ^a: A aie.next_bd ^c ^c: C aie.next_bd ^c", [48]),
    "none": ("^a: A aie.next_bd ^c ^b: B aie.end ^c: C aie.next_bd ^b", [0, 32, 48]),
    "a circle of its own": ("^a: A aie.end ^b: B aie.next_bd ^c ^c: C aie.next_bd ^b", [0]),
}


@pytest.mark.parametrize("chain", CHAINS)
def test_blocks_that_nothing_leads_to_are_dropped_and_told(chain: str):
    blocks, offsets = CHAINS[chain]
    for name, offset in (("A", 0), ("B", 32), ("C", 48)):
        blocks = re.sub(rf"\b{name}\b", f"\naie.dma_bd(%x : memref<64xi32>, {offset}, 16)\n", blocks)
    strictness = Strictness()
    operations = lowered("%t = aiex.dma_configure_task(%s0, MM2S, 0) {", blocks, "}", policy=strictness)
    assert [op.plus for op in operations if isinstance(op, Patch)] == [4 * offset for offset in offsets]
    assert sum("[dropped-bd]" in told for told in strictness.warnings) == blocks.count("dma_bd(") - len(offsets)


def test_words_of_a_load_without_an_id_hold_none():
    (load,) = lowered("aiex.npu.load_pdi {device_ref = @main}")
    same(encode([load], mlir_device_named("npu2"))[4:], np.array([8, 0, 0, 0], np.uint32))


def bd_numbers(operations: list) -> list[int]:
    return [(op.address - 0x1D000) // 0x20 for op in operations if isinstance(op, BlockWrite)]


def test_bd_ids_are_the_lowest_free_ones_and_come_back():
    def one(name: str, attributes: str = "", options: str = "") -> list[str]:
        bd = f"aie.dma_bd(%x : memref<64xi32>, 0, 4) {attributes}"
        return [f"%{name} = aiex.dma_configure_task(%s0, MM2S, 0) {{", bd, "aie.end", f"}} {options}"]

    operations = lowered(
        *one("a"),
        *one("b", "{bd_id = 2 : i32}"),
        *one("c", options="{issue_token = true}"),
        *one("d"),
        "aiex.dma_free_task(%a)",
        *one("e"),
        "aiex.dma_start_task(%c)",
        "aiex.dma_await_task(%c)",
        *one("f"),
        *one("g", "{bd_id = 15 : i32}"),
    )
    assert bd_numbers(operations) == [0, 2, 1, 3, 0, 1, 15]


def test_explicit_ids_of_a_chain_are_reserved_before_others_are_chosen():
    operations = lowered(
        "%t = aiex.dma_configure_task(%s0, MM2S, 0) {",
        "aie.dma_bd(%x : memref<64xi32>, 0, 32)", "aie.next_bd ^b",
        "^b:", "aie.dma_bd(%x : memref<64xi32>, 32, 32) {bd_id = 0 : i32}", "aie.end",
        "}",
        "aiex.dma_start_task(%t)",
    )  # fmt: skip
    assert bd_numbers(operations) == [1, 0]
    assert operations[-1] == Write(0x1D214, 1)


def test_templates_are_instantiated_for_their_arguments():
    operations = lowered(
        "%u = memref.reinterpret_cast %y to offset: [0], sizes: [64], strides: [1] : "
        "memref<8x16xi32> to memref<64xi32>",
        "%t = aiex.dma_start_bd_chain @copy(%x) : (memref<64xi32>) on (%s0, MM2S, 0) {issue_token = true}",
        "%s = aiex.dma_start_bd_chain_for @copy(%u) : (memref<64xi32>) for @in {repeat_count = 2 : i32}",
        "aiex.dma_await_task(%t)",
    )
    assert bd_numbers(operations) == [0, 1, 2, 3]
    assert [op for op in operations if isinstance(op, Patch)] == [
        Patch(0x1D004, 0, 0), Patch(0x1D024, 0, 128), Patch(0x1D044, 2, 0), Patch(0x1D064, 2, 128),
    ]  # fmt: skip
    assert [op for op in operations if isinstance(op, Write)] == [Write(0x1D214, 0x80000000), Write(0x1D21C, 0x20002)]
    assert operations[-1] == Sync(1, 0, 0, 1, 1, 0)


def test_locks_of_a_bd_template_are_those_of_its_arguments():
    template = """aie.bd_chain @copy(%v: memref<64xi32>, %take: index, %give: index) {
      aie.use_lock(%take, AcquireGreaterEqual, 2)
      aie.dma_bd(%v : memref<64xi32>, 0, 32)
      aie.use_lock(%give, Release, 1)
      aie.end
    }"""
    task = """aiex.dma_configure_task(%s0, MM2S, 0) {
      aie.use_lock(%b, AcquireGreaterEqual, 2)
      aie.dma_bd(%x : memref<64xi32>, 0, 32)
      aie.use_lock(%a, Release, 1)
      aie.end
    }"""
    text = """aie.device(npu2_1col) {
    %s0 = aie.tile(0, 0)
    %a = aie.lock(%s0, 3)
    %b = aie.lock(%s0, 5)
    TEMPLATE
    aie.runtime_sequence(%x: memref<64xi32>) {
    %t = TASK
    }}"""
    call = "aiex.dma_start_bd_chain @copy(%x, %b, %a) : (memref<64xi32>, index, index) on (%s0, MM2S, 0)"
    chained = lower_module(parse(text.replace("TEMPLATE", template).replace("TASK", call)))[1]
    plain = lower_module(parse(text.replace("TEMPLATE", "").replace("TASK", task + "\naiex.dma_start_task(%t)")))[1]
    assert chained == plain


def test_views_of_arguments_move_the_patch():
    operations = lowered(
        "%a = memref.assume_alignment %z, 64 : memref<4096xi8>",
        "%v = memref.subview %a[128] [1024] [1] : memref<4096xi8> to memref<1024xi8, strided<[1], offset: 128>>",
        "aiex.npu.dma_memcpy_nd(%v[0, 0, 1, 8][1, 1, 4, 32][0, 0, 64, 1]) {id = 0 : i64, metadata = @in} : "
        "memref<1024xi8, strided<[1], offset: 128>>",
    )
    assert operations[1] == Patch(0x1D004, 3, 128 + 64 + 8)


def test_entries_of_a_memcpy_may_be_constants_from_elsewhere():
    operations = lowered(
        "%c2 = arith.constant 2 : i64",
        "aiex.npu.dma_memcpy_nd(%x[0, 0, %c2, 0][%c2, 1, %c2, 8][0, 0, 16, 1]) "
        "{id = 0 : i64, metadata = @in} : memref<64xi32>",
    )
    assert operations[1:] == [Patch(0x1D004, 0, 128), Write(0x1D21C, 0x10000)]


def test_other_devices_are_loaded_and_their_sequences_run():
    text = """module {
      aie.device(npu2_2col) @work {
        %t = aie.tile(1, 0)
        %c = aie.tile(1, 2)
        %b = aie.buffer(%c) {sym_name = "b", address = 1024 : i32} : memref<4xi32>
        aie.shim_dma_allocation @out (%t, S2MM, 1)
        aie.runtime_sequence @go(%p: memref<16xi32>) {
          aiex.npu.rtp_write(@b, 1, 9)
          aiex.npu.dma_memcpy_nd(%p[0, 0, 0, 0][1, 1, 1, 16][0, 0, 0, 1])
            {id = 4 : i64, metadata = @out} : memref<16xi32>
        }
      }
      aie.device(npu2_2col) @main {
        aie.runtime_sequence @all(%x: memref<16xi32>, %y: memref<16xi32>) {
          aiex.configure @work { aiex.run @go(%y) : (memref<16xi32>) }
          aiex.npu.load_pdi {device_ref = @work}
          aiex.npu.load_pdi {device_ref = @main}
        }
      }
    }"""
    module = parse(text)
    _, operations = lower_module(module, "all", controller_ids=ControllerIds.TEXT)
    assert operations[0] == LoadPdi(1, 0, 0)
    assert operations[0].device == "work"  # pyrefly: ignore
    assert operations[1] == Write(address(1, 2, 1028), 9)
    assert operations[3] == Patch(address(1, 0, 0x1D084), 1, 0)
    assert [(op, op.device) for op in operations[5:] if isinstance(op, LoadPdi)] == [
        (LoadPdi(0, 0, 0), "work"), (LoadPdi(0, 0, 0), "main"),
    ]  # fmt: skip
    assert lower_module(module, "work::go")[1][0] == operations[1]
    with pytest.raises(LoweringError, match=r"more than one match .* the module has work::go, main::all"):
        lower_module(module)
    with pytest.raises(LoweringError, match="no match for a runtime sequence called 'gone'"):
        lower_module(module, "gone")


def test_awaiting_frees_and_a_later_start_of_the_same_bds_is_fine():
    operations = lowered(
        *task("aie.dma_bd(%x : memref<64xi32>, 0, 64)", options="{issue_token = true}"),
        "aiex.dma_await_task(%t)",
        "aiex.dma_start_task(%t)",
        "aiex.dma_await_task(%t)",
    )
    assert [type(op) for op in operations] == [BlockWrite, Patch, Write, Sync, Write, Sync]
    assert len(encode(operations, lower_module(parse(ARRAY + END))[0])) > 4
