"""Messages of the family's tests: they say where a wrong result is wrong, and how."""

import numpy as np
import pytest

from support.wrong_places import described, numbers

RIGHT = np.arange(1, 8 * 12 + 1).reshape(8, 12)
TILE = (4, 6)


def spoiled(where, change) -> str:
    got = RIGHT.copy()
    got[where] = change(got[where])
    return described(got != RIGHT, got, RIGHT, TILE)


CASES = {
    "a lane": (
        (slice(None), slice(2, None, 3)),
        lambda c: c + 1,
        "32 of 96 elements are wrong, the first is C[0, 2] = 4, expected 3; in each of 2 x 2 tiles of 4 x 6; rows of a "
        "tile: all 4, columns: 2, 5; each is 1 too large",
    ),
    "a tile": (
        (slice(4, 8), slice(0, 6)),
        lambda c: 0 * c,
        "24 of 96 elements are wrong, the first is C[4, 0] = 0, expected 49; in tiles of 4 x 6: tile rows 1, tile "
        "columns 0; rows of a tile: all 4, columns: all 6; all are 0",
    ),
    "a row of tiles": (
        slice(1, 3),
        lambda c: -c,
        "24 of 96 elements are wrong, the first is C[1, 0] = -13, expected 13; in tiles of 4 x 6: tile rows 0, tile "
        "columns all 2; rows of a tile: 1 to 2, columns: all 6; each is -1 times what is right",
    ),
    "two corners": (
        ([0, 7], [0, 11]),
        lambda c: c // 5,
        "2 of 96 elements are wrong, the first is C[0, 0] = 0, expected 1; in tiles of 4 x 6: (0, 0), (1, 1); rows of "
        "a tile: 0, 3, columns: 0, 5; off by 1 to 77",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_wrong_result_is_told_by_tiles_rows_columns_and_difference(case):
    where, change, message = CASES[case]
    assert spoiled(where, change) == message


def test_sets_of_numbers_are_told_by_their_pattern():
    assert numbers(range(9), 9) == "all 9"
    assert numbers([3, 4, 5], 9) == "3 to 5"
    assert numbers([1, 5, 9], 12) == "every 4th from 1 to 9"
    assert numbers([0, 1, 3, 4, 7, 8, 11, 12], 16) == "0, 1, 3, 4, 7, 8 and 2 more"
