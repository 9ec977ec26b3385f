"""What meets in the pipeline: bundles that issued some cycles apart, and what a path knows before a bundle.

Everything under way is of the bundles that issued of late, and two of them meet in the same way in every program. So a
path keeps the bundles, and what two of them do to each other is worked out once (`bdforge.core.isa.hazards`).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from bdforge.core.isa.core_registers import is_status
from bdforge.core.isa.effects import RegisterAccess, effects, touched
from bdforge.core.isa.flow import constant_moved
from bdforge.core.isa.forms import Bundle, Instruction
from bdforge.core.isa.meaning import AddressWalk, MemoryAccess, access_of
from bdforge.core.isa.meaning.form_meanings import offset_of, walk_of

_LOOP_CONTROL = ("lc", "ls", "le")
_ADDRESS = 0xFFFFF  # pointers have 20 bits, and all sums wrap
LOOP_DISTANCE = 7
"""Bundles from a write of lc, ls or le to the loop's last bundle, at least (kept by 4,808 loops of real programs)."""

_Touched = tuple[str, RegisterAccess]
_Unit = tuple[str, int, bool, bool]
"""A unit, the cycle from issue in which it is taken, whether it is only reserved, and whether by an instruction with a
result in a register that is always the same."""


@dataclass(frozen=True, eq=False, slots=True)
class Issued:
    """A bundle's part in the pipeline: its writes and reads by leaf, its units, constants that it sets.

    `landing` are leaves by the stage from which they can be read, `reading` reads by their stage. `twice` are
    registers that two of its writes meet in, `crowded` units that two of its instructions need at once. `accesses`
    are instructions that load and store, `steps` pointers with the number or register by which they step. `written`
    are the leaves
    of its writes, `loops` those of them that control the hardware loop.
    """

    accesses: tuple[tuple[Instruction, MemoryAccess], ...]
    steps: tuple[tuple[str, int | str], ...]
    writes: tuple[_Touched, ...]
    reads: tuple[_Touched, ...]
    units: tuple[_Unit, ...]
    constants: Mapping[str, int]
    written: frozenset[str]
    loops: tuple[str, ...]
    landing: Mapping[int, frozenset[str]]
    reading: Mapping[int, tuple[_Touched, ...]]
    twice: tuple[str, ...]
    crowded: tuple[tuple[str, bool], ...]


@lru_cache(maxsize=1 << 14)
def issued(generation: str, bundle: Bundle) -> Issued:
    """What issuing a bundle puts under way; its NOPs add nothing."""
    found = [(i, one) for i, instruction in enumerate(bundle) for one in touched(generation, instruction)]
    writes = [(i, leaf, access) for i, (leaf, access, written) in found if written]
    reads = tuple((leaf, access) for _, (leaf, access, written) in found if not written)
    units = [(i, unit) for i, instruction in enumerate(bundle) for unit in _units(instruction)]
    return Issued(
        accesses=tuple((i, a) for i in bundle if "ptr" in i.form.names and (a := access_of(generation, i.form))),
        steps=tuple((str(i["ptr"]), _offset(i)) for i in bundle if _steps(i)),
        writes=tuple((leaf, access) for _, leaf, access in writes), reads=reads,
        units=tuple(unit for _, unit in units),
        constants=dict(c for i in bundle if (c := constant_moved(i)) is not None),
        written=frozenset(leaf for _, leaf, _ in writes),
        loops=tuple(leaf for _, leaf, _ in writes if leaf in _LOOP_CONTROL),
        landing={a.stage: frozenset(n for _, n, b in writes if b.stage == a.stage) for _, _, a in writes},
        reading={a.stage: tuple(read for read in reads if read[1].stage == a.stage) for _, a in reads},
        twice=tuple(_twice(writes)), crowded=tuple(_crowded(units)),
    )  # fmt: skip


def _steps(instruction: Instruction) -> bool:
    return walk_of(instruction.form) is AddressWalk.POST


def _units(instruction: Instruction) -> Iterator[_Unit]:
    timing = instruction.form.timing
    fixed = any(timing.ties.get(result, result) in timing.fixed for result in timing.defs)
    return ((unit, cycle, reserved, fixed) for unit, cycle, reserved in effects(instruction).units)


def _twice(writes: Sequence[tuple[int, str, RegisterAccess]]) -> Iterator[str]:
    seen: dict[tuple[str, int], tuple[int, RegisterAccess]] = {}
    for instruction, leaf, access in writes:
        first = seen.setdefault((leaf, access.stage), (instruction, access))
        if first != (instruction, access) and not is_status(leaf):
            yield access.register


def _crowded(units: Sequence[tuple[int, _Unit]]) -> Iterator[tuple[str, bool]]:
    seen: dict[tuple[str, int], tuple[int, _Unit]] = {}
    for instruction, unit in units:
        first, other = seen.setdefault(unit[:2], (instruction, unit))
        if first != instruction and not (other[2] and unit[2]):
            yield unit[0], other[3] or unit[3]


@dataclass(frozen=True, slots=True)
class Meeting:
    """What an earlier bundle and a later one do to each other.

    `early`: reads of the later one, with the write of the earlier, and how many cycles before it can be read they are.
    `late`: writes of the later one, with the earlier's register, and how many cycles behind it the earlier's lands.
    `units` that both need, the cycle of the later one in which it takes them first, and whether for a fixed result.
    """

    early: tuple[tuple[_Touched, RegisterAccess, int], ...]
    late: tuple[tuple[_Touched, int], ...]
    units: tuple[tuple[str, int, bool], ...]


