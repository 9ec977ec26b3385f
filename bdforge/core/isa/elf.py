"""ELFs of cores as aie-rt's loader takes them, read and written, and what a core's program memory holds by them."""

import io
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.common.binary import ImageError
from bdforge.common.binary import piece as cut
from bdforge.core.isa.bundle_codec import load
from bdforge.core.isa.errors import DecodeError
from bdforge.core.isa.isa_tables import GENERATIONS
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

CORE_MACHINE = 0x108
ELF_GENERATIONS: Mapping[int, str] = {2: "aie2", 3: "aie2p"}
"""Generations by the two low bits of e_flags."""

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
    return [s for s in segments if s is not None and s.data], ELF_GENERATIONS.get(flags & 3), _function_names(data)


def _core_flags(data: bytes) -> int:
    if not is_elf(data) or len(data) < _HEADER:
        raise ImageError(f"no ELF: {len(data)} bytes that start with {data[:4]!r}")
    machine, flags = struct.unpack_from("<H", data, 18)[0], struct.unpack_from("<I", data, 36)[0]
    if data[4:6] != b"\x01\x01" or machine != CORE_MACHINE:
        raise ImageError(f"not a core's ELF: machine {machine:#x} instead of {CORE_MACHINE:#x}, or not 32 bits")
    return flags


def _segment(data: bytes, header: int, i: int) -> CoreSegment | None:
    cut(data, header, _PROGRAM_HEADER, f"program header {i}")
    kind, offset, _, address, in_file, size = struct.unpack_from("<6I", data, header)
    if kind != 1:
        return None
    if size > _MOST_BYTES:
        raise ImageError(f"segment {i} has {size:#x} bytes; a core's memories hold {_MOST_BYTES:#x}")
    if not in_file:
        return CoreSegment(address, bytes(size))
    end = offset + size
    return CoreSegment(address, cut(data, offset, size, f"segment {i}"), data[end : end + -size % _WORD])


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


@dataclass(frozen=True, slots=True)
class CoreProgram:
    """What a core's program memory holds: `code` by address; `name` says of which core, "" if the file has one only.

    `generation` is None if the file does not tell, `symbols` are names of addresses, `tile` the column and row.
    """

    name: str
    code: tuple[CoreSegment, ...]
    generation: str | None = None
    symbols: Mapping[int, str] = field(default_factory=dict)
    tile: tuple[int, int] | None = None


def program_of(elf: bytes) -> CoreProgram:
    """The program of a core's ELF; ImageError for a file that is none."""
    segments, generation, symbols = core_segments(elf)
    code = tuple(s for s in segments if s.address < PROGRAM_MEMORY_BYTES)
    return CoreProgram("", code, generation, {a: n for a, n in symbols.items() if a < PROGRAM_MEMORY_BYTES})


def generation_of(program: CoreProgram) -> str:
    """The generation whose bundles cover more of the code; AIE2P if both cover the same."""
    if program.generation:
        return program.generation
    return max(GENERATIONS, key=lambda generation: sum(_covered(generation, s.data) for s in program.code))


def _covered(generation: str, code: bytes) -> int:
    isa, offset, known = load(generation), 0, 0
    while offset < len(code):
        size = isa.size(code[offset])
        try:
            isa.decode(code, offset)
            known += size
        except DecodeError:
            pass
        offset += size
    return known


_HEADER, _PROGRAM_HEADER, _SECTION_HEADER, _SYMBOL = 52, 32, 40, 16
_PROGBITS, _SYMTAB, _STRTAB, _NOBITS = 1, 2, 3, 8
_EXECUTE, _READ = 1, 4
_ABSOLUTE = 0xFFF1


def core_elf(
    generation: str,
    code: Iterable[tuple[int, bytes]],
    data: Iterable[tuple[int, bytes]],
    zeros: Iterable[tuple[int, int]],
    symbols: Mapping[str, int],
    exported: frozenset[str] = frozenset(),
    constants: frozenset[str] = frozenset(),
) -> bytes:
    """An ELF with one segment per (address, bytes) of code and data and per (address, size) of zeros.

    Program headers follow the header directly, and no segment is longer in memory than in the file unless it has no
    bytes there: aie-rt's loader reads what follows in the file otherwise. Code is padded to whole words. `exported`
    symbols are global, `constants` name no address.
    """
    pieces = [(address, piece + bytes(-len(piece) % _WORD), True) for address, piece in code]
    pieces += [(address, piece, False) for address, piece in data]
    blocks = [(a, piece, len(piece), run) for a, piece, run in pieces] + [(a, b"", size, False) for a, size in zeros]
    file, names, strings = _Grown(bytes(_HEADER + _PROGRAM_HEADER * len(blocks))), _Grown(b"\0"), _Grown(b"\0")
    segments, sections = b"", [bytes(_SECTION_HEADER)]
    for address, piece, size, run in blocks:
        offset, kind = file.add(piece, 16), _PROGBITS if piece else _NOBITS
        flags = _READ | _EXECUTE if run else _READ
        segments += struct.pack("<8I", 1, offset, address, address, len(piece), size, flags, 16)
        name = names.text(".text" if run else ".data" if piece else ".bss")
        sections.append(_section(name, kind, 6 if run else 3, address, offset, size, 0, 0, 16, 0))
    ordered = sorted(symbols.items(), key=lambda item: item[0] in exported)
    table = bytes(_SYMBOL) + b"".join(
        _symbol(strings.text(name), value, name in exported, [] if name in constants else blocks)
        for name, value in ordered
    )
    local, link = 1 + sum(name not in exported for name in symbols), len(sections) + 1
    at = file.add(table, _WORD), len(table), link, local, _WORD, _SYMBOL
    sections.append(_section(names.text(".symtab"), _SYMTAB, 0, 0, *at))
    for name, texts in ((".strtab", strings), (".shstrtab", names)):
        name_at = names.text(name)
        at = file.add(texts.data), len(texts.data), 0, 0, 1, 0
        sections.append(_section(name_at, _STRTAB, 0, 0, *at))
    flags = next(value for value, name in ELF_GENERATIONS.items() if name == generation)
    start = file.add(b"".join(sections), _WORD)
    sizes = _HEADER, _PROGRAM_HEADER, len(blocks), _SECTION_HEADER, len(sections), len(sections) - 1
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    header = ident + struct.pack("<HHIIIII6H", 2, CORE_MACHINE, 1, 0, _HEADER, start, flags, *sizes) + segments
    return header + file.data[len(header) :]


def _symbol(name: int, value: int, exported: bool, blocks: Sequence[tuple[int, bytes, int, bool]]) -> bytes:
    held = (i for i, (start, _, size, _) in enumerate(blocks, 1) if start <= value < start + size)
    return struct.pack("<IIIBBH", name, value, 0, 16 if exported else 0, 0, next(held, _ABSOLUTE))


def _section(*numbers: int) -> bytes:
    return struct.pack("<10I", *numbers)


class _Grown:
    """Bytes that grow: a file, or a string table."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def add(self, data: bytes, alignment: int = 1) -> int:
        """Append at a multiple of `alignment`; the offset."""
        self.data += bytes(-len(self.data) % alignment) + data
        return len(self.data) - len(data)

    def text(self, text: str) -> int:
        """The offset of a text, which is appended."""
        return self.add(text.encode() + b"\0")
