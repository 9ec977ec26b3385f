"""Rows times a scale of their own, S, and one of all rows, C, rounded as `kernels/include/row_scale.h` rounds.

That is what a product of int8 codes and ternary weights means, whose sums the rows are: S comes with the codes, C is
the scale of the matrix.
"""

import numpy as np

from bdforge.devices.types import TYPES

_BF16 = TYPES["bf16"].dtype
_PRODUCTS = ((2, 0), (1, 1), (0, 2), (1, 0), (0, 1), (0, 0))  # of parts, in the order in which they are added up
_LEAST = 2.0**-90
"""Scales and products of two below it have parts that a device may take for 0."""


def factor(s: np.ndarray, c: np.ndarray) -> np.ndarray:
    """s c, within 2^-22 of itself, of float32 in float32."""
    one, other = _parts(s), _parts(c)
    found = np.zeros_like(one[0] * other[0])
    for i, j in _PRODUCTS:
        found = _added(found, one[i], other[j])
    return found


def scaled_sum(x: np.ndarray, r: np.ndarray, s: np.ndarray, c: np.ndarray) -> np.ndarray:
    """x + r s c in float32, of rows x and r, their scales s, and c."""
    found = x.astype(np.float32)
    for part in reversed(_parts(factor(s, c))):
        found = _added(found, r, part[:, None])
    return found


def scaled_loss(total: np.ndarray, r: np.ndarray, s: np.ndarray, c: np.ndarray) -> np.ndarray:
    """How far sums may be off `scaled_sum` in bfloat16: by something where factors are so small, else not at all."""
    small = (np.abs(s) < _LEAST) | (np.abs(c) < _LEAST) | (np.abs(s * c) < _LEAST)
    small = small & (s != 0) & (c != 0)
    return small[:, None] * (np.abs(total) * 2.0**-7 + (1 + np.abs(r)) * (np.abs(s * c) * 2.0**-7)[:, None] + 2.0**-120)


def _parts(x: np.ndarray) -> list[np.ndarray]:
    """Three numbers of bfloat16 whose sum x is."""
    found, rest = [], x.astype(np.float32)
    for _ in range(3):
        found.append(rest.astype(_BF16).astype(np.float32))
        rest = rest - found[-1]
    return found


def _added(sums: np.ndarray, one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """Sums and products of bfloat16 numbers, rounded once: in float64 nothing is lost that float32 would tell."""
    return (sums.astype(np.float64) + one.astype(np.float64) * other.astype(np.float64)).astype(np.float32)
