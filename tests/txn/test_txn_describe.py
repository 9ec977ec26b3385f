"""Listings, JSON and differences of instruction streams."""

import json

import numpy as np
import pytest

from bdforge.array.mlir import Location
from bdforge.array.txn import insts
from bdforge.devices import MLIR_DEVICES
from bdforge.devices.txn_format.bd_encoding import BdLock, encode_bd
from bdforge.devices.txn_format.codec import InstructionStream, StreamHeader, TxnError, decode, encode
from bdforge.devices.txn_format.describe import as_json, describe, describe_operation, diff
from bdforge.devices.txn_format.operations import (
    BlockWrite,
    LoadPdi,
    MaskPoll,
    MaskPollBusy,
    MaskWrite,
    Noop,
    Patch,
    Preempt,
    Sync,
    Unknown,
    Write,
)
from support.txn_vectors import STREAM_VECTORS

NPU2 = MLIR_DEVICES["npu2"]
HEADER = StreamHeader.of(NPU2)
VECTOR = STREAM_VECTORS["npu2_i8_panel_repeat"]


def bd(kind: str, **fields) -> tuple[int, ...]:
    return tuple(encode_bd(NPU2.kind(0, {"shim": 0, "memtile": 1, "core": 2}[kind]), **fields))


def test_a_real_stream_reads_line_by_line():
    assert describe(decode(VECTOR.words)).splitlines() == [
        "version 0.1, generation 4, 8 columns x 6 rows, 7 operations",
        "0  BlockWrite shim (0, 0) BD 3: length 40960, d0_wrap 16, d0_step 1, burst 3, d1_wrap 64, d1_step 640, "
        "axi_cache 2, d2_step 16, valid 1",
        "1  Patch shim (0, 0) BD 3 word 1 = argument 0 + 163840 bytes",
        "2  Write shim (0, 0) MM2S 0 queue = repeat 5, bd 3",
        "3  BlockWrite shim (0, 0) BD 7: length 16384, d0_wrap 64, d0_step 1, burst 3, d1_wrap 64, d1_step 256, "
        "axi_cache 2, d2_step 64, iteration_wrap 2, iteration_step 131072, valid 1",
        "4  Patch shim (0, 0) BD 7 word 1 = argument 1 + 0 bytes",
        "5  Write shim (0, 0) S2MM 1 queue = token 1, repeat 2, bd 7",
        "6  Sync token of shim (0, 0) S2MM 1",
    ]


MEMTILE = bd(
    "memtile", length_words=60, dims_words=[(3, 9), (4, 1)], padding=[(0, 0), (1, 2)], address=0x80010, next_bd=2
)
CORE = bd("core", length_words=5, acquire=BdLock(3, -1), release=BdLock(4, 1), address=64)


ON, PACKETS = 1 << 31, 1 << 30
LEVELS = ("none", "memtile", "core tile", "registers", "level 4")


