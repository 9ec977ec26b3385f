"""Floats of the multiplier, as far as sources know them: rounded to nearest even, and a sum that is zero is +0.

bf16 products are exact in fp32, sums of the eight products of a block-float lane share a scale and are exact too, so
the one rounding is that of the accumulator's addition. AIE2P's sums of three terms are taken for rounded once, which is
told only where it does not matter: whoever runs a program chooses whether others stop it. Its subnormal numbers are
taken as AIE2 has them, with a warning; a finite product beyond fp32 gives a NaN (AMD's measurements), whose bits, like
what becomes of infinities and NaNs, are open.

AIE2 multiplies matrices of bf16, 4 x 8 by 8 x 4 row by row, into 16 lanes of fp32. That conf 0x1c chooses them (amode
2, bmode 3, variant 0) is recollected from llvm-aie's headers of AIE2, not recorded; AIE2P's 0x3c has the same fields.
Sums are as a model that equals AIE2's silicon has them (FIM43-Redeye/xdna-emu): each term is rounded to 23 bits behind
the point of the greatest exponent, that of a product being the sum of its factors'; what is left is added exactly and
rounded once more, all to nearest even. Subnormal numbers have the least exponent, and a sum that would be one is zero,
with its sign if no product is in it. Infinities of one sign stay, those of both and their products with zero are a NaN
of 1; what becomes of a NaN is open. [assumption] Terms that are zero have no exponent.
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
_LAST_BIT = 266  # products of bf16 numbers, and fp32 numbers, are multiples of 2^-266
_LEAST_EXPONENT = -126
_FRACTION_BITS = 23
_STICKY_BITS = 32  # of a significand before it is rounded: more than fp32's 24 by two at least


@operation("fmultiply")
def fmultiply(options: tuple[int, ...], *operands: int) -> int | Partly:
    """+-P, a1 +- P or a1 + a2 +- P; options: (accumulators, minus, lanes of bf16 or 0 for block floats)."""
    *accumulators, s1, s2, conf = operands
    _, minus, count = options
    _check_chosen(conf, _ELEMENTWISE if count else _BLOCKS)
    factors = [_finite(_bf16(source, count)) for source in (s1, s2)] if count else []
    product = factors[0] * factors[1] if count else _blocks(s1, s2)
    open_if((_to_single(product) == np.inf).any() or (_to_single(product) == -np.inf).any(), _BEYOND)
    terms = [_finite(_floats(value, len(product))) for value in accumulators[conf & ZERO_ACC :]]
    found, assumed = _summed([-product if minus else product, *terms], [*factors, *terms])
    unknown = _UPPER_HALF if count == _LANES // 2 else 0
    return Partly(_bits(found), unknown, assumed) if unknown or assumed else _bits(found)


@operation("fmatrix")
def fmatrix(options: tuple[int, ...], *operands: int) -> int:
    """+-A B, a1 +- A B or a1 + a2 +- A B of AIE2; options: (accumulators, minus)."""
    *accumulators, s1, s2, conf = operands
    _check_chosen(conf, _MATRICES)
    a = _bf16(s1, _ROWS * _DEPTH).reshape(_ROWS, 1, _DEPTH)
    b = _bf16(s2, _DEPTH * _COLUMNS).reshape(1, _DEPTH, _COLUMNS).transpose(0, 2, 1)
    added = [_floats(value, _ROWS * _COLUMNS)[:, None] for value in accumulators[conf & ZERO_ACC :]]
    open_if(any(np.isnan(values).any() for values in (a, b, *added)), _NAN_IN)
    with np.errstate(invalid="ignore"):
        products = (a * b * (-1 if options[1] else 1)).reshape(-1, _DEPTH)
    exponents = [(_exponents(a) + _exponents(b)).reshape(-1, _DEPTH), *map(_exponents, added)]
    return _bits(_aligned(np.concatenate([products, *added], axis=1), np.concatenate(exponents, axis=1), False))


def _exponents(values: np.ndarray) -> np.ndarray:
    return np.maximum(np.frexp(np.where(np.isfinite(values), values, 1))[1] - 1, _LEAST_EXPONENT)


def _aligned(terms: np.ndarray, exponents: np.ndarray, signed: bool) -> np.ndarray:
    """fp32 words of sums of rows: terms are rounded at the greatest exponent of a row, then their sum.

    A sum that is no normal number is zero, with its sign if it is `signed`.
    """
    finite = np.where(np.isfinite(terms), terms, 0)
    last = np.where(finite != 0, exponents, -_LAST_BIT).max(axis=1) - _FRACTION_BITS
    total = np.rint(np.ldexp(finite, -last[:, None])).sum(axis=1) + 0.0
    found = _to_single(np.ldexp(total, last))
    tiny = (total != 0) & (np.abs(found) < np.finfo(np.float32).tiny)
    found = np.where(tiny, np.copysign(0, found) if signed else 0, found)
    up, down = (terms == np.inf).any(axis=1), (terms == -np.inf).any(axis=1)
    found = np.where(up, np.inf, np.where(down, -np.inf, found)).astype(np.float32)
    return np.where(np.isnan(terms).any(axis=1) | up & down, np.uint32(_MADE_NAN), found.view(np.uint32))


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
_MADE_NAN = 0x7F800001  # AIE2's; one that came in may have other bits
_NAN_IN = "what becomes of a NaN is open"
_BEYOND = "a product beyond fp32 is no number, and nobody told its bits"


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
        rows = np.stack(terms, axis=1)
        open_if(np.isnan(rows).any(), _NAN_IN)
        return _bits(_aligned(rows, _exponents(rows), True))
    terms = [_finite(term) for term in terms]
    found, assumed = _summed(terms if len(terms) > 1 else [*terms, -np.zeros_like(terms[0])], terms, True)
    return Partly(_bits(found), 0, assumed) if assumed else _bits(found)


def _floats(value: int, count: int) -> np.ndarray:
    return _to_double(lanes(value, 32, count))


def _bits(values: np.ndarray) -> int:
    return int.from_bytes(values.tobytes(), "little")


ROUNDING = "a sum whose rounding is not told"
SUBNORMAL = "subnormal floats are as AIE2 has them"
ASSUMPTIONS = ROUNDING, SUBNORMAL
"""Why results may be otherwise, in the order of their numbers; ROUNDING stops a core unless it is permitted."""


def _summed(
    terms: Sequence[np.ndarray], given: Sequence[np.ndarray], signed: bool = False
) -> tuple[np.ndarray, tuple[str, ...]]:
    """AIE2P's sums of exact terms, of numbers that were `given`, rounded once to fp32, and what is assumed of them.

    One that is no normal number is zero, with its sign if it is `signed`.
    """
    exact = terms[0] if len(terms) == 1 else terms[0] + terms[1] if len(terms) == 2 else _once(terms)
    assumed = (ROUNDING,) * (len(terms) > 2 and not _same_in_any_order(terms))
    found = _to_single(exact)
    open_if(not np.isfinite(found).all(), "a sum beyond fp32 is open")
    tiny = _is_subnormal(found) | ((found == 0) & (exact != 0))
    assumed += (SUBNORMAL,) * bool(tiny.any() or any(_is_subnormal(one).any() for one in given))
    if len(terms) > 1:
        found = np.where(exact == 0, np.float32(0), found)
    return np.where(tiny, np.copysign(np.float32(0), found) if signed else np.float32(0), found), assumed


def _once(terms: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([_rounded_once(lane) for lane in np.stack(terms, axis=1).tolist()], np.float64)


def _same_in_any_order(terms: Sequence[np.ndarray]) -> bool:
    total = terms[0]
    for term in terms[1:]:
        if not _is_exact(total, term):
            return False
        total = total + term
    return all(_is_exact(one, other) for one, other in combinations(terms, 2))


def _is_exact(one: np.ndarray, other: np.ndarray) -> bool:
    """Whether fp32 holds sums; what is lost is found as by Knuth's two-sum."""
    total = one + other
    part = total - one
    lost = (one - (total - part)) + (other - part)
    return not ((lost != 0) | (_to_single(total) != total)).any()


