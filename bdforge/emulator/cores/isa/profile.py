"""Where the cycles of machine code went: by function, with the issue slots used and the products made."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from bdforge.emulator.cores.isa.parts import NO_NAME
from bdforge.isa import Isa
from bdforge.isa.meaning import meaning_of

SLOTS = ("lda", "ldb", "st", "alu", "mv", "vec")
_BOTH = {"lng": ("alu", "mv")}
_PRODUCTS = ("multiply", "fmultiply")


class Names:
    """Names of addresses in program memory: of each address the last one at or before it."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._places = sorted(names.items())

    def at(self, pc: int) -> tuple[int, str] | None:
        """(where it starts, name); None before the first."""
        index = bisect_right(self._places, (pc, chr(0x10FFFF))) - 1
        return None if index < 0 else self._places[index]

    def address(self, name: str) -> int | None:
        """The address of a name."""
        return next((address for address, known in self._places if known == name), None)


@dataclass(slots=True)
class Share:
    """What ran between one name and the next: bundles, instructions by slot, and those that multiply vectors."""

    name: str
    bundles: int = 0
    slots: Counter[str] = field(default_factory=Counter)
    products: int = 0


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
    shares: Sequence[Share]

    @property
    def products(self) -> int:
        """Instructions that multiply vectors."""
        return sum(share.products for share in self.shares)


def shares(isa: Isa, code: bytes, counts: Mapping[int, int], names: Names) -> list[Share]:
    """Shares of a run, most bundles first."""
    found: dict[str, Share] = {}
    for pc, count in counts.items():
        place = names.at(pc)
        share = found.setdefault(name := place[1] if place else NO_NAME, Share(name))
        share.bundles += count
        for instruction in isa.decode(code, pc):
            slot = instruction.form.slot
            for used in _BOTH.get(slot, (slot,)):
                share.slots[used] += count
            share.products += count * (meaning_of(isa.generation, instruction.form).operation in _PRODUCTS)
    return sorted(found.values(), key=lambda share: -share.bundles)
