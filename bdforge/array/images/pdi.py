"""PDI: a boot image whose partitions hold CDOs; as bootgen writes it for an array: one image, one partition, one CDO.

Source: bootgen aa3b7259 and Debian's 2022.2, rebuilt byte for byte from files of both.
"""

import io
import struct
from collections.abc import Iterable, Mapping

from elftools.elf.elffile import ELFFile

from bdforge.array.images.cdo import joined
from bdforge.common.binary import ImageError, piece, word
from bdforge.core.isa.elf import BROKEN

MAGIC = 0x11223344
_CDO_TYPE = 2
_MOST_PARTITIONS = 64


def is_pdi(data: bytes) -> bool:
    """Whether the data starts like a PDI: the bus width words and no more are looked at."""
    return len(data) >= 16 and int.from_bytes(data[4:8], "little") == MAGIC


def cdos(data: bytes) -> list[bytes]:
    """The CDOs of all partitions of type CDO, in order; ImageError for a wrong magic, checksum or offset."""
    if not is_pdi(data):
        raise ImageError(f"word 1 is not the PDI magic {MAGIC:#x}")
    _check(data, 0x10, 0x8C, "image header table")
    count, first = word(data, 0x1C, "number of partitions"), 4 * word(data, 0x20, "partition header")
    if count > _MOST_PARTITIONS:
        raise ImageError(f"the image header table counts {count} partitions; at most {_MOST_PARTITIONS} are read")
    found = []
    for i in range(count):
        header = first + 0x80 * i
        _check_partition(data, header, f"header of partition {i}")
        kind = word(data, header + 0x24, "partition attributes") >> 24 & 15
        if kind == _CDO_TYPE:
            size, offset = 4 * word(data, header + 4, "CDO length"), 4 * word(data, header + 0x20, "CDO offset")
            found.append(piece(data, offset, size, f"CDO of partition {i}"))
    return found


def _check_partition(data: bytes, header: int, what: str) -> None:
    """The checksum of a partition's header; of one in AMD's own overlays, which sets words beside it, the variant."""
    at = range(header + 0x70, header + 0x7C, 4)
    unused = [word(data, place, what) for place in at]
    end = 4 * (word(data, header + 0x20, what) + word(data, header + 4, what))
    try:
        _check(data, header, header + 0x7C, what)
        if end <= len(data) or not any(unused):
            return
    except ImageError:
        if not any(unused):
            raise
    short = f", and its data end at {len(data):#x}, before {end:#x}, where it says" if end > len(data) else ""
    raise ImageError(
        f"the {what} is of a variant that is not read, as AMD's own overlays are: its words from {at[0]:#x} to "
        f"{at[-1]:#x}, which bootgen leaves 0, are {', '.join(map(hex, unused))}{short}; give an image made by "
        "bootgen, aiecc or bdforge"
    )


def embedded_pdis(data: bytes) -> list[bytes]:
    """PDIs of a full ELF, sections `.pdi.N` in order; ImageError if there are none or the ELF is broken."""
    try:
        file = ELFFile(io.BytesIO(data))
        found = [section.data() for section in file.iter_sections() if section.name.startswith(".pdi")]
    except BROKEN as error:
        raise ImageError(f"the ELF's sections cannot be read: {error}") from error
    if not found:
        raise ImageError("the ELF is neither a core's program nor has it sections .pdi.N")
    return found


def _check(data: bytes, start: int, place: int, what: str) -> None:
    """The checksum at `place`: the complement of the sum of the words from `start` on."""
    total = sum(word(data, offset, what) for offset in range(start, place, 4))
    stored = word(data, place, f"checksum of the {what}")
    if stored != ~total & 0xFFFFFFFF:
        raise ImageError(f"the {what}'s checksum at {place:#x} is {stored:#x}, not {~total & 0xFFFFFFFF:#x}")


_TABLE, _IMAGE, _PARTITION, _DATA = 0x10, 0x90, 0xD0, 0x150
_ALIGN_BYTES = 16
_NO_ADDRESS = 0xFFFFFFFF
_WORD_MASK = 0xFFFFFFFF

_HEADER: Mapping[int, int] = {
    0x00: 0xDD, 0x04: MAGIC, 0x08: 0x55667788, 0x0C: 0x99AABBCC,
    0x10: 0x00040000, 0x14: 1, 0x18: _IMAGE // 4, 0x1C: 1, 0x20: _PARTITION // 4, 0x28: 0x14CA8093,
    0x38: 0x50504449, 0x3C: 0x00201020, 0x40: 0x30, 0x54: 1,
    0x90: _PARTITION // 4, 0x94: 1, 0xB0: 0x1C000000,
    0xE8: _NO_ADDRESS, 0xEC: _NO_ADDRESS, 0xF0: _DATA // 4, 0xF4: 0x02000006, 0xF8: 1,
}  # fmt: skip
_NAME = (0xA0, b"aie_image")
_CHECKSUMS = ((_TABLE, 0x8C), (_IMAGE, 0xCC), (_PARTITION, 0x14C))


def pdi(cdos: Iterable[bytes]) -> bytes:
    """The PDI of some CDO files, which are joined in order; ImageError for a broken one."""
    content = joined(cdos)
    padded = content + bytes(-len(content) % _ALIGN_BYTES)
    data = bytearray(_DATA)
    lengths = {0xD0: len(padded) // 4, 0xD4: len(content) // 4, 0xD8: len(padded) // 4}
    for offset, value in (*_HEADER.items(), *lengths.items()):
        struct.pack_into("<I", data, offset, value)
    data[_NAME[0] : _NAME[0] + len(_NAME[1])] = _NAME[1]
    for start, place in _CHECKSUMS:
        total = sum(struct.unpack_from(f"<{(place - start) // 4}I", data, start))
        struct.pack_into("<I", data, place, ~total & _WORD_MASK)
    return bytes(data) + padded
