"""What the operations tell their users."""

import numpy as np
import pytest
from mlir_pairs import flow
from mlir_texts import VECTORS, bd, device, every, only, read, sequence
from xdsl.dialects.builtin import IntegerAttr

from bdforge.array.mlir import Location, location, parse, print_generic, print_module
from bdforge.array.mlir.array_ops import CoreOp, FlowOp
from bdforge.array.mlir.attributes import Dimension, PacketInfo, Padding
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.control_ops import DmaStartBdChainForOp, DmaStartBdChainOp
from bdforge.array.mlir.device_ops import DeviceOp, TileOp
from bdforge.array.mlir.dma_ops import DmaOp, MemOp, MemtileDmaOp
from bdforge.array.mlir.enums import Direction
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.memory_ops import BufferOp, LockOp
from bdforge.array.mlir.register_ops import ControlPacketOp, NpuBlockWriteOp, NpuMaskWrite32Op, NpuWriteBdOp
from bdforge.array.mlir.sequence_ops import NpuRtpWriteOp, NpuSyncOp, RuntimeSequenceOp, SetLockOp
from bdforge.array.mlir.stream_ops import PacketFlowOp
from bdforge.array.mlir.task_ops import DmaConfigureTaskForOp, DmaConfigureTaskOp
from bdforge.devices import TileKind
from bdforge.devices.coded_words import PortBundle
from support.differences import same


@pytest.fixture(scope="module")
def chain():
    return parse(read("chain.mlir"), "chain.mlir")


@pytest.fixture(scope="module")
def packets():
    return parse(read("packets_pad.mlir"), "packets_pad.mlir")


def test_devices_know_their_array(chain):
    device_op = only(chain, DeviceOp)
    assert (device_op.symbol, device_op.device_name, device_op.device.columns) == ("main", "npu2_1col", 1)


def test_tiles_know_place_and_kind(chain):
    assert [(t.column, t.row, t.kind) for t in every(chain, TileOp)] == [
        (0, 0, TileKind.SHIM), (0, 1, TileKind.MEMTILE), (0, 2, TileKind.CORE)]  # fmt: skip


def test_buffers_know_name_place_and_contents(chain):
    buffers = {b.symbol: b for b in every(chain, BufferOp)}
    assert buffers["mc0"].address == 4096
    assert buffers["ma0"].address is None
    assert buffers["ca0"].type.get_shape() == (16, 32)
    same(buffers["rtp"].initial_value, np.array([3, 1], np.int32))
    assert buffers["cc0"].initial_value is None


def test_locks_know_id_and_start_value(chain):
    assert [(k.id, k.init, k.symbol) for k in every(chain, LockOp)][-3:] == [
        (None, 1, None),
        (None, 0, None),
        (15, 0, "go"),
    ]


def test_flows_know_their_ends(chain):
    source, destination = every(chain, FlowOp)[3].source, every(chain, FlowOp)[3].destination
    assert (source.tile.row, source.bundle, source.channel) == (1, PortBundle.DMA, 1)
    assert (destination.tile.row, destination.bundle, destination.channel) == (0, "DMA", 0)


def test_programs_list_their_tasks_in_chain_order(chain, packets):
    starts = only(chain, MemtileDmaOp).starts
    assert [(s.direction, s.channel, s.repeat_count) for s in starts] == [
        ("S2MM", 0, 0), ("MM2S", 0, 0), ("S2MM", 1, 0), ("MM2S", 1, 0)]  # fmt: skip
    assert [(s.direction, s.repeat_count) for s in only(packets, MemtileDmaOp).starts] == [("S2MM", 3), ("MM2S", 0)]


def test_bds_know_their_transfer(chain):
    first, second, reordered = every(chain, DmaBdOp)[:3]
    assert (first.offset, first.length, first.has_length) == (0, 1024, True)
    assert (second.length, second.has_length) == (1024, False)
    assert first.next is second
    assert second.next is first
    assert reordered.dims == [Dimension(2, 512), Dimension(4, 8), Dimension(16, 32), Dimension(8, 1)]
    assert [(use.lock.symbol, use.value) for use in reordered.acquires] == [("ma_full", 2)]
    assert [(use.lock.symbol, use.value) for use in reordered.releases] == [("ma_free", 1)]
    assert reordered.buffer_op is every(chain, BufferOp)[0]


def test_bds_know_padding_and_packet(packets):
    padded = next(op for op in every(packets, DmaBdOp) if op.padding)
    assert padded.padding == [Padding(1, 0), Padding(1, 3)]
    assert padded.packet == PacketInfo(type=0, id=1)
    assert padded.next is padded
    assert every(packets, DmaBdOp)[0].next is None


def test_a_packet_operation_counts_as_the_bds_packet():
    assert only(
        parse(bd(", 0, 4)").replace("aie.dma_bd(", "aie.dma_bd_packet(1, 5)\naie.dma_bd(")), DmaBdOp
    ).packet == (1, 5)


def test_region_form_lists_its_blocks(packets):
    receive, send = only(packets, MemOp).region_dmas
    assert (receive.direction, receive.loop, send.loop, send.repeat_count) == (Direction.S2MM, True, False, 0)
    assert [len(list(block.ops)) for dma in every(packets, DmaOp) for block in dma.blocks] == [3, 3]


def test_packet_flows_know_their_ends(packets):
    first, second = every(packets, PacketFlowOp)
    assert (first.id, first.keep_header, second.keep_header) == (1, False, True)
    assert [end.tile.row for end in first.destinations] == [2, 3]
    assert first.source.channel == 0


