"""Stack frames that an object file tells: Peano leaves them in `.stack_sizes` with `-fstack-size-section`."""

import io
from collections.abc import Iterator

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from bdforge.common.binary import ImageError

SECTION = ".stack_sizes"


def frame_bytes(data: bytes) -> dict[str, int]:
    """Bytes of an object's frames by function, none without the section; ImageError for no ELF file."""
    try:
        return dict(_frames(ELFFile(io.BytesIO(data))))
    except (ELFError, IndexError, ValueError) as error:
        raise ImageError(f"no readable object file (ELF): {error}") from None


def _frames(elf: ELFFile) -> Iterator[tuple[str, int]]:
    """Each entry is a function's address and a size as ULEB128; in an object file a relocation fills the address."""
    symbols = next((s for s in elf.iter_sections() if isinstance(s, SymbolTableSection)), None)
    word = elf.elfclass // 8
    for number, section in enumerate(elf.iter_sections()):
        if section.name != SECTION or symbols is None:
            continue
        places = _relocated(elf, number, symbols)
        data, at = section.data(), 0
        while at < len(data):
            address = int.from_bytes(data[at : at + word], "little" if elf.little_endian else "big")
            home, offset = places.get(at, (None, address))
            size, following = _uleb(data, at + word)
            if (name := _function(symbols, home, offset + (address if home is not None else 0))) is not None:
                yield name, size
            at = following


def _relocated(elf: ELFFile, number: int, symbols: SymbolTableSection) -> dict[int, tuple[int, int]]:
    """By place in the section: the section of the function meant, and its offset there."""
    found = {}
    for section in elf.iter_sections():
        if isinstance(section, RelocationSection) and section["sh_info"] == number:
            for entry in section.iter_relocations():
                symbol = symbols.get_symbol(entry["r_info_sym"])
                addend = entry["r_addend"] if section.is_RELA() else 0
                found[entry["r_offset"]] = symbol["st_shndx"], symbol["st_value"] + addend
    return found


def _function(symbols: Section, home: int | None, offset: int) -> str | None:
    assert isinstance(symbols, SymbolTableSection)
    for symbol in symbols.iter_symbols():
        if (
            symbol["st_info"]["type"] == "STT_FUNC"
            and symbol["st_value"] == offset
            and home in (None, symbol["st_shndx"])
        ):
            return symbol.name
    return None


def _uleb(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while data[at] & 0x80:
        value |= (data[at] & 0x7F) << shift
        at, shift = at + 1, shift + 7
    return value | data[at] << shift, at + 1
