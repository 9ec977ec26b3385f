"""What a core asks of the array, in the words that kernels use (`bdforge.kernel`).

The fast executor hands over numbers and bytes (`Asking`), the plain one operands.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from bdforge.emulator.cores.isa.build import REQUEST
from bdforge.emulator.cores.isa.steps import Steps
from bdforge.isa.errors import ExecutionError
from bdforge.isa.meaning import Meaning
from bdforge.kernel import Acquire, GetCascade, GetStream, PutCascade, PutStream, Release, Request

_WORD, _CASCADE_BYTES = 1 << 32, 64


def request_of(operation: str, operands: Sequence[int]) -> Request:
    """The request of a form's meaning; ExecutionError for one that the hardware would not serve."""
    match operation:
        case "acquire":
            value = _signed(operands[1])
            return Acquire(operands[0], abs(value), value >= 0)
        case "release":
            return Release(operands[0], _signed(operands[1]))
        case "get stream":
            return GetStream(0, np.dtype(np.int32))
        case "put stream":
            return PutStream(0, (operands[0] % _WORD).to_bytes(4, "little"), bool(operands[1] & 1))
        case "get cascade":
            _check_enabled(operands[0], "crSCDEn", "input")
            return GetCascade(np.dtype(np.uint8))
        case "put cascade":
            _check_enabled(operands[1], "crMCDEn", "output")
            return PutCascade(operands[0].to_bytes(_CASCADE_BYTES, "little"))
    raise ExecutionError(f"no request is called {operation}")


def _signed(value: int) -> int:
    value %= _WORD
    return value - _WORD if value >> 31 else value


def _check_enabled(enabled: int, register: str, what: str) -> None:
    if not enabled:
        raise ExecutionError(f"the cascade's {what} is used while {register} is 0: write 1 to it first")


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
