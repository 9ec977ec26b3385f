"""xclbin (axlf): sections, and the PDIs of its AIE partition."""

from enum import IntEnum

from bdforge.images.errors import ImageError, piece, unpack

MAGIC = b"xclbin2\0"
_SECTION_COUNT, _SECTIONS, _SECTION_SIZE = 448, 456, 40
_PDI_TABLE, _PDI_SIZE = 120, 96
_MOST = 1024


class Kind(IntEnum):
    """Sections that an NPU's xclbin has (XRT, `xclbin.h`)."""

    EMBEDDED_METADATA = 2
    MEM_TOPOLOGY = 6
    CONNECTIVITY = 7
    IP_LAYOUT = 8
    GROUP_TOPOLOGY = 26
    GROUP_CONNECTIVITY = 27
    AIE_PARTITION = 32


def sections(data: bytes) -> list[tuple[int, bytes]]:
    """(kind, content) of all sections; ImageError for a wrong magic or offset."""
    if data[:8] != MAGIC:
        raise ImageError(f"the file does not start with {MAGIC!r}")
    (count,) = unpack(data, "<I", _SECTION_COUNT, "number of sections")
    if count > _MOST:
        raise ImageError(f"the header counts {count} sections; at most {_MOST} are read")
    found = []
    for i in range(count):
        kind, offset, size = unpack(data, "<I20xQQ", _SECTIONS + _SECTION_SIZE * i, f"header of section {i}")
        found.append((kind, piece(data, offset, size, f"section {i} of kind {kind}")))
    return found


def pdis(data: bytes) -> list[bytes]:
    """The PDIs of every AIE partition, in order; ImageError if there is none."""
    partitions = [content for kind, content in sections(data) if kind == Kind.AIE_PARTITION]
    found = [pdi for partition in partitions for pdi in _pdis(partition)]
    if not found:
        raise ImageError("the xclbin has no AIE partition with a PDI")
    return found


def _pdis(partition: bytes) -> list[bytes]:
    count, table = unpack(partition, "<II", _PDI_TABLE, "PDI table")
    if count > _MOST:
        raise ImageError(f"the AIE partition counts {count} PDIs; at most {_MOST} are read")
    found = []
    for i in range(count):
        size, offset = unpack(partition, "<16xII", table + _PDI_SIZE * i, f"record of PDI {i}")
        found.append(piece(partition, offset, size, f"PDI {i}"))
    return found
