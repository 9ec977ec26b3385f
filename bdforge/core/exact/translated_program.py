"""A program's bundles as the fast executor's library has them: translated when execution reaches them first."""

import ctypes
import weakref
from functools import lru_cache
from threading import Lock

from bdforge.core.exact import engine_build as build
from bdforge.core.exact.bundle_rows import BUNDLE_BYTES, bundle_rows
from bdforge.core.exact.compiled_states import CompiledStates
from bdforge.core.exact.core_state import behind_slots, checked
from bdforge.core.exact.engine_build import EngineError, library
from bdforge.core.exact.register_layout import layout_of
from bdforge.core.isa import Isa
from bdforge.core.isa.errors import DecodeError, IsaError

_STRETCH = 64  # bundles translated at a time
_ONES = (1 << 64) - 1


def compiled() -> ctypes.CDLL:
    """The library; EngineError without a compiler."""
    found = library()
    if found is None:
        raise EngineError("machine code is only interpreted: there is no C++ compiler g++")
    return found


class TranslatedProgram:
    """A program's bundles as the library has them; cores with the same program share it, arrays in other threads too.

    Who runs or translates holds `lock`, since the library runs while other threads do.
    """

    def __init__(self, isa: Isa, code: bytes) -> None:
        self.isa, self.code, self.lock = isa, code, Lock()
        self.library = compiled()
        self.layout = layout_of(isa.generation)
        self.handle = self.library.engine_program(*map(self.layout.places.__getitem__, ("lc", "ls", "le")))
        self.careful = False
        self.compiled = CompiledStates(self)
        self._constants: dict[int, int] = {}
        self._known: set[int] = set()
        weakref.finalize(self, self.library.engine_drop_program, self.handle)

    def translate(self, pc: int) -> None:
        """Translate what execution reaches from an address on; faults are those of the bundle there."""
        start = pc
        for _ in range(_STRETCH):
            if pc in self._known:
                return
            try:
                pc = self._add(pc)
            except IsaError:
                if pc == start:  # later ones count only where execution reaches them
                    raise
                return

    def _add(self, pc: int) -> int:
        data = self.code[checked(pc, self.code) : pc + BUNDLE_BYTES]
        try:
            found = bundle_rows(self.isa.generation, data, self.careful)
        except DecodeError:
            self.isa.decode(self.code, pc)  # tells where it is
            raise
        if found.doubtful and not self.careful:
            self._take_care()
            found = bundle_rows(self.isa.generation, data, self.careful)
        table = (build.EngineRow * found.count).from_buffer_copy(found.rows)
        for row, place, value in found.constants:
            table[row].a[place] = self._constant(value)
        behind = pc + found.size_bytes
        after = behind_slots(self.isa, self.code, behind)
        numbers = pc, found.size_bytes, found.buffer_bytes, -1 if after is None else after, *found.memory
        self.library.engine_add(self.handle, *numbers, table, found.count)
        self._known.add(pc)
        return behind

    def _take_care(self) -> None:
        """Keep account of unknown values from now on: what was translated before is translated anew."""
        self.careful = True
        self._known.clear()
        self.library.engine_forget(self.handle)
        self.compiled = CompiledStates(self)

    def _constant(self, value: int) -> int:
        """The place of a number among the constants."""
        if value not in self._constants:
            self._constants[value] = self.library.engine_constant(self.handle, value & _ONES)
        return self._constants[value]


_translation = lru_cache(maxsize=64)(TranslatedProgram)
_MAKING = Lock()


def translated(isa: Isa, code: bytes) -> TranslatedProgram:
    """The translation of a program; made once for all cores that run it, in whatever threads."""
    with _MAKING:
        return _translation(isa, code)
