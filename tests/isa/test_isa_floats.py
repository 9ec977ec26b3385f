"""Floats of the multiplier and of conversions: exact, rounded once where they are not, open where nothing is told."""

import ml_dtypes
import numpy as np
import pytest

from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning.semantics import OPERATIONS, Partly, joined, lanes
from support.differences import same

MATRICES, ELEMENTWISE, BLOCKS = 0x1C, 0x3C, 0x0C  # conf: amode 2; bmode 3, 3, 1; variant 0, 1, 0


def packed(values, kind: type = np.float32) -> int:
    return int.from_bytes(np.asarray(values, kind).tobytes(), "little")


def bf16(values) -> int:
    return packed(values, ml_dtypes.bfloat16)


def floats(pattern: int, count: int) -> np.ndarray:
    return np.array(lanes(pattern, 32, count), np.uint32).view(np.float32)


def test_matrices_of_bfloat16_are_multiplied_row_by_row():
    rng = np.random.default_rng(1)
    a, b, c = rng.integers(-9, 9, (4, 8)), rng.integers(-9, 9, (8, 4)), rng.integers(-99, 99, (4, 4))
    for options, terms, wanted in (
        ((0, 0), [], a @ b), ((1, 0), [c], c + a @ b), ((1, 1), [c], c - a @ b), ((0, 1), [], -(a @ b)),
    ):  # fmt: skip
        found = OPERATIONS["fmatrix"](options, *(packed(t.ravel()) for t in terms), bf16(a), bf16(b), MATRICES)
        same(floats(found, 16).reshape(4, 4), wanted.astype(np.float32), str(options))
    found = OPERATIONS["fmatrix"]((1, 0), packed(c.ravel()), bf16(a), bf16(b), MATRICES | 1)  # drops the accumulator
    same(floats(found, 16).reshape(4, 4), (a @ b).astype(np.float32))


ONE_UP = 1 + 2.0**-23
ROUNDED = {  # accumulator, factors of each product: the lane, by hand: terms to 23 bits of the greatest, then all
    "a tie to even": (1.0, [(2.0**-12, 2.0**-12)], 1.0),
    "a tie that is 0 by itself": (ONE_UP, [(2.0**-12, 2.0**-12)], ONE_UP),
    "above a tie": (1.0, [(2.0**-12, 1.5 * 2.0**-12)], ONE_UP),
    "ties of several terms": (1.0, [(2.0**-12, 2.0**-12), (2.0**-12, 2.0**-12)], 1.0),
    "a rest behind a tie": (1.0, [(2.0**-12, 2.0**-12), (2.0**-30, 2.0**-30)], 1.0),
    "a negative tie": (-1.0, [(-(2.0**-12), 2.0**-12)], -1.0),
    "a tie of a product that is greatest": (2.0**-24, [(1.0, 1.0)], 1.0),
    "a product whose leading bit is one higher": (2.0**-23, [(1.5, 1.5)], 2.25),
    "the same sum": (2.25, [(2.0**-23, 1.0)], 2.25),
    "an accumulator as great as that": (2.25, [(2.0**-22, 1.0)], 2.25 + 2.0**-22),
    "what cancels": (1.0, [(-1.0, 1.0), (2.0**-40, 2.0**-40)], 0.0), "zero": (1.0, [(-1.0, 1.0)], 0.0),
    "negative zeros": (-0.0, [(-0.0, 1.0)], 0.0), "zero beside a great number": (ONE_UP, [(0.0, 2.0**100)], ONE_UP),
}  # fmt: skip


@pytest.mark.parametrize("name", ROUNDED)
def test_terms_of_a_lane_are_rounded_at_the_greatest_exponent_and_then_their_sum(name: str):
    held, factors, wanted = ROUNDED[name]
    a, b, c = np.zeros((4, 8)), np.zeros((8, 4)), np.zeros(16)
    c[0] = held
    for k, (one, other) in enumerate(factors):
        a[0, k], b[k, 0] = one, other
    found = floats(OPERATIONS["fmatrix"]((1, 0), packed(c), bf16(a), bf16(b), MATRICES), 16)
    assert found[0] == np.float32(wanted), f"{name}: {float(found[0]).hex()}, wanted {wanted.hex()}"
    assert not np.signbit(found[0]) or wanted < 0


