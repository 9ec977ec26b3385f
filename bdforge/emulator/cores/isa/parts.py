"""Parts of a program: from each name to the next one, and when a run goes from one to another."""

from collections.abc import Mapping
from dataclasses import dataclass

from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

MOST_MARKS = 1 << 12
"""Changes of part that are noted of a core's run; behind them all counts as the last part."""

NO_NAME = "(no name)"


@dataclass(frozen=True, slots=True)
class Mark:
    """A part begins to run: the core's cycle, its conflicts for banks so far, and the number of the part."""

    cycle: int
    conflicts: int
    part: int


class Parts:
    """Parts by number; `numbers` has that of each half of a bundle's address."""

    def __init__(self, names: Mapping[int, str]) -> None:
        starts = sorted(address for address in names if 0 <= address < PROGRAM_MEMORY_BYTES)
        self.names = [NO_NAME, *(names[address] for address in starts)]
        self.numbers = [0] * (PROGRAM_MEMORY_BYTES // 2)
        for number, start in enumerate(starts, 1):
            self.numbers[start // 2 :] = [number] * (PROGRAM_MEMORY_BYTES // 2 - start // 2)


class Timeline:
    """What ran since it was asked last, as (name, cycles); cycles hold waits for banks that the core itself uses."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._name, self._until = parts, NO_NAME, 0

    def took(self, marks: list[Mark], until: int) -> tuple[tuple[str, int], ...]:
        """Up to a time in cycles and conflicts."""
        found = []
        for mark in marks:
            found.append((self._name, mark.cycle + mark.conflicts - self._until))
            self._name, self._until = self._parts.names[mark.part], mark.cycle + mark.conflicts
        found.append((self._name, until - self._until))
        self._until = until
        return tuple((name, cycles) for name, cycles in found if cycles)
