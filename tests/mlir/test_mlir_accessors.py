"""What the operations tell their users."""

import pytest
from mlir_pairs import flow
from mlir_texts import bd, every, only, read, sequence
from xdsl.dialects.builtin import IntegerAttr

from bdforge.array.mlir import Location, location, parse, print_generic, print_module
from bdforge.array.mlir.bd_ops import DmaBdOp
from bdforge.array.mlir.control_ops import DmaStartBdChainForOp, DmaStartBdChainOp
from bdforge.array.mlir.device_ops import TileOp
from bdforge.array.mlir.memcpy_ops import NpuDmaMemcpyNdOp
from bdforge.array.mlir.register_ops import ControlPacketOp
from bdforge.array.mlir.sequence_ops import NpuRtpWriteOp
from bdforge.array.mlir.stream_ops import PacketFlowOp


@pytest.fixture(scope="module")
def chain():
    return parse(read("chain.mlir"), "chain.mlir")


def test_a_packet_operation_counts_as_the_bds_packet():
    assert only(
        parse(bd(", 0, 4)").replace("aie.dma_bd(", "aie.dma_bd_packet(1, 5)\naie.dma_bd(")), DmaBdOp
    ).packet == (1, 5)


@pytest.mark.parametrize(("written", "held"), [(0, 0), (127, 127), (128, -128), (255, -1), (-128, -128), (-1, -1)])
def test_packet_ids_are_held_signed_and_told_unsigned(written, held):
    """The attribute has eight bits with a sign; both spellings of a number are one flow, in the generic form too."""
    module = parse(flow(written))
    op = only(module, PacketFlowOp)
    assert (op.properties["ID"], op.id) == (IntegerAttr(held, 8), written % 256)
    assert f"aie.packet_flow({written % 256})" in print_module(module)
    assert f"ID = {held} : i8" in print_generic(module)


def test_names_that_lead_nowhere_say_which_exist():
    text = sequence("aiex.npu.rtp_write(@gone, 0, 1)\naiex.npu.dma_wait {symbol = @a}")
    with pytest.raises(ValueError, match=r"no aie\.buffer is called @gone"):
        _ = only(parse(text), NpuRtpWriteOp).buffer_op
    transfer = "aiex.npu.dma_memcpy_nd(%x[0,0,0,0][1,1,1,4][0,0,0,1]) {id = 0, metadata = @b} : memref<8192xi32>"
    with pytest.raises(ValueError, match="device @main has @a, @c"):
        _ = only(parse(sequence(transfer)), NpuDmaMemcpyNdOp).allocation


def test_templates_are_found():
    module = parse(read("every_operation.mlir"))
    assert only(module, DmaStartBdChainOp).template.symbol == "chain"
    assert only(module, DmaStartBdChainForOp).repeat_count == 2
    packets = every(module, ControlPacketOp)
    assert [(p.opcode, p.data, p.length) for p in packets] == [(0, [1, -2], None), (1, [], 2)]


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
