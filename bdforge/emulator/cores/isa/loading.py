"""How machine code gets into a core: ELFs, program memory written word by word, and the core's control register."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from bdforge.devices.registers import PROGRAM_MEMORY_BYTES
from bdforge.emulator.array import Array
from bdforge.emulator.cores.core import Core
from bdforge.emulator.cores.isa.machine_code import MachineCode, memory_of
from bdforge.emulator.errors import DesignError, RegisterAccessError
from bdforge.emulator.tile import Tile
from bdforge.images import ImageError, Segment, core_segments
from bdforge.isa import load
from bdforge.isa.hazards import check_program
from bdforge.isa.program import CoreProgram

_ENABLE, _RESET = 1, 2
_WORD = 4
_LINE = 16  # bytes of the longest bundle
_SHOWN = 3


def load_elf(core: Core, path: Path | CoreProgram, where: str) -> None:
    """Load a core's ELF: code, data in the four memories that it reaches, and start it; or code that was read already.

    DesignError for a file that is missing, is no core's ELF, is for another generation or reaches beyond its memories.
    """
    if isinstance(path, CoreProgram):
        _place(core, path.code, f"{where}: {path.name}")
        _start(core, core.array.tile(*core.place), dict(path.symbols), path.name)
        return
    try:
        segments, generation, names = core_segments(path.read_bytes())
    except OSError as error:
        raise DesignError(f"{where}: elf_file {path}: {error.strerror}; paths are relative to the design") from None
    except ImageError as error:
        raise DesignError(f"{where}: elf_file {path}: {error}") from None
    mine = core.array.device.generation.name.lower()
    if generation not in (None, mine):
        raise DesignError(f"{where}: elf_file {path} is for {generation}, but {core.array.device.mlir} is {mine}")
    _place(core, segments, f"{where}: elf_file {path}")
    _start(core, core.array.tile(*core.place), names, path.name)


def _place(core: Core, segments: Sequence[Segment], where: str) -> None:
    tile, memory = core.array.tile(*core.place), memory_of(core)
    for segment in segments:
        if segment.address < PROGRAM_MEMORY_BYTES:
            end = segment.address + len(segment.data)
            if end > PROGRAM_MEMORY_BYTES:
                raise DesignError(f"{where}: code ends at {end:#x}, beyond {PROGRAM_MEMORY_BYTES:#x}")
            _code(tile)[segment.address : end] = segment.data
        elif not memory.fill(segment.address, segment.data):
            end = segment.address + len(segment.data)
            raise DesignError(
                f"{where}: data at {segment.address:#x} to {end:#x} is in no memory that the core reaches"
            )


def _code(tile: Tile) -> bytearray:
    if tile.code is None:
        tile.code = bytearray(PROGRAM_MEMORY_BYTES)
    return tile.code


def _start(core: Core, tile: Tile, names: dict[int, str], file: str) -> None:
    generation = core.array.device.generation.name.lower()
    code = bytes(_code(tile))
    for hazard in _hazards(generation, code)[:_SHOWN]:
        core.array.strictness.caution("machine-code", f"{core.name}, {file}: {hazard}")
    core.array.runs_machine_code = True
    core.take(MachineCode(load(generation), code, names, file))
    core.array.scheduler.wake(core)


@lru_cache(maxsize=64)
def _hazards(generation: str, code: bytes) -> list[str]:
    """What the checker says of code without the zeros behind it, which are NOPs."""
    end = len(code.rstrip(b"\0")) + _LINE
    written = Segment(0, code[:end])
    return [str(hazard) for hazard in check_program(CoreProgram("", (written,)), generation)]


class Programs:
    """Program memory and control of an array's cores, as the registers of their tiles reach them."""

    def __init__(self, array: Array) -> None:
        self._array = array

    def store_code(self, place: tuple[int, int], offset: int, value: int, source: str) -> None:
        """Write a word; RegisterAccessError while the core runs, or where the text gives its program."""
        tile = self._array.tile(*place)
        if self._array.core(*place).has_program:
            why = "whose core has its program from the text" if tile.code is None else "whose core runs: reset it first"
            raise RegisterAccessError(f"{tile.name}: code is written to program memory at {offset:#x}, {why}{source}")
        _code(tile)[offset : offset + _WORD] = value.to_bytes(_WORD, "little")

    def code_word(self, place: tuple[int, int], offset: int) -> int:
        """A word of program memory; 0 where no machine code was written."""
        code = self._array.tile(*place).code
        return 0 if code is None else int.from_bytes(code[offset : offset + _WORD], "little")

    def control_core(self, place: tuple[int, int], value: int, source: str) -> None:
        """Reset a core or start it at address 0; a core that runs the text's program goes on, with a warning."""
        tile, core, strictness = self._array.tile(*place), self._array.core(*place), self._array.strictness
        if tile.code is None:
            if core.has_program and value != _ENABLE:
                strictness.warn(f"{tile.name}: its core runs whatever is written to its control register{source}")
            return
        if value & _RESET:
            self._reset(core)
        elif value & _ENABLE and not core.has_program:
            _start(core, tile, {}, "program memory")
        elif not value & _ENABLE and core.has_program:
            strictness.warn(f"{tile.name}: a core that has started stops only when it is reset{source}")

    def _reset(self, core: Core) -> None:
        core.program = core.steps = None
        for tile in self._array.tiles.values():
            for lock in tile.locks:
                lock.forget(core)
