"""Where aiecc put a design's buffers, read from its working folder and held against the design.

A host writes parameters to addresses, so that a buffer elsewhere is not a detail: the array would read what the host
never wrote.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from bdforge.array.mlir import MlirError, parse
from bdforge.array.mlir.memory_ops import BufferOp
from bdforge.design import Design
from bdforge.devices.limits import CORE_OWN_MEMORY

TEXTS, PROGRAMS = "*input_with_addresses.mlir", "*core_*_*.elf"
_PROGRAM = re.compile(r"core_(\d+)_(\d+)\.elf$")
_SHOWN = 12  # differences in a message; a wrong scheme moves hundreds of buffers alike


@dataclass(frozen=True, slots=True)
class ReadBack:
    """Byte addresses of buffers by name, each in its tile's memory, and the kind of file that told them."""

    source: str
    buffers: Mapping[str, int]


def read_back(work: Path, design: Design) -> ReadBack | None:
    """What aiecc's working folder says of a design's buffers; None where it says nothing.

    First its text with addresses, which knows all; else the symbols of the cores' programs, which know the cores'.
    """
    for source, read in ((TEXTS, _from_texts), (PROGRAMS, _from_programs)):
        if found := read(work, design):
            return ReadBack(source.lstrip("*"), found)
    return None


def differences(found: ReadBack, design: Design) -> str:
    """Every buffer that is not where the text put it, with tile and both addresses; "" when all are."""
    moved = [
        f"  {tile.kind} ({tile.column}, {tile.row}): {buffer.name} lies at {found.buffers[buffer.name]:#x}, "
        f"the text says {buffer.address:#x}"
        for tile in design.tiles
        for buffer in tile.buffers
        if found.buffers.get(buffer.name, buffer.address) != buffer.address
    ]
    more = [f"  and {len(moved) - _SHOWN} more"] if len(moved) > _SHOWN else []
    return "\n".join(moved[:_SHOWN] + more)


def _from_texts(work: Path, design: Design) -> dict[str, int]:
    """Addresses in the text; none where it leaves one of the design's open, or cannot be read."""
    found: dict[str, int] = {}
    for path in sorted(work.rglob(TEXTS)):
        try:
            operations = parse(path.read_text(encoding="utf-8"), str(path)).walk()
        except (OSError, UnicodeDecodeError, MlirError):
            continue
        for op in operations:
            if isinstance(op, BufferOp) and op.symbol and op.address is not None:
                found[op.symbol] = op.address
    return found if found.keys() >= design.buffer_addresses.keys() else {}


def _from_programs(work: Path, design: Design) -> dict[str, int]:
    """Symbols of core programs that name a buffer of their own tile, which a core sees at `CORE_OWN_MEMORY`."""
    found: dict[str, int] = {}
    tiles = {(tile.column, tile.row): {buffer.name for buffer in tile.buffers} for tile in design.tiles}
    for path in sorted(work.rglob(PROGRAMS)):
        place = _PROGRAM.search(path.name)
        own = tiles.get((int(place[1]), int(place[2])), set()) if place else set()
        found |= {name: value - CORE_OWN_MEMORY for name, value in _symbols(path) if name in own}
    return found


def _symbols(path: Path) -> Iterator[tuple[str, int]]:
    try:
        with path.open("rb") as file:
            for section in ELFFile(file).iter_sections():
                if isinstance(section, SymbolTableSection):
                    yield from ((symbol.name, symbol["st_value"]) for symbol in section.iter_symbols())
    except (OSError, ELFError):
        return
