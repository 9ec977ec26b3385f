"""Stacks of cores: the frames of kernels, where an object file or the kernel itself tells them.

Peano leaves the frame of every function in a section `.stack_sizes` when it compiles with `-fstack-size-section`. What
a kernel calls comes on top and is not followed, so a stack that passes may still be too small.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from bdforge.emulator.errors import ArgumentError

SECTION = ".stack_sizes"


@dataclass(frozen=True, slots=True)
class Frame:
    """What a function keeps on the stack, and who says so."""

    size_bytes: int
    source: str


def frames_of(path: Path) -> dict[str, Frame]:
    """Frames of an object's functions by symbol, none without the section; ArgumentError for no ELF file."""
    try:
        with path.open("rb") as file:
            elf = ELFFile(file)
            return {name: Frame(size, path.name) for name, size in _frames(elf)}
    except OSError as error:
        raise ArgumentError(f"{path}: {error.strerror}") from None
    except (ELFError, IndexError, ValueError) as error:
        raise ArgumentError(f"{path}: no readable object file (ELF): {error}") from None


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


def largest(frames: Sequence[tuple[str, Frame]], stack_size: int, kept_bytes: int) -> str | None:
    """What is wrong with a stack of `stack_size` bytes that holds `kept_bytes` when kernels are called, if anything."""
    if not frames:
        return None
    name, frame = max(frames, key=lambda named: named[1].size_bytes)
    if kept_bytes + frame.size_bytes <= stack_size:
        return None
    beside = f" beside {kept_bytes} of memref.alloca" if kept_bytes else ""
    return (
        f"its stack has {stack_size} bytes, but {name} takes {frame.size_bytes}{beside} ({frame.source}), without what "
        "it calls; on the array that overwrites the buffer behind the stack: raise stack_size of the aie.core"
    )
