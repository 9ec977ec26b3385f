"""The stand-in's quick way for the usual modes, nearest even and clamped, against exact integers."""

import numpy as np
import pytest
from kernel_library import aligned, aligned_copy

CONV_EVEN, SATURATE = 12, 1
EDGES = [2**31 - 1, -(2**31), 2**30, -(2**30), 127, 128, -128, -129, 0, -1, 1]


def nearest_even(value, shift):
    quotient, rest = divmod(value, 2**shift)
    twice = 2 * rest
    return quotient + (twice > 2**shift or (twice == 2**shift and quotient % 2))


@pytest.mark.parametrize("kind", ["acc32_int8", "acc32_uint8", "acc32_int16", "acc64_int8", "acc64_int32"])
def test_usual_modes_round_to_even_and_clamp_at_every_shift(probe, kind):
    rng, info = np.random.default_rng(1), np.iinfo(kind.split("_")[1])
    probe.call("set_modes", CONV_EVEN, SATURATE)
    for shift in range(32):
        ties = [(2 * i + 1) * 2 ** max(shift - 1, 0) for i in range(-3, 2)]
        values = np.clip([*EDGES, *ties], -(2**31), 2**31 - 1)
        for lanes in (values, rng.integers(-(2**31), 2**31, 16), rng.integers(-300, 300, 16)):
            out = aligned(16, info.dtype)
            probe.call(f"srs_{kind}", aligned_copy(lanes, np.int32), out, 0, shift)
            expected = [min(info.max, max(info.min, nearest_even(int(value), shift))) for value in lanes]
            assert out.tolist() == expected, shift
