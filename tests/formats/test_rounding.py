"""Every rounding mode of the reference, at ties, edges and negative values, against exact fractions."""

from fractions import Fraction

import numpy as np
import pytest

from bdforge.devices.formats.narrowing import MODES, shifted
from support.differences import same
from support.family_oracle import ROUND

WIDE = np.dtype(np.int64)


def test_the_independent_table_has_every_mode():
    assert set(MODES) == set(ROUND)


@pytest.mark.parametrize("mode", sorted(ROUND))
@pytest.mark.parametrize("shift", [1, 2, 3, 7])
def test_a_mode_rounds_every_remainder_of_both_signs(mode: str, shift: int):
    span = 3 << shift
    values = np.arange(-span, span + 1, dtype=np.int64)  # every remainder, ties included, of odd and even floors
    exact = [ROUND[mode](Fraction(int(v), 1 << shift)) for v in values]
    same(shifted(values, shift, mode, WIDE), exact)


TIES = {  # of -2.5, -1.5, -0.5, 0.5, 1.5, 2.5, written out by hand from the definitions of the AIE API
    "floor": [-3, -2, -1, 0, 1, 2],
    "ceil": [-2, -1, 0, 1, 2, 3],
    "symmetric_floor": [-2, -1, 0, 0, 1, 2],
    "symmetric_ceil": [-3, -2, -1, 1, 2, 3],
    "negative_inf": [-3, -2, -1, 0, 1, 2],
    "positive_inf": [-2, -1, 0, 1, 2, 3],
    "symmetric_zero": [-2, -1, 0, 0, 1, 2],
    "symmetric_inf": [-3, -2, -1, 1, 2, 3],
    "conv_even": [-2, -2, 0, 0, 2, 2],
    "conv_odd": [-3, -1, -1, 1, 1, 3],
}


@pytest.mark.parametrize("mode", sorted(MODES))
def test_ties_go_where_the_definition_says(mode: str):
    halves = np.array([-5, -3, -1, 1, 3, 5], np.int64)
    assert shifted(halves, 1, mode, WIDE).tolist() == TIES[mode]
    assert shifted(halves * 8, 4, mode, WIDE).tolist() == TIES[mode]


@pytest.mark.parametrize("mode", sorted(MODES))
def test_without_a_shift_nothing_is_rounded(mode: str):
    values = np.array([-7, -1, 0, 1, 6], np.int64)
    assert shifted(values, 0, mode, WIDE).tolist() == values.tolist()


@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int32])
@pytest.mark.parametrize("mode", sorted(MODES))
def test_results_saturate_at_the_ends_of_narrow_integers(dtype: type, mode: str):
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max
    whole = np.array([low - 1, low, low + 1, high - 1, high, high + 1], np.int64)
    ends = [low, low, low + 1, high - 1, high, high]
    assert shifted(whole, 0, mode, np.dtype(dtype)).tolist() == ends
    assert shifted(whole << 5, 5, mode, np.dtype(dtype)).tolist() == ends
    tie = np.array([2 * high + 1, 2 * low - 1], np.int64)  # half a step beyond each end
    assert shifted(tie, 1, mode, np.dtype(dtype)).tolist() == [high, low]
