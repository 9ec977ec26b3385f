"""Registers of the plain interpreter, and the results that have not landed in them yet."""

from collections import defaultdict
from dataclasses import dataclass

from bdforge.emulator.cores.isa.plan import Operand
from bdforge.isa import leaves


@dataclass(frozen=True, slots=True)
class Landing:
    """A result that lands in a register's leaf; of several in one cycle that of the last instruction stays."""

    order: tuple[int, int]
    leaf: str
    value: int
    bypass: str | None


class Registers:
    """Values by leaf; `put` lets results land in their cycle, of several in one cycle that of the last instruction."""

    def __init__(self, generation: str) -> None:
        self.generation = generation
        self.values: dict[str, int] = {}
        self._landing: dict[int, list[Landing]] = defaultdict(list)

    def read(self, register: str) -> int:
        """A register's value now; IsaError for an unknown name."""
        return sum(self.values.get(leaf.name, 0) << leaf.lsb for leaf in leaves(self.generation, register))

    def write(self, register: str, value: int) -> None:
        """Set a register now; IsaError for an unknown name."""
        for leaf in leaves(self.generation, register):
            self.values[leaf.name] = value >> leaf.lsb & ((1 << leaf.bits) - 1)

    def land(self, cycle: int) -> None:
        """Results of this cycle are there."""
        for landing in sorted(self._landing.pop(cycle, ()), key=_order):
            self.values[landing.leaf] = landing.value

    def put(self, operand: Operand, value: int, order: tuple[int, int]) -> None:
        """Let a result land; `order` is the cycle of its instruction's issue, and its place in the bundle."""
        for leaf in operand.leaves:
            part = value >> leaf.lsb & ((1 << leaf.bits) - 1)
            self._landing[order[0] + operand.stage].append(Landing(order, leaf.name, part, operand.bypass))

    def value(self, operand: Operand, cycle: int) -> int:
        """Registers as they are, or as they will be in the next cycle where the result is forwarded."""
        forwarded = {}
        if operand.bypass is not None:
            coming = sorted(self._landing.get(cycle + 1, ()), key=_order)
            forwarded = {landing.leaf: landing.value for landing in coming if landing.bypass == operand.bypass}
        return sum(forwarded.get(leaf.name, self.values.get(leaf.name, 0)) << leaf.lsb for leaf in operand.leaves)


def _order(landing: Landing) -> tuple[int, int]:
    return landing.order
