"""Core programs in files: ELFs, PDIs, CDOs, xclbins, or raw bytes."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import NamedTuple

from bdforge.array.images.cdo import writes
from bdforge.array.images.read import configurations, is_image
from bdforge.array.lower.array_state import WrittenMemory
from bdforge.common.binary import ImageError
from bdforge.core.isa.elf import CORE_MACHINE, CoreProgram, CoreSegment, is_elf, program_of
from bdforge.devices import TileKind
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES, TILE_REGISTERS, split_address


def read_programs(data: bytes, raw: bool = False, sparse: bool = False) -> list[CoreProgram]:
    """All core programs of a file, told apart by its first bytes; with `raw` all of it is code from address 0 on.

    `sparse` files may hold none.

    ImageError for a file that is broken or holds no program, and for bytes that cannot be any.
    """
    found = [CoreProgram("", (CoreSegment(0, data),))] if raw else _read(data)
    found = [program for program in found if program.code]
    if not (found or sparse):
        raise ImageError("the file writes no program memory of any core")
    for program in found:
        for segment in program.code:
            if segment.address + len(segment.data) > PROGRAM_MEMORY_BYTES:
                end = segment.address + len(segment.data)
                raise ImageError(f"{program.name} code ends at {end:#x}, beyond {PROGRAM_MEMORY_BYTES:#x}".strip())
    return found


class DistinctProgram(NamedTuple):
    """A program, and all that are the same, in the order of the file."""

    program: CoreProgram
    same: tuple[CoreProgram, ...]

    @property
    def tiles(self) -> list[tuple[int, int]]:
        """Columns and rows of the cores whose program it is; none where the file does not tell."""
        return [program.tile for program in self.same if program.tile is not None]


def distinct(programs: Iterable[CoreProgram]) -> list[DistinctProgram]:
    """Programs of which no two are the same, in the order of their first cores."""
    found: dict[Hashable, list[CoreProgram]] = {}
    for program in programs:
        found.setdefault((program.code, program.generation, tuple(program.symbols.items())), []).append(program)
    return [DistinctProgram(same[0], tuple(same)) for same in found.values()]


def is_core_elf(data: bytes) -> bool:
    """Whether the data starts like the ELF of a core."""
    return is_elf(data) and int.from_bytes(data[18:20], "little") == CORE_MACHINE


def _read(data: bytes) -> list[CoreProgram]:
    if is_core_elf(data):
        return [program_of(data)]
    if not is_image(data):
        start = data[:8].hex() or "nothing"
        raise ImageError(f"no core ELF, PDI, CDO or xclbin: the file starts with {start}; say --raw for plain code")
    found = []
    _, images = configurations(data)
    for i, cdos in enumerate(images):
        prefix = f"PDI {i}, " if len(images) > 1 else ""
        found += _of_writes(prefix, (write for cdo in cdos for write in writes(cdo)))
    return found


def _of_writes(prefix: str, all_writes: Iterable[tuple[int, bytes]]) -> list[CoreProgram]:
    """Programs by tile, of writes to program memories; later writes win."""
    pieces: dict[tuple[int, int], list[tuple[int, bytes]]] = {}
    for address, data in all_writes:
        column, row, offset = split_address(address)
        start = offset - TILE_REGISTERS[TileKind.CORE].program_memory.start
        if 0 <= start < PROGRAM_MEMORY_BYTES and data:
            pieces.setdefault((column, row), []).append((start, data))
    return [
        CoreProgram(f"{prefix}tile ({column}, {row})", tuple(_merged(written)), tile=(column, row))
        for (column, row), written in sorted(pieces.items())
    ]


def _merged(pieces: Sequence[tuple[int, bytes]]) -> Iterator[CoreSegment]:
    """Adjacent and overlapping pieces as one segment each."""
    memory = WrittenMemory(max(start + len(data) for start, data in pieces))
    for start, data in pieces:
        memory.store(start, data)
    yield from (CoreSegment(start, data) for start, data in memory.spans())
