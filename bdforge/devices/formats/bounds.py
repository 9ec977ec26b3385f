"""How far a core's floating-point product may be from the exact one (docs/block_floats.md derives it)."""

from typing import Literal

import numpy as np

from bdforge.devices.formats.bfp16 import BLOCK, rounded

Accumulator = Literal["f32", "bf16", "bfp16"]

_FLOAT32_STEP = 2.0**-23  # twice the unit roundoff: cores align sums to the largest term and may truncate
_BF16_ROUNDOFF = 2.0**-8  # 8 bits of significand, to nearest
BLOCK_ROUNDOFF = 1 / 127.5  # of the largest of a block, docs/block_floats.md


def error_bound(
    a: np.ndarray, b: np.ndarray, *, k: int, accumulator: Accumulator = "f32", blocks: bool = True
) -> np.ndarray:
    """Largest |C - A B| in each element (M, N), float64, for A (M, K) and B (K, N) in steps of depth k.

    C is what a core has in its accumulators, started from zero, against the exact product of A and B as they are, or,
    with `blocks`, as `rounded` leaves them along K: apply it to A and B before the comparison. Without `blocks` the
    products are those of bfloat16. A conversion of C after the last step is not contained.
    """
    magnitudes = np.abs(_seen(a, -1, blocks)) @ np.abs(_seen(b, 0, blocks))
    depth, calls = a.shape[1], -(-a.shape[1] // k)
    sums = -(-depth // BLOCK) if blocks else depth
    roundings = (sums + calls) * _FLOAT32_STEP
    bound = magnitudes * roundings
    # Sums that are rounded by each call have grown by earlier roundings.
    if accumulator == "bf16":
        bound += magnitudes * calls * _BF16_ROUNDOFF * (1 + roundings + _BF16_ROUNDOFF) ** calls
    elif accumulator == "bfp16":
        grown = (1 + roundings + BLOCK_ROUNDOFF) ** calls
        bound += largest_of_block(magnitudes) * calls * BLOCK_ROUNDOFF * grown
    return bound


def _seen(operand: np.ndarray, axis: int, blocks: bool) -> np.ndarray:
    values = rounded(operand, axis) if blocks else np.asarray(operand)
    return values.astype(np.float64)


def largest_of_block(values: np.ndarray) -> np.ndarray:
    """Every value replaced by the largest of its 8 neighbours along N."""
    rows, columns = values.shape
    filled = np.pad(values, [(0, 0), (0, -columns % BLOCK)])
    largest = filled.reshape(rows, -1, BLOCK).max(axis=-1)
    return np.repeat(largest, BLOCK, axis=1)[:, :columns]
