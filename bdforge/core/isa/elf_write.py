"""Core ELFs as aie-rt loads them, with sections and symbols for people's tools."""

import struct
from collections.abc import Iterable, Mapping

from bdforge.core.isa.elf import CORE_MACHINE, GENERATIONS

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
    blocks = [(address, piece + bytes(-len(piece) % 4), _READ | _EXECUTE) for address, piece in code]
    blocks += [(address, piece, _READ) for address, piece in data]
    pieces = [(a, piece, len(piece), flags) for a, piece, flags in blocks] + [(a, b"", n, _READ) for a, n in zeros]
    start = _HEADER + _PROGRAM_HEADER * len(pieces)
    body, offsets = _laid_out([piece for _, piece, _, _ in pieces], start)
    headers = b"".join(
        struct.pack("<8I", 1, offset, address, address, len(piece), size, flags, 16)
        for (address, piece, size, flags), offset in zip(pieces, offsets, strict=True)
    )
    tail, sections = _sections(pieces, offsets, symbols, (exported, constants), start + len(body))
    flags = next(value for value, name in GENERATIONS.items() if name == generation)
    ident = b"\x7fELF\x01\x01\x01" + bytes(9)
    table = start + len(body) + len(tail)
    sizes = (_HEADER, _PROGRAM_HEADER, len(pieces), _SECTION_HEADER, len(sections), len(sections) - 1)
    header = ident + struct.pack("<HHIIIII6H", 2, CORE_MACHINE, 1, 0, _HEADER, table, flags, *sizes)
    return header + headers + body + tail + b"".join(sections)


def _laid_out(pieces: list[bytes], start: int) -> tuple[bytes, list[int]]:
    """The pieces one after the other, each on a multiple of 16 of the file, and their offsets."""
    body, offsets = b"", []
    for piece in pieces:
        body += bytes(-(start + len(body)) % 16)
        offsets.append(start + len(body))
        body += piece
    return body + bytes(-(start + len(body)) % 4), offsets


def _sections(pieces, offsets, symbols, kinds, start: int) -> tuple[bytes, list[bytes]]:
    """Symbol and string tables, and the headers of all sections."""
    names = _Strings()
    headers = [bytes(_SECTION_HEADER)]
    for (address, piece, size, flags), offset in zip(pieces, offsets, strict=True):
        code = bool(flags & _EXECUTE)
        name = ".text" if code else ".data" if piece else ".bss"
        kind = _PROGBITS if piece else _NOBITS
        headers.append(_header(names.add(name), kind, 6 if code else 3, address, offset, size, 0, 0, 16, 0))
    strings, (exported, constants) = _Strings(), kinds
    ordered = sorted(symbols.items(), key=lambda item: item[0] in exported)
    entries = [bytes(_SYMBOL)] + [
        _symbol(strings, [] if n in constants else pieces, n, value, n in exported) for n, value in ordered
    ]
    table, text = b"".join(entries), strings.data
    local = 1 + sum(name not in exported for name in symbols)
    link = len(headers) + 1
    headers.append(_header(names.add(".symtab"), _SYMTAB, 0, 0, start, len(table), link, local, 4, _SYMBOL))
    headers.append(_header(names.add(".strtab"), _STRTAB, 0, 0, start + len(table), len(text), 0, 0, 1, 0))
    name = names.add(".shstrtab")
    place = start + len(table) + len(text)
    headers.append(_header(name, _STRTAB, 0, 0, place, len(names.data), 0, 0, 1, 0))
    tail = table + text + names.data
    return tail + bytes(-(start + len(tail)) % 4), headers


def _header(*numbers: int) -> bytes:
    return struct.pack("<10I", *numbers)


def _symbol(strings: "_Strings", pieces, name: str, value: int, exported: bool) -> bytes:
    inside = (i for i, (address, _, size, _) in enumerate(pieces, 1) if address <= value < address + size)
    return struct.pack("<IIIBBH", strings.add(name), value, 0, 16 if exported else 0, 0, next(inside, _ABSOLUTE))


class _Strings:
    """A string table that grows."""

    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        """The offset of a text, which is appended."""
        offset = len(self.data)
        self.data += text.encode() + b"\0"
        return offset
