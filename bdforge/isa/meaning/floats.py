"""Floats of the multiplier, as far as sources know them: normal numbers and zeros, rounded to nearest even.

bf16 products are exact in fp32, sums of the eight products of a block-float lane share a scale and are exact too, so
the one rounding is that of the accumulator's addition. Sums of three are known where no order of them rounds. What
becomes of NaNs, infinities, subnormal numbers and of results that overflow is open.
"""

from itertools import combinations

import numpy as np

from bdforge.isa.meaning.model import Partly, lanes, open_if, operation
from bdforge.isa.meaning.multiply import SHIFT16, SUB_ACC1, SUB_ACC2, SUB_PRODUCT, ZERO_ACC, modes

_LANES = 64
_BLOCK, _MANTISSA_SCALE, _BIAS = 8, 64.0, 127
_ELEMENTWISE, _BLOCKS = (2, 3, 1), (2, 1, 0)


@operation("fmultiply")
def fmultiply(options: tuple[int, ...], *operands: int) -> int | Partly:
    """+-P, a1 +- P or a1 + a2 +- P; options: (accumulators, minus, lanes of bf16 or 0 for block floats)."""
    *accumulators, s1, s2, conf = operands
    _, minus, count = options
    open_if(conf & _UNKNOWN or conf >> 16, f"conf {conf:#x} of floats is open")
    wanted = _ELEMENTWISE if count else _BLOCKS
    open_if(modes(conf) != wanted, "amode {}, bmode {}, variant {} of floats are open".format(*modes(conf)))
    product = _elementwise(s1, s2, count) if count else _blocks(s1, s2)
    terms = [_floats(value, len(product)) for value in accumulators[conf & ZERO_ACC :]]
    found = _bits(_summed([-product if minus else product, *terms], False))
    return Partly(found, _UPPER_HALF) if count == _LANES // 2 else found


_UNKNOWN = SHIFT16 | SUB_PRODUCT | SUB_ACC1 | SUB_ACC2
_UPPER_HALF = 0xFF00  # of 2048 bits, in pieces of 16 bytes
_FLOAT_MODE = 2


@operation("faccumulate")
def faccumulate(options: tuple[int, ...], *operands: int) -> int:
    """Accumulators of floats added; options: (bits, minus acc1, minus acc2, whether only exact sums are known)."""
    bits, *minus, exact = options
    *accumulators, conf = operands
    open_if(conf & (_UNKNOWN | ZERO_ACC) or conf >> 16, f"conf {conf:#x} of floats is open")
    open_if(conf >> 1 & 3 != _FLOAT_MODE, f"amode {conf >> 1 & 3} of an addition of floats is open")
    terms = [_floats(value, bits // 32) for value in accumulators]
    terms = [-term if negated else term for term, negated in zip(terms, minus, strict=False)]
    open_if(len(terms) == 1 and (terms[0] == 0).any(), "the sign of a sum that is zero is open")
    return _bits(_summed(terms, bool(exact)))


def _floats(value: int, count: int) -> np.ndarray:
    return _known(np.array(lanes(value, 32, count), np.uint32).view(np.float32))


def _bits(values: np.ndarray) -> int:
    return int.from_bytes(values.tobytes(), "little")


def _summed(terms: list[np.ndarray], exact: bool) -> np.ndarray:
    """One addition in fp32, or a sum that is the same in any order; zeros are known of positive zeros only."""
    if len(terms) == 1:
        return terms[0]
    with np.errstate(over="ignore", invalid="ignore"):
        found = terms[0] + terms[1] if len(terms) == 2 and not exact else _in_any_order(terms)
    plain = [(term == 0) & ~np.signbit(term) for term in terms]
    open_if(((found == 0) & ~np.all(plain, axis=0)).any(), "the sign of a sum that is zero is open")
    return _known(found)


def _in_any_order(terms: list[np.ndarray]) -> np.ndarray:
    for one, other in combinations(terms, 2):
        _exactly(one.astype(np.float64), other.astype(np.float64))
    total = terms[0].astype(np.float64)
    for term in terms[1:]:
        total = _exactly(total, term.astype(np.float64))
    return total.astype(np.float32)


def _exactly(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A sum that fp32 holds; what is lost is found as by Knuth's two-sum."""
    total = one + other
    part = total - one
    lost = (one - (total - part)) + (other - part)
    open_if(((lost != 0) | (total.astype(np.float32) != total)).any(), "a sum whose rounding is not told")
    _known(total.astype(np.float32))
    return total


def _elementwise(s1: int, s2: int, count: int) -> np.ndarray:
    return _single(_bf16(s1, count) * _bf16(s2, count))


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
