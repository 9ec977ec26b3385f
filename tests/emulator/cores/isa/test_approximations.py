"""Approximations for who wants them: the nearest value, and what a function's bounds make of it."""

import numpy as np
import pytest

from bdforge.core.isa.errors import OpenError
from bdforge.core.isa.meaning import Approximation
from support.machine_code import EXECUTORS, bits, run_text

EACH = pytest.mark.parametrize("executor", EXECUTORS)
NOPS = "\nnop" * 9
OFF, NEAREST, LOW, HIGH = Approximation


def approximating(executor, how):
    """The executor, with approximations."""

    def made(*given):
        core = executor(*given)
        core.approximate(how)
        return core

    return made


def reasons(core) -> list[str]:
    """What was approximated, with its bounds."""
    return [row.reason for row in core.approximated]


def tanh(executor, how, values: np.ndarray) -> np.ndarray:
    """16 hyperbolic tangents."""
    core = run_text(approximating(executor, how), "vtanh wl1, bmll0" + NOPS, {"bmll0": bits(values)})
    assert reasons(core) == ["VTANH, |e| <= 0.016, bits unpublished"]
    halves = np.frombuffer(core.read("wl1").to_bytes(32, "little"), np.uint16)
    return (halves.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


@EACH
def test_tangents_are_the_nearest_ones_or_those_at_the_bounds(executor):
    values = np.array([0, -0.0, 0.1, -0.1, 0.5, 1, -1, 2, 3, -3, 20, -3e38, 3e38, 1e-39, 1e-5, 0.01], np.float32)
    exact = np.tanh(values.astype(np.float64))
    found = {how: tanh(executor, how, values) for how in (NEAREST, LOW, HIGH)}
    spacing = 2.0 ** (np.floor(np.log2(np.maximum(np.abs(exact), 2.0**-126))) - 7)
    assert (np.abs(found[NEAREST] - exact) <= spacing / 2).all()
    assert (np.abs(found[LOW] - np.maximum(exact - 0.0156, -1)) <= 2.0**-9).all()
    assert (np.abs(found[HIGH] - np.minimum(exact + 0.0156, 1)) <= 2.0**-9).all()


SCALARS = {"inv": lambda x: 1 / x, "sqrt": np.sqrt, "invsqrt": lambda x: 1 / np.sqrt(x)}


@EACH
@pytest.mark.parametrize("name", SCALARS)
def test_scalars_are_the_nearest_ones_or_those_at_the_bounds(executor, name):
    for number in (1.0, 3.0, 0.1, 1e30, 1e-30, 7.5):
        source = np.float32(number)
        exact = SCALARS[name](np.float64(source))
        found = {}
        for how in (NEAREST, LOW, HIGH):
            core = run_text(approximating(executor, how), f"{name} r1, r2" + NOPS, {"r2": int(source.view(np.uint32))})
            found[how] = np.float64(np.uint32(core.read("r1")).view(np.float32))
            assert reasons(core) == [f"{name.upper()}, |e| <= 1.9e-06 of it, bits unpublished"]
        assert found[NEAREST] == np.float32(exact)
        assert found[LOW] == np.float32(exact * (1 - 2.0**-19))
        assert found[HIGH] == np.float32(exact * (1 + 2.0**-19))


@EACH
def test_scalars_are_converted_before_and_behind(executor):
    """5 with a bit behind the point is 2.5; its reciprocal 0.4 has 10 bits behind the point as 410."""
    given = {"r2": 5, "s2": 1, "s3": 10}
    core = run_text(approximating(executor, NEAREST), "inv r1, s3, r2, s2" + NOPS, given)
    assert core.read("r1") == round(0.4 * 1024)
    core = run_text(approximating(executor, NEAREST), "sqrt r1, s3, r2" + NOPS, given | {"r2": 0x42100000})
    assert core.read("r1") == 6 << 10
    with pytest.raises(OpenError, match="a scale by 32 is open"):
        run_text(approximating(executor, NEAREST), "inv r1, r2, s2" + NOPS, given | {"s2": 32})


@EACH
@pytest.mark.parametrize(("text", "number", "reason"), [
    ("inv r1, r2", 0.0, "INV is open but of positive normal numbers"), ("sqrt r1, r2", -1.0, "SQRT is open"),
    ("invsqrt r1, r2", np.inf, "INVSQRT is open"), ("inv r1, r2", np.nan, "INV is open"),
    ("sqrt r1, r2", 1e-39, "SQRT is open"), ("inv r1, r2", 3e38, "INV that gives no normal number"),
])  # fmt: skip
def test_numbers_that_nobody_told_of_are_refused(executor, text, number, reason):
    given = {"r2": int(np.float32(number).view(np.uint32))}
    with pytest.raises(OpenError, match=reason):
        run_text(approximating(executor, NEAREST), text + NOPS, given)


@EACH
@pytest.mark.parametrize("text", ["vtanh wl1, bmll0", "inv r1, r2", "sqrt r1, r2", "invsqrt r1, r2"])
def test_nothing_is_approximated_unasked(executor, text):
    with pytest.raises(OpenError, match="is an approximation here, whose bits are not published"):
        run_text(executor, text + NOPS, {"r2": 0x3F800000})


@EACH
@pytest.mark.parametrize("number", [2.0, 2.75, 5.5, 100.0])
def test_powers_from_2_on_have_ones_or_zeros_behind_the_leading_bits(executor, number):
    """Zeros give the power of the eight leading bits, ones that of up to 1/128 below the next such number."""
    exponent = np.floor(np.log2(number))
    low = np.floor(number * 2 ** (7 - exponent)) * 2 ** (exponent - 7)
    for how, at in (
        (LOW, low),
        (HIGH, low + 2 ** (exponent - 7) - 1 / 128),
        (NEAREST, low + 2 ** (exponent - 7) - 1 / 128),
    ):
        core = run_text(
            approximating(executor, how), "vexp2 wl1, bmll0" + NOPS, {"bmll0": bits(np.array([number], np.float32))}
        )
        whole = np.floor(at)
        wanted = np.float32(2.0**whole * (1 + at - whole)).view(np.uint32) >> 16
        assert core.read("wl1") & 0xFFFF == wanted
        assert reasons(core) == ["VEXP2, |e| <= 1.2e-38 + 0.49 of it, bits unpublished"]


@EACH
def test_powers_below_all_normal_numbers_are_0_or_the_least_one(executor):
    given = {"bmll0": bits(np.array([-1e30, -np.inf, -127, 0], np.float32))}
    for how, least in ((NEAREST, 0), (LOW, 0), (HIGH, 0x80)):
        core = run_text(approximating(executor, how), "vexp2 wl1, bmll0" + NOPS, given)
        assert core.read("wl1") & (1 << 64) - 1 == bits(np.array([least, least, least, 0x3F80], np.uint16))
