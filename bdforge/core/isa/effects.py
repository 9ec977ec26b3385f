"""What one instruction reads, writes and occupies, with registers resolved: the same for executor and checker."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from bdforge.core.isa.core_registers import leaves, prefix
from bdforge.core.isa.forms import FormTiming, Instruction, Resource
from bdforge.core.isa.operand_kinds import Immediate

_CACHED = 1 << 15  # instructions; a core's program has at most 8192 bundles of six


@dataclass(frozen=True, slots=True)
class RegisterAccess:
    """A register (composed ones whole) that `operand` reads or writes at `stage`; `bypass` is its forwarding class."""

    register: str
    stage: int
    operand: str
    bypass: str | None = None

    def forwards(self, other: "RegisterAccess") -> bool:
        """Whether a result goes from one to the other a cycle before it lands."""
        return self.bypass is not None and self.bypass == other.bypass


@dataclass(frozen=True, slots=True)
class Effects:
    """Reads and writes of registers, and units: (name, cycle from issue, whether only reserved) of each cycle."""

    reads: tuple[RegisterAccess, ...]
    writes: tuple[RegisterAccess, ...]
    units: tuple[tuple[str, int, bool], ...]


def distance(write: RegisterAccess, read: RegisterAccess) -> int:
    """Least cycles from the issue of a write to that of a read that sees it; fewer read the old value."""
    return write.stage - read.stage + 1 - write.forwards(read)


def done_after(instruction: Instruction) -> int:
    """Cycles from an instruction's issue until all that it does is done: results there, units free, memory written."""
    found = effects(instruction)
    stages = [access.stage for access in found.writes] + [access.stage - 1 for access in found.reads]
    units = [cycle + 1 for _, cycle, _ in found.units]
    return max([1, *stages, *units, *instruction.form.timing.memory_stages])


def after_read(write: RegisterAccess, read: RegisterAccess) -> int:
    """Cycles from a read to a write that it must not see; negative ones let the write issue first."""
    return read.stage - write.stage + write.forwards(read)


@lru_cache(maxsize=_CACHED)
def effects(instruction: Instruction) -> Effects:
    """Reads, writes and units of an instruction, from its form's timing; NOPs have none."""
    timing = instruction.form.timing
    return Effects(
        reads=_accesses(instruction, timing, timing.uses, timing.implicit_uses),
        writes=_accesses(instruction, timing, timing.defs, timing.implicit_defs),
        units=tuple(
            (unit.name, cycle, unit.reserved)
            for unit in timing.resources + _chosen_ports(instruction, timing)
            for cycle in range(unit.cycle, unit.cycle + unit.cycles)
        ),
    )


@lru_cache(maxsize=_CACHED)
def touched(generation: str, instruction: Instruction) -> tuple[tuple[str, RegisterAccess, bool], ...]:
    """Leaves of registers that an instruction reads, then those that it writes, with whether it does."""
    found = effects(instruction)
    return tuple(
        (leaf.name, access, writes)
        for writes, accesses in ((False, found.reads), (True, found.writes))
        for access in accesses
        for leaf in leaves(generation, access.register)
    )


def memory_turn(bundle: Iterable[Instruction]) -> tuple[int, int]:
    """From which cycle behind its issue on a bundle needs memory (-1: never), and for how many it keeps it.

    8- and 16-bit stores keep it, since they read the word that they change, and others wait for them (llvm-aie's
    simulator inserts these cycles).
    """
    units = [unit for instruction in bundle for unit in effects(instruction).units if unit[0] == PART_WORD_STORE]
    return min((cycle for _, cycle, _ in units), default=-1), max(
        (c for _, c, reserved in units if not reserved), default=0
    )


PART_WORD_STORE = "PART_WORD_STORE"
"""The unit that 8- and 16-bit stores take, and all other accesses of memory reserve."""


Touch = tuple[int, RegisterAccess, bool]
"""A read or write of a register by the instruction with a number: the access, and whether it writes."""


