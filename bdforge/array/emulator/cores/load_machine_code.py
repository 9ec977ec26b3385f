"""How machine code gets into a core: ELFs, program memory written word by word, and the core's control register."""

from collections.abc import Mapping

from bdforge.array.emulator.array import Array
from bdforge.array.emulator.cores.core import EmulatedCore
from bdforge.array.emulator.cores.machine_code_core import MachineCode
from bdforge.array.emulator.errors import RegisterAccessError
from bdforge.array.emulator.tile import EmulatedTile
from bdforge.core.exact.engine_build import library
from bdforge.core.exact.verdicts import verdict
from bdforge.core.isa import load
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

_ENABLE, _RESET = 1, 2
_WORD = 4


def _code(tile: EmulatedTile) -> bytearray:
    if tile.code is None:
        tile.code = bytearray(PROGRAM_MEMORY_BYTES)
    return tile.code


class ProgramMemories:
    """Program memory and control of an array's cores, as the registers of their tiles reach them.

    `names` are those of addresses in programs whose ELF is known, by core, with the file's name.
    """

    def __init__(self, array: Array, names: Mapping[tuple[int, int], tuple[dict[int, str], str]] | None = None) -> None:
        self._array, self._names = array, names or {}
        self._judged: set[bytes] = set()

    def fill(self, place: tuple[int, int], start: int, data: bytes) -> None:
        _code(self._array.tile(*place))[start : start + len(data)] = data

    def start(self, place: tuple[int, int]) -> None:
        """Let a core run program memory from address 0 on; a caution for what the checker finds in each program."""
        array, core, code = self._array, self._array.core(*place), bytes(_code(self._array.tile(*place)))
        generation = array.device.generation.name.lower()
        names, file = self._names.get(place, ({}, "program memory"))
        self._judge(core.name, file, generation, code)
        library()  # compiled now where it is missing: hosts give a run seconds
        array.runs_machine_code = True
        core.take(MachineCode(load(generation), code, names, file))
        array.scheduler.wake(core)

    def _judge(self, core: str, file: str, generation: str, code: bytes) -> None:
        """Tell once of each program what the checker finds."""
        if code in self._judged:
            return
        self._judged.add(code)
        found = verdict(generation, code)
        for hazard in (*found.errors, *([found.unusual] if found.unusual else [])):
            self._array.strictness.caution("machine-code", f"{core}, {file}: {hazard}")

    def store_code(self, place: tuple[int, int], offset: int, data: bytes, source: str) -> None:
        """Write words; RegisterAccessError where the text gives the core's program, and by "program-writes"."""
        tile = self._array.tile(*place)
        if self._array.core(*place).has_program:
            why = "whose core has its program from the text" if tile.code is None else "whose core runs: reset it first"
            error = RegisterAccessError(f"{tile.name}: code is written to program memory at {offset:#x}, {why}{source}")
            if tile.code is None:
                raise error
            if not self._array.strictness.permits("program-writes"):  # a program has too many words for a warning each
                self._array.strictness.fault("program-writes", error)
            self._array.strictness.warn("program-writes (permitted): programs are written while cores run")
        _code(tile)[offset : offset + len(data)] = data

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
            self._tell_reset(core)  # it stood still until now
            self.start(place)
        elif not value & _ENABLE and core.has_program:
            strictness.warn(f"{tile.name}: a core that has started stops only when it is reset{source}")

    def _tell_reset(self, core: EmulatedCore) -> None:
        """Replays stop a core here and go on with it at "was reset"."""
        self._array.scheduler.notify("reset", core)
        core.notify("was reset")

    def _reset(self, core: EmulatedCore) -> None:
        self._tell_reset(core)
        core.program = core.steps = None
        for tile in self._array.tiles.values():
            for lock in tile.locks:
                lock.forget(core)
