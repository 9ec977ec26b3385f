"""Rounding and saturation of the stand-in against plain Python integers and fractions."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernel_library import KernelError, aligned, aligned_copy

NONE, SATURATE, SYMMETRIC = 0, 1, 3
INT_BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32, "uint32": 32}
EDGES = [2**31 - 1, -(2**31), 2**30, -(2**30), 127, 128, -128, -129, 0, -1, 1]
HALF = Fraction(1, 2)


def toward_zero(x):
    return math.trunc(x)


def away_from_zero(x):
    return math.ceil(x) if x > 0 else math.floor(x)


def nearest(tie):
    """Nearest integer; `tie` chooses when both are equally near."""
    return lambda x: tie(x) if x % 1 == HALF else math.floor(x + HALF)


ROUNDING = {
    0: math.floor,
    1: math.ceil,
    2: toward_zero,
    8: nearest(math.floor),
    9: nearest(math.ceil),
    10: nearest(toward_zero),
    11: nearest(away_from_zero),
    12: nearest(lambda x: 2 * round(x / 2)),
    13: nearest(lambda x: 2 * math.floor(x / 2) + 1),
}
# The reference lists symmetric_ceil as "away from zero".
ROUNDING[3] = away_from_zero


def narrowed(value, dtype, saturation):
    info = np.iinfo(dtype)
    if saturation == NONE:
        return np.array([value & (2**info.bits - 1)], f"u{info.bits // 8}").view(dtype)[0]
    lowest = -info.max if saturation == SYMMETRIC and info.min < 0 else info.min
    return max(lowest, min(info.max, value))


def srs(probe, kind, values, up, down, modes=(0, NONE)):
    """Sixteen lanes through `kind`, for example acc64_int8."""
    probe.call("set_modes", *modes)
    out = aligned(16, kind.split("_")[1])
    probe.call(f"srs_{kind}", aligned_copy(np.resize(values, 16), np.int32), out, up, down)
    return list(out[: len(values)])


@pytest.mark.parametrize("mode", ROUNDING)
@pytest.mark.parametrize("kind", ["acc64_int32", "acc64_int8", "acc32_int16"])
def test_every_rounding_mode_matches_fractions(probe, kind, mode):
    for shift in range(5):
        for start in range(-40, 41, 16):
            values = list(range(start, start + 16))
            expected = [ROUNDING[mode](Fraction(v, 2**shift)) for v in values]
            assert srs(probe, kind, values, 0, shift, (mode, NONE)) == expected, (shift, start)


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=16, max_size=16),
    st.integers(0, 28),
    st.integers(0, 59),
    st.sampled_from(sorted(ROUNDING)),
    st.sampled_from([NONE, SATURATE, SYMMETRIC]),
    st.sampled_from(sorted(INT_BITS)),
)
def test_srs_from_64_bit_matches_fractions(compiled_probe, values, up, down, mode, saturation, dtype):
    rounded = [ROUNDING[mode](Fraction(v * 2**up, 2**down)) for v in values]
    expected = [narrowed(r, dtype, saturation) for r in rounded]
    assert srs(compiled_probe, f"acc64_{dtype}", values, up, down, (mode, saturation)) == expected


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.lists(st.integers(-(2**31), 2**31 - 1), min_size=16, max_size=16),
    st.sampled_from([*range(28, 36), 0, 1, 7, 59]),
    st.sampled_from([12, *ROUNDING]),
    st.sampled_from([NONE, SATURATE, SYMMETRIC]),
    st.sampled_from(["int8", "uint8", "int16"]),
)
def test_srs_from_32_bit_matches_fractions(compiled_probe, values, down, mode, saturation, dtype):
    """Shifts around the width of a lane, ties of both signs."""
    values = [*values[:12], 2**30, -(2**30), 2**31 - 1, -(2**31)]
    expected = [narrowed(ROUNDING[mode](Fraction(v, 2**down)), dtype, saturation) for v in values]
    assert srs(compiled_probe, f"acc32_{dtype}", values, 0, down, (mode, saturation)) == expected


@pytest.mark.parametrize("kind", ["acc32_int8", "acc32_uint8", "acc32_int16", "acc64_int8", "acc64_int32"])
def test_usual_modes_round_to_even_and_clamp_at_every_shift(probe, kind):
    """The stand-in's quick way, at edges, ties and beside them."""
    rng, dtype, modes = np.random.default_rng(1), kind.split("_")[1], (12, SATURATE)
    for shift in range(32):
        ties = [(2 * i + 1) * 2 ** max(shift - 1, 0) for i in range(-3, 2)]
        near = np.clip([*EDGES, *ties], -(2**31), 2**31 - 1)
        for values in (near, rng.integers(-(2**31), 2**31, 16), rng.integers(-300, 300, 16)):
            expected = [narrowed(ROUNDING[12](Fraction(int(value), 2**shift)), dtype, SATURATE) for value in values]
            assert srs(probe, kind, values, 0, shift, modes) == expected, shift


