"""ELFs of cores: a program with its data, as aie-rt's loader takes it."""

import io
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.common.binary import ImageError, piece

CORE_MACHINE = 0x108
GENERATIONS: Mapping[int, str] = {2: "aie2", 3: "aie2p"}
"""Generations by the two low bits of e_flags."""

_HEADER, _PROGRAM_HEADER = 52, 32
_WORD = 4
_MOST_BYTES = 1 << 18  # the four data memories of a core's address map
BROKEN = (ELFError, ConstructError, ValueError, KeyError, IndexError, TypeError, AttributeError, OSError, struct.error)
"""What pyelftools raises on broken files, as its parsers happen to."""


@dataclass(frozen=True, slots=True)
class CoreSegment:
    """Bytes at a core's address: program memory below 0x4000, data memory from 0x40000 on.

    `tail` is what follows in the file, up to the end of a last word: the loader writes whole words of code.
    """

    address: int
    data: bytes
    tail: bytes = field(default=b"", compare=False)


def is_elf(data: bytes) -> bool:
    """Whether the data starts like an ELF."""
    return data[:4] == b"\x7fELF"


def core_segments(data: bytes) -> tuple[list[CoreSegment], str | None, dict[int, str]]:
    """Loaded segments of a core ELF, its generation if the flags tell, and names of program addresses.

    As aie-rt loads it: program headers follow the 52-byte header directly, `p_paddr` decides, p_memsz bytes are taken
    from the file, zeros only where p_filesz is 0. ImageError for another machine or a segment outside of the file.
    """
    flags = _core_flags(data)
    (count,) = struct.unpack_from("<H", data, 44)
    segments = [_segment(data, _HEADER + _PROGRAM_HEADER * i, i) for i in range(count)]
    return [s for s in segments if s is not None and s.data], GENERATIONS.get(flags & 3), _function_names(data)


def _core_flags(data: bytes) -> int:
    if not is_elf(data) or len(data) < _HEADER:
        raise ImageError(f"no ELF: {len(data)} bytes that start with {data[:4]!r}")
    machine, flags = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<I", data, 36)[0]
    if data[4:6] != b"\x01\x01" or machine != CORE_MACHINE:
        raise ImageError(f"not a core's ELF: machine {machine:#x} instead of {CORE_MACHINE:#x}, or not 32 bits")
    return flags


def _segment(data: bytes, header: int, i: int) -> CoreSegment | None:
    piece(data, header, _PROGRAM_HEADER, f"program header {i}")
    kind, offset, _, address, in_file, size = struct.unpack_from("<6I", data, header)
    if kind != 1:
        return None
    if size > _MOST_BYTES:
        raise ImageError(f"segment {i} has {size:#x} bytes; a core's memories hold {_MOST_BYTES:#x}")
    if not in_file:
        return CoreSegment(address, bytes(size))
    end = offset + size
    return CoreSegment(address, piece(data, offset, size, f"segment {i}"), data[end : end + -size % _WORD])


def _function_names(data: bytes) -> dict[int, str]:
    """Names of addresses in program memory, global ones preferred; none if the symbol table is missing or broken."""
    try:
        file = ELFFile(io.BytesIO(data))
        tables = [s for s in file.iter_sections() if isinstance(s, SymbolTableSection)]
        symbols = [symbol for table in tables for symbol in table.iter_symbols()]
        symbols.sort(key=lambda s: s["st_info"]["bind"] == "STB_GLOBAL")
        wanted = ("STT_FUNC", "STT_NOTYPE")
        return {
            s["st_value"]: s.name
            for s in symbols
            if s.name and s["st_info"]["type"] in wanted and s["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS")
        }
    except BROKEN:
        return {}
