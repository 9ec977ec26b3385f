"""What is wrong with a matrix, in words that point at the cause: tiles, rows and columns of a tile, and by how much."""

from collections.abc import Iterable

import numpy as np

LISTED = 6  # tiles or numbers, before the rest is only counted


def described(wrong: np.ndarray, got: np.ndarray, right: np.ndarray, tile: tuple[int, int]) -> str:
    """How many elements are wrong, the first, where the wrong ones lie in tiles of this size, and the difference."""
    row, column = (int(i) for i in np.argwhere(wrong)[0])
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are wrong, the first is C[{row}, {column}] = {got[row, column]}, "
        f"expected {right[row, column]}; {_tiles(wrong, tile)}; {_inside(wrong, tile)}; "
        f"{_difference(got[wrong], right[wrong])}"
    )


def numbers(values: Iterable[int], whole: int) -> str:
    """A set of numbers below `whole`: all of them, a range, every n-th, or a list."""
    found = sorted(set(values))
    if len(found) == whole:
        return f"all {whole}"
    steps = set(np.diff(found).tolist())
    if steps == {1}:
        return f"{found[0]} to {found[-1]}"
    if len(steps) == 1 and len(found) > 2:
        return f"every {steps.pop()}th from {found[0]} to {found[-1]}"
    return _listed([str(value) for value in found])


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more


def _tiles(wrong: np.ndarray, tile: tuple[int, int]) -> str:
    of = [-(-size // step) for size, step in zip(wrong.shape, tile, strict=True)]
    places = sorted(set(map(tuple, (np.argwhere(wrong) // tile).tolist())))
    size = f"{tile[0]} x {tile[1]}"
    if len(places) == of[0] * of[1]:
        return f"in each of {of[0]} x {of[1]} tiles of {size}"
    rows, columns = ({place[axis] for place in places} for axis in (0, 1))
    if len(places) == len(rows) * len(columns):
        return f"in tiles of {size}: tile rows {numbers(rows, of[0])}, tile columns {numbers(columns, of[1])}"
    return f"in tiles of {size}: {_listed([str(place) for place in places])}"


def _inside(wrong: np.ndarray, tile: tuple[int, int]) -> str:
    rows, columns = (np.argwhere(wrong) % tile).T.tolist()
    words = f"rows of a tile: {numbers(rows, min(tile[0], len(wrong)))}"
    return f"{words}, columns: {numbers(columns, min(tile[1], wrong.shape[1]))}"


def _difference(got: np.ndarray, right: np.ndarray) -> str:
    a, b = got.astype(np.float64), right.astype(np.float64)
    if not a.any():
        return "all are 0"
    if len(differences := np.unique(a - b)) == 1:
        return f"each is {abs(differences[0]):g} too {'large' if differences[0] > 0 else 'small'}"
    factors = np.unique(a[b != 0] / b[b != 0])
    if len(factors) == 1 and not a[b == 0].any():
        return f"each is {factors[0]:g} times what is right"
    return f"off by {np.abs(a - b).min():g} to {np.abs(a - b).max():g}"
