"""Readers of containers against files of the real tools."""

import struct

import pytest

from bdforge.array.images.cdo import commands, writes
from bdforge.array.images.pdi import cdos, embedded_pdis
from bdforge.array.images.xclbin import pdis, sections
from bdforge.common.binary import ImageError
from bdforge.core.isa.elf import core_segments
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


@pytest.mark.parametrize("word", [0, 1, 2])
@pytest.mark.parametrize("cut", [0, 32])
def test_a_partition_header_of_amds_overlays_is_named_as_a_variant(word, cut):
    """Words that bootgen leaves 0 are set without a new checksum, and the data may end early."""
    image = bytearray(IMAGES["pdi_core"])
    image[0x140 + 4 * word] ^= 0x21
    with pytest.raises(ImageError, match=r"variant.*AMD's own overlays.*from 0x140 to 0x148.*0x21") as fault:
        cdos(bytes(image[: len(image) - cut]))
    assert (f"data end at {len(image) - cut:#x}" in str(fault.value)) == bool(cut)


@pytest.mark.parametrize("word", [0, 1, 2])
def test_words_that_bootgen_leaves_0_may_be_set_where_the_checksum_says_so(word):
    image = bytearray(IMAGES["pdi_core"])
    whole = cdos(bytes(image))
    image[0x140 + 4 * word] ^= 0x21
    stored = int.from_bytes(image[0x14C:0x150], "little") - 0x21 & 0xFFFFFFFF
    image[0x14C:0x150] = stored.to_bytes(4, "little")
    assert cdos(bytes(image)) == whole
    with pytest.raises(ImageError, match="variant"):
        cdos(bytes(image[:-32]))


def test_cut_files_are_named():
    for name, read in (("pdi_core", cdos), ("xclbin_small", pdis), ("core_elf_small", core_segments)):
        for length in (0, 7, 60, 200):
            with pytest.raises(ImageError):
                read(IMAGES[name][:length])
