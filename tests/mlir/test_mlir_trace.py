"""Trace operations are kept as text and left out of everything else, with a warning."""

import numpy as np

import bdforge
from bdforge.array.emulator.verification import verify_design
from bdforge.array.mlir import parse, print_generic, print_module
from support.differences import same
from support.txn_vectors import encode_mlir

PLAIN = """module {
  aie.device(npu2) {
    %t = aie.tile(0, 2)
    %b = aie.buffer(%t) {address = 1024 : i32, sym_name = "b"} : memref<4xi32>
    TRACE
    aie.runtime_sequence(%a: memref<4xi32>) {
      START
      aiex.npu.rtp_write(@b, 1, 7)
    }
  }
}
"""
TRACE = """aie.trace @core_trace(%t) buffer_size = 8192 {
      aie.trace.mode "Event-Time"
      aie.trace.packet id=1 type="core"
      aie.trace.event<"INSTR_VECTOR"> label = "vector"
      aie.trace.port<0> port=DMA channel=0 master=true
      aie.trace.start broadcast=15
    }"""
START = """aie.trace.host_config {buffer_size = 8192 : i32}
      aie.trace.start_config @core_trace"""
PLAIN_TEXT = PLAIN.replace("TRACE", "").replace("START", "")
TRACED_TEXT = PLAIN.replace("TRACE", TRACE).replace("START", START)


def test_traces_read_back_from_both_forms():
    module = parse(TRACED_TEXT)
    printed = print_module(module)
    assert TRACE in printed
    assert START in printed
    assert parse(printed).is_structurally_equivalent(module)
    assert parse(print_generic(module)).is_structurally_equivalent(module)


def test_traces_change_neither_words_nor_results():
    same(encode_mlir(TRACED_TEXT), encode_mlir(PLAIN_TEXT))
    warned = bdforge.emulate(TRACED_TEXT, args=[np.zeros(4, np.int32)])
    assert warned.buffers["b"][1] == 7
    assert [warning.split(" ")[1] for warning in warned.warnings] == [
        "aie.trace", "aie.trace.host_config", "aie.trace.start_config",
    ]  # fmt: skip
    assert "<string>:5:5: aie.trace is left out" in warned.warnings[0]


def test_verify_warns_of_traces():
    found = verify_design(TRACED_TEXT)
    assert not found.faults
    assert len(found.warnings) == 3
