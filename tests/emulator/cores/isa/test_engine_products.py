"""Every way in which the fast executor multiplies int8 matrices on this machine, against numpy."""

import itertools

import numpy as np
import pytest

from bdforge.core.exact.translated_program import compiled
from support.differences import same

MOST_WAYS = 8


def ways(rows: int, a: np.ndarray, b: np.ndarray, sign1: bool, sign2: bool) -> list[np.ndarray]:
    """Products by all the ways that this machine has."""
    found = []
    for way in range(MOST_WAYS):
        got = np.zeros((rows, 8), np.int32)
        if compiled().engine_product(way, rows, a.ctypes.data, b.ctypes.data, sign1, sign2, got.ctypes.data):
            found.append(got)
    return found


@pytest.mark.parametrize("rows", [4, 8])
@pytest.mark.parametrize(("sign1", "sign2"), list(itertools.product((False, True), repeat=2)))
def test_products_of_bytes_equal_numpy(rows, sign1, sign2):
    rng = np.random.default_rng(rows)
    for choice in (np.arange(256), np.array([0, 1, 127, 128, 255])):
        a, b = rng.choice(choice, (rows, 8)).astype(np.uint8), rng.choice(choice, (8, 8)).astype(np.uint8)
        first, second = (m.view(np.int8) if sign else m for m, sign in ((a, sign1), (b, sign2)))
        got = ways(rows, a, b, sign1, sign2)
        assert 1 <= len(got) < MOST_WAYS
        for product in got:
            same(product, first.astype(np.int32) @ second.astype(np.int32))
