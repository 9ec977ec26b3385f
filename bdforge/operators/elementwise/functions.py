"""The functions of element-wise designs by name: operands, values, how far results may be off, and cycles."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from bdforge.operators.operator_api import Expected

Rounding = Callable[[np.ndarray], np.ndarray]
"""Of what stands between two operations; none of integers, which are exact."""

_HALF_ULP = 2.0**-8  # of bfloat16: the most that rounding takes of a number
_LEAST = 2.0**-126  # of normal numbers: what is smaller may become 0
_FLOOR = 2.0**-120  # what s stays at far below 0, at most
_SIGMOID = 2.0**-11  # of s before it is rounded (kernels/include/sigmoid.h)


@dataclass(frozen=True, slots=True)
class Function:
    """f: exact on int64, and on bfloat16 with `rounded` after each operation; or near, where there is an `error`.

    Cycles by type are a core's for one vector, as many as the busiest slot of the kernel's loop has on AIE2P; of near
    functions, and of sums of bf16, none of which is zero, those between the starts of two vectors, as assembled.
    """

    operands: int
    of: Callable[..., np.ndarray]
    cycles: Mapping[str, int]
    error: Callable[[np.ndarray], np.ndarray] | None = None

    def expected(self, operands: list[np.ndarray], dtype: np.dtype) -> Expected:
        """Y of bfloat16 operands. Subnormal numbers stay, which the device flushes; operands of `error` are finite."""
        with np.errstate(over="ignore", invalid="ignore"):  # as IEEE 754 has it
            if self.error is None:
                y = self.of(*(x.astype(np.float32) for x in operands), lambda x: x.astype(dtype).astype(np.float32))
                return Expected(y.astype(dtype))
            wide = [x.astype(np.float64) for x in operands]
            exact = self.of(*wide, lambda x: x)
            roundings = len(operands) * _HALF_ULP
            gate = np.abs(wide[1]) if self.operands == 2 else 1.0
            left = (np.abs(wide[0]) * _FLOOR + _LEAST) * gate + _LEAST
            return Expected(exact, np.abs(exact) * (roundings + self.error(wide[0])) + left)


def _relu2_gate(a: np.ndarray, b: np.ndarray, rounded: Rounding) -> np.ndarray:
    return rounded(rounded(np.where(np.signbit(a), 0, a) ** 2) * b)


def _sigmoid(z: np.ndarray) -> np.ndarray:
    """1 / (1 + e^-z), near 0 as well as near 1."""
    e = np.exp(-np.abs(z))
    return np.where(z < 0, e, 1) / (1 + e)


def _silu(a: np.ndarray, rounded: Rounding) -> np.ndarray:
    return a * _sigmoid(a)


def _gelu(a: np.ndarray, rounded: Rounding) -> np.ndarray:
    return a * _sigmoid(np.sqrt(8 / np.pi) * (a + 0.044715 * a**3))


def _gate(function: Callable[..., np.ndarray]) -> Callable[..., np.ndarray]:
    return lambda a, b, rounded: function(a, rounded) * b


def _silu_error(a: np.ndarray) -> np.ndarray:
    """Relative, beside roundings of results: of s as it is rounded."""
    return np.full(a.shape, _HALF_ULP + _SIGMOID)


def _gelu_error(a: np.ndarray) -> np.ndarray:
    """As of SiLU; s's argument is a sum of fixed-point numbers, whose roundings count as a does."""
    return _silu_error(a) + np.minimum(1, np.abs(a) / 8) * _HALF_ULP


FUNCTIONS: Mapping[str, Function] = {
    "add": Function(2, lambda a, b, rounded: rounded(a + b), {"bf16": 20, "int8": 2}),
    "mul": Function(2, lambda a, b, rounded: rounded(a * b), {"bf16": 1, "int8": 1}),
    "relu2_gate": Function(2, _relu2_gate, {"bf16": 2, "int8": 3}),
    "silu": Function(1, _silu, {"bf16": 85}, _silu_error),
    "gelu": Function(1, _gelu, {"bf16": 86}, _gelu_error),
    "silu_gate": Function(2, _gate(_silu), {"bf16": 85}, _silu_error),
    "gelu_gate": Function(2, _gate(_gelu), {"bf16": 86}, _gelu_error),
}
"""relu2_gate is BitNet's relu(a)^2 b, silu_gate SwiGLU's a sigmoid(a) b, gelu GELU's tanh form, gelu_gate GeGLU's."""
