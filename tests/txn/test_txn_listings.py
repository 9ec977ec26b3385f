"""Listings of what streams seldom hold: switches, masks, rows of memtiles; and files that are told what they are."""

import pytest

from bdforge.devices import MLIR_DEVICES
from bdforge.devices.txn_format.codec import InstructionStream, StreamHeader, TxnError
from bdforge.devices.txn_format.containers import stream_bytes
from bdforge.devices.txn_format.describe import as_json, describe, describe_operation
from bdforge.devices.txn_format.operations import LoadPdi, MaskPoll, MaskPollBusy, MaskWrite, Preempt, Sync, Write

ON, PACKETS = 1 << 31, 1 << 30
LEVELS = ("none", "memtile", "core tile", "registers", "level 4")
LINES = [
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
    (MaskPollBusy(0x100, 3, 7), "MaskPollBusy shim (0, 0) register 0x100 = 3 (0x3) (mask 0x00000007)"),
    (Sync(0, 1, 2, 1, 1, 5), "Sync token of memtile (2, 1) S2MM 5"),
    (Sync(1, 2, 3, 1, 2, 0), "Sync token of core (3, 2) and on, 2 columns x 1 rows MM2S 0"),
    (LoadPdi(3, 16, 0x20), "LoadPdi 3: 16 bytes at 0x20"),
    *((Preempt(level), f"Preempt {name}") for level, name in enumerate(LEVELS)),
]


@pytest.mark.parametrize(("operation", "line"), LINES, ids=lambda value: value if isinstance(value, str) else "")
def test_a_rare_operation_reads_as_what_it_does(operation, line: str):
    assert describe_operation(operation) == line


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
    assert pdi == {"operation": "LoadPdi", "id": 3, "size": 16, "address": 0x1D000, "device": "d"}
    assert (write["tile"], write["column"], write["row"], write["offset"]) == ("shim", 3, 0, 0x1D218)
    assert write["name"] == "MM2S 1 control"


FILES = {
    "zip": (b"PK\x03\x04rest", "this is a zip archive; give the instruction stream in it"),
    "gzip": (b"\x1f\x8b\x08rest", "this is a gzip file; decompress it first"),
    "forty signs": (b"z" * 40, f"line 1: '{'z' * 40}' is no word"),
    "forty-one signs": (b"z" * 41, f"line 1: '{'z' * 40}…' is no word"),
}


@pytest.mark.parametrize("name", FILES)
def test_files_of_other_kinds_are_told_what_they_are(name: str):
    data, message = FILES[name]
    with pytest.raises(TxnError, match=message):
        stream_bytes(data)


def test_a_section_is_asked_of_an_elf_alone():
    with pytest.raises(TxnError, match=r"section '.ctrltext' was asked for, but this is no ELF"):
        stream_bytes(b"00000000", ".ctrltext")
