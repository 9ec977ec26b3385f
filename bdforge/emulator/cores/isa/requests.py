"""What a core asks of the array, in the words that kernels use (`bdforge.kernel`)."""

from collections.abc import Sequence

import numpy as np

from bdforge.isa.errors import ExecutionError
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
