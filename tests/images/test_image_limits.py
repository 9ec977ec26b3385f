"""CDOs and PDIs put together by hand: lengths, counts and kinds at their ends, and what is next to them."""

import struct

import pytest

from bdforge.array.images.cdo import (
    BLOCK,
    END,
    MAGIC,
    MASK,
    MASK_64,
    NOP,
    SET,
    WRITE,
    WRITE_64,
    cdo,
    commands,
    joined,
    operations,
)
from bdforge.array.images.pdi import cdos, is_pdi, pdi
from bdforge.common.binary import ImageError
from bdforge.core.isa.elf import core_elf, core_segments
from bdforge.devices.txn_format.operations import BlockWrite, MaskWrite, Write


def packed(words: list[int]) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def file(*words: int, header: int = 4, magic: int = MAGIC, length: int | None = None) -> bytes:
    """A CDO of these words, its checksum right whatever the header says."""
    first = [header, magic, 0x200, len(words) if length is None else length]
    return packed([*first, ~sum(first) & 0xFFFFFFFF, *words])


def command(code: int, *payload: int, count: int | None = None) -> tuple[int, ...]:
    return ((len(payload) if count is None else count) << 16 | code, *payload)


@pytest.mark.parametrize("bit", [0, 15, 16, 31])
def test_every_bit_of_a_cdos_checksum_counts(bit: int):
    data = bytearray(file(*command(WRITE_64, 0, 4, 9)))
    data[16 + bit // 8] ^= 1 << bit % 8
    with pytest.raises(ImageError, match="the CDO header's checksum"):
        list(operations(bytes(data)))


@pytest.mark.parametrize("generation", ["aie2", "aie2p"])
def test_an_elf_says_its_generation_and_names_addresses_only(generation: str):
    symbols = {"main": 0, "SIZE": 0, "table": 0x4000}
    elf = core_elf(generation, [(0, bytes(16))], [], [], symbols, frozenset(["SIZE"]), frozenset(["SIZE"]))
    _, found, names = core_segments(elf)
    assert (found, names[0]) == (generation, "main")


def test_a_set_repeats_its_word_up_to_a_limit():
    (found,) = operations(file(*command(SET, 0, 64, 1 << 20, 7)))
    assert isinstance(found, BlockWrite)
    assert len(found.words) == 1 << 20
    with pytest.raises(ImageError, match="repeats a word 1048577 times"):
        list(operations(file(*command(SET, 0, 64, (1 << 20) + 1, 7))))


def test_a_command_ends_with_its_file_and_not_behind_it():
    assert list(operations(file(*command(WRITE_64, 0, 4, 9)))) == [Write(4, 9)]
    with pytest.raises(ImageError, match="has 4 words, beyond the end"):
        list(operations(file(*command(WRITE_64, 0, 4, 9, count=4))))
    with pytest.raises(ImageError, match="the CDO's commands"):
        list(operations(file(*command(WRITE_64, 0, 4, 9), length=5)))


@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"header": 5}, "says that 5 words follow, not 4"),
        ({"header": 3}, "says that 3 words follow, not 4"),
        ({"magic": MAGIC + 1}, "not the CDO magic 0x4f4443"),
    ],
)
def test_a_header_of_another_form_is_refused_though_its_checksum_is_right(facts, message):
    with pytest.raises(ImageError, match=message):
        list(commands(file(NOP, **facts)))


def test_nothing_is_read_behind_the_end():
    assert list(operations(file(*command(WRITE, 4, 9), END, *command(WRITE, 8, 1)))) == [Write(4, 9)]


@pytest.mark.parametrize(
    ("code", "needed"),
    [(MASK, 3), (WRITE, 2), (BLOCK, 2), (MASK_64, 4), (WRITE_64, 3), (SET, 4), (0x101, 3), (0x106, 4)],
)
def test_a_command_of_too_few_words_is_named(code: int, needed: int):
    list(operations(file(*command(code, *[0] * needed))))
    with pytest.raises(ImageError, match=f"has {needed - 1} words, not {needed}"):
        list(operations(file(*command(code, *[0] * (needed - 1)))))