@lru_cache(maxsize=1 << 17)
def meeting(first: Issued, second: Issued, apart: int) -> Meeting:
    """What bundles do to each other of which the second issues `apart` cycles behind the first."""
    writes: dict[str, list[RegisterAccess]] = {}
    for leaf, access in first.writes:
        writes.setdefault(leaf, []).append(access)
    early = (
        ((leaf, read), write, missing)
        for leaf, read in second.reads
        for write in writes.get(leaf, ())
        if (missing := write.stage - apart - read.stage + 1 - write.forwards(read)) > 0
    )
    late = (
        ((leaf, access), other.stage - apart - access.stage)
        for leaf, access in second.writes
        for other in writes.get(leaf, ())
        if other.stage - apart >= access.stage and not is_status(leaf)
    )
    return Meeting(tuple(early), tuple(late), tuple(_shared(first, second, apart)))


def _shared(first: Issued, second: Issued, apart: int) -> Iterator[tuple[str, int, bool]]:
    taken: dict[tuple[str, int], list[_Unit]] = {}
    for unit in first.units:
        taken.setdefault((unit[0], unit[1] - apart), []).append(unit)
    for name, cycle, reserved, own in second.units:
        for other in taken.get((name, cycle), ()):
            if not (other[2] and reserved):
                yield name, min(u[1] for u in second.units if u[0] == name), own or other[3]


@dataclass(slots=True)
class PathState:
    """Joined over all paths with the same recent bundles, before a bundle issues. Its parts are replaced, not changed.

    `defined` has a bit for each leaf that some path has written, `constants` registers with the same known value on all
    paths, `loop_writes` the bundles since lc, ls and le were written last, with the address of that write.
    """

    defined: int = 0
    constants: Mapping[str, int] = field(default_factory=dict)
    loop_writes: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> "PathState":
        """One that has the same parts."""
        return PathState(self.defined, self.constants, self.loop_writes)

    def join(self, other: "PathState") -> bool:
        """Take in the state of a path with the same recent bundles, and so the same under way; whether it changed."""
        changed = False
        if other.defined & ~self.defined:
            self.defined, changed = self.defined | other.defined, True
        if self.constants is not other.constants and not self.constants.items() <= other.constants.items():
            self.constants, changed = dict(self.constants.items() & other.constants.items()), True
        if self.loop_writes != other.loop_writes and (nearer := self._nearer(other.loop_writes)):
            self.loop_writes, changed = {**self.loop_writes, **nearer}, True
        return changed

    def _nearer(self, writes: Mapping[str, tuple[int, int]]) -> dict[str, tuple[int, int]]:
        """Writes of loop control that are nearer than those here."""
        mine = self.loop_writes
        return {name: write for name, write in writes.items() if name not in mine or write[0] < mine[name][0]}


def landed(recent: Sequence[Issued]) -> frozenset[str]:
    """What lands one cycle on; `recent` are the last bundles that issued, in their order."""
    return frozenset().union(*(one.landing.get(age, ()) for age, one in enumerate(reversed(recent), 1)))


def advance(state: PathState, address: int, parts: Issued, landing: int) -> None:
    """One cycle on, behind the bundle at an address; `landing` has the bits of leaves that land in it."""
    state.defined |= landing
    state.constants = stepped_constants(state.constants, parts)
    if state.loop_writes or parts.loops:
        aged = {register: (min(age + 1, LOOP_DISTANCE), by) for register, (age, by) in state.loop_writes.items()}
        state.loop_writes = aged | dict.fromkeys(parts.loops, (1, address))


def stepped_constants(constants: Mapping[str, int], parts: Issued) -> Mapping[str, int]:
    """Registers with a known value behind a bundle, from those before it; results that take longer are not known."""
    moved = {**parts.constants, **dict(_stepped(constants, parts))} if parts.steps else parts.constants
    if not moved and parts.written.isdisjoint(constants):
        return constants
    found = dict(constants)
    for leaf, access in parts.writes:
        value = moved.get(leaf) if access.stage == 1 else None
        if value is None:
            found.pop(leaf, None)
        else:
            found[leaf] = value
    return found


def _stepped(constants: Mapping[str, int], parts: Issued) -> Iterator[tuple[str, int]]:
    """Pointers that step by an immediate or a constant register, wrapped to 20 bits."""
    for pointer, offset in parts.steps:
        step = _amount(constants, offset)
        if pointer in constants and step is not None:
            yield pointer, (constants[pointer] + step) & _ADDRESS


def _offset(instruction: Instruction) -> int | str:
    """The immediate offset of an address, or its register; 0 without one."""
    name = offset_of(instruction.form)
    return instruction[name] if name else 0


def _amount(constants: Mapping[str, int], offset: int | str) -> int | None:
    return offset if isinstance(offset, int) else constants.get(offset)


def address_of(state: PathState, instruction: Instruction) -> int | None:
    """The address that a load or store uses, if its registers are known."""
    pointer = instruction["ptr"] if "ptr" in instruction.form.names else ""
    if str(pointer) not in state.constants:
        return None
    base = state.constants[str(pointer)] & _ADDRESS
    if walk_of(instruction.form) is not AddressWalk.INDEX:
        return base
    offset = _amount(state.constants, _offset(instruction))
    return None if offset is None else (base + offset) & _ADDRESS
