"""xclbins put together by hand: counts and places of sections, PDIs and kernels at their ends, and what is next."""

import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from bdforge.array.images.image_build import image, program_of
from bdforge.array.images.read import _kernels, is_image, read_image
from bdforge.array.images.xclbin import MAGIC, SectionKind, pdis, sections
from bdforge.common.binary import ImageError
from bdforge.core.isa.elf import core_elf
from bdforge.devices import AIE2, AIE2P
from support.cdo_vectors import VECTORS

TABLE, RECORD = 456, 40


def axlf(*found: tuple[int, bytes], count: int | None = None, table: int | None = None, longer: int = 0) -> bytes:
    """A file of these sections; `count` and the room of the `table` are as many as there are unless given."""
    entries, body = b"", b""
    start = TABLE + RECORD * (len(found) if table is None else table)
    for kind, content in found:
        entries += struct.pack("<I20xQQ", kind, start + len(body), len(content) + longer)
        body += content
    head = MAGIC + bytes(448 - len(MAGIC)) + struct.pack("<II", len(found) if count is None else count, 0)
    return (head + entries).ljust(start, b"\0") + body


def told(read: Callable[[], object]) -> object:
    try:
        return read()
    except ImageError as error:
        return str(error)


@pytest.mark.parametrize("count", [0, 1, 1024, 1025])
def test_an_xclbin_has_1024_sections_at_most(count: int):
    found = told(lambda: len(sections(axlf(count=count, table=count))))
    assert found == (count if count <= 1024 else "the header counts 1025 sections; at most 1024 are read")


@pytest.mark.parametrize(("longer", "taken"), [(0, True), (1, False)])
def test_a_section_ends_with_its_file(longer: int, taken: bool):
    found = told(lambda: sections(axlf((6, b"first"), (8, b"second"), longer=longer)))
    wanted = [(6, b"first"), (8, b"second")]
    assert found == wanted if taken else "section 1 of kind 8 at" in str(found), found


def partition(count: int, *, size: int = 4, at: int | None = None) -> bytes:
    """An AIE partition with so many records of one PDI of four bytes behind them."""
    behind = 184 + 96 * count if at is None else at
    head = bytes(120) + struct.pack("<II", count, 184)
    return head.ljust(184, b"\0") + struct.pack("<16xII72x", size, behind) * count + b"PDI."


@pytest.mark.parametrize("count", [1, 3, 1024, 1025])
def test_a_partition_has_1024_pdis_at_most(count: int):
    found = told(lambda: pdis(axlf((SectionKind.AIE_PARTITION, partition(count)))))
    wanted: object = [b"PDI."] * count if count <= 1024 else "the AIE partition counts 1025 PDIs; at most 1024 are read"
    assert found == wanted


def test_a_pdi_ends_with_its_partition():
    assert "PDI 0 at" in str(told(lambda: pdis(axlf((SectionKind.AIE_PARTITION, partition(1, size=5))))))
    assert (
        told(lambda: pdis(axlf((SectionKind.AIE_PARTITION, partition(0)))))
        == "the xclbin has no AIE partition with a PDI"
    )
    two = axlf(
        (SectionKind.AIE_PARTITION, partition(1)),
        (SectionKind.IP_LAYOUT, bytes(8)),
        (SectionKind.AIE_PARTITION, partition(2)),
    )
    assert pdis(two) == [b"PDI."] * 3


@pytest.mark.parametrize("count", [0, 2, 1024, 1025])
def test_an_ip_layout_has_1024_kernels_at_most(count: int):
    records = b"".join(struct.pack("<6xH8x64s", i, f"k{i}:i".encode()) for i in range(count))
    found = told(lambda: _kernels(struct.pack("<I4x", count) + records))
    wanted: object = [(f"k{i}:i", i) for i in range(count)]
    assert found == (wanted if count <= 1024 else "the IP layout counts 1025 kernels; at most 1024 are read")


@pytest.mark.parametrize(("columns", "seconds"), [(None, 0), (2, 99), (1, 1 << 40)])
def test_an_xclbin_has_the_columns_of_its_device_unless_told(columns: int | None, seconds: int):
    configuration = VECTORS["npu2_whole"].configuration()
    found = read_image(image(configuration, ".xclbin", columns=columns, seconds=seconds, bare=True)).container
    assert found is not None
    assert (found.columns, found.seconds) == ((columns or configuration.device.columns,), seconds)


@pytest.mark.parametrize("generation", [AIE2, AIE2P])
def test_programs_are_of_the_generation_of_their_device(generation, tmp_path: Path):
    path = tmp_path / "core.elf"
    path.write_bytes(core_elf(generation.name.lower(), [(0, bytes(16))], [], [], {}))
    assert [segment.data for segment in program_of(path, generation)] == [bytes(16)]
    elf = path.read_bytes()
    (tmp_path / "any.elf").write_bytes(elf[:36] + bytes(4) + elf[40:])
    assert [segment.data for segment in program_of(tmp_path / "any.elf", generation)] == [bytes(16)], (
        "its flags say none"
    )
    other = AIE2 if generation is AIE2P else AIE2P
    with pytest.raises(ImageError, match=f"the program is for {generation.name.lower()}, not for {other.name.lower()}"):
        program_of(path, other)


def test_images_are_told_by_their_first_bytes():
    head = struct.pack("<IIIII", 4, 0x004F4443, 0x200, 0, 0)
    assert is_image(head)
    assert is_image(MAGIC)
    assert is_image(b"\x7fELF")
    assert not is_image(MAGIC[:-1])
    assert not is_image(head[4:])
    assert not is_image(b"")
    assert told(lambda: read_image(b"")) == "no xclbin, PDI, CDO or full ELF: the file starts with nothing"


def test_images_have_one_of_three_suffixes_and_programs_a_file(tmp_path: Path):
    configuration = VECTORS["npu2_whole"].configuration()
    for suffix, kind in ((".cdo", "CDO"), (".pdi", "PDI"), (".xclbin", "xclbin")):
        assert read_image(image(configuration, suffix, bare=True)).kind == kind
    for suffix, told in ((".elf", ".elf"), ("", "without a suffix")):
        with pytest.raises(ImageError, match=f"^images are written as .cdo, .pdi, .xclbin, not {told}$"):
            image(configuration, suffix, bare=True)
    with pytest.raises(ImageError, match=r"^No such file or directory; paths are relative to the design$"):
        program_of(tmp_path / "none.elf", AIE2P)