@pytest.mark.parametrize(
    ("operation", "line"),
    [
        (Write(0x00208004, 41), "Write core (0, 2) memory 0x8004 = 41 (0x29)"),
        (Write(0x021C0030, 2), "Write memtile (1, 1) lock 3 = 2 (0x2)"),
        (Write(0x0023F000, 1), "Write core (0, 2) master Core : 0 = 1 (0x1)"),
        (Write(0x021A0634, 0x8003002F), "Write memtile (1, 1) MM2S 0 queue = token 1, repeat 4, bd 47"),
        (
            MaskWrite(0x1D208, 0xF00, 0x1F00),
            "MaskWrite shim (0, 0) S2MM 1 control = controller_id 15 (mask 0x00001f00)",
        ),
        (
            BlockWrite(0x001A0020, MEMTILE),
            "BlockWrite memtile (0, 1) BD 1: length 60, d0_pad_before 1, next 2, use_next 1, address 131076, "
            "d0_wrap 4, d0_step 1, d1_wrap 3, d1_step 9, d0_pad_after 2, valid 1",
        ),
        (
            BlockWrite(0x0021D1E0, CORE),
            "BlockWrite core (0, 2) BD 15: address 16, length 5, valid 1, release_value 1, release_id 4, "
            "acquire_enable 1, acquire_value -1, acquire_id 3",
        ),
        (BlockWrite(0x1D008, (1, 0xAB)), "BlockWrite shim (0, 0) BD 0 word 2: 2 words 00000001 000000ab"),
        (Sync(1, 2, 3, 4, 2, 1), "Sync token of core (3, 2) and on, 2 columns x 4 rows MM2S 1"),
        (Noop(), "Noop"),
        (LoadPdi(2, 64, 0x10, device="d"), "LoadPdi 2 @d: 64 bytes at 0x10"),
        (Write(0x23F03C, ON | 2), "Write core (0, 2) master North : 2 = from DMA : 1"),
        (Write(0x23F000, ON | 24), "Write core (0, 2) master Core : 0 = from Trace : 1"),
        (Write(0x23F000, ON | 25), "Write core (0, 2) master Core : 0 = 2147483673 (0x80000019)"),
        (
            Write(0x23F000, ON | PACKETS | 0x80 | 9 << 3 | 5),
            "Write core (0, 2) master Core : 0 = enable 1, packet 1, drop_header 1, msels 9, arbiter 5",
        ),
        (Write(0x23F104, ON | PACKETS), "Write core (0, 2) slave DMA : 0 = enable 1, packet 1"),
        (
            Write(0x23F214, 17 << 24 | 30 << 16 | 1 << 8 | 3 << 4 | 6),
            "Write core (0, 2) rule 1 of slave DMA : 0 = id 17, mask 30, enable 1, msel 3, arbiter 6",
        ),
        (Write(0x1F000, 1 << 10 | 2 << 14), "Write shim (0, 0) shim mux = south_3 1, south_7 2"),
        (Write(0x1F004, 1 << 4), "Write shim (0, 0) shim demux = south_2 1"),
        (Write(0x236060, 3), "Write core (0, 2) cascade = output_east 1, input_west 1"),
        (Write(0x1D214, 0), "Write shim (0, 0) MM2S 0 queue = repeat 1, bd 0"),
        (MaskWrite(0x1DE10 | 2 << 20, 0xF03, 2), "MaskWrite core (0, 2) MM2S 0 control = reset 1 (mask 0x00000002)"),
        (MaskPoll(0x100, 3, 7), "MaskPoll shim (0, 0) register 0x100 = 3 (0x3) (mask 0x00000007)"),
        (LoadPdi(1, 0, 0, device="d", expanded="write32"), "LoadPdi 1 @d by write32: 0 bytes at 0x0"),
        (MaskPollBusy(0x100, 3, 7), "MaskPollBusy shim (0, 0) register 0x100 = 3 (0x3) (mask 0x00000007)"),
        (Sync(0, 1, 2, 1, 1, 5), "Sync token of memtile (2, 1) S2MM 5"),
        (Sync(1, 2, 3, 1, 2, 0), "Sync token of core (3, 2) and on, 2 columns x 1 rows MM2S 0"),
        (LoadPdi(3, 16, 0x20), "LoadPdi 3: 16 bytes at 0x20"),
        *((Preempt(level), f"Preempt {name}") for level, name in enumerate(LEVELS)),
        (Unknown(200, (1, 2)), "Unknown code 200: 00000001 00000002"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_registers_are_named_by_their_tile_and_fields_spelt_out(operation, line):
    assert describe_operation(operation) == line


def test_lines_end_with_the_mlir_place():
    stream = InstructionStream(HEADER, (Write(4, 1, location=Location("a.mlir", 3, 7)), Noop()))
    assert describe(stream).splitlines()[1:] == ["0  Write shim (0, 0) register 0x4 = 1 (0x1)  ; a.mlir:3:7", "1  Noop"]


def test_json_holds_every_operation_and_the_raw_fields():
    stream = decode(VECTOR.words)
    document = json.loads(json.dumps(as_json(stream)))
    assert document["header"]["columns"] == 8
    block, patch, push, *_, sync = document["operations"]
    assert block["fields"]["d1_step"] == 639
    assert (block["tile"], block["name"], block["words"][0]) == ("shim", "BD 3", 40960)
    assert (patch["operation"], patch["argument"], patch["plus"], patch["name"]) == ("Patch", 0, 163840, "BD 3 word 1")
    assert push["fields"] == {"token": 0, "repeat": 4, "bd": 3}
    assert sync["channel"] == 1
    placed = as_json(InstructionStream(HEADER, (Noop(location=Location("a.mlir", 3, 7)),)))
    assert placed["operations"] == [{"operation": "Noop", "location": "a.mlir:3:7"}]


def test_differences_name_the_lines_that_differ():
    first = InstructionStream(HEADER, (Write(0x1D214, 7), Patch(0x1D004, 0, 4), Noop()))
    second = InstructionStream(HEADER, (Write(0x1D214, 7), Patch(0x1D004, 0, 8), Noop()))
    assert diff(first, first) == []
    changed = [line for line in diff(first, second) if line[0] in "+-" and line[:3] not in ("+++", "---")]
    assert changed == [
        "-Patch shim (0, 0) BD 0 word 1 = argument 0 + 4 bytes",
        "+Patch shim (0, 0) BD 0 word 1 = argument 0 + 8 bytes",
    ]
    hinted = InstructionStream(HEADER, (BlockWrite(0, (1,), hint=3),))
    assert diff(hinted, InstructionStream(HEADER, (BlockWrite(0, (1,)),))) == [
        "the streams differ only in words that readers ignore"
    ]


def test_files_hold_little_endian_words(tmp_path):
    words = encode([Write(0x1D214, 7)], NPU2)
    path = tmp_path / "insts.bin"
    path.write_bytes(np.asarray(words, "<u4").tobytes())
    assert path.read_bytes()[:8] == bytes([0, 1, 4, 6, 8, 1, 0, 0])
    assert insts.read(path) == decode(words)
    path.write_bytes(path.read_bytes()[:-3])
    with pytest.raises(TxnError, match=r"insts\.bin: word 9: 37 bytes are not a whole number of 32-bit words"):
        insts.read(path)


def test_rows_of_memtiles_are_those_of_the_header():
    operations = (Sync(0, 2, 0, 1, 1, 0), Write(0x2C0000, 1))
    first, *lines = describe(InstructionStream(StreamHeader(0, 1, 4, 6, 8, 2), operations)).splitlines()
    assert first == "version 0.1, generation 4, 8 columns x 6 rows, 2 operations"
    assert lines == ["0  Sync token of memtile (0, 2) S2MM 0", "1  Write memtile (0, 2) lock 0 = 1 (0x1)"]


def test_a_loaded_pdi_is_no_register_in_json():
    stream = InstructionStream(
        StreamHeader.of(MLIR_DEVICES["npu1"]), (LoadPdi(3, 16, 0x1D000, device="d"), Write(0x0601D218, 1))
    )
    document = as_json(stream)
    assert document["header"] == {
        "major": 0, "minor": 1, "generation": 3, "rows": 6, "columns": 4, "memtile_rows": 1,
    }  # fmt: skip
    pdi, write = document["operations"]
    assert pdi == {"operation": "LoadPdi", "id": 3, "size": 16, "address": 0x1D000, "device": "d", "expanded": ""}
    assert (write["tile"], write["column"], write["row"], write["offset"]) == ("shim", 3, 0, 0x1D218)
    assert write["name"] == "MM2S 1 control"
