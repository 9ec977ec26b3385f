"""Equal periods of cycles folded into loops, and the text of it all."""

from collections.abc import Sequence
from dataclasses import dataclass

from bdforge.codegen.block import Issued, Op, bundle_lines
from bdforge.codegen.pipeline.dataflow import instruction
from bdforge.codegen.pipeline.trace import Cycle, is_free
from bdforge.isa import Isa
from bdforge.isa.flow import DELAY_SLOTS


@dataclass(slots=True)
class Piece:
    """Cycles that run `passes` times; a loop has a label and a counter."""

    cycles: list[Cycle]
    passes: int = 1
    label: str = ""


def folded(isa: Isa, cycles: list[Cycle], period: int, label: str, counter: str) -> list[Piece]:
    """Cycles with the longest run of equal periods as a loop, whose branch and count stand where slots are free."""
    texts = [cycle.texts for cycle in cycles]
    start, length = _longest_run([a == b for a, b in zip(texts, texts[period:], strict=False)])
    for passes in range(length // period + 1, 1, -1):
        for first in range(start, min(start + period, start + length - (passes - 1) * period) + 1):
            body = _united(cycles[first : first + passes * period], period)
            head, tail = cycles[:first], cycles[first + passes * period :]
            if period > DELAY_SLOTS + 1 and _closed(isa, head, body, passes, label, counter):
                return [Piece(head), Piece(body, passes, label), Piece(tail)]
    return [Piece(cycles)]


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
    set_up.ops.append(Op(f"movx {counter}, #{passes}", "blocks in the loop"))
    counted.ops.append(Op(f"add {counter}, {counter}, #-1", "blocks left"))
    body[at].ops.append(Op(f"jnz {counter}, #{label}", "back behind five more bundles"))
    return True


def lines(isa: Isa, pieces: Sequence[Piece]) -> list[str]:
    """The text of pieces, one line for each bundle and one for what it reads before it changes."""
    found: list[str] = []
    for piece in pieces:
        if not piece.cycles:
            continue
        if piece.label:
            found.append(f"{piece.label}:")
        issued = [
            Issued([instruction(isa.generation, op.text) for op in cycle.ops], list(cycle.ops))
            for cycle in piece.cycles
        ]  # fmt: skip
        for cycle, line in zip(piece.cycles, bundle_lines(isa, issued), strict=True):
            if cycle.old:
                found.append(f"        .old {', '.join(sorted(_whole(cycle.old)))}")
            found.append(line)
    return found


def _whole(found: set[str]) -> set[str]:
    """Halves of vector registers by the register's name where both are meant."""
    both = {leaf[2:] for leaf in found if leaf.startswith("wl") and f"wh{leaf[2:]}" in found}
    return {leaf for leaf in found if leaf[2:] not in both or leaf[:2] not in ("wl", "wh")} | {f"x{i}" for i in both}