def _bf16(value: int, count: int) -> np.ndarray:
    return _to_double([lane << 16 for lane in lanes(value, 16, count)])


def _to_double(words: list[int]) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # of NaNs that signal
        return np.array(words, np.uint32).view(np.float32).astype(np.float64)


def _to_single(values: np.ndarray) -> np.ndarray:
    with np.errstate(over="ignore", under="ignore"):
        return values.astype(np.float32)


def _is_subnormal(values: np.ndarray) -> np.ndarray:
    return (values != 0) & (np.abs(values) < np.finfo(np.float32).tiny)


def _finite(values: np.ndarray) -> np.ndarray:
    open_if(not np.isfinite(values).all(), "floats that are infinite or no number are open")
    return values


def _blocks(s1: int, s2: int) -> np.ndarray:
    """8 x 8 x 8 of block floats, the second operand transposed: lane (i, j) sums row i of s1 with row j of s2."""
    a, b = _tile(s1), _tile(s2)
    return (a @ b.T).ravel()


def _tile(value: int) -> np.ndarray:
    mantissas = np.array(lanes(value, 8, _LANES, True), np.float64).reshape(_BLOCK, _BLOCK)
    exponents = np.array(lanes(value >> 512, 8, _BLOCK))
    return mantissas * np.exp2(exponents - float(_BIAS))[:, None] / _MANTISSA_SCALE
