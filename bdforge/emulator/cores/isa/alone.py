"""A core's program run by itself, to learn its own cycles: nobody else uses its memory, and no lock keeps it waiting.

What it computes means nothing: memory is zeros but for the words that it is given. Cycles depend on those words and on
where its buffers lie, whose banks it may use twice in a cycle.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from bdforge.emulator.cores.isa.build import library
from bdforge.emulator.cores.isa.interpreter import Interpreter
from bdforge.emulator.cores.isa.memory import WINDOW_BYTES, DataMemory
from bdforge.emulator.cores.isa.profile import Parts, Timeline
from bdforge.emulator.cores.isa.translated import Translated
from bdforge.isa import Isa
from bdforge.kernel import Acquire, Release, Request

_WINDOWS = 4
_WORD = 4
BUDGET = 1 << 28
"""Bundles, above what any tile of C takes."""


@dataclass(frozen=True, slots=True)
class Alone:
    """What a run took, by part of the program: `issue` cycles, and `stalls` at banks that it uses twice in a cycle."""

    issue: Mapping[str, int]
    stalls: Mapping[str, int]

    @property
    def cycles(self) -> int:
        """All of it."""
        return sum(self.issue.values()) + sum(self.stalls.values())


def run_alone(
    isa: Isa, code: bytes, names: Mapping[int, str], words: Mapping[int, int], turns: Mapping[int, int],
    budget: int = BUDGET,
) -> Alone:  # fmt: skip
    """Run code from address 0 until DONE, or until it waits for a lock more often than `turns` has for its number.

    `names` are those of the parts' addresses, `words` what memory holds, by address as the core sees it. IsaError for
    a program that a core would run wrongly, StepBudgetError for one that does not end within `budget` bundles,
    ValueError for one that asks for more than locks.
    """
    memory = DataMemory([np.zeros(WINDOW_BYTES, np.uint8) for _ in range(_WINDOWS)])
    for address, value in words.items():
        memory.store(address, _WORD, value)
    core = (Interpreter if library() is None else Translated)(isa, code, memory)
    parts = Parts(names)
    core.watch(parts)
    run, left = _Counting(core, parts), Counter(turns)
    for request in core.run(budget):
        run.count()
        if _blocks(request, left):
            break
    run.count()
    return Alone(run.issue, run.stalls)


class _Counting:
    """Adds up what ran, by part."""

    def __init__(self, core: Interpreter | Translated, parts: Parts) -> None:
        self.issue, self.stalls = Counter[str](), Counter[str]()
        self._core, self._issued, self._stalled = core, Timeline(parts), Timeline(parts)

    def count(self) -> None:
        """What has run since it was asked last."""
        marks, core = self._core.marks(), self._core
        for name, cycles in self._issued.took([replace(mark, conflicts=0) for mark in marks], core.cycle):
            self.issue[name] += cycles
        for name, cycles in self._stalled.took([replace(mark, cycle=0) for mark in marks], core.conflicts):
            self.stalls[name] += cycles


def _blocks(request: Request, left: Counter[int]) -> bool:
    match request:
        case Acquire(lock) if lock in left:
            left[lock] -= 1
            return left[lock] < 0
        case Acquire() | Release():
            return False
    raise ValueError(f"a program by itself asks for locks only, not {type(request).__name__}")
