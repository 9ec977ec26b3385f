"""When an instruction does what: its operands with their stages, and the stages of its steps.

Everything here follows from the tables of `bdforge.core.isa` (`effects`) and from `meaning_of`.
"""

from dataclasses import dataclass, replace
from functools import lru_cache

from bdforge.core.isa import Instruction, RegisterAccess, RegisterLeaf, effects, leaves
from bdforge.core.isa.core_registers import is_status
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning import DATA, AddressWalk, Meaning, meaning_of

DEPTH = 12
"""Cycles after which everything that a bundle put under way has ended (8- and 16-bit stores write at stage 11)."""

_ASKED = {"get stream": 5, "poll stream": 5, "get cascade": 5, "get register": 4, "put register": 4}
"""Stages of requests whose operands do not tell them."""
_WALK_RESULTS = ("ptr_out", "dc", "dcl", "dch", "sp", "pos_out", "avail_out")
_SCALAR_BITS = 64
PART_BITS = 512  # of wide registers that the cascade fills part by part
_READABLE_STATUS = ("srCarry", "srMS0", "srSS0")


@dataclass(frozen=True, slots=True)
class PlannedOperand:
    """Registers that an operand is, as leaves, with the stage of its read or the one from which a result is there."""

    name: str
    leaves: tuple[RegisterLeaf, ...]
    stage: int
    bypass: str | None


@dataclass(frozen=True, slots=True)
class InstructionPlan:
    """An instruction ready to run: reads and writes by operand, constants, and the stage of each step (0: none).

    `ask` is the stage of a request, `operate` the one at which results are made: as soon as the last operand is read,
    loaded or answered.
    """

    instruction: Instruction
    meaning: Meaning
    reads: tuple[PlannedOperand, ...]
    writes: dict[str, PlannedOperand]
    constants: dict[str, int]
    walk: int
    load: int
    ask: int
    operate: int
    store: int

    @property
    def last(self) -> int:
        """The last stage at which anything but writing registers is done."""
        return max(self.walk, self.load, self.ask, self.operate, self.store, 1)

    def read(self, name: str) -> PlannedOperand:
        """The operand of a name that is read."""
        return next(operand for operand in self.reads if operand.name == name)

    @property
    def count(self) -> int:
        """The stage at which the parts of the cascade are counted."""
        return next((o.stage for o in self.reads if self.meaning.counts and o.name == self.meaning.counts[0]), 0)


@lru_cache(maxsize=1 << 15)
def plan_of(generation: str, instruction: Instruction) -> InstructionPlan:
    """The plan of an instruction; OpenError for a form, or a register, of which no source tells enough."""
    meaning = meaning_of(generation, instruction.form)
    accesses = effects(instruction)
    form = instruction.form
    constants = {n: v for n, v in instruction.operands.items() if isinstance(v, int)}
    used = {*map(str, (*meaning.inputs, *meaning.asks, *(meaning.counts or ()), meaning.part)), *_walk_inputs(meaning)}
    used |= {meaning.access.addresses} if meaning.access else set()
    reads = tuple(_operand(generation, access) for access in accesses.reads if access.operand in used)
    wanted = {
        *meaning.outputs,
        *(meaning.counts or ()),
        *(_WALK_RESULTS if meaning.steps else ()),
    }
    writes = {a.operand: _operand(generation, a, meaning.part) for a in accesses.writes if a.operand in wanted}
    if meaning.low_bits:
        reads = tuple(_cut(o, meaning.low_bits) if o.name in meaning.inputs else o for o in reads)
    _check_registers(meaning, reads, writes)
    stages = {operand.name: operand.stage for operand in reads}
    walk = max((stages.get(name, 1) for name in _walk_inputs(meaning)), default=0)
    memory = form.timing.memory_stages
    load = memory[0] if meaning.access and not meaning.access.store else 0
    ask = max((stages.get(str(i), 1) for i in meaning.asks), default=1) if meaning.request else 0
    ask = _ASKED.get(meaning.request, ask) if ask == 1 else ask
    operate = max(load, ask, *(stages.get(str(i), 1) for i in meaning.inputs), 1)
    store = memory[-1] if meaning.access and meaning.access.store else 0
    return InstructionPlan(instruction, meaning, reads, writes, constants, walk, load, ask, operate, store)


def _walk_inputs(meaning: Meaning) -> tuple[str, ...]:
    if not meaning.steps:
        return ()
    base = "sp" if meaning.walk in (AddressWalk.STACK, AddressWalk.STACK_STEP) else "ptr"
    return tuple(name for name in (base, meaning.access.counter if meaning.access else "", meaning.offset) if name)


def _cut(operand: PlannedOperand, bits: int) -> PlannedOperand:
    """The lowest bits of an operand."""
    inside = (leaf for leaf in operand.leaves if leaf.lsb < bits)
    found = tuple(RegisterLeaf(leaf.name, leaf.lsb, min(leaf.bits, bits - leaf.lsb)) for leaf in inside)
    return replace(operand, leaves=found)


def _operand(generation: str, access: RegisterAccess, part: int | str | None = None) -> PlannedOperand:
    found = leaves(generation, access.register)
    if isinstance(part, int):
        first = part * PART_BITS
        inside = (leaf for leaf in found if first <= leaf.lsb < first + PART_BITS)
        found = tuple(RegisterLeaf(leaf.name, leaf.lsb - first, leaf.bits) for leaf in inside)
    return PlannedOperand(access.operand, found, access.stage, access.bypass)


def _check_registers(meaning: Meaning, reads: tuple[PlannedOperand, ...], writes: dict[str, PlannedOperand]) -> None:
    for operand in reads:
        for leaf in operand.leaves:
            status = is_status(leaf.name) and leaf.name not in _READABLE_STATUS
            if status or leaf.name == "CORE_ID":
                raise OpenError(f"what is read from {leaf.name} is open")
    if meaning.operation == "move" and meaning.outputs[0] in writes and DATA not in meaning.inputs and reads:
        source, result = (
            max(leaf.lsb + leaf.bits for leaf in o.leaves) for o in (reads[0], writes[meaning.outputs[0]])
        )
        if source < result and result > _SCALAR_BITS:
            raise OpenError("what a copy into a wider vector register leaves in its upper part is open")
