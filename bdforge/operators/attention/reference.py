"""Attention in float64, and how far the kernels may be off it: each step's error, carried through softmax.

kernels/include/attention.h and the kernels' contracts say where each term comes from. Operands are finite bfloat16.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from bdforge.operators.operator_api import Expected

LOG2_E = 1.4426950408889634
SHARING = 8
"""Values that share an exponent."""
_DIGIT = 2.0**-7  # of the largest value of 8: what a block float leaves of each
_POLYNOMIAL, _HALF_ULP = 2.2e-3, 2.0**-8  # of a weight: of the exponential, and of bfloat16
_RESULT = 2 * _HALF_ULP + 2.0**-12  # sums and results are rounded, and the sum's inverse is within 2^-13
_SUM = 2.0**-24  # of a sum in float32, one for each key at most: sums of ranges have no more of them
_LEAST = 2.0**-36  # of values: more than weights below 2^-96 lose, beside sums from 2^-40 on
_TANH = 2.0**-12 + 2.0**-13  # of a cap: what its tanh is off, and the scores that it gets
_SMALLEST = 2.0**-125  # subnormal numbers become 0


@dataclass(frozen=True, slots=True)
class Attended:
    """What of attention its result depends on: `scale` of scores, and which keys a query sees.

    Query i stands where key `keys - queries + i` does. `causal`: it sees no key behind that; `window`: so many keys, of
    which its own is the last; 0 are all. `digits` are block floats to an operand. `cap`: scores x are cap tanh(x / cap)
    where that is not 0.
    """

    scale: float
    causal: bool = True
    window: int = 0
    digits: int = 2
    cap: float = 0.0

    def expected(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> Expected:
        """Y of Q (queries, heads, d), K and V (keys, KV heads, d): as Q, with a bound for each element."""
        group = q.shape[1] // k.shape[1]
        heads = [self._head(q[:, head], k[:, head // group], v[:, head // group]) for head in range(q.shape[1])]
        values, bounds = (np.stack(part, axis=1) for part in zip(*heads, strict=True))
        return Expected(values, bounds)

    def _head(self, q: np.ndarray, k: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Y and bound of one head, some hundred queries at a time."""
        wide = [x.astype(np.float64) for x in (q, k, v)]
        parts = [self._rows(wide[0][rows], wide[1], wide[2], seen) for rows, seen in self._seen(len(q), len(k))]
        values, bounds = (np.concatenate(part) for part in zip(*parts, strict=True))
        return values, bounds

    def _seen(self, queries: int, keys: int) -> Iterator[tuple[slice, np.ndarray]]:
        """Some queries, and for each which keys it sees."""
        for first in range(0, queries, 256):
            rows = slice(first, min(first + 256, queries))
            apart = np.arange(rows.start, rows.stop)[:, None] + keys - queries - np.arange(keys)
            seen = (apart >= 0) | (not self.causal)
            yield rows, seen & (apart < self.window) if self.window else seen

    def _rows(self, q: np.ndarray, k: np.ndarray, v: np.ndarray, seen: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        scores = q @ k.T * self.scale
        powers = np.where(seen, self._capped(scores) * LOG2_E, -np.inf)
        weights = np.exp2(powers - powers.max(axis=1, keepdims=True))
        weights /= weights.sum(axis=1, keepdims=True)
        exact = weights @ v
        off = weights * self._weight_errors(q, k, np.where(seen, scores, 0))
        left = _DIGIT**self.digits
        spread = 2 * SHARING * left * np.minimum(1, 2 * _blocks(weights).sum(axis=1, keepdims=True))
        most = np.abs(v).max(axis=0)
        total = off.sum(axis=1, keepdims=True) + spread
        sums = left + _SUM * k.shape[0]
        near = (off @ np.abs(v) + spread * most + total * np.abs(exact)) / np.maximum(1 - total, 0.5) + sums * most
        bound = np.where(total < 0.5, np.minimum(near, 2 * most), 2 * most)
        return exact, bound * (1 + _RESULT) + np.abs(exact) * _RESULT + most * _LEAST + _SMALLEST

    def _capped(self, scores: np.ndarray) -> np.ndarray:
        return self.cap * np.tanh(scores / self.cap) if self.cap else scores

    def _weight_errors(self, q: np.ndarray, k: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Relative, of each weight before they are rounded together."""
        factor = self.scale * LOG2_E
        sizes = _blocks(np.abs(q)) @ _blocks(np.abs(k)).T * factor
        products = {1: 2 * _DIGIT, 2: 3 * _DIGIT**2}[self.digits] + _SUM * 3 * q.shape[1] / SHARING
        exponent = SHARING * products * sizes
        largest = np.abs(scores).max(axis=1, keepdims=True) * LOG2_E + 64  # of M: as sums of weights were before
        exponent += largest * _SUM * q.shape[1]
        if self.cap:  # far beyond the cap, scores that are off are the same
            moved = exponent / LOG2_E
            ends = [self._capped(scores + way * moved) - self._capped(scores) for way in (-1, 1)]
            exponent = np.maximum(np.abs(ends[0]), np.abs(ends[1])) * LOG2_E
        exponent += (1 + np.exp2(np.log2(factor) % 1)) * 2.0**-9 + 2.0**-10 + self.cap * LOG2_E * _TANH
        return np.exp2(np.minimum(exponent, 100)) * (1 + _POLYNOMIAL) * (1 + _HALF_ULP) - 1


def _blocks(values: np.ndarray) -> np.ndarray:
    """The largest of each 8 values along lines, zeros behind."""
    lines, length = values.shape
    whole = np.zeros((lines, -(-length // SHARING) * SHARING))
    whole[:, :length] = values
    return whole.reshape(lines, -1, SHARING).max(axis=2)
