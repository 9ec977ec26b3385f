"""Conflicts for banks of cores' memories between machine code, DMA and neighbours: how many there may be.

A bank serves one access in a cycle. Who else uses it in which very cycle a trace does not tell, and how the hardware
arbitrates no source says. Known are the accesses of a stretch of machine code, the words of a transfer, and when in
emulated time both happen. So conflicts are modelled: none at least; as many as the fewer accesses of both while they
overlap at most; expected as if each spread its accesses evenly. The time of the run has none of them in it.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from bdforge.array.emulator.timed.timed_run import TimedParty

OWN, DMA, NEIGHBOURS = "own banks", "DMA", "neighbours"
_ACCESS_WORDS = 4
"""Words that a DMA moves in one access to memory, of 128 bits, where they are adjacent (MA)."""

Bank = tuple[int, int, int]
"""Column and row of the tile, number of its bank."""


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Cycles that a core may wait for a bank that another uses too (modelled); at least none."""

    expected: float
    most: float

    def __add__(self, other: "Conflicts") -> "Conflicts":
        return Conflicts(self.expected + other.expected, self.most + other.most)


@dataclass(frozen=True, slots=True)
class _Use:
    runner: TimedParty
    start: float
    end: float
    accesses: float

    @property
    def rate(self) -> float:
        return self.accesses / (self.end - self.start)


@dataclass(slots=True)
class Banks:
    """Uses of banks in emulated time, as a replay finds them."""

    _uses: dict[Bank, list[_Use]] = field(default_factory=lambda: defaultdict(list))
    _next: dict[TimedParty, Mapping[int, int]] = field(default_factory=dict)

    def touches(self, runner: TimedParty, words: Mapping[int, int]) -> bool:
        """What the next transfer of a channel goes through."""
        self._next[runner] = words
        return True

    def ran(self, runner: TimedParty, start: float, end: float, accesses: Mapping[Bank, int]) -> None:
        """A stretch of machine code."""
        for bank, count in accesses.items():
            self._add(bank, _Use(runner, start, end, count))

    def moved(self, runner: TimedParty, start: float, end: float) -> None:
        """The transfer that `touches` has told of."""
        for bank, words in self._next.pop(runner, {}).items():
            self._add((*runner.party.place, bank), _Use(runner, start, end, words / _ACCESS_WORDS))

    def _add(self, bank: Bank, use: _Use) -> None:
        if use.end > use.start:
            self._uses[bank].append(use)

    def conflicts(self) -> dict[TimedParty, dict[str, Conflicts]]:
        found: dict[TimedParty, dict[str, Conflicts]] = defaultdict(dict)
        for uses in self._uses.values():
            for core, other, conflicts in _overlaps(uses):
                cause = NEIGHBOURS if other.is_core else DMA
                found[core][cause] = found[core].get(cause, Conflicts(0.0, 0.0)) + conflicts
        return found


def _overlaps(uses: list[_Use]) -> Iterator[tuple[TimedParty, TimedParty, Conflicts]]:
    """Pairs of a core and another user of its bank at the same time; of two cores each may have to wait."""
    active: list[_Use] = []
    for use in sorted(uses, key=lambda one: one.start):
        active = [other for other in active if other.end > use.start]
        for other in active:
            cycles = min(use.end, other.end) - use.start
            both = Conflicts(use.rate * other.rate * cycles, min(use.rate, other.rate) * cycles)
            for core, against in ((use.runner, other.runner), (other.runner, use.runner)):
                if core.is_core and core is not against:
                    yield core, against, both
        active.append(use)
