"""Equal periods of cycles folded into loops, and the text of it all."""

from collections.abc import Sequence
from dataclasses import dataclass

from bdforge.core.codegen.basic_block import AssemblyOp, Cycle, bundle_lines
from bdforge.core.codegen.pipeline.cycle_trace import is_free
from bdforge.core.isa import Isa
from bdforge.core.isa.flow import DELAY_SLOTS
from bdforge.core.isa.pipeline import LOOP_DISTANCE

HARDWARE_COUNTER = "lc"
SHORTEST = max(DELAY_SLOTS + 2, LOOP_DISTANCE)
"""Cycles of a loop at least: a branch with its slots behind a count; of a hardware loop, from its set-up to its end."""


@dataclass(slots=True)
class FoldedPiece:
    """Cycles that run `passes` times; a loop has a label, a hardware loop one more at its `last` bundle."""

    cycles: list[Cycle]
    passes: int = 1
    label: str = ""
    last: str = ""


def folded(isa: Isa, cycles: list[Cycle], period: int, label: str, counter: str) -> list[FoldedPiece]:
    """Cycles with the longest run of equal periods as a loop, whose branch and count stand where slots are free.

    With HARDWARE_COUNTER as its counter it is a hardware loop, which has no branch.
    """
    assert period >= SHORTEST
    last = f"{label}_last" if counter == HARDWARE_COUNTER else ""
    texts = [cycle.texts for cycle in cycles]
    start, length = _longest_run([a == b for a, b in zip(texts, texts[period:], strict=False)])
    for passes in range(length // period + 1, 1, -1):
        for first in range(start, min(start + period, start + length - (passes - 1) * period) + 1):
            body = _united(cycles[first : first + passes * period], period)
            head, tail = cycles[:first], cycles[first + passes * period :]
            done = _set_up(isa, head, passes, label, last) if last else _closed(isa, head, body, passes, label, counter)
            if done:
                return [FoldedPiece(head), FoldedPiece(body, passes, label, last), FoldedPiece(tail)]
    return [FoldedPiece(cycles)]


def _longest_run(same: Sequence[bool]) -> tuple[int, int]:
    start = length = run = 0
    for at, equal in enumerate(same):
        run = run + 1 if equal else 0
        if run > length:
            length, start = run, at - run + 1
    return start, length


def _united(cycles: Sequence[Cycle], period: int) -> list[Cycle]:
    return [
        Cycle(list(cycles[at].ops), set().union(*(cycle.old for cycle in cycles[at::period])))
        for at in range(period)
    ]  # fmt: skip


def _closed(isa: Isa, head: list[Cycle], body: list[Cycle], passes: int, label: str, counter: str) -> bool:
    """Add the branch back, the counting down and its start; False where there is no room."""
    at = len(body) - DELAY_SLOTS - 1
    counted = next((cycle for cycle in body[:at][::-1] if is_free(isa, cycle, "alu")), None)
    set_up = next((cycle for cycle in head[::-1] if is_free(isa, cycle, "alu")), None)
    if counted is None or set_up is None or not is_free(isa, body[at], "alu", "mv"):
        return False
    set_up.ops.append(AssemblyOp(f"movx {counter}, #{passes}", "blocks in the loop"))
    counted.ops.append(AssemblyOp(f"add {counter}, {counter}, #-1", "blocks left"))
    body[at].ops.append(AssemblyOp(f"jnz {counter}, #{label}", "back behind five more bundles"))
    return True


def _set_up(isa: Isa, head: list[Cycle], passes: int, label: str, last: str) -> bool:
    """Tell the core where a hardware loop begins and ends, and its passes; False where there is no room."""
    free = [cycle for cycle in head if is_free(isa, cycle, "alu", "mv")][-3:]
    values = {HARDWARE_COUNTER: f"{passes}", "ls": label, "le": last}
    if len(free) < len(values):
        return False
    for cycle, (register, value) in zip(free, values.items(), strict=True):
        cycle.ops.append(AssemblyOp(f"movxm {register}, #{value}", "hardware loop"))
    return True


def lines(isa: Isa, pieces: Sequence[FoldedPiece]) -> list[str]:
    """The text of pieces, one line for each bundle and one for what it reads before it changes."""
    found: list[str] = []
    for piece in pieces:
        if not piece.cycles:
            continue
        if piece.label:
            found.append(f"{piece.label}:")
        for cycle, line in zip(piece.cycles, bundle_lines(isa, piece.cycles, bool(piece.last)), strict=True):
            if piece.last and cycle is piece.cycles[-1]:
                found.append(f"{piece.last}:")
            if cycle.old:
                found.append(f"        .old {', '.join(sorted(_whole(cycle.old)))}")
            found.append(line)
    return found


def _whole(found: set[str]) -> set[str]:
    """Halves of vector registers by the register's name where both are meant."""
    both = {leaf[2:] for leaf in found if leaf.startswith("wl") and f"wh{leaf[2:]}" in found}
    return {leaf for leaf in found if leaf[2:] not in both or leaf[:2] not in ("wl", "wh")} | {f"x{i}" for i in both}
