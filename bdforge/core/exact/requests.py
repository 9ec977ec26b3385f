"""What a core asks of the array, in the words that kernels use (`bdforge.core.python_kernel`).

The fast executor hands over numbers and bytes (`Asking`), the plain one operands.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bdforge.core.exact.instruction_plan import PART_BITS
from bdforge.core.isa.errors import ExecutionError, OpenError
from bdforge.core.isa.meaning.semantics import signed
from bdforge.core.python_kernel import AcquireLock, GetCascade, GetStream, PutCascade, PutStream, ReleaseLock, Request
from bdforge.devices.registers import CONTROL_PACKET, odd_parity

_WORD, _CASCADE_BYTES = 1 << 32, 64
PARTS = 4
"""Words of the cascade in the widest register."""
_MOST_ID = 31  # of packets: five bits


@dataclass(frozen=True, slots=True)
class PutHeader(Request):
    """A packet's header for the stream; the core knows the rest of it. As `PutStream`."""

    packet_type: int
    packet_id: int
    last: bool
    wait: bool = True


@dataclass(frozen=True, slots=True)
class GetRegister(Request):
    """The word at an offset of the core's tile."""

    offset: int


@dataclass(frozen=True, slots=True)
class PutRegister(Request):
    """A word for an offset of the core's tile."""

    offset: int
    value: int


@dataclass(frozen=True, slots=True)
class GetTimer(Request):
    """The tile's timer."""


@dataclass(frozen=True, slots=True)
class RunBeside(Request):
    """To go on behind `bdforge.core.exact.translated.run_beside`: this core computes for long. There is no answer."""


def request_of(name: str, operands: Sequence[int]) -> Request | None:
    """The request of a form's meaning, None where its condition is 0; ExecutionError for one that nobody serves."""
    verb, _, what = name.partition(" ")
    waits = verb not in ("offer", "poll")
    match verb, what:
        case "acquire" | "release", _ if not all(operands[2:]):
            return None
        case "acquire", _:
            value = signed(operands[1], 32)
            return AcquireLock(operands[0], abs(value), value >= 0)
        case "release", _:
            return ReleaseLock(operands[0], signed(operands[1], 32))
        case "get" | "poll", "stream":
            return GetStream(0, np.dtype(np.int32), waits)
        case "put" | "offer", "stream":
            return PutStream(0, (operands[0] % _WORD).to_bytes(4, "little"), bool(operands[1] & 1), waits)
        case "put" | "offer", "header":
            number, kind, last = operands
            return PutHeader(kind, number & _MOST_ID, bool(last & 1), waits)
        case "put" | "offer", "control":
            address, words, operation, number, last = operands
            fields = {"offset": address, "words": words, "operation": operation, "response_id": number & _MOST_ID}
            word = odd_parity(CONTROL_PACKET.encode(fields)[0])
            return PutStream(0, word.to_bytes(4, "little"), bool(last & 1), waits)
        case "get", "cascade":
            _check_enabled(operands[0], "crSCDEn", "input")
            if operands[1] >= PARTS:
                raise OpenError(f"r31 is {operands[1]}: the cascade reaches parts 0 to {PARTS - 1} of a register")
            return GetCascade(np.dtype(np.uint8))
        case "put", "cascade":
            _check_enabled(operands[1], "crMCDEn", "output")
            return PutCascade(operands[0].to_bytes(_CASCADE_BYTES, "little"))
        case "get", "register":
            return GetRegister(operands[0])
        case "put", "register":
            return PutRegister(operands[0], operands[1] % _WORD)
        case "get", "timer":
            return GetTimer()
    raise ExecutionError(f"no request is called {name}")


def answered(name: str, operands: Sequence[int], answer: Any) -> int:
    """A request's answer as bits: a word of the cascade at its part, a polled word with bit 32 if there was one."""
    if name == "get cascade":
        return int.from_bytes(answer.tobytes(), "little") << PART_BITS * operands[1]
    if name.startswith("offer"):
        return int(bool(answer))
    if name == "poll stream":
        return 0 if answer is None else answer % _WORD + _WORD
    return 0 if answer is None else answer % (_WORD * _WORD if name == "get timer" else _WORD)


def _check_enabled(enabled: int, register: str, what: str) -> None:
    if not enabled:
        raise ExecutionError(f"the cascade's {what} is used while {register} is 0: write 1 to it first")


@dataclass(frozen=True, slots=True)
class Asking:
    """A kind of request: its name, and of each operand whether it is data rather than a number."""

    name: str
    data: tuple[bool, ...]

    def operands(self, values: Sequence[int], data: bytes) -> list[int]:
        """Operands as the interpreter has them."""
        numbers = iter(values)
        return [int.from_bytes(data, "little") if is_data else next(numbers) for is_data in self.data]


DONE = Asking("done", ())
