"""A program's bundles as the fast executor's library has them: translated when execution reaches them first."""

import ctypes
import weakref
from functools import lru_cache
from threading import Lock

from bdforge.core.exact import engine_build as build
from bdforge.core.exact.core_state import behind_slots, checked
from bdforge.core.exact.engine_build import EngineError, library
from bdforge.core.exact.instruction_plan import plan_of
from bdforge.core.exact.register_layout import layout_of
from bdforge.core.exact.requests import DONE, Asking
from bdforge.core.exact.translate import Constant, EngineStep, Place, steps_of
from bdforge.core.isa import Isa, memory_turn
from bdforge.core.isa.errors import IsaError

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
        self.handle = self.library.engine_program()
        self.requests: list[Asking] = [DONE]
        self.careful = False
        self._numbers = {n: i for i, n in enumerate(self.library.engine_functions().decode().split())}
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
        bundle = self.isa.decode(self.code, checked(pc, self.code))
        plans = [plan_of(self.isa.generation, instruction) for instruction in bundle]
        if not self.careful and any(plan.meaning.doubtful or plan.meaning.counts for plan in plans):
            self._take_care()
        made, used = [], 0
        for steps in (steps_of(self.layout, plan, self.requests, self.careful) for plan in plans):
            made += [(used, step) for step in steps.made]
            used += steps.used
        made.sort(key=lambda one: (one[1].delay, one[1].phase))
        table = (build.EngineRow * max(len(made), 1))()
        for row, (offset, step) in zip(table, made, strict=False):
            self._fill(row, offset, step)
        after = behind_slots(self.isa, self.code, pc + bundle.size)
        numbers = pc, bundle.size, used, -1 if after is None else after, *memory_turn(bundle)
        self.library.engine_add(self.handle, *numbers, table, len(made))
        self._known.add(pc)
        return pc + bundle.size

    def _take_care(self) -> None:
        """Keep account of unknown values from now on: what was translated before is translated anew."""
        self.careful = True
        self._known.clear()
        self.library.engine_forget(self.handle)

    def _fill(self, row: build.EngineRow, offset: int, step: EngineStep) -> None:
        row.function, row.offset = self._numbers[step.function], offset
        row.delay, row.phase = step.delay, step.phase
        for i, place in enumerate(step.places):
            row.a[i] = self._place(place)
        for i, option in enumerate(step.options):
            row.o[i] = option

    def _place(self, place: Place) -> int:
        if not isinstance(place, Constant):
            return place
        if place.value not in self._constants:
            made = self.library.engine_constant(self.handle, place.value & _ONES)
            self._constants[place.value] = made
        return self._constants[place.value]


_translation = lru_cache(maxsize=64)(TranslatedProgram)
_MAKING = Lock()


def translated(isa: Isa, code: bytes) -> TranslatedProgram:
    """The translation of a program; made once for all cores that run it, in whatever threads."""
    with _MAKING:
        return _translation(isa, code)
