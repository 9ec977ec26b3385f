"""Texts that a real aie-opt refuses are refused at the same place, in words of our own."""

import json

import pytest
from mlir_texts import read

from bdforge.array.mlir import MlirError, parse

CASES = {case["name"]: case for case in map(json.loads, read("rejected.jsonl").splitlines())}

WORDS = {
    "tile_out_of_range": "column 8 is outside npu2, which has columns 0 to 7",
    "npu1_fifth_column": "column 4 is outside npu1, which has columns 0 to 3",
    "buffer_on_shim": "tile (0, 0) is a shim, which has no data memory",
    "memtile_lock_64": "lock = 64 is outside 0 to 63, the locks of a memtile",
    "core_lock_16": "lock = 16 is outside 0 to 15, the locks of a core",
    "untyped_init": "write 'init = 1 : i32'",
    "core_bd_4_dims": "4 dimensions, but a core's BD has at most 3",
    "memtile_bd_5_dims": "5 dimensions, but a memtile's BD has at most 4",
    "inner_stride_i8": "innermost stride is 2, but for elements of 8 bits it must be 1",
    "size_over_512": "may not exceed 512",
    "index_outside_buffer": "reach element 119, but the buffer has 64 elements",
    "length_not_words": "30 elements of 8 bits are 30 bytes",
    "padding_on_core": "only a memtile's DMA can",
    "two_acquires": "at most one lock that it acquires, this one 2",
    "far_memtile_channel_4": "channel 4, which reaches only its own memtile (0, 1), not (1, 1)",
    "core_reads_memtile": "used by the aie.core of tile (0, 2)",
    "packet_two_sources": "exactly one aie.packet_source, has 2",
    "packet_id_32": "pkt_id = 32 is outside 0 to 31",
    "memcpy_wrap_1024": "size of dimension 0 is 1024 words; a shim BD holds at most 1023",
    "memcpy_outer_66": "size of dimension 3 is 66; a BD iterates at most 64 times",
    "memcpy_odd_stride_i8": "stride of dimension 1 is 66 elements of 8 bits, 66 bytes",
    "set_lock_64": "lock value = 64 is outside 0 to 63",
    "push_repeat_256": "repeat_count = 256 is outside 0 to 255",
    "legacy_sequence": "write 'aie.runtime_sequence'",
    "legacy_device": "write 'npu1'",
    "bare_boolean": "write 'issue_token = true'",
    "stride_0_inner": "<size = 4, stride = 0>: a stride must be positive",
}


def test_every_case_has_its_words():
    assert WORDS.keys() == CASES.keys()


@pytest.mark.parametrize("name", CASES)
def test_refused_at_the_same_place(name: str):
    with pytest.raises(MlirError) as caught:
        parse(CASES[name]["mlir"], "design.mlir")
    error = caught.value
    assert f"{error.line}:{error.column}" == CASES[name]["where"]
    assert WORDS[name] in error.message


def test_the_error_shows_file_line_and_caret():
    with pytest.raises(MlirError) as caught:
        parse(CASES["legacy_device"]["mlir"], "old.mlir")
    first, line, caret = str(caught.value).splitlines()
    assert first == "old.mlir:2:14: device 'npu' was renamed: write 'npu1'"
    assert line == "  aie.device(npu) {"
    assert caret == " " * 13 + "^"
