"""What a core's program memory holds, wherever it was read."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bdforge.core.isa.bundle_codec import load
from bdforge.core.isa.elf import CoreSegment, core_segments
from bdforge.core.isa.errors import DecodeError
from bdforge.core.isa.tables import GENERATIONS
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES


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