def register_order(
    touches: Sequence[Touch], blocks: Sequence[int] = (0,), least: int | None = None
) -> Iterator[tuple[int, int, int, int]]:
    """(earlier, later, cycles, blocks between) of instructions that touch one register, one block after the other.

    So many cycles at least are between their issues. Writes that come `least` cycles after a read, or after another
    write, come behind it in the order of the text too.
    """
    writer: tuple[int, int, RegisterAccess] | None = None
    readers: list[tuple[int, int, RegisterAccess]] = []
    for block in blocks:
        for index, access, writes in touches:
            if not writes:
                if writer is not None:
                    yield writer[0], index, distance(writer[2], access), block - writer[1]
                readers.append((index, block, access))
                continue
            before = [(one, at, after_read(access, read)) for one, at, read in readers]
            before += [] if writer is None else [(*writer[:2], writer[2].stage - access.stage + 1)]
            for one, at, cycles in before:
                if (one, at) != (index, block):
                    yield one, index, cycles if least is None else max(least, cycles), block - at
            writer, readers = (index, block, access), [read for read in readers if read[:2] == (index, block)]


def operand_register(instruction: Instruction, operand: str) -> str | None:
    """The register that an operand of the timing table is; None for immediates.

    Besides fields: fixed registers, results tied to an operand, and what a FIFO pointer or an address walk implies.
    """
    return _resolve(instruction, operand) or _resolve_tied(instruction, operand)


def _accesses(instruction: Instruction, timing: FormTiming, stages, implicit) -> tuple[RegisterAccess, ...]:
    found = []
    for operand, stage in stages.items():
        register = operand_register(instruction, operand)
        if register:
            found.append(RegisterAccess(register, stage, operand, _bypass(timing, operand, register)))
    return tuple(found) + tuple(RegisterAccess(register, stage, register) for register, stage in implicit.items())


def _bypass(timing: FormTiming, operand: str, register: str) -> str | None:
    """The forwarding class; of operands that may also be accumulators or FIFO halves, only x registers forward."""
    kind = timing.bypass.get(operand)
    return None if kind == "MV" and prefix(register) in _NEVER_FORWARDED else kind


_NEVER_FORWARDED = {"bmll", "bmlh", "bmhl", "bmhh", "bml", "bmh", "lfl", "lfh", "lfe", "sfl", "sfh"}


def _resolve(instruction: Instruction, operand: str) -> str | None:
    timing, form = instruction.form.timing, instruction.form
    if operand in timing.fixed:
        return timing.fixed[operand]
    if operand in form.names:
        if isinstance(form.field(operand).kind, Immediate):
            return None
        return re.sub("^plfr", "p", str(instruction[operand]))
    if operand in ("dc", "dcl", "dch"):
        return _counter(str(instruction["mod"]), operand)
    if operand in ("fifo_reg", "pos") and str(instruction["ptr"]).startswith("plfr"):
        unit = int(str(instruction["ptr"])[4:])
        return f"lf{unit}" if operand == "fifo_reg" else f"r{24 + unit}"
    return None


def _resolve_tied(instruction: Instruction, operand: str) -> str | None:
    for result, source in instruction.form.timing.ties.items():
        if operand in (result, source):
            return _resolve(instruction, source) or _resolve(instruction, result)
    return None


def _counter(walk: str, operand: str) -> str:
    """Counter that a walk steps: `d3` -> dc3; `d1_3d` -> dc1 (dcl) and dc5 (dch)."""
    number = int(re.findall(r"\d+", walk)[0])
    return f"dc{number + 4 * (operand == 'dch')}"


def _chosen_ports(instruction: Instruction, timing: FormTiming) -> tuple[Resource, ...]:
    found = []
    for operand, cycle, units in timing.ports:
        stem = prefix(operand_register(instruction, operand) or "")
        names = units.get(stem) or (units.get("bm", ()) if stem.startswith("bm") else ())
        found += [Resource(name, cycle) for name in names]
    return tuple(found)
