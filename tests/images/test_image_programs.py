"""Core programs of files and control code of full ELFs, from writes that are given here."""

import struct

import pytest

from bdforge.array.images.cdo import cdo
from bdforge.array.images.control_code import placed_arguments, without_load
from bdforge.array.images.pdi import pdi
from bdforge.array.images.programs import read_programs
from bdforge.common.binary import ImageError
from bdforge.core.isa.elf import core_elf
from bdforge.devices import device_named
from bdforge.devices.txn_format.codec import encode
from bdforge.devices.txn_format.operations import BlockWrite, LoadPdi, Noop, Operation, Patch, Write

PROGRAM, BYTES = 0x20000, 0x4000
"""Where a core's program memory begins and how large it is (AM027)."""


def at(column: int, row: int, offset: int) -> int:
    return column << 25 | row << 20 | offset


def pieces(data: bytes, **how: bool) -> dict[str, list[tuple[int, bytes]]]:
    return {p.name: [(piece.address, piece.data) for piece in p.code] for p in read_programs(data, **how)}


def packed(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


@pytest.mark.parametrize(("offset", "found"), [
    (-4, False), (0, True), (4, True), (BYTES - 4, True), (BYTES, False),
])  # fmt: skip
def test_a_write_is_of_a_program_from_its_memorys_first_word_to_its_last(offset: int, found: bool):
    data = cdo([Write(at(1, 3, PROGRAM + offset), 7)])
    assert pieces(data, sparse=True) == ({"tile (1, 3)": [(offset, packed(7))]} if found else {})
    if not found:
        with pytest.raises(ImageError, match="the file writes no program memory of any core"):
            read_programs(data)


def test_code_ends_with_its_memory_and_not_behind_it():
    full = [BlockWrite(at(0, 2, PROGRAM + BYTES - 8), (1, 2))]
    assert pieces(cdo(full)) == {"tile (0, 2)": [(BYTES - 8, packed(1, 2))]}
    with pytest.raises(ImageError, match=r"^tile \(0, 2\) code ends at 0x4004, beyond 0x4000$"):
        read_programs(cdo([BlockWrite(at(0, 2, PROGRAM + BYTES - 8), (1, 2, 3))]))
    assert pieces(bytes(BYTES), raw=True) == {"": [(0, bytes(BYTES))]}
    with pytest.raises(ImageError, match=r"^code ends at 0x4004, beyond 0x4000$"):
        read_programs(bytes(BYTES + 4), raw=True)


def test_neighbouring_pieces_are_one_gaps_part_them_and_later_writes_win():
    data = cdo([
        BlockWrite(at(0, 2, PROGRAM), (1, 2)), Write(at(0, 2, PROGRAM + 8), 3), Write(at(0, 2, PROGRAM + 16), 5),
        Write(at(0, 2, PROGRAM + 4), 9),
    ])  # fmt: skip
    assert pieces(data) == {"tile (0, 2)": [(0, packed(1, 9, 3)), (16, packed(5))]}


def test_programs_come_by_column_and_row_and_say_of_which_pdi_where_there_are_several():
    files = cdo([Write(at(1, 2, PROGRAM), 1), Write(at(0, 3, PROGRAM), 2), Write(at(0, 2, PROGRAM), 3)])
    assert list(pieces(files)) == list(pieces(pdi([files]))) == ["tile (0, 2)", "tile (0, 3)", "tile (1, 2)"]
    partition = bytes(120) + struct.pack("<II", 2, 184) + bytes(56)
    images = [pdi([cdo([Write(at(0, 2, PROGRAM), i)])]) for i in (4, 5)]
    start = 184 + 2 * 96
    for image in images:
        partition += struct.pack("<16xII72x", len(image), start)
        start += len(image)
    partition += b"".join(images)
    head = b"xclbin2\0" + bytes(440) + struct.pack("<II", 1, 0) + struct.pack("<I20xQQ", 32, 496, len(partition))
    assert pieces(head + partition) == {
        "PDI 0, tile (0, 2)": [(0, packed(4))], "PDI 1, tile (0, 2)": [(0, packed(5))],
    }  # fmt: skip


def test_other_files_are_told_by_how_they_start():
    assert pieces(core_elf("aie2p", [(0, packed(6, 7))], [], [], {})) == {"": [(0, packed(6, 7))]}
    for start, told in ((b"", "nothing"), (b"abcdefghij", "6162636465666768")):
        with pytest.raises(ImageError, match=f"the file starts with {told}; say --raw for plain code"):
            read_programs(start)


HALO = device_named("strix_halo")
LOAD = LoadPdi(0, 64, 0)
XRT = 0x80000000
"""What XRT adds to addresses of DRAM."""


def words(*operations: Operation) -> bytes:
    return encode(operations, HALO).tobytes()


@pytest.mark.parametrize(("operations", "rest"), [
    ([LOAD, Noop(), Write(4, 5)], [Noop(), Write(4, 5)]), ([LOAD], []), ([], []), ([Write(4, 5), LOAD], None),
    ([LOAD, LOAD], [LOAD]),
])  # fmt: skip
def test_control_code_loses_the_load_that_it_starts_with_and_no_other(operations, rest):
    assert without_load(words(*operations)) == words(*(operations if rest is None else rest))


@pytest.mark.parametrize("address", [0, 4, 0xFFFF_FFFC, 1 << 32, (1 << 48) - 8192 - XRT])
@pytest.mark.parametrize("plus", [0, 4096])
@pytest.mark.parametrize("flags", [0, 0xFFFF])
def test_an_arguments_address_is_48_bit_of_its_bd_without_what_patch_and_xrt_add(address: int, plus: int, flags: int):
    held = address + XRT + plus
    block = BlockWrite(0x1D000, (99, held & 0xFFFFFFFF, flags << 16 | held >> 32, 0, 0, 0, 0, 0))
    assert placed_arguments(words(block, Patch(0x1D004, 0, plus))) == [address]


def test_arguments_are_in_order_and_those_of_no_bd_have_the_first_address():
    def block(number: int, address: int) -> Operation:
        return BlockWrite(0x1D000 + 0x20 * number, (0, (address + XRT) & 0xFFFFFFFF, (address + XRT) >> 32))

    operations = [block(0, 0x500), Patch(0x1D004, 3, 0), block(1, 0x700), Patch(0x1D024, 0, 0x100)]
    assert placed_arguments(words(*operations)) == [0x600, 0x500, 0x500, 0x500]
    assert placed_arguments(words(Write(4, 5))) == []
    again = [block(0, 0x500), Patch(0x1D004, 0, 0), block(0, 0x900), Patch(0x1D004, 1, 0)]
    assert placed_arguments(words(*again)) == [0x500, 0x900]
