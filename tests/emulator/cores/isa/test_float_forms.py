"""Products and sums of floats against numpy: numbers with few bits, so that no sum rounds."""

import re
from fractions import Fraction
from math import frexp

import numpy as np
import pytest

from bdforge.core import isa
from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning.floats import ROUNDING, SUBNORMAL
from support.differences import same
from support.machine_code import EXECUTORS, World, bits, drive, memories, run_text
from support.random_programs import forms

NAMED = re.compile(r"V(NEG|ADD)?(MUL|MAC|MSC)_f\w*_core_(X_X|Y_Y|EX_E[XY])|V(ADD|SUB|NEG)_[fF](_vmac_cm2_add_\w+)?$")
CONF = {"X_X": 0x3C, "Y_Y": 0x3C, "EX_EX": 0x30C, "EX_EY": 0x30C}


def floats(rng: np.random.Generator, count: int) -> np.ndarray:
    """Numbers of few bits, none of them 0."""
    return (rng.integers(1, 8, count) * rng.choice([-0.25, 0.5, 2.0], count)).astype(np.float32)


def product(rng: np.random.Generator, pair: str) -> tuple[np.ndarray, int, int]:
    """(the product, the registers s1 and s2) of a form with such operands."""
    if not pair.startswith("EX"):
        count = 32 if pair == "X_X" else 64
        a, b = floats(rng, count), floats(rng, count)
        halves = [bits((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b)]
        return a * b, halves[0], halves[1]
    mantissas, exponents = 2 * rng.integers(-20, 20, (2, 8, 8)).astype(np.int8), rng.integers(126, 130, (2, 8))
    a, b = mantissas.astype(float) * 2.0 ** (exponents[:, :, None] - 127 - 6)
    registers = [bits(m) | bits(e.astype(np.uint8)) << 512 for m, e in zip(mantissas, exponents, strict=True)]
    return (a @ b.T).astype(np.float32).ravel(), registers[0], registers[1]


def expected(name: str, made: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """What a form makes, by its name."""
    if "_core_" not in name:
        return -first if "NEG" in name else first - second if "SUB" in name else first + second
    made = -made if "NEG" in name or "MSC" in name else made
    return made + (first if "MUL" not in name else 0) + (second if "ADDM" in name else 0)


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("generation", "name"),
    [(g, f.name) for g in isa.GENERATIONS for f in forms(g) if NAMED.match(f.name)],
)
def test_a_form_of_floats_equals_numpy(executor, generation, name):
    rng = np.random.default_rng(len(name))
    pair = name.rpartition("_core_")[2] if "_core_" in name else ""
    count = 16 if generation == "aie2" else 32 if pair == "X_X" else 64
    made, s1, s2 = product(rng, pair) if pair else (np.zeros(count, np.float32), 0, 0)
    made = made + np.float32(0)  # no negative zeros
    first, second = floats(rng, count) + 256, floats(rng, count) + 512
    isa_ = isa.load(generation)
    word = second[:16].tobytes()
    if "_scd" in name:
        second = np.concatenate([second[:16], np.zeros(count - 16, np.float32)])
    operands = {"acc": "r2", "s1": "ex2", "s2": "ex4", "acc1": "dm1", "acc2": "dm2", "dst": "dm3"}
    operands |= {"X": {"s1": "x2", "s2": "x4"}, "Y": {"s1": "y1", "s2": "y2"}}.get(pair[:1], {})
    operands |= {"s2": "ey2"} if pair == "EX_EY" else {}
    if generation == "aie2":
        operands = {"op0": "bml3", "op1": "bml1", "op2": "bml2" if "NEG" not in name else "r2", "op3": "r2"}
    form = isa_.form(name)
    drawn = isa.Instruction(form, tuple(operands[field] for field in form.names))
    core = executor(isa_, isa_.encode([drawn]) + isa_.encode([isa_.instruction("DONE")]), memories())
    result = next(iter(form.timing.defs))
    given = {operands.get("s1", "r9"): s1, operands.get("s2", "r9"): s2, "r2": CONF.get(pair, 4)}
    given |= (
        {"dm1": bits(first), "dm2": bits(second)}
        if generation == "aie2p"
        else {"bml1": bits(first), "bml2": bits(second)}
    )
    given |= {"crSCDEn": 1, "r31": 0} if "_scd" in name else {}
    for register, value in given.items():
        core.write(register, value)
    drive(core, World(cascade=[word]))
    register = operands[result if result in form.names else "acc1"]
    found = np.frombuffer(core.read(register).to_bytes(256, "little"), np.float32)[:count]
    same(found, expected(name, made, first, second))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sums_that_round_are_known_of_two_terms_only(executor):
    big, small = np.float32(1 << 24), np.float32(1.5)
    given = {"dm0": bits(np.full(64, big)), "dm1": bits(np.full(64, small)), "r2": 4, "r3": 0x3C}
    core = run_text(executor, "vadd.f dm2, dm0, dm1, r2\n" + "nop\n" * 8, given)
    assert core.read("dm2") == bits(np.full(64, big + small))
    one, text = bits(np.full(64, 0x3F80, np.uint16)), "vaddmac.f dm0, dm1, y0, y1, r3\n" + "nop\n" * 8
    with pytest.raises(OpenError, match="a sum whose rounding is not told"):
        run_text(executor, text, given | {"y0": one, "y1": one})
    core = run_text(assuming(executor), text, given | {"y0": one, "y1": one})
    assert (core.read("dm0"), core.assumed) == (bits(np.full(64, np.float32((1 << 24) + 2.5))), [ROUNDING])


@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_sum_of_three_terms_is_rounded_once_whatever_cancels(executor):
    """Two of them cancel but for bits far below; the rest is none of theirs."""
    rng, big = np.random.default_rng(9), np.float32(2.0**64 - 2.0**40)
    a, b = (rng.integers(1, 256, 64).astype(np.float32) * np.float32(2.0**k) for k in (5, 3))
    held = np.where(rng.random(64) < 0.5, big, np.float32(3.0) * 2.0**30).astype(np.float32)
    other = (-held + np.where(rng.random(64) < 0.3, 1.5 * 2.0**20, 0)).astype(np.float32)
    halves = [bits((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b)]
    given = {"dm0": bits(held), "dm1": bits(other), "y1": halves[0], "y2": halves[1], "r2": 0x3C}
    core = run_text(assuming(executor), "vaddmac.f dm0, dm1, y1, y2, r2" + "\nnop" * 8, given)
    terms = zip(a.tolist(), b.tolist(), held.tolist(), other.tolist(), strict=True)
    assert core.read("dm0") == bits(np.array([nearest(Fraction(x) * Fraction(y) + Fraction(h) + Fraction(o))
                                              for x, y, h, o in terms]))  # fmt: skip


def assuming(executor):
    """The executor, going on where results are assumed."""

    def made(*given):
        core = executor(*given)
        core.assume()
        return core

    return made


@pytest.mark.parametrize("text", ["vsub.f dm2, dm0, dm0, r2", "vneg.f dm2, dm3, r2", "vadd.f dm2, dm4, dm4, r2"])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_a_sum_that_is_zero_is_plus_zero(executor, text):
    given = {"dm0": bits(np.ones(64, np.float32)), "dm4": bits(np.full(64, np.float32(-0.0))), "r2": 4}
    core = run_text(executor, text + "\nnop" * 8, given)
    assert (core.read("dm2"), core.assumed) == (0, [])


TINY = {  # two numbers and their sum: a subnormal one is zero with its sign
    "taken": (2.0**-127, 1.0, 1.0), "kept": (2.0**-127, 2.0**-127, 2.0**-126), "a sum": (2.0**-126, -(2.0**-127), 0.0),
    "a negative sum": (-(2.0**-126), 2.0**-127, -0.0), "exact": (2.0**-127, -(2.0**-127), 0.0),
    "alone": (-(2.0**-130), 0.0, -0.0),
}  # fmt: skip


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", TINY)
def test_subnormal_terms_are_kept_and_a_subnormal_sum_is_zero(executor, generation, name):
    one, other, wanted = (bits(np.array([value], np.float32)) for value in TINY[name])
    text, registers = {
        "aie2p": ("vadd.f dm2, dm0, dm1, r2", ("dm0", "dm1", "dm2")),
        "aie2": ("vadd.f bml2, bml0, bml1, r2", ("bml0", "bml1", "bml2")),
    }[generation]
    core = run_text(executor, text + "\nnop" * 8, {registers[0]: one, registers[1]: other, "r2": 4}, generation)
    assert core.read(registers[2]) & 0xFFFFFFFF == wanted
    assert core.assumed == ([SUBNORMAL] if generation == "aie2p" else [])


PRODUCTS = {  # accumulator, factors, the lane: products reach below fp32, and a subnormal sum with one is +0
    "below": (1.0, (2.0**-100, 2.0**-100), 1.0), "a sum": (0.0, (-(2.0**-64), 2.0**-64), 0.0),
    "taken": (0.0, (2.0**-133, 2.0**100), 2.0**-33), "kept": (2.0**-127, (2.0**-64, 2.0**-63), 2.0**-126),
    "cancelled": (-(2.0**-126), (2.0**-64, 2.0**-63), 0.0),
}  # fmt: skip


@pytest.mark.parametrize("generation", isa.GENERATIONS)
@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_with_subnormal_numbers(executor, generation, name):
    held, factors, wanted = PRODUCTS[name]
    s1, s2 = (bits((np.array([v], np.float32).view(np.uint32) >> 16).astype(np.uint16)) for v in factors)
    text, acc, result, conf, (x, y) = {
        "aie2p": ("vmac.f dm2, dm0, y1, y2, r2", "dm0", "dm2", 0x3C, ("y1", "y2")),
        "aie2": ("vmac.f bml3, bmh1, x2, x4, r2", "bmh1", "bml3", 0x1C, ("x2", "x4")),
    }[generation]
    given = {acc: bits(np.array([held], np.float32)), x: s1, y: s2, "r2": conf}
    core = run_text(executor, text + "\nnop" * 8, given, generation)
    assert core.read(result) & 0xFFFFFFFF == bits(np.array([wanted], np.float32))
    assert core.assumed == ([SUBNORMAL] if generation == "aie2p" and name != "below" else [])


def lane_of_aie2(executor, held: float, factors: list[tuple[float, float]]) -> int:
    """The first lane's word of an accumulator plus products of bf16."""
    a, b, c = (np.zeros(count, np.float32) for count in (32, 32, 16))
    c[0] = held
    for k, (one, other) in enumerate(factors):
        a[k], b[4 * k] = one, other
    halves = [bits((x.view(np.uint32) >> 16).astype(np.uint16)) for x in (a, b)]
    given = {"x2": halves[0], "x4": halves[1], "bmh1": bits(c), "r2": 0x1C}
    found = run_text(executor, "vmac.f bml3, bmh1, x2, x4, r2" + "\nnop" * 8, given, "aie2").read("bml3")
    return found & 0xFFFFFFFF


INFINITE = {  # AIE2: accumulator, factors of two products, the lane's word
    "one": (1.0, [(np.inf, 2.0)], 0x7F800000), "negative": (1.0, [(np.inf, -2.0)], 0xFF800000),
    "two": (1.0, [(np.inf, 2.0), (1.0, np.inf)], 0x7F800000),
    "both signs": (1.0, [(np.inf, 2.0), (1.0, -np.inf)], 0x7F800001),
    "with zero": (1.0, [(np.inf, 0.0)], 0x7F800001), "held": (-np.inf, [(1.0, 1.0)], 0xFF800000),
    "held and made": (-np.inf, [(np.inf, 1.0)], 0x7F800001), "overflow": (0.0, [(3e38, 2.0)], 0x7F800000),
    "negative overflow": (0.0, [(-3e38, 2.0)], 0xFF800000),
}  # fmt: skip


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", INFINITE)
def test_infinite_numbers_of_aie2(executor, name):
    held, factors, wanted = INFINITE[name]
    assert lane_of_aie2(executor, held, factors) == wanted


@pytest.mark.parametrize("executor", EXECUTORS)
def test_sums_of_aie2_with_infinite_numbers(executor):
    pairs = [
        (np.inf, 1, 0x7F800000),
        (-np.inf, -np.inf, 0xFF800000),
        (np.inf, -np.inf, 0x7F800001),
        (3e38, 3e38, 0x7F800000),
    ]
    one, other, wanted = (np.array(column) for column in zip(*pairs, strict=True))
    given = {"bml0": bits(one.astype(np.float32)), "bml1": bits(other.astype(np.float32)), "r2": 4}
    found = run_text(executor, "vadd.f bml2, bml0, bml1, r2" + "\nnop" * 8, given, "aie2").read("bml2")
    assert found & (1 << 128) - 1 == bits(wanted.astype(np.uint32))


@pytest.mark.parametrize(("form", "sign"), [("vadd.f", 1), ("vsub.f", -1)])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_sums_of_aie2_are_of_rounded_terms(executor, form, sign):
    rng = np.random.default_rng(3)
    for spread in (1, 12, 40):
        a, b = ((rng.standard_normal(16) * 2.0 ** rng.integers(-spread, spread, 16)).astype(np.float32) for _ in "ab")
        b[:2] = (-sign * a[0], 0.0)
        found = run_text(
            executor,
            f"{form} bml2, bml0, bml1, r2\n" + "nop\n" * 8,
            {"bml0": bits(a), "bml1": bits(b), "r2": 4},
            "aie2",
        ).read("bml2")
        pairs = zip(a.tolist(), (sign * b).tolist(), strict=True)
        assert found == bits(np.array([aligned([(x, own(x)), (y, own(y))]) for x, y in pairs]))


def own(value: float) -> int:
    """The exponent of a number."""
    return frexp(value)[1] - 1


def aligned(terms: list[tuple[float | Fraction, int]]) -> np.float32:
    """AIE2's sum of numbers with exponents: each a multiple of 2^-23 at the greatest exponent, then fp32's nearest."""
    unit = Fraction(2) ** (max((exponent for value, exponent in terms if value), default=0) - 23)
    total = sum(round(Fraction(value) / unit) for value, _ in terms) * unit  # Python rounds ties to even
    return nearest(total) if total else np.float32(0)


def nearest(exact: Fraction) -> np.float32:
    """The fp32 number nearest to a fraction, ties to the even one."""
    guess = np.float32(float(exact))
    near = [guess, np.nextafter(guess, np.float32(np.inf)), np.nextafter(guess, np.float32(-np.inf))]
    return min(near, key=lambda v: (abs(Fraction(float(v)) - exact), int(v.view(np.uint32)) & 1))


MATRIX_FORMS = [  # text, accumulators, sign of the products
    ("vmul.f bml3, x2, x4, r2", 0, 1),
    ("vnegmul.f bml3, x2, x4, r2", 0, -1),
    ("vmac.f bml3, bmh1, x2, x4, r2", 1, 1),
    ("vmsc.f bml3, bmh1, x2, x4, r2", 1, -1),
    ("vaddmac.f bmh1, bml5, x2, x4, r2", 2, 1),
    ("vaddmsc.f bmh1, bml5, x2, x4, r2", 2, -1),
]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(("text", "adds", "sign"), MATRIX_FORMS)
def test_matrices_of_bf16_are_sums_of_rounded_terms(executor, text, adds, sign):
    result = text.split()[1].rstrip(",")
    for seed, spread in ((1, 2), (2, 14), (3, 40)):
        rng = np.random.default_rng(seed)
        a, b = ((rng.standard_normal(32) * 2.0 ** rng.integers(-spread, spread, 32)).astype(np.float32) for _ in "ab")
        a[:3], b[4:6] = (0.0, -0.0, -2.0), (-0.0, 3.0)
        words = [(x.view(np.uint32) >> 16).astype(np.uint16) for x in (a, b)]
        a, b = ((w.astype(np.uint32) << 16).view(np.float32) for w in words)
        c, d = (rng.standard_normal(16).astype(np.float32) for _ in "cd")
        c[5] = -np.float32(sum(float(a[8 + k]) * float(b[4 * k + 1]) for k in range(8)))  # leaves 0 or a rest
        given = {"x2": bits(words[0]), "x4": bits(words[1]), "bmh1": bits(c), "bml5": bits(d), "r2": 0x1C}
        found = run_text(executor, text + "\nnop" * 8, given, "aie2").read(result)
        products = [
            [(sign * Fraction(float(x)) * Fraction(float(y)), own(float(x)) + own(float(y)))
             for x, y in zip(a[8 * i : 8 * i + 8], b[j::4], strict=True)] for i in range(4) for j in range(4)
        ]  # fmt: skip
        held = [[(float(v), own(float(v))) for v in lane][:adds] for lane in zip(c, d, strict=True)]
        assert found == bits(np.array([aligned(p + h) for p, h in zip(products, held, strict=True)]))
        dropped = run_text(executor, text + "\nnop" * 8, given | {"r2": 0x1D}, "aie2").read(result)
        assert dropped == bits(np.array([aligned(p + h[1:]) for p, h in zip(products, held, strict=True)]))


ONE_UP = 1 + 2.0**-23
BY_HAND = {  # accumulator, factors of each product: the lane, by hand: terms to 23 bits of the greatest, then all
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


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("name", BY_HAND)
def test_terms_of_a_lane_are_rounded_at_the_greatest_exponent_and_then_their_sum(executor, name):
    held, factors, wanted = BY_HAND[name]
    assert lane_of_aie2(executor, held, factors) == bits(np.array([wanted], np.float32))


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"r2": 0x3C}, "variant 1 of floats are open"),
        ({"r2": 0x81C}, "conf 0x81c of floats is open"),
        ({"x2": 0x7F81}, "what becomes of a NaN is open"),
        ({"x4": 0xFFC0}, "what becomes of a NaN is open"),
        ({"bmh1": 0x7FC00000}, "what becomes of a NaN is open"),
    ],
)
def test_matrices_of_bf16_that_nobody_told_of_are_refused(executor, changed, reason):
    given = {"x2": 0x3F80, "x4": 0x3F80, "bmh1": 0, "r2": 0x1C} | changed
    with pytest.raises(OpenError, match=reason):
        run_text(executor, "vmac.f bml3, bmh1, x2, x4, r2" + "\nnop" * 8, given, "aie2")


