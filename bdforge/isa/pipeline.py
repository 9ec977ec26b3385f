"""What is under way at a point of a program: writes that have not landed, late reads, units taken in coming cycles.

Paths that issued the same bundles of late are joined, so the checks see every path (`bdforge.isa.hazards`).
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache

from bdforge.isa.effects import Access, effects, touched
from bdforge.isa.flow import constant_moved
from bdforge.isa.forms import Bundle, Instruction
from bdforge.isa.operands import Immediate

_LOOP_CONTROL = ("lc", "ls", "le")
_ADDRESS = 0xFFFFF  # pointers have 20 bits, and all sums wrap
LOOP_DISTANCE = 7
"""Bundles from a write of lc, ls or le to the loop's last bundle, at least (kept by 4,808 loops of real programs)."""


@dataclass(frozen=True, slots=True)
class Pending:
    """A write that lands in `left` cycles or a read that happens then; 1 is the present cycle's reads."""

    leaf: str
    left: int
    access: Access
    source: int  # address of the bundle

    @property
    def age(self) -> int:
        """Cycles since its bundle issued."""
        return self.access.stage - self.left

    def later(self) -> "Pending":
        """The same one cycle later."""
        return Pending(self.leaf, self.left - 1, self.access, self.source)


@dataclass(frozen=True, slots=True)
class Taken:
    """A unit that is taken `ahead` cycles from now, by a bundle that issued `age` cycles ago."""

    unit: str
    ahead: int
    reserved: bool
    source: int
    age: int = 0


@dataclass(slots=True)
class State:
    """Joined over all paths with the same recent bundles, before a bundle issues.

    `defined` are leaves that some path has written, `constants` registers with the same known value on all paths,
    `loop_writes` the bundles since lc, ls and le were written last, with the address of that write.
    """

    writes: set[Pending] = field(default_factory=set)
    reads: set[Pending] = field(default_factory=set)
    taken: set[Taken] = field(default_factory=set)
    defined: set[str] = field(default_factory=set)
    constants: dict[str, int] = field(default_factory=dict)
    loop_writes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> "State":
        """An independent copy."""
        return State(
            set(self.writes), set(self.reads), set(self.taken), set(self.defined),
            dict(self.constants), dict(self.loop_writes),
        )  # fmt: skip

    def join(self, other: "State") -> bool:
        """Take in the state of a path with the same recent bundles, and so the same under way; whether it changed."""
        before = (len(self.defined), len(self.constants))
        self.defined |= other.defined
        self.constants = {r: v for r, v in self.constants.items() if other.constants.get(r) == v}
        nearer = {
            register: age
            for register, age in other.loop_writes.items()
            if register not in self.loop_writes or age[0] < self.loop_writes[register][0]
        }
        self.loop_writes |= nearer
        return before != (len(self.defined), len(self.constants)) or bool(nearer)


@dataclass(frozen=True, slots=True)
class Issued:
    """A bundle's part in the pipeline: its writes and reads by leaf, its units, constants that it sets."""

    writes: tuple[tuple[str, Access], ...]
    reads: tuple[tuple[str, Access], ...]
    units: tuple[tuple[str, int, bool], ...]
    constants: tuple[tuple[str, int | None], ...]


@lru_cache(maxsize=1 << 14)
def issued(generation: str, bundle: Bundle) -> Issued:
    """What issuing a bundle puts under way; its NOPs add nothing."""
    found = [one for instruction in bundle for one in touched(generation, instruction)]
    return Issued(
        writes=tuple((leaf, access) for leaf, access, writes in found if writes),
        reads=tuple((leaf, access) for leaf, access, writes in found if not writes),
        units=tuple(unit for instruction in bundle for unit in effects(instruction).units),
        constants=tuple(c for i in bundle if (c := constant_moved(i)) is not None),
    )


def issue(state: State, generation: str, address: int, bundle: Bundle) -> None:
    """Add a bundle to what is under way. Constants are those before it until `advance`."""
    parts = issued(generation, bundle)
    state.writes |= {Pending(leaf, access.stage, access, address) for leaf, access in parts.writes}
    state.reads |= {Pending(leaf, access.stage, access, address) for leaf, access in parts.reads}
    state.taken |= {Taken(unit, cycle, reserved, address) for unit, cycle, reserved in parts.units}


def advance(state: State, generation: str, address: int, bundle: Bundle) -> None:
    """One cycle on, after `issue`: reads of the cycle are done, writes come nearer or have landed."""
    parts = issued(generation, bundle)
    state.defined |= {write.leaf for write in state.writes if write.left <= 1}
    state.writes = {write.later() for write in state.writes if write.left > 1}
    state.reads = {read.later() for read in state.reads if read.left > 1}
    state.taken = {Taken(t.unit, t.ahead - 1, t.reserved, t.source, t.age + 1) for t in state.taken if t.ahead > 0}
    _step_constants(state, parts, bundle)
    aged = {register: (min(age + 1, LOOP_DISTANCE), by) for register, (age, by) in state.loop_writes.items()}
    state.loop_writes = aged | {leaf: (1, address) for leaf, _ in parts.writes if leaf in _LOOP_CONTROL}


def _step_constants(state: State, parts: Issued, bundle: Bundle) -> None:
    moved = dict(parts.constants) | {p: v for i in bundle for p, v in _stepped(state, i)}
    for leaf, access in parts.writes:
        value = moved.get(leaf) if access.stage == 1 else None
        if value is None:
            state.constants.pop(leaf, None)
        else:
            state.constants[leaf] = value


def _stepped(state: State, instruction: Instruction) -> Iterator[tuple[str, int]]:
    """Pointers that step by an immediate or a constant register, wrapped to 20 bits."""
    form = instruction.form
    if "ptr_out" not in form.timing.defs or "ptr" not in form.names or "2D" in form.name or "3D" in form.name:
        return
    pointer, step = str(instruction["ptr"]), _amount(state, instruction)
    if pointer in state.constants and step is not None:
        yield pointer, (state.constants[pointer] + step) & _ADDRESS


def _amount(state: State, instruction: Instruction) -> int | None:
    """The immediate or constant offset of an address."""
    for name in ("imm", "mod", "dj"):
        if name in instruction.form.names:
            value = instruction[name]
            immediate = isinstance(instruction.form.field(name).kind, Immediate)
            return int(value) if immediate else state.constants.get(str(value))
    return None


def address_of(state: State, instruction: Instruction) -> int | None:
    """The address that a load or store uses, if its registers are known."""
    form = instruction.form
    if "ptr" not in form.names or str(instruction["ptr"]) not in state.constants:
        return None
    base = state.constants[str(instruction["ptr"])] & _ADDRESS
    if "ptr_out" in form.timing.defs:
        return base
    offset = _amount(state, instruction) if {"imm", "dj"} & set(form.names) else 0
    return None if offset is None else (base + offset) & _ADDRESS
