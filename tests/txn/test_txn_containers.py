"""Instruction streams as text, in ELFs and with a header of garbage; and what other files are told to be."""

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from bdforge.array.txn.insts import read
from bdforge.array.txn.target import ControllerIds
from bdforge.devices.txn_format.codec import TxnError, decode, encode
from bdforge.devices.txn_format.containers import elf_sections, stream_bytes
from bdforge.devices.txn_format.describe import describe
from support.differences import same
from support.images import IMAGES
from support.small_designs import loopback
from support.txn_vectors import STREAM_VECTORS, encode_mlir

FULL_ELF = IMAGES["full_elf_small"]
MODULE = Path(__file__).parent / "data" / "images" / "module_elf_small.json"
MODULE_ELF = bytes.fromhex("".join(json.loads(MODULE.read_text())["hex"]))
WORDS = encode_mlir(loopback())
STREAM = WORDS.astype("<u4").tobytes()


def elf(*sections: tuple[str, bytes], machine: int = 1) -> bytes:
    """A 32-bit ELF of named sections and nothing else."""
    names, heads, body = b"\0", [bytes(40)], b""
    for name, content in (*sections, (".shstrtab", b"")):
        offset, at = len(names), 52 + len(body)
        names += name.encode() + b"\0"
        content = names if name == ".shstrtab" else content
        heads.append(struct.pack("<10I", offset, 3 if name == ".shstrtab" else 1, 0, 0, at, len(content), 0, 0, 1, 0))
        body += content
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    head = struct.pack(
        "<HHIIIIIHHHHHH", 2, machine, 1, 0, 0, 52 + len(body), 0, 52, 32, 0, 40, len(heads), len(heads) - 1
    )
    return ident + head + body + b"".join(heads)


def test_a_module_elf_of_xrt_holds_the_recorded_words():
    recorded = STREAM_VECTORS["npu2_linear"]
    words = np.frombuffer(stream_bytes(MODULE_ELF), "<u4")
    assert words.tolist() == recorded.words.tolist()
    same(words, encode_mlir(recorded.mlir, controller_ids=ControllerIds.TEXT))


def test_a_full_elf_of_xrt_names_the_sequence_of_its_stream():
    (section,) = elf_sections(FULL_ELF)
    assert (section.name, section.sequence) == (".ctrltext.0", "sequence")
    stream = decode(section.data)
    assert [type(op).__name__ for op in stream.operations][:2] == ["LoadPdi", "BlockWrite"]
    assert stream_bytes(FULL_ELF, "sequence") == section.data


def test_one_of_several_streams_is_chosen_by_name():
    two = elf((".ctrltext.0", STREAM), (".pdi.1", b"1234"), (".ctrltext.1", STREAM[:16]))
    assert stream_bytes(two, ".ctrltext.1") == STREAM[:16]
    with pytest.raises(TxnError, match=r"holds 2 instruction streams; .* --section: .ctrltext.0, .ctrltext.1$"):
        stream_bytes(two)
    with pytest.raises(TxnError, match=r"no instruction stream '.ctrltext.2'; it has .ctrltext.0, .ctrltext.1"):
        stream_bytes(two, ".ctrltext.2")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(f"{word:08X}" for word in WORDS),
        "\r\n".join(f"0x{word:x}" for word in WORDS) + "\r\n",
        ", ".join(f"{word:08x}" for word in WORDS),
        "\ufeff" + " ".join(f"{word:08x}" for word in WORDS),
    ],
    ids=["digits", "0x", "commas", "byte order mark"],
)
def test_hexadecimal_text_is_read(tmp_path, text):
    (tmp_path / "insts.txt").write_bytes(text.encode())
    assert read(tmp_path / "insts.txt") == decode(WORDS)


@pytest.mark.parametrize("garbage", [(0, 0), (0xDEADBEEF, 0x12345678), (0x06040100, 0x00FF0108)], ids=str)
def test_a_stream_without_a_header_is_read_with_a_note(garbage):
    words = WORDS.copy()
    words[:2] = garbage
    stream = decode(words)
    assert stream.operations == decode(WORDS).operations
    assert f"words 0 and 1 ({garbage[0]:08x} {garbage[1]:08x}) are no header" in stream.notes[0]
    assert describe(stream).startswith("version 0.1, unknown device, 8 operations")
    assert decode(encode(stream.operations, stream.header)).operations == stream.operations


def test_a_stream_that_is_wrong_elsewhere_too_is_refused():
    words = WORDS.copy()
    words[0], words[2] = 0x77, words[2] + 1
    with pytest.raises(TxnError, match=r"word 0: version 119\.0 is unknown"):
        decode(words)


CDO = struct.pack("<5I", 4, 0x004F4443, 0x200, 0, 0)
OTHERS = {
    "xclbin": (b"xclbin2\0" + bytes(64), "this is an xclbin: it holds the array's configuration"),
    "PDI": (FULL_ELF[0xA0:0x370], "this is a PDI"),
    "CDO": (CDO, "this is a CDO"),
    "npy": (b"\x93NUMPY\x01\x00", "this is an .npy array"),
    "core ELF": (elf((".text", b"1234"), machine=0x108), "the ELF of a core's program"),
    "other ELF": (elf((".text", b"1234")), "no section .ctrltext with an instruction stream; it has .text, .shstrtab"),
    "ELF of a like name": (elf((".ctrltexts", STREAM)), "no section .ctrltext with an .* it has .ctrltexts"),
    "MLIR": (loopback().encode(), "line 2: 'module' is no word .* bdforge insts encode"),
    "zip": (b"PK\x03\x04rest", "this is a zip archive; give the instruction stream in it"),
    "gzip": (b"\x1f\x8b\x08rest", "this is a gzip file; decompress it first"),
    "forty signs": (b"z" * 40, f"line 1: '{'z' * 40}' is no word"),
    "forty-one signs": (b"z" * 41, f"line 1: '{'z' * 40}…' is no word"),
    "long digits": (b"00000001\n123456789\n", "line 2: '123456789' is no word of up to eight hexadecimal digits"),
}


@pytest.mark.parametrize(("data", "message"), OTHERS.values(), ids=OTHERS)
def test_other_files_are_told_what_they_are(tmp_path, data, message):
    (tmp_path / "file").write_bytes(data)
    with pytest.raises(TxnError, match=message) as caught:
        read(tmp_path / "file")
    assert str(caught.value).startswith(f"{tmp_path / 'file'}: ")


def test_a_section_is_asked_of_an_elf_alone():
    with pytest.raises(TxnError, match=r"section '.ctrltext' was asked for, but this is no ELF"):
        stream_bytes(b"00000000", ".ctrltext")
