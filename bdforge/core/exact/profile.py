"""Where the cycles of machine code went: by part of the program, with the issue slots used and the MACs made."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from bdforge.core.isa import Isa
from bdforge.devices.registers import PROGRAM_MEMORY_BYTES

MOST_MARKS = 1 << 12
"""Changes of part that are noted of a core's run; behind them all counts as the last part."""

NO_NAME = "(no name)"


@dataclass(frozen=True, slots=True)
class PartMark:
    """A part begins to run: the core's cycle, its conflicts for banks so far, and the number of the part."""

    cycle: int
    conflicts: int
    part: int


class Parts:
    """Parts of a program by number: each goes from a name to the next one."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._starts = sorted(address for address in names if 0 <= address < PROGRAM_MEMORY_BYTES)
        self.names = [NO_NAME, *(names[address] for address in self._starts)]

    @cached_property
    def numbers(self) -> Sequence[int]:
        """Of the part of each half address; most programs run unobserved and need none."""
        return [bisect_right(self._starts, at) for at in range(1, PROGRAM_MEMORY_BYTES, 2)]

    def at(self, pc: int) -> tuple[int, str] | None:
        """(where the part of an address starts, its name); None before the first."""
        number = bisect_right(self._starts, pc)
        return (self._starts[number - 1], self.names[number]) if number else None

    def address(self, name: str) -> int | None:
        """The address of a name."""
        return next((at for at, known in zip(self._starts, self.names[1:], strict=True) if known == name), None)


class PartTimeline:
    """What ran since it was asked last: names with cycles, and with conflicts for banks that the core itself uses."""

    def __init__(self, parts: Parts) -> None:
        self._parts, self._last = parts, PartMark(0, 0, 0)

    def took(self, marks: list[PartMark], cycle: int, conflicts: int) -> Iterator[tuple[str, int, int]]:
        """Up to a cycle and as many conflicts."""
        for mark in (*marks, None):
            last, self._last = self._last, mark or PartMark(cycle, conflicts, self._last.part)
            yield self._parts.names[last.part], self._last.cycle - last.cycle, self._last.conflicts - last.conflicts


SLOTS = ("lda", "ldb", "st", "alu", "mv", "vec")


@dataclass(slots=True)
class PartProfile:
    """What ran between one name and the next: bundles, instructions by slot, and MACs of its multiplications."""

    name: str
    bundles: int = 0
    slots: Counter[str] = field(default_factory=Counter)
    macs: int = 0


@dataclass(frozen=True, slots=True)
class CoreProfile:
    """A core's run: `cycles` are bundles and what drains behind the last one.

    `conflicts` are the cycles more in which an access waits for a bank that the core itself uses.
    `waits` counts requests that blocked, by kind; how long they did only a timed run tells.
    """

    core: str
    file: str
    cycles: int
    bundles: int
    conflicts: int
    waits: Mapping[str, int]
    shares: Sequence[PartProfile]

    @property
    def macs(self) -> int:
        """Multiplications with accumulation, of lanes."""
        return sum(share.macs for share in self.shares)


def shares(
    isa: Isa, code: bytes, counts: Mapping[int, int], macs: Mapping[int, int], parts: Parts
) -> list[PartProfile]:
    """Shares of a run from what each bundle did by its address, most bundles first."""
    found: dict[str, PartProfile] = {}
    for pc, count in counts.items():
        place = parts.at(pc)
        share = found.setdefault(name := place[1] if place else NO_NAME, PartProfile(name))
        share.bundles += count
        share.macs += macs.get(pc, 0)
        for used in _slots(isa, code[pc : pc + isa.size(code[pc])]):
            share.slots[used] += count
    return sorted(found.values(), key=lambda share: -share.bundles)


@lru_cache(maxsize=1 << 14)
def _slots(isa: Isa, data: bytes) -> tuple[str, ...]:
    """Those that the bundle of some bytes uses."""
    return tuple(used for instruction in isa.decode(data) for used in instruction.form.slots)
