"""Readers of containers against files of the real tools."""

import struct

import pytest

from bdforge.images import ImageError, cdos, commands, core_segments, embedded_pdis, pdis, sections, writes
from bdforge.images.cdo import cdo
from bdforge.images.elf_write import core_elf
from bdforge.isa.program import read_programs
from bdforge.txn import BlockWrite, Write
from support.images import IMAGES


def test_the_same_pdi_is_in_xclbin_and_full_elf():
    (from_xclbin,) = pdis(IMAGES["xclbin_small"])
    (from_elf,) = embedded_pdis(IMAGES["full_elf_small"])
    assert from_xclbin == from_elf
    assert from_xclbin[4:8] == struct.pack("<I", 0x11223344)
    assert [kind for kind, _ in sections(IMAGES["xclbin_small"])] == [6, 32, 2, 8, 7, 27, 26]


def test_commands_and_writes_of_a_pdi():
    (cdo,) = cdos(IMAGES["pdi_core"])
    codes = [command.code for command in commands(cdo)]
    assert codes.count(0x105) == 5
    assert codes[:3] == [0x111, 0x102, 0x102]
    found = dict(writes(cdo))
    assert len(found[0x2220000]) == 104
    assert found[0x221F020] == struct.pack("<I", 1)


def test_segments_of_a_core_elf():
    segments, generation, names = core_segments(IMAGES["core_elf_small"])
    assert generation == "aie2p"
    assert names == {}
    assert [segment.address for segment in segments] == [0, 0x70400, 0x70420, 0x70500, 0x50040]
    assert segments[2].data == bytes(40)
    assert segments[4].data == b"west"


@pytest.mark.parametrize(
    ("name", "at", "message"),
    [
        ("pdi_core", 0x10, "image header table's checksum at 0x8c"),
        ("pdi_core", 0xD8, "header of partition 0's checksum"),
        ("pdi_core", 0x154, "not the CDO magic"),
        ("pdi_core", 0x158, "CDO header's checksum"),
    ],
)
def test_wrong_words_are_named(name, at, message):
    broken = bytearray(IMAGES[name])
    broken[at] ^= 0x40
    with pytest.raises(ImageError, match=message):
        list(writes(cdos(bytes(broken))[0]))


def test_cut_files_are_named():
    for name, read in (("pdi_core", cdos), ("xclbin_small", pdis), ("core_elf_small", core_segments)):
        for length in (0, 7, 60, 200):
            with pytest.raises(ImageError):
                read(IMAGES[name][:length])


@pytest.mark.parametrize("place", [(0, 2), (3, 5), (7, 3)])
def test_a_cdo_tells_programs_by_column_and_row(place):
    column, row = place
    address = column << 25 | row << 20 | 0x20000
    (program,) = read_programs(cdo([BlockWrite(address, (0x11, 0x22)), Write(address + 8, 0x33)]))
    assert (program.tile, program.name) == (place, f"tile {place}")
    assert [(s.address, s.data) for s in program.code] == [(0, struct.pack("<3I", 0x11, 0x22, 0x33))]


def test_names_of_a_program_are_those_of_its_memory():
    symbols = {"main": 0, "last": 0x3FFC, "data": 0x4000, "far": 0x70400}
    pieces = [(0, bytes(16)), (0x3FFC, bytes(4))], [(0x4000, bytes(4)), (0x70400, bytes(4))]
    (program,) = read_programs(core_elf("aie2p", *pieces, [], symbols))
    assert program.symbols == {0: "main", 0x3FFC: "last"}
