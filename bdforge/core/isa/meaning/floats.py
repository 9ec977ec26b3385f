"""Floats of the multiplier, as far as sources know them: normal numbers and zeros, rounded to nearest even.

bf16 products are exact in fp32, sums of the eight products of a block-float lane share a scale and are exact too, so
the one rounding is that of the accumulator's addition. What becomes of NaNs, infinities, subnormal numbers and of
results that overflow is open. Of AIE2P's sums two edges are not told, and whoever runs a program chooses whether they
stop it: a sum that is zero is taken for +0, as AIE2 has it, and one of three terms for rounded once.

AIE2 multiplies matrices of bf16, 4 x 8 by 8 x 4 row by row, into 16 lanes of fp32. That conf 0x1c chooses them (amode
2, bmode 3, variant 0) is recollected from llvm-aie's headers of AIE2, not recorded; AIE2P's 0x3c has the same fields.
Sums are as a model that equals AIE2's silicon has them (FIM43-Redeye/xdna-emu): each term is rounded to 23 bits behind
the point of the greatest exponent, that of a product being the sum of its factors'; what is left is added exactly and
rounded once more, all to nearest even; zero is +0. [assumption] Terms that are zero have no exponent.
"""

from collections.abc import Sequence
from itertools import combinations
from math import ldexp

import numpy as np

from bdforge.core.isa.meaning.multiply import SHIFT16, SUB_ACC1, SUB_ACC2, SUB_PRODUCT, ZERO_ACC, modes
from bdforge.core.isa.meaning.semantics import Partly, lanes, open_if, operation

_LANES = 64
_BLOCK, _MANTISSA_SCALE, _BIAS = 8, 64.0, 127
_ELEMENTWISE, _BLOCKS, _MATRICES = (2, 3, 1), (2, 1, 0), (2, 3, 0)
_ROWS, _DEPTH, _COLUMNS = 4, 8, 4  # of AIE2's matrices
_LAST_BIT = 149  # fp32 numbers are multiples of 2^-149
_FRACTION_BITS = 23
_STICKY_BITS = 32  # of a significand before it is rounded: more than fp32's 24 by two at least


@operation("fmultiply")
def fmultiply(options: tuple[int, ...], *operands: int) -> int | Partly:
    """+-P, a1 +- P or a1 + a2 +- P; options: (accumulators, minus, lanes of bf16 or 0 for block floats)."""
    *accumulators, s1, s2, conf = operands
    _, minus, count = options
    _check_chosen(conf, _ELEMENTWISE if count else _BLOCKS)
    product = _single(_bf16(s1, count) * _bf16(s2, count)) if count else _blocks(s1, s2)
    terms = [_floats(value, len(product)) for value in accumulators[conf & ZERO_ACC :]]
    found, assumed = _summed([-product if minus else product, *terms])
    unknown = _UPPER_HALF if count == _LANES // 2 else 0
    return Partly(_bits(found), unknown, assumed) if unknown or assumed else _bits(found)


@operation("fmatrix")
def fmatrix(options: tuple[int, ...], *operands: int) -> int:
    """+-A B or a1 +- A B of AIE2; options: (accumulators, minus)."""
    *accumulators, s1, s2, conf = operands
    _check_chosen(conf, _MATRICES)
    a = _bf16(s1, _ROWS * _DEPTH).reshape(_ROWS, 1, _DEPTH)
    b = _bf16(s2, _DEPTH * _COLUMNS).reshape(1, _DEPTH, _COLUMNS).transpose(0, 2, 1)
    products = a * b * (-1 if options[1] else 1)
    _single(products)
    exponents = [(_exponents(a) + _exponents(b)).reshape(-1, _DEPTH)]
    terms = [products.reshape(-1, _DEPTH)]
    for value in accumulators[conf & ZERO_ACC :]:
        terms.append(_floats(value, _ROWS * _COLUMNS)[:, None].astype(np.float64))
        exponents.append(_exponents(terms[-1]))
    return _bits(_known(_aligned(np.concatenate(terms, axis=1), np.concatenate(exponents, axis=1))))


def _exponents(values: np.ndarray) -> np.ndarray:
    return np.frexp(values)[1] - 1