@pytest.mark.parametrize(("written", "held"), [(0, 0), (127, 127), (128, -128), (255, -1), (-128, -128), (-1, -1)])
def test_packet_ids_are_held_signed_and_told_unsigned(written, held):
    """The attribute has eight bits with a sign; both spellings of a number are one flow, in the generic form too."""
    module = parse(flow(written))
    op = only(module, PacketFlowOp)
    assert (op.properties["ID"], op.id) == (IntegerAttr(held, 8), written % 256)
    assert f"aie.packet_flow({written % 256})" in print_module(module)
    assert f"ID = {held} : i8" in print_generic(module)


def test_cores_know_program_and_stack(chain):
    core = only(chain, CoreOp)
    assert (core.tile.row, core.stack_size, core.link_with, core.elf_file) == (2, 0xD00, "scale.o", None)
    assert only(parse(device("aie.core(%c) { aie.end }")), CoreOp).stack_size == 0x400


def test_tasks_know_channel_and_bds(chain):
    send, receive = every(chain, DmaConfigureTaskForOp)
    assert (send.tile.row, send.direction, send.channel, send.repeat_count, send.issue_token) == (
        0,
        "MM2S",
        0,
        1,
        False,
    )
    assert (receive.direction, receive.issue_token) == ("S2MM", True)
    assert [bd.length for bd in send.bds] == [1024]


def test_task_chains_are_followed():
    task = every(parse(VECTORS["npu2_tasks_chain"]), DmaConfigureTaskOp)[1]
    assert [(b.offset, b.bd_id) for b in task.bds] == [(0, 1), (2048, 2)]
    assert (task.tile.column, task.direction, task.channel) == (0, "S2MM", 0)


def test_transfers_resolve_constants():
    text = sequence(
        "%n = arith.constant 8 : i64\naiex.npu.dma_memcpy_nd(%x[1, 2, 0, %n][1, %n, 4, 16][4096, 64, 16, 1]) "
        "{id = 3, metadata = @c, issue_token = true} : memref<8192xi32>"
    )
    transfer = only(parse(text), NpuDmaMemcpyNdOp)
    assert transfer.sizes == (1, 8, 4, 16)
    assert transfer.offset == 4096 + 2 * 64 + 8
    assert (transfer.id, transfer.issue_token, transfer.burst_length, transfer.packet) == (3, True, 0, None)
    assert (transfer.allocation.direction, transfer.allocation.channel) == ("S2MM", 0)


def test_names_that_lead_nowhere_say_which_exist():
    text = sequence("aiex.npu.rtp_write(@gone, 0, 1)\naiex.npu.dma_wait {symbol = @a}")
    with pytest.raises(ValueError, match=r"no aie\.buffer is called @gone"):
        _ = only(parse(text), NpuRtpWriteOp).buffer_op
    transfer = "aiex.npu.dma_memcpy_nd(%x[0,0,0,0][1,1,1,4][0,0,0,1]) {id = 0, metadata = @b} : memref<8192xi32>"
    with pytest.raises(ValueError, match="device @main has @a, @c"):
        _ = only(parse(sequence(transfer)), NpuDmaMemcpyNdOp).allocation


def test_sequence_operations_know_their_numbers(chain, packets):
    writes = [(w.buffer, w.index, w.value) for w in every(chain, NpuRtpWriteOp)]
    assert writes == [("rtp", 0, 5), ("rtp", 1, 2)]
    assert (only(chain, SetLockOp).lock.symbol, only(chain, SetLockOp).value) == ("go", 1)
    sync = only(packets, NpuSyncOp)
    assert (sync.column, sync.row, sync.columns, sync.rows, sync.direction, sync.channel) == (0, 0, 1, 1, "S2MM", 0)
    masked = only(packets, NpuMaskWrite32Op)
    assert (masked.address, masked.column, masked.row, masked.mask, masked.value) == (0x104, 0, 2, 255, 7)
    assert only(packets, NpuBlockWriteOp).data.tolist() == [1, 2**32 - 2, 3, 4]
    assert len(only(packets, RuntimeSequenceOp).arguments) == 2


def test_templates_are_found():
    module = parse(read("every_operation.mlir"))
    assert only(module, DmaStartBdChainOp).template.symbol == "chain"
    assert only(module, DmaStartBdChainForOp).repeat_count == 2
    packets = every(module, ControlPacketOp)
    assert [(p.opcode, p.data, p.length) for p in packets] == [(0, [1, -2], None), (1, [], 2)]


def test_raw_bds_list_their_fields():
    names = [name for name in NpuWriteBdOp.get_irdl_definition().properties if name != "burst_length"]
    assert len(names) == 32
    fields = ", ".join(f"{name} = {number} : i32" for number, name in enumerate(names))
    op = only(parse(sequence(f"aiex.npu.writebd {{{fields}, ddr_id = 0 : i32}}")), NpuWriteBdOp)
    assert op.fields == {name: number for number, name in enumerate(names)}


def test_locations_are_those_of_the_names(chain):
    places = [location(op) for op in every(chain, TileOp)]
    assert places == [Location("chain.mlir", 4 + n, 10) for n in range(3)]
    lines = read("chain.mlir").splitlines()
    for op in chain.walk():
        place = location(op)
        text = lines[place.line - 1][place.column - 1 :]
        implicit = op.name in ("aie.end", "scf.yield") and not text.startswith(op.name)
        assert implicit or text.startswith(op.name.removeprefix("builtin.")), (op.name, place)


def test_locations_are_found_in_generic_form_too():
    text = read("chain.generic.mlir")
    module = parse(text, "g.mlir")
    tile = every(module, TileOp)[0]
    assert location(tile) == Location("g.mlir", 3, 10)
    assert str(location(tile)) == "g.mlir:3:10"