SKIPPED = {"delay": 0x104, "end": END, "nop": NOP}


@pytest.mark.parametrize("code", range(0x100, 0x112))
def test_commands_beside_writes_and_polls_are_passed_over_or_refused(code: int):
    """Delays, nops and the end change no register; every other kind of bootgen's is no configuration's."""
    read = {0x101, MASK, WRITE, BLOCK, 0x106, MASK_64, WRITE_64, SET}
    data = file(*command(code, 0, 0, 0, 0), *command(WRITE, 8, 9))
    if code in SKIPPED.values():
        assert list(operations(data)) == ([] if code == END else [Write(8, 9)])
    elif code in read:
        assert len(list(operations(data))) == 2
    else:
        with pytest.raises(ImageError, match=f"CDO command {code:#x} at 0x14 is none"):
            list(operations(data))


@pytest.mark.parametrize("high", [0, 1])
def test_a_join_keeps_addresses_beyond_4_gib(high: int):
    at = high << 32 | 0x40
    content = [*command(WRITE_64, high, 0x40, 5), *command(MASK_64, high, 0x40, 3, 2), *command(BLOCK, high, 0x40, 6)]
    expected = [Write(at, 5), MaskWrite(at, mask=3, value=2), BlockWrite(at, (6,)) if high else Write(at, 6)]
    assert list(operations(joined([file(*content)]))) == expected


@pytest.mark.parametrize("count", [253, 254, 255, 256, 300])
def test_a_long_command_has_its_length_in_a_word_of_its_own(count: int):
    block = BlockWrite(0x1000, tuple(range(count - 2)))
    data = cdo([block])
    assert list(operations(data)) == [block]
    heads = [word for (word,) in struct.iter_unpack("<I", data) if word & 0xFFFF == BLOCK and word >> 16]
    length = heads[0] >> 16
    assert length == (count if count <= 254 else 255), f"a command of {count} words has length {length} in its head"


def partitions(count: int, kind: int = 2) -> bytes:
    """A PDI with so many headers of partitions, all of its one CDO."""
    base = bytearray(pdi([file(NOP)]))
    header = base[0xD0:0x150]
    struct.pack_into("<I", header, 0x24, kind << 24)
    struct.pack_into("<I", header, 0x7C, ~sum(struct.unpack_from("<31I", header)) & 0xFFFFFFFF)
    struct.pack_into("<II", base, 0x1C, count, len(base) // 4)
    struct.pack_into("<I", base, 0x8C, ~sum(struct.unpack_from("<31I", base, 0x10)) & 0xFFFFFFFF)
    return bytes(base + header * count)


def test_a_pdi_has_so_many_partitions_and_no_more():
    assert len(cdos(partitions(64))) == 64
    with pytest.raises(ImageError, match="counts 65 partitions; at most 64 are read"):
        cdos(partitions(65))


@pytest.mark.parametrize("kind", range(16))
def test_only_partitions_of_cdos_are_read(kind: int):
    assert len(cdos(partitions(1, kind))) == (kind == 2)


def test_sixteen_bytes_tell_a_pdi():
    data = pdi([file(NOP)])
    assert is_pdi(data[:16])
    assert not is_pdi(data[:15])
    assert not is_pdi(bytes(16))


@pytest.mark.parametrize("nops", range(6))
def test_a_pdi_is_filled_to_16_bytes_and_says_both_lengths(nops: int):
    data = pdi([file(*[NOP] * nops)])
    filled, content, total = struct.unpack_from("<III", data, 0xD0)
    assert (filled, total) == ((len(data) - 0x150) // 4, filled)
    assert content == 5 + nops
    assert len(data) % 16 == 0
    assert 0 <= 4 * (filled - content) < 16