@pytest.mark.parametrize(
    ("saturation", "expected"),
    [(NONE, [44, 0, -128, -44]), (SATURATE, [127, 127, -128, -128]), (SYMMETRIC, [127, 127, -127, -127])],
)
def test_saturation_modes_on_int8(probe, saturation, expected):
    assert srs(probe, "acc32_int8", [300, 256, -128, -300], 0, 0, (0, saturation)) == expected
    assert srs(probe, "acc64_int8", [300, 256, -128, -300], 0, 0, (0, saturation)) == expected


def test_unsigned_saturation_clamps_negatives_to_zero(probe):
    assert srs(probe, "acc32_uint8", [-5, 300, 77], 0, 0, (0, SATURATE)) == [0, 255, 77]
    assert srs(probe, "acc32_uint8", [-5, 300, 77], 0, 0, (0, SYMMETRIC)) == [0, 255, 77]


def test_acc32_to_32_bit_lanes_copies_bits_whatever_the_shift_and_modes(probe):
    values = [-7, 2**31 - 1, -(2**31), 5]
    assert srs(probe, "acc32_int32", values, 0, 3, (1, SYMMETRIC)) == values
    assert srs(probe, "acc32_uint32", values, 0, 3, (1, SATURATE)) == [v % 2**32 for v in values]


@pytest.mark.parametrize("saturation", [NONE, SATURATE, SYMMETRIC])
def test_upshift_into_acc32_wraps_or_clamps(probe, saturation):
    values = np.array([1, -1, 32767, -32768] * 4)
    for shift in (0, 15, 16, 17, 30):
        probe.call("set_modes", 0, saturation)
        out = aligned(16, np.int32)
        probe.call("ups_int16_acc32", aligned_copy(values, np.int16), out, shift)
        assert list(out) == [narrowed(int(v) << shift, "int32", saturation) for v in values]


def test_modes_persist_per_core_until_reset(probe):
    found = aligned(2, np.uint32)
    probe.call("set_modes", 12, SATURATE, core=3)
    probe.call("set_modes", 9, SYMMETRIC, core=1023)
    for core, modes in ((3, [12, SATURATE]), (1023, [9, SYMMETRIC]), (0, [0, NONE])):
        probe.call("get_modes", found, core=core)
        assert list(found) == modes
    probe.call("swap_modes", 1, NONE, found, core=3)
    assert list(found) == [12, SATURATE]
    probe.call("get_modes", found, core=3)
    assert list(found) == [1, NONE]
    probe.reset()
    probe.call("get_modes", found, core=3)
    assert list(found) == [0, NONE]


def test_modes_set_before_a_fault_persist_too(probe):
    with pytest.raises(KernelError, match="accumulator was never written"):
        probe.call("set_rounding_and_fault", 12, aligned(16, np.int32))
    found = aligned(2, np.uint32)
    probe.call("get_modes", found)
    assert list(found) == [12, NONE]


def test_a_code_that_is_no_rounding_mode_is_refused(probe):
    with pytest.raises(KernelError, match="code 5 is no rounding mode"):
        srs(probe, "acc64_int32", [1], 0, 1, (5, NONE))


@pytest.mark.parametrize(
    ("up", "down", "kind"), [(0, -1, "acc64_int32"), (0, 60, "acc64_int8"), (-1, 0, "acc64_int32")]
)
def test_shifts_that_the_device_breaks_on_are_refused(probe, up, down, kind):
    with pytest.raises(KernelError, match=f"shift {up or down} is outside 0 to 59"):
        srs(probe, kind, [1], up, down)


def test_upshift_of_32_bit_lanes_into_acc32_is_refused(probe):
    with pytest.raises(KernelError, match="shift of a 32-bit lane into acc32 1 is outside 0 to 0"):
        srs(probe, "acc32_int32", [1], 1, 0)
