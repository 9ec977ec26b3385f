"""How cores make narrow integers of their sums: shift, round, saturate."""

from collections.abc import Callable

import numpy as np

_Round = Callable[[np.ndarray, np.ndarray, int], np.ndarray]


def _nearest(up_at_half: Callable[[np.ndarray], np.ndarray]) -> _Round:
    """To nearest; `up_at_half` says of the floors of values halfway whether they go up."""

    def round_(down: np.ndarray, rest: np.ndarray, half: int) -> np.ndarray:
        return down + ((rest > half) | ((rest == half) & up_at_half(down)))

    return round_


MODES: dict[str, _Round] = {
    "floor": lambda down, rest, half: down,
    "ceil": lambda down, rest, half: down + (rest > 0),
    "symmetric_floor": lambda down, rest, half: down + ((rest > 0) & (down < 0)),
    "symmetric_ceil": lambda down, rest, half: down + ((rest > 0) & (down >= 0)),
    "negative_inf": _nearest(lambda down: np.zeros(down.shape, bool)),
    "positive_inf": _nearest(lambda down: np.ones(down.shape, bool)),
    "symmetric_zero": _nearest(lambda down: down < 0),
    "symmetric_inf": _nearest(lambda down: down >= 0),
    "conv_even": _nearest(lambda down: down % 2 == 1),
    "conv_odd": _nearest(lambda down: down % 2 == 0),
}
"""What becomes of a floor, given what was cut off and what half a step is."""


def shifted(values: np.ndarray, shift: int, mode: str, dtype: np.dtype) -> np.ndarray:
    """int64 `values` divided by 2^shift, rounded as `mode` says, saturated to the integers of `dtype`; int64."""
    limits = np.iinfo(dtype)
    if shift:
        half = 1 << (shift - 1)
        down = values >> shift
        values = MODES[mode](down, values - (down << shift), half)
    return np.clip(values, limits.min, limits.max)
