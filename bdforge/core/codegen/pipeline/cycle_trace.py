"""Cycles of a function: blocks one after the other behind their set-up, and what comes behind the last."""

from collections.abc import Iterator, Sequence

from bdforge.core.codegen.basic_block import AssemblyOp, Cycle, instruction
from bdforge.core.codegen.schedule import placed
from bdforge.core.isa import Isa
from bdforge.core.isa.core_registers import is_status
from bdforge.core.isa.effects import done_after, effects, touched
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.core.isa.pipeline import issued, meeting

_LONGEST = 10  # cycles from an issue to the last that comes of it


def trace(issues: Sequence[tuple[int, AssemblyOp]], period: int, times: int) -> list[Cycle]:
    """Blocks of instructions with their cycles, each a period behind the one before."""
    cycles = [Cycle() for _ in range((times - 1) * period + max(issue for issue, _ in issues) + 1)]
    for number in range(times):
        for issue, op in issues:
            cycles[number * period + issue].ops.append(op)
    return cycles


def after_setup(isa: Isa, setup: Sequence[AssemblyOp], cycles: Sequence[Cycle]) -> list[Cycle]:
    """Set-up and cycles as near to each other as registers and units allow."""
    before = placed(isa, setup)
    shift = _registers_allow(isa, before, cycles)
    while not _units_allow(isa, before, cycles, shift):  # registers bound the distance from below; units have holes
        shift += 1
    joined = [Cycle() for _ in range(max(len(before), shift + len(cycles)))]
    for at, cycle in (*enumerate(before), *enumerate(cycles, shift)):
        joined[at].ops += cycle.ops
    return joined


def _registers_allow(isa: Isa, before: Sequence[Cycle], cycles: Sequence[Cycle]) -> int:
    """The least distance at which cycles read what was set, and overwrite nothing that is still read."""
    last: dict[tuple[str, bool], int] = {}
    for leaf, index, writes in _accesses(isa, before):
        last[leaf, writes] = max(last.get((leaf, writes), 0), index)
    behind = [
        last[leaf, set_] + 1 - index
        for leaf, index, writes in _accesses(isa, cycles[: len(before) + _LONGEST])
        for set_ in ((True, False) if writes else (True,))
        if (leaf, set_) in last
    ]
    return max((0, *behind))


def _accesses(isa: Isa, cycles: Sequence[Cycle]) -> Iterator[tuple[str, int, bool]]:
    """(leaf, cycle, whether it is a write); flags that several may set are not written."""
    for at, cycle in enumerate(cycles):
        for op in cycle.ops:
            for leaf, access, writes in touched(isa.generation, instruction(isa.generation, op.text)):
                if not (writes and is_status(leaf)):
                    yield leaf, at + access.stage, writes


def _units_allow(isa: Isa, before: Sequence[Cycle], cycles: Sequence[Cycle], shift: int) -> bool:
    taken = _cells(isa, before, 0)
    return all(
        reserved and taken[cell]
        for cell, reserved in _cells(isa, cycles[: len(before) + _LONGEST], shift).items()
        if cell in taken
    )


def _cells(isa: Isa, cycles: Sequence[Cycle], shift: int) -> dict[tuple[str, int], bool]:
    """Slots and units with their cycles, and whether they are only reserved, which several may do."""
    found: dict[tuple[str, int], bool] = {}
    for at, cycle in enumerate(cycles, shift):
        for op in cycle.ops:
            one = instruction(isa.generation, op.text)
            found |= {(slot, at): False for slot in one.form.slots}
            found |= {(unit, at + cycle): reserved for unit, cycle, reserved in effects(one).units}
    return found


def declare_old(isa: Isa, cycles: Sequence[Cycle]) -> None:
    """Note where a register is read, or written for a while, although what was issued before is on its way into it."""
    bundles = [isa.bundle(instruction(isa.generation, op.text) for op in cycle.ops) for cycle in cycles]
    parts = [issued(isa.generation, bundle) for bundle in bundles]
    for at, cycle in enumerate(cycles):
        for apart in range(1, min(at, isa.last_stage) + 1):
            met = meeting(parts[at - apart], parts[at], apart)
            cycle.old |= {leaf for (leaf, _), *_ in met.early} | {leaf for (leaf, _), behind in met.late if behind}


def is_free(isa: Isa, cycle: Cycle, *slots: str) -> bool:
    """Whether nothing issues in slots; what takes alu and mv together is in both."""
    return not any({*slots} & {*instruction(isa.generation, op.text).form.slots} for op in cycle.ops)


def ended(isa: Isa, cycles: list[Cycle]) -> None:
    """Append cycles until everything has landed and is stored."""
    ends = (
        at + done_after(instruction(isa.generation, op.text)) for at, cycle in enumerate(cycles) for op in cycle.ops
    )
    end = max(ends, default=0)
    cycles += [Cycle() for _ in range(end - len(cycles))]


def returning(isa: Isa, cycles: list[Cycle]) -> None:
    """Let the function return when that is so: as early as its delay slots hold the rest."""
    ended(isa, cycles)
    at = max(0, len(cycles) - DELAY_SLOTS - 1)
    while at < len(cycles) and not is_free(isa, cycles[at], "alu"):
        at += 1
    cycles += [Cycle() for _ in range(at + DELAY_SLOTS + 1 - len(cycles))]
    cycles[at].ops.append(AssemblyOp("ret"))