@pytest.mark.parametrize("conf", [0x3C, 0x0C, 0x1C | 1 << 10, 0x1C | 1 << 11, 0x1C | 1 << 12, 0x1C | 1 << 13, 0x1001C])
def test_other_matrices_of_floats_are_open(conf: int):
    with pytest.raises(OpenError, match=r"of floats (is|are) open"):
        OPERATIONS["fmatrix"]((0, 0), 0, 0, conf)


@pytest.mark.parametrize("value", [np.inf, -np.inf, np.nan, 1e-39])
def test_numbers_of_which_nothing_is_told_are_open(value: float):
    lane = np.full(64, 1.0)
    lane[5] = value
    with pytest.raises(OpenError, match="subnormal, infinite or no number"):
        OPERATIONS["fmultiply"]((0, 0, 64), bf16(lane), bf16(np.ones(64)), ELEMENTWISE)
    with pytest.raises(OpenError, match="subnormal, infinite or no number"):
        OPERATIONS["faccumulate"]((2048, 0, 0, 0), packed(lane), packed(np.ones(64)), 4)


def test_products_of_lanes_and_of_blocks():
    """Lane by lane of 64 or 32 numbers, of which the upper half of the result is unknown; 8 x 8 x 8 of block floats."""
    rng = np.random.default_rng(2)
    a, b = (rng.integers(-49, 49, 64) * 2.0 + 1 for _ in range(2))  # odd, so that no sum with even numbers is zero
    c, d = (rng.integers(-49, 49, 64) * 2.0 for _ in range(2))
    for options, terms, wanted in (
        ((0, 0, 64), (), a * b), ((0, 1, 64), (), -a * b), ((1, 0, 64), (c,), c + a * b), ((1, 1, 64), (c,), c - a * b),
        ((2, 0, 64), (c, d), c + d + a * b),
    ):  # fmt: skip
        found = OPERATIONS["fmultiply"](options, *map(packed, terms), bf16(a), bf16(b), ELEMENTWISE)
        same(floats(found, 64), wanted.astype(np.float32), str(options))
    half = OPERATIONS["fmultiply"]((0, 0, 32), bf16(a[:32]), bf16(b[:32]), ELEMENTWISE)
    assert isinstance(half, Partly)
    same(floats(half.value, 32), (a[:32] * b[:32]).astype(np.float32))
    assert half.unknown == 0xFF00
    m, n = rng.integers(-127, 128, (8, 8)), rng.integers(1, 128, (8, 8))
    exponents = [np.array([127, 120, 130, 127, 133, 126, 127, 128]), np.full(8, 125)]
    given = [joined([int(v) for v in x.ravel()], 8) | joined([int(v) for v in e], 8) << 512
             for x, e in zip((m, n), exponents, strict=True)]  # fmt: skip
    scaled = [x / 64 * 2.0 ** (e - 127)[:, None] for x, e in zip((m, n), exponents, strict=True)]
    found = OPERATIONS["fmultiply"]((0, 0, 0), *given, BLOCKS)
    same(floats(found, 64).reshape(8, 8), (scaled[0] @ scaled[1].T).astype(np.float32))


def test_accumulators_of_floats_are_added_as_far_as_it_is_told():
    a, b = np.arange(1.0, 65), np.arange(65.0, 129)
    for minus, wanted in (((0, 0), a + b), ((0, 1), a - b), ((1, 0), b - a), ((1, 1), -a - b)):
        found = OPERATIONS["faccumulate"]((2048, *minus, 0), packed(a), packed(b), 4)
        same(floats(found, 64), wanted.astype(np.float32), str(minus))
    ties = OPERATIONS["faccumulate"]((32, 0, 0, 0), packed([1.0]), packed([2.0**-24]), 4)
    assert floats(ties, 1)[0] == 1.0
    (zero,) = (OPERATIONS["faccumulate"]((32, 0, 1, 0), packed([1.0]), packed([1.0]), 4),)
    assert zero == Partly(0, 0, ("the sign of a sum that is zero is open",))


