"""Loops of a program: hardware loops and jumps back, how often they run where the code tells, and what they issue."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from bdforge.core.isa.constants import KnownConstants
from bdforge.core.isa.effects import distance, effects
from bdforge.core.isa.flow import ControlFlow
from bdforge.core.isa.forms import Instruction
from bdforge.core.isa.meaning import meaning_of, what_is_open


@dataclass(frozen=True, slots=True)
class ProgramLoop:
    """Bundles at the addresses from `start` to `last`, that a jump's delay slots or a hardware loop end.

    `trips` is how often they run when control enters them, None where the code does not tell.
    """

    start: int
    last: int
    hardware: bool
    trips: int | None

    def holds(self, address: int) -> bool:
        """Whether a bundle is one of the loop's, inner ones included."""
        return self.start <= address <= self.last


def loops_of(known: KnownConstants) -> list[ProgramLoop]:
    """All loops, by their first bundle; of those with one first bundle the longest comes first."""
    found = {(loop.start, loop.last): loop for loop in (*_jumped(known), *_counted(known))}
    return sorted(found.values(), key=lambda loop: (loop.start, -loop.last))


def _counted(known: KnownConstants) -> Iterator[ProgramLoop]:
    """Hardware loops, whose bounds are constants where they end."""
    for address in known.program.bundles:
        constants = known.before(address)
        if constants.get("le") == address and 0 <= constants.get("ls", -1) <= address:
            start = constants["ls"]
            trips = None if _leaves(known, start, address, -1) else known.entering(start, address).get("lc")
            yield ProgramLoop(start, address, True, trips)


def _jumped(known: KnownConstants) -> Iterator[ProgramLoop]:
    """Jumps back to a bundle from which they are reached; of several to one bundle the last."""
    ends: dict[int, int] = {}
    for address, branch in known.program.branches.items():
        target, slots = known.targets[address], known.program.slots(address)
        if branch.call or target is None or target > address or not slots:
            continue
        if _reaches(known.program, target, address, slots[-1]):
            ends[target] = max(address, ends.get(target, 0))
    for start, branch in ends.items():
        last = known.program.slots(branch)[-1]
        inner = [range(other, end) for other, end in ends.items() if start < other <= branch]
        left = _leaves(known, start, last, branch)
        yield ProgramLoop(start, last, False, None if left else _trips(known, start, branch, inner))


def _reaches(program: ControlFlow, start: int, branch: int, last: int) -> bool:
    """Whether a way from `start` to a branch stays between them."""
    seen, waiting = set[int](), [start]
    while waiting:
        address = waiting.pop()
        if address == branch:
            return True
        if address not in seen and address in program.bundles and start <= address <= last:
            seen.add(address)
            waiting += program.next_inside(address)
    return False


def _leaves(known: KnownConstants, start: int, last: int, end: int) -> bool:
    """Whether anything but the jump at `end` may leave a loop."""
    for address, branch in known.program.branches.items():
        if start <= address <= last and address != end and not branch.call:
            target = known.targets[address]
            if target is None or not start <= target <= last:
                return True
    return False


def _trips(known: KnownConstants, start: int, branch: int, inner: Sequence[range]) -> int | None:
    """Of a loop that a jump ends on a register which one instruction counts down by one, in no `inner` loop."""
    generation, program = known.program.generation, known.program
    jump = next(i for i in program.bundles[branch] if i.form.delay_slots)
    meaning = meaning_of(generation, jump.form)
    if meaning.operation not in ("nonzero", "decrement"):
        return None
    counter, last = str(jump[str(meaning.inputs[1])]), program.slots(branch)[-1]
    order = [address for address in program.bundles if start <= address <= last]
    writers = [(at, i) for at in order for i in program.bundles[at] if _writes(i, counter)]
    first = known.entering(start, last).get(counter)
    if len(writers) != 1 or first is None or not 0 < first < 1 << 31 or any(writers[0][0] in loop for loop in inner):
        return None
    ((at, writer),) = writers
    if writer is jump:
        return first + 1  # it tests what it has not counted yet
    if not _counts_down(generation, writer, counter):
        return None
    write = next(w for w in effects(writer).writes if w.register == counter)
    read = next(r for r in effects(jump).reads if r.register == counter)
    return first + (order.index(branch) - order.index(at) < distance(write, read))


def _writes(instruction: Instruction, register: str) -> bool:
    return any(write.register == register for write in effects(instruction).writes)


def _counts_down(generation: str, instruction: Instruction, register: str) -> bool:
    """Whether an instruction takes one from a register."""
    known = not what_is_open(generation, instruction.form)
    return (
        known
        and meaning_of(generation, instruction.form).operation in ("add", "add_nc")
        and set(instruction.values) == {register, -1}
    )
