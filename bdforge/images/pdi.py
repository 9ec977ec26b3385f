"""PDI: a boot image whose partitions hold CDOs (bootgen)."""

from bdforge.images.errors import ImageError, piece, word

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
        _check(data, header, header + 0x7C, f"header of partition {i}")
        kind = word(data, header + 0x24, "partition attributes") >> 24 & 15
        if kind == _CDO_TYPE:
            size, offset = 4 * word(data, header + 4, "CDO length"), 4 * word(data, header + 0x20, "CDO offset")
            found.append(piece(data, offset, size, f"CDO of partition {i}"))
    return found


def _check(data: bytes, start: int, place: int, what: str) -> None:
    """The checksum at `place`: the complement of the sum of the words from `start` on."""
    total = sum(word(data, offset, what) for offset in range(start, place, 4))
    stored = word(data, place, f"checksum of the {what}")
    if stored != ~total & 0xFFFFFFFF:
        raise ImageError(f"the {what}'s checksum at {place:#x} is {stored:#x}, not {~total & 0xFFFFFFFF:#x}")
