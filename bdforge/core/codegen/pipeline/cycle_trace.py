"""Cycles of a function: blocks one after the other behind their set-up, and what comes behind the last."""

from collections import defaultdict
from collections.abc import Iterator, Sequence

from bdforge.core.codegen.basic_block import AssemblyOp, Cycle, instruction
from bdforge.core.codegen.schedule import placed
from bdforge.core.isa import Isa
from bdforge.core.isa.effects import collects, done_after, effects, touched
from bdforge.core.isa.flow import DELAY_SLOTS

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
    while not _units_allow(isa, before, cycles, shift):
        shift += 1
    joined = [Cycle() for _ in range(max(len(before), shift + len(cycles)))]
    for at, cycle in (*enumerate(before), *enumerate(cycles, shift)):
        joined[at].ops += cycle.ops
    return joined


def _registers_allow(isa: Isa, before: Sequence[Cycle], cycles: Sequence[Cycle]) -> int:
    """The least distance at which cycles read what was set, and overwrite nothing that is still read."""
    written, read = _landings(isa, before)
    shift = 0
    for at, cycle in enumerate(cycles[: len(before) + _LONGEST]):
        for leaf, index, writes, _ in _accesses(isa, cycle, at):
            if leaf in written:
                shift = max(shift, written[leaf] + 1 - index)
            if writes and leaf in read:
                shift = max(shift, read[leaf] + 1 - index)
    return shift


def _landings(isa: Isa, cycles: Sequence[Cycle]) -> tuple[dict[str, int], dict[str, int]]:
    """When each leaf is written last and read last."""
    written: dict[str, int] = {}
    read: dict[str, int] = {}
    for at, cycle in enumerate(cycles):
        for leaf, index, writes, _ in _accesses(isa, cycle, at):
            table = written if writes else read
            table[leaf] = max(table.get(leaf, 0), index)
    return written, read


def _accesses(isa: Isa, cycle: Cycle, at: int) -> Iterator[tuple[str, int, bool, str | None]]:
    """(leaf, cycle, whether it is a write, forwarding class)."""
    for op in cycle.ops:
        for leaf, access, writes in touched(isa.generation, instruction(isa.generation, op.text)):
            if not (writes and collects(leaf)):
                yield leaf, at + access.stage, writes, access.bypass


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
    coming: dict[str, list[tuple[int, str | None]]] = defaultdict(list)
    for at, cycle in enumerate(cycles):
        accesses = list(_accesses(isa, cycle, at))
        cycle.old |= {
            leaf
            for leaf, index, writes, bypass in accesses
            for lands, forwarded in coming[leaf]
            if (lands > index if writes else lands >= index + (forwarded is not None and forwarded == bypass))
        }
        for leaf in {leaf for leaf, _, _, _ in accesses}:
            coming[leaf] = [entry for entry in coming[leaf] if entry[0] > at]
        for leaf, index, writes, bypass in accesses:
            if writes:
                coming[leaf].append((index, bypass))


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
