"""What data runs are given: random values, or those that hurt an operator's numbers."""

from collections.abc import Callable, Mapping

import numpy as np

Altered = Callable[[np.ndarray], np.ndarray]


def _spike(x: np.ndarray) -> np.ndarray:
    """One element of each row, at another place in each, stands alone."""
    rows = np.zeros(x.shape).reshape(-1, x.shape[-1])
    first = np.arange(len(rows))
    rows[first, 7 * first % x.shape[-1]] = 96
    return rows.reshape(x.shape)


def _late(x: np.ndarray) -> np.ndarray:
    """The last of the rows, and of each row's elements, are 32 times as large."""
    late = x.copy()
    late[-(-len(x) * 7 // 8) :] *= 32
    late[..., -(-x.shape[-1] * 7 // 8) :] *= 32
    return late


DATA: Mapping[str, Altered] = {
    "random": lambda x: x,
    "normal": lambda x: np.random.default_rng(1).normal(size=x.shape),
    "zeros": np.zeros_like,
    "spike": _spike,
    "equal": lambda x: np.full_like(x, 1.5),
    "late": _late,
    "large": lambda x: x * 2.0**20,
    "tiny": lambda x: x * 2.0**-40,
    "subnormal": lambda x: x * 2.0**-133,
}
"""By name: operands of floats, made of an operator's random ones. Integers are `_INTEGERS`' or stay random."""
_INTEGERS: Mapping[str, Altered] = {
    "zeros": np.zeros_like,
    "equal": lambda x: np.full_like(x, x.max()),
    "large": lambda x: np.where(x < 0, x.min(), x.max()),
}


def input_data(kind: str, random: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Inputs of a kind, a key of `DATA`, by operand name, in the types and shapes of `random` ones."""
    return {name: _of_kind(kind, array) for name, array in random.items()}


def _of_kind(kind: str, array: np.ndarray) -> np.ndarray:
    if kind == "random" or not array.size:
        return array
    if np.issubdtype(array.dtype, np.integer):
        return _INTEGERS.get(kind, DATA["random"])(array).astype(array.dtype)
    return DATA[kind](array.astype(np.float64)).astype(array.dtype)