@pytest.mark.parametrize(
    ("minus", "terms", "wanted"),
    [
        ((0, 0), (1.0, 2.0**-24), 1.0), ((0, 0), (ONE_UP, 2.0**-24), ONE_UP),
        ((0, 0), (ONE_UP, 1.5 * 2.0**-24), 1 + 2.0**-22),
        ((0, 1), (1.0, 2.0**-25), 1.0), ((0, 1), (1.0, 2.0**-24 + 2.0**-40), 1 - 2.0**-23), ((0, 1), (1.0, 1.0), 0.0),
        ((1, 1), (0.0, 0.0), 0.0), ((0, 0), (-0.0, -0.0), 0.0), ((1,), (0.0,), 0.0), ((1,), (ONE_UP,), -ONE_UP),
        ((0, 0), (1.0, 2.0**-100), 1.0), ((0, 0), (2.0**24, 1.0), 2.0**24), ((0, 0), (2.0**24, 3.0), 2.0**24 + 4),
    ],
)  # fmt: skip
def test_accumulators_of_aie2_are_rounded_twice(minus, terms, wanted):
    """The smaller term at the exponent of the greater one, then the sum; zeros are positive."""
    found = OPERATIONS["faccumulate"]((32, *minus, *[0] * (2 - len(minus)), 1), *(packed([t]) for t in terms), 4)
    assert found == packed([wanted])


def test_conf_of_sums_of_floats():
    for conf in (0, 2, 6, 5, 4 | 1 << 10, 4 | 1 << 16):
        with pytest.raises(OpenError, match="open"):
            OPERATIONS["faccumulate"]((32, 0, 0, 0), packed([1.0]), packed([1.0]), conf)


def test_bfloats_are_widened_and_made_of_the_nearest_number():
    rng = np.random.default_rng(3)
    values = np.concatenate(
        [rng.normal(0, 1, 24), [1 + 2.0**-8, 1 + 3 * 2.0**-8, -1 - 2.0**-8, np.inf, 0, -0.0, 1e38, 7]]
    )
    values = values.astype(np.float32)
    found = lanes(OPERATIONS["narrow_bf16"]((32,), packed(values), 12), 16, 32)
    wanted = values.astype(ml_dtypes.bfloat16).view(np.uint16)
    same(np.array(found), wanted.astype(np.int64))
    down = lanes(OPERATIONS["narrow_bf16"]((32,), packed(values), 0), 16, 32)
    same(np.array(down), np.array([(v >> 16) + (v >> 31 and v & 0xFFFF != 0) for v in values.view(np.uint32).tolist()]))
    same(
        floats(OPERATIONS["widen_bf16"]((32,), bf16(values)), 32), values.astype(ml_dtypes.bfloat16).astype(np.float32)
    )
    with pytest.raises(OpenError, match="a NaN made narrower is open"):
        OPERATIONS["narrow_bf16"]((1,), 0x7F800001, 12)
    with pytest.raises(OpenError, match="crRnd is 4"):
        OPERATIONS["narrow_bf16"]((1,), 0, 4)


EVEN, FLOOR = 12, 0
BLOCKED = {  # eight numbers and a rounding: mantissas in units of 2^(exponent - 133), and the exponent
    "ones": ([1.0] * 8, EVEN, [64] * 8, 127), "the greatest mantissa": ([127 / 64, 1.0], EVEN, [127, 64], 127),
    "a tie below it": ([126.5 / 64, 1.0], EVEN, [126, 64], 127),
    "a tie to 128": ([127.5 / 64, 1.0], EVEN, [64, 32], 128),
    "cut": ([127.9 / 64, -1 / 3], FLOOR, [127, -22], 127), "a negative tie": ([1.0, -2.5 / 64], EVEN, [64, -2], 127),
    "small beside large": ([64.0, 0.5, 0.25], EVEN, [64, 0, 0], 133), "zero": ([1.0, 0.0], EVEN, [64, 0], 127),
}  # fmt: skip


@pytest.mark.parametrize("name", BLOCKED)
def test_eight_numbers_share_the_greatest_exponent(name: str):
    values, rounding, mantissas, exponent = BLOCKED[name]
    whole = [*values, *[values[0]] * (8 - len(values)), *[1.0] * 56]
    found = OPERATIONS["blocks_bfp16"]((), packed(whole), rounding)
    got = lanes(found, 8, len(mantissas), True), lanes(found >> 512, 8, 2)
    assert got == (mantissas, [exponent, 127]), f"{name}: {got}"


@pytest.mark.parametrize(
    ("value", "rounding", "reason"),
    [(np.inf, EVEN, "subnormal or infinite"), (1e-39, EVEN, "subnormal or infinite"), (-0.0, FLOOR, "it is negative"),
     (3.4e38, EVEN, "that overflow"), (1.0, 1, "crRnd 1 of block floats is open")],
)  # fmt: skip
def test_blocks_of_which_nothing_is_told_are_open(value: float, rounding: int, reason: str):
    with pytest.raises(OpenError, match=reason):
        OPERATIONS["blocks_bfp16"]((), packed([value, *[1.0] * 63]), rounding)