BORDERS = (0.0, 2.0**-126, 2.0**-63, -(2.0**-63), 2.0**-64, 1.0, -1.0, 1.9921875, 2.0**63, 255 * 2.0**120, 2.0**-130)
"""Factors: products of two of them are zero, the least normal number, below it, the greatest ones, beyond them."""


@pytest.mark.parametrize(
    "text", ["vmac.f dm2, dm0, y0, y1, r2", "vmsc.f dm2, dm0, y0, y1, r2", "vmul.f dm2, y0, y1, r2"]
)
@pytest.mark.parametrize("seed", range(3))
def test_both_executors_agree_at_the_borders_of_fp32(text, seed):
    """One lane of odd factors among plain ones: results, what was assumed, and faults."""
    rng = np.random.default_rng(seed)
    for number in range(40):
        factors, held = floats(rng, 128).reshape(2, 64), floats(rng, 64)
        factors[:, number] = rng.choice(BORDERS, 2)
        cancelled = -float(factors[0, number]) * float(factors[1, number])
        held[number] = rng.choice([max(min(cancelled, 3e38), -3e38), 2.0**-126, -(2.0**-127), 0.0, 3.4e38])
        halves = [bits((row.view(np.uint32) >> 16).astype(np.uint16)) for row in factors]
        given = dict(zip(("y0", "y1", "dm0", "r2"), (*halves, bits(held), 0x3C), strict=True))
        plain, fast = (ended(executor, text, given) for executor in EXECUTORS)
        assert plain == fast


def ended(executor, text, given):
    """The result and what was assumed, or the fault."""
    try:
        core = run_text(executor, "\n".join([text, *6 * ["nop"], "done"]), given)
    except OpenError as error:
        return str(error)
    return core.read("dm2"), core.assumed
