"""A core's program run by itself, to learn its own cycles: nobody else uses its memory, and no lock keeps it waiting.

What it computes means nothing: memory is zeros but for the words that it is given. Cycles depend on those words and on
where its buffers lie, whose banks it may use twice in a cycle.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np

from bdforge.core.exact.core_memory import WINDOW_BYTES, DataMemory
from bdforge.core.exact.engine_build import library
from bdforge.core.exact.interpreter import Interpreter
from bdforge.core.exact.profile import Parts, PartTimeline
from bdforge.core.exact.translated import Translated
from bdforge.core.isa import Isa
from bdforge.core.python_kernel import AcquireLock, ReleaseLock, Request

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
    core.assume()  # data are zeros, and only cycles are looked at
    parts, left = Parts(names), Counter(turns)
    core.watch(parts)
    timeline, issue, stalls = PartTimeline(parts), Counter[str](), Counter[str]()
    for request in chain(core.run(budget), [None]):  # None: the end
        for name, cycles, conflicts in timeline.took(core.marks(), core.cycle, core.conflicts):
            issue[name] += cycles
            stalls[name] += conflicts
        if request is not None and _blocks(request, left):
            break
    return Alone(+issue, +stalls)


def _blocks(request: Request, left: Counter[int]) -> bool:
    match request:
        case AcquireLock(lock) if lock in left:
            left[lock] -= 1
            return left[lock] < 0
        case AcquireLock() | ReleaseLock():
            return False
    raise ValueError(f"a program by itself asks for locks only, not {type(request).__name__}")
