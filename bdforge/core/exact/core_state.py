"""What the plain interpreter keeps: registers, results that have not landed yet, and where execution goes on."""

from collections import defaultdict
from dataclasses import dataclass
from operator import attrgetter

from bdforge.core.exact.instruction_plan import PlannedOperand
from bdforge.core.isa import Isa, leaves
from bdforge.core.isa.core_registers import reset_values
from bdforge.core.isa.errors import ControlError, OpenError
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.core.isa.meaning import Partly, Result

_PIECE_BITS = 128
_PIECE = (1 << _PIECE_BITS) - 1


def nothing_known(leaf: str) -> str:
    """Why a read of a register stops a core."""
    return f"a value is read from {leaf} of which no source tells what the last write left there"


@dataclass(frozen=True, slots=True)
class Landing:
    """A result that lands in a register's leaf; of several in one cycle that of the last instruction stays."""

    order: tuple[int, int]
    leaf: str
    value: int
    unknown: int
    bypass: str | None


class CoreRegisters:
    """Values by leaf, and which of their bits are unknown: instructions that would read those are stopped.

    `put` lets results land in their cycle, of several in one cycle that of the last instruction.
    """

    def __init__(self, generation: str) -> None:
        self.generation = generation
        self.values: dict[str, int] = dict(reset_values(generation))
        self.unknown: dict[str, int] = {}
        self._landing: dict[int, list[Landing]] = defaultdict(list)

    def read(self, register: str) -> int:
        """A register's value now; IsaError for an unknown name."""
        return sum(self.values.get(leaf.name, 0) << leaf.lsb for leaf in leaves(self.generation, register))

    def write(self, register: str, value: int) -> None:
        """Set a register now; IsaError for an unknown name."""
        for leaf in leaves(self.generation, register):
            self.values[leaf.name] = value >> leaf.lsb & ((1 << leaf.bits) - 1)
            self.unknown.pop(leaf.name, None)

    def land(self, cycle: int) -> None:
        """Results of this cycle are there."""
        for landing in sorted(self._landing.pop(cycle, ()), key=attrgetter("order")):
            self.values[landing.leaf] = landing.value
            self.unknown[landing.leaf] = landing.unknown

    def put(self, operand: PlannedOperand, result: Result, order: tuple[int, int]) -> None:
        """Let a result land; `order` is the cycle of its instruction's issue, and its place in the bundle."""
        value, pieces = result[:2] if isinstance(result, Partly) else (result, 0)
        unknown = sum(_PIECE << _PIECE_BITS * i for i in range(pieces.bit_length()) if pieces >> i & 1)
        for leaf in operand.leaves:
            part, missing = (bits >> leaf.lsb & ((1 << leaf.bits) - 1) for bits in (value, unknown))
            self._landing[order[0] + operand.stage].append(Landing(order, leaf.name, part, missing, operand.bypass))

    def value(self, operand: PlannedOperand, cycle: int) -> int:
        """Registers as they are, or as they will be in the next cycle where the result is forwarded.

        OpenError if no source tells a bit of them.
        """
        forwarded: dict[str, Landing] = {}
        if operand.bypass is not None:
            coming = sorted(self._landing.get(cycle + 1, ()), key=attrgetter("order"))
            forwarded = {landing.leaf: landing for landing in coming if landing.bypass == operand.bypass}
        found = 0
        for leaf in operand.leaves:
            coming = forwarded.get(leaf.name)
            value = coming.value if coming else self.values.get(leaf.name, 0)
            unknown = coming.unknown if coming else self.unknown.get(leaf.name, 0)
            read = (1 << leaf.bits) - 1
            if unknown & read:
                raise OpenError(nothing_known(leaf.name))
            found |= (value & read) << leaf.lsb
        return found


def checked(pc: int, program: bytes) -> int:
    """The address of the next bundle; ControlError where none can be."""
    if pc >= len(program) or pc % 2:
        raise ControlError(f"execution leaves program memory, which ends at {len(program):#x}")
    return pc


def behind_slots(isa: Isa, program: bytes, address: int) -> int | None:
    """The address behind the five bundles at `address`; None beyond program memory."""
    for _ in range(DELAY_SLOTS):
        if address >= len(program):
            return None
        address += isa.size(program[address])
    return address


_ALIGNMENT = 16  # of targets: 34,432 of 34,432 in real programs; others hang or corrupt
_ADDRESS_MASK = 0xFFFFF


@dataclass(slots=True)
class ControlState:
    """The address of the next bundle, and a branch whose delay slots are under way."""

    pc: int = 0
    target: int = 0
    slots_left: int = 0

    def branch(self, target: int, returns: bool) -> None:
        """A taken branch issues: the bundles of its delay slots still run. Only returns may lead anywhere."""
        target &= _ADDRESS_MASK
        if not returns and target % _ALIGNMENT:
            raise ControlError(f"a branch to {target:#x}, which is no multiple of {_ALIGNMENT}: cores hang there")
        self.target, self.slots_left = target, DELAY_SLOTS + 1

    def check_free(self) -> None:
        """ControlError in a delay slot, where no branch may be."""
        if self.slots_left:
            raise ControlError("a branch in a delay slot of another: no source tells where execution goes on")

    def advance(self, size_bytes: int, loop_start: int | None) -> None:
        """Past a bundle: to the branch's target after its slots, to the start of a loop that goes round, or on."""
        if self.slots_left:
            if loop_start is not None:
                raise ControlError(
                    "a hardware loop goes round in a delay slot: no source tells where execution goes on"
                )
            self.slots_left -= 1
            if not self.slots_left:
                self.pc = self.target
                return
        self.pc = self.pc + size_bytes if loop_start is None else loop_start
