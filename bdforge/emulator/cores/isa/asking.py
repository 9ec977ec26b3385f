"""Requests of machine code in the fast executor: what a step hands over, and how the answer comes back."""

from collections.abc import Sequence
from dataclasses import dataclass

from bdforge.emulator.cores.isa.rows import REQUEST
from bdforge.emulator.cores.isa.steps import Steps
from bdforge.isa.meaning import Meaning

_WORD_BYTES = 4


@dataclass(frozen=True, slots=True)
class Asking:
    """A kind of request: its operation, and of each operand whether it is data rather than a number."""

    operation: str
    data: tuple[bool, ...]

    def operands(self, values: Sequence[int], data: bytes) -> list[int]:
        """Operands as the interpreter has them."""
        numbers = iter(values)
        return [int.from_bytes(data, "little") if is_data else next(numbers) for is_data in self.data]


DONE = Asking("done", ())


def ask(steps: Steps, known: list[Asking]) -> None:
    """Add the step of a request; `known` lists the kinds that a program has, by number."""
    plan, meaning = steps.plan, steps.plan.meaning
    sizes = [_size(steps, name) for name in meaning.inputs]
    kind = Asking(meaning.operation, tuple(size > _WORD_BYTES for size in sizes))
    if kind not in known:
        known.append(kind)
    sources = [steps.source(name, plan.operate) for name in meaning.inputs]
    numbers = [s for s, size in zip(sources, sizes, strict=True) if size <= _WORD_BYTES]
    data = [(s, size) for s, size in zip(sources, sizes, strict=True) if size > _WORD_BYTES]
    given, given_bytes = data[0] if data else (0, 0)
    answer, answer_bytes = _answer(steps, meaning)
    numbers += [0] * (2 - len(numbers))
    options = (known.index(kind), given_bytes, answer_bytes)
    steps.add("ask", plan.operate, REQUEST, *numbers, given, answer, options=options)
    for name in meaning.outputs:
        steps.land(plan.writes[name], answer)


def _size(steps: Steps, name: str | int) -> int:
    """Bytes of an operand."""
    operand = next((o for o in steps.plan.reads if o.name == name), None)
    if operand is None:
        return _WORD_BYTES
    last = steps.layout.segments(operand.leaves)[-1]
    return last.offset + last.size_bytes


def _answer(steps: Steps, meaning: Meaning) -> tuple[int, int]:
    """(place, bytes) of what is answered."""
    if not meaning.outputs:
        return ~0, 0
    last = steps.layout.segments(steps.plan.writes[meaning.outputs[0]].leaves)[-1]
    return steps.result(meaning.outputs[0]), last.offset + last.size_bytes
