"""The fault of a container file, and reading of numbers that may lie outside of it."""

import struct

from bdforge.common.messages import InputError


class ImageError(InputError):
    """A file that is cut short, or whose magic, length, checksum or offset is wrong; says where."""


def word(data: bytes, offset: int, what: str) -> int:
    """The 32-bit little-endian word at `offset`; ImageError if the data ends before."""
    return int(unpack(data, "<I", offset, what)[0])


def unpack(data: bytes, layout: str, offset: int, what: str) -> tuple:
    """Numbers by a layout of `struct`; ImageError if the data ends before."""
    size = struct.calcsize(layout)
    if not 0 <= offset <= len(data) - size:
        raise ImageError(f"{what} at {offset:#x} needs {size} bytes, but the data has {len(data):#x}")
    return struct.unpack_from(layout, data, offset)


def piece(data: bytes, offset: int, size: int, what: str) -> bytes:
    """A range of the data; ImageError if the data ends before."""
    if offset < 0 or size < 0 or offset + size > len(data):
        raise ImageError(f"{what} at {offset:#x} has {size:#x} bytes, but the data ends at {len(data):#x}")
    return data[offset : offset + size]