def _aligned(terms: np.ndarray, exponents: np.ndarray) -> np.ndarray:
    """Sums of rows: terms are rounded at the greatest exponent of a row, then their sum."""
    last = np.where(terms != 0, exponents, -_LAST_BIT).max(axis=1) - _FRACTION_BITS
    total = np.rint(np.ldexp(terms, -last[:, None])).sum(axis=1) + 0.0
    with np.errstate(over="ignore"):
        return np.ldexp(total, last).astype(np.float32)


def _check_chosen(conf: int, wanted: tuple[int, int, int]) -> None:
    open_if(conf & _UNKNOWN or conf >> 16, f"conf {conf:#x} of floats is open")
    open_if(modes(conf) != wanted, "amode {}, bmode {}, variant {} of floats are open".format(*modes(conf)))


def _rounded_once(terms: list[float]) -> float:
    """The exact sum of multiples of fp32's last bit, cut to bits enough that fp32 rounds it as the sum itself."""
    total = sum(int(ldexp(term, _LAST_BIT)) for term in terms)
    cut = max(0, abs(total).bit_length() - _STICKY_BITS)
    kept = total >> cut
    return ldexp(kept | (kept << cut != total), cut - _LAST_BIT)


_UNKNOWN = SHIFT16 | SUB_PRODUCT | SUB_ACC1 | SUB_ACC2
_UPPER_HALF = 0xFF00  # of 2048 bits, in pieces of 16 bytes
_FLOAT_MODE = 2


@operation("faccumulate")
def faccumulate(options: tuple[int, ...], *operands: int) -> int | Partly:
    """Accumulators of floats added; options: (bits, minus acc1, minus acc2, whether AIE2)."""
    bits, *minus, aie2 = options
    *accumulators, conf = operands
    open_if(conf & (_UNKNOWN | ZERO_ACC) or conf >> 16, f"conf {conf:#x} of floats is open")
    open_if(conf >> 1 & 3 != _FLOAT_MODE, f"amode {conf >> 1 & 3} of an addition of floats is open")
    terms = [_floats(value, bits // 32) for value in accumulators]
    terms = [-term if negated else term for term, negated in zip(terms, minus, strict=False)]
    if aie2:
        rows = np.stack(terms, axis=1).astype(np.float64)
        return _bits(_known(_aligned(rows, _exponents(rows))))
    found, assumed = _summed(terms if len(terms) > 1 else [*terms, -np.zeros_like(terms[0])])
    return Partly(_bits(found), 0, assumed) if assumed else _bits(found)


def _floats(value: int, count: int) -> np.ndarray:
    return _known(np.array(lanes(value, 32, count), np.uint32).view(np.float32))


def _bits(values: np.ndarray) -> int:
    return int.from_bytes(values.tobytes(), "little")


ASSUMPTIONS = ROUNDING, ZERO_SIGN = "a sum whose rounding is not told", "the sign of a sum that is zero is open"
"""Why results may be otherwise, in the order in which they stop a core."""


def _summed(terms: Sequence[np.ndarray]) -> tuple[np.ndarray, tuple[str, ...]]:
    """AIE2P's sums, and what is assumed of them: one addition in fp32, or a rounding of three terms."""
    if len(terms) == 1:
        return terms[0], ()
    with np.errstate(over="ignore", invalid="ignore"):
        found = terms[0] + terms[1] if len(terms) == 2 else _once(terms)
    assumed = (ROUNDING,) * (len(terms) > 2 and not _same_in_any_order(terms))
    plain = np.all([(term == 0) & ~np.signbit(term) for term in terms], axis=0)
    assumed += (ZERO_SIGN,) * bool(((found == 0) & ~plain).any())
    return _known(np.where(found == 0, np.float32(0), found)), assumed


def _once(terms: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([_rounded_once(lane) for lane in np.stack(terms, axis=1).tolist()], np.float64).astype(np.float32)


def _same_in_any_order(terms: Sequence[np.ndarray]) -> bool:
    total = terms[0].astype(np.float64)
    for term in terms[1:]:
        if not _is_exact(total, term):
            return False
        total = total + term
    return all(_is_exact(one.astype(np.float64), other) for one, other in combinations(terms, 2))


def _is_exact(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether fp32 holds sums; what is lost is found as by Knuth's two-sum."""
    total = one + other
    part = total - one
    lost = (one - (total - part)) + (other - part)
    with np.errstate(over="ignore"):
        return not ((lost != 0) | (total.astype(np.float32) != total)).any()


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
