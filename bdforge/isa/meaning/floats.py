"""Floats of the multiplier, as far as sources know them: normal numbers and zeros, rounded to nearest even.

bf16 products are exact in fp32, sums of the eight products of a block-float lane share a scale and are exact too, so
the one rounding is that of the accumulator's addition. What becomes of NaNs, infinities, subnormal numbers and of
results that overflow is open.
"""

import numpy as np

from bdforge.isa.meaning.model import lanes, open_if, operation
from bdforge.isa.meaning.multiply import SHIFT16, SUB_ACC1, SUB_ACC2, SUB_PRODUCT, ZERO_ACC, modes

_LANES = 64
_BLOCK, _MANTISSA_SCALE, _BIAS = 8, 64.0, 127
_ELEMENTWISE, _BLOCKS = (2, 3, 1), (2, 1, 0)


@operation("fmultiply")
def fmultiply(options: tuple[int, ...], *operands: int) -> int:
    """+-P, a1 +- P or a1 + a2 +- P; options: (accumulators, minus, lanes of bf16 or 0 for block floats)."""
    *accumulators, s1, s2, conf = operands
    _, minus, count = options
    open_if(conf & (SHIFT16 | SUB_PRODUCT | SUB_ACC1 | SUB_ACC2) or conf >> 16, f"conf {conf:#x} of floats is open")
    wanted = _ELEMENTWISE if count else _BLOCKS
    open_if(modes(conf) != wanted, "amode {}, bmode {}, variant {} of floats are open".format(*modes(conf)))
    total = _elementwise(s1, s2, count) if count else _blocks(s1, s2)
    total = -total if minus else total
    open_if(len(accumulators) > 1, "the order of three floats in a sum is open")
    for accumulator in accumulators:
        total = _sum(total, accumulator, conf)
    return int.from_bytes(_known(total).tobytes(), "little")


def _sum(total: np.ndarray, accumulator: int, conf: int) -> np.ndarray:
    """One addition in fp32; zeros are known where all terms are positive zeros."""
    if conf & ZERO_ACC:
        return total
    added = _known(np.array(lanes(accumulator, 32, _LANES), np.uint32).view(np.float32))
    with np.errstate(over="ignore"):
        found = total + added
    plain = ~np.signbit(total) & ~np.signbit(added) & (total == 0) & (added == 0)
    open_if(((found == 0) & ~plain).any(), "the sign of a sum that is zero is open")
    return found


def _elementwise(s1: int, s2: int, count: int) -> np.ndarray:
    found = np.zeros(_LANES)
    found[:count] = _bf16(s1, count) * _bf16(s2, count)
    return _single(found)


def _bf16(value: int, count: int) -> np.ndarray:
    values = np.array([lane << 16 for lane in lanes(value, 16, count)], np.uint32).view(np.float32)
    return _known(values).astype(np.float64)


def _single(values: np.ndarray) -> np.ndarray:
    """As fp32, which holds every product exactly unless it is out of range."""
    with np.errstate(over="ignore", under="ignore"):
        found = _known(values.astype(np.float32))
    open_if(((found == 0) & (values != 0)).any(), "products too small for fp32 are open")
    return found


def _known(values: np.ndarray) -> np.ndarray:
    """OpenError unless all are normal numbers or zeros."""
    tiny = np.finfo(np.float32).tiny
    known = np.isfinite(values) & ((values == 0) | (np.abs(values) >= tiny))
    open_if(not known.all(), "floats that are subnormal, infinite or no number are open")
    return values


def _blocks(s1: int, s2: int) -> np.ndarray:
    """8 x 8 x 8 of block floats, the second operand transposed: lane (i, j) sums row i of s1 with row j of s2."""
    a, b = _tile(s1), _tile(s2)
    return _single((a @ b.T).ravel())


def _tile(value: int) -> np.ndarray:
    mantissas = np.array(lanes(value, 8, _LANES, True), np.float64).reshape(_BLOCK, _BLOCK)
    exponents = np.array(lanes(value >> 512, 8, _BLOCK))
    return mantissas * np.exp2(exponents - float(_BIAS))[:, None] / _MANTISSA_SCALE
