"""What is wrong with an array, in words that point at the cause: tiles, rows, lanes or elements, and by how much."""

from collections.abc import Iterable, Sequence
from itertools import starmap
from typing import Any

import numpy as np

LISTED = 6  # tiles or numbers, before the rest is only counted
_HIGH = 1 << 16  # from which on one wrong bit is told as such
SHIFTS = 64  # elements by which a result may be late or early
AXES = {1: ("element",), 2: ("row", "column")}


def described(
    wrong: np.ndarray, got: np.ndarray, right: np.ndarray, tile: Sequence[int] | None = None, axes: Sequence[str] = ()
) -> str:
    """How many elements are wrong, the first, where the wrong ones lie (in tiles of a size), and the difference."""
    first = tuple(int(i) for i in np.argwhere(wrong)[0])
    places = _inside(wrong, axes) if tile is None else f"{_tiles(wrong, tile)}; {_in_tile(wrong, tile)}"
    return (
        f"{int(wrong.sum())} of {wrong.size} elements are wrong, the first is {list(first)} = {shown(got[first])}, "
        f"expected {shown(right[first])}; {places}; {_difference(wrong, got, right)}"
    )


def shown(value: Any) -> str:
    """A value of an array: unsigned words as hexadecimal, large signed ones both ways."""
    kind = getattr(value, "dtype", None)
    if kind == np.uint32 and value > 9:
        return f"{value:#x}"
    if kind == np.int32 and abs(int(value)) >= _HIGH << 8:
        return f"{value} ({int(value) % (1 << 32):#x})"
    return str(value)


def numbers(values: Iterable[int], whole: int) -> str:
    """A set of numbers below `whole`: all of them, a range, every n-th, runs, or a list."""
    found = sorted(set(values))
    if len(found) == whole:
        return f"all {whole}"
    breaks = np.flatnonzero(np.diff(found) != 1) + 1
    runs = [(int(run[0]), int(run[-1])) for run in np.split(np.array(found), breaks)]
    steps = set(np.diff([first for first, _ in runs]).tolist())
    lengths = {last - first + 1 for first, last in runs}
    if len(steps) == len(lengths) == 1 and len(runs) > 2:
        many = "" if lengths == {1} else f", {lengths.pop()} each"
        return f"every {steps.pop()}th from {runs[0][0]} to {runs[-1][0]}{many}"
    last = " (the last)" if found[-1] == whole - 1 and len(runs) == 1 else ""
    return _listed(list(starmap(_run, runs))) + last


def _run(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}, {last}" if last == first + 1 else f"{first} to {last}"


def _listed(words: list[str]) -> str:
    more = f" and {len(words) - LISTED} more" if len(words) > LISTED else ""
    return ", ".join(words[:LISTED]) + more


def _tiles(wrong: np.ndarray, tile: Sequence[int]) -> str:
    of = [-(-size // step) for size, step in zip(wrong.shape, tile, strict=True)]
    places = sorted(set(map(tuple, (np.argwhere(wrong) // tile).tolist())))
    size = " x ".join(map(str, tile))
    if len(places) == np.prod(of):
        return f"in each of {' x '.join(map(str, of))} tiles of {size}"
    along = [{place[axis] for place in places} for axis in range(wrong.ndim)]
    if len(places) == np.prod(list(map(len, along))):
        names = _axes(wrong, ())
        sets = (f"tile {n}s {numbers(a, w)}" for n, a, w in zip(names, along, of, strict=True))
        return f"in tiles of {size}: {', '.join(sets)}"
    return f"in tiles of {size}: {_listed([str(place) for place in places])}"


def _in_tile(wrong: np.ndarray, tile: Sequence[int]) -> str:
    words = [
        f"{name}s of a tile: {numbers(found, min(step, size))}"
        for name, found, step, size in zip(
            _axes(wrong, ()), (np.argwhere(wrong) % tile).T.tolist(), tile, wrong.shape, strict=True
        )
    ]
    return ", ".join(words)


def _axes(wrong: np.ndarray, axes: Sequence[str]) -> Sequence[str]:
    return axes or AXES.get(wrong.ndim) or [f"axis {axis} index" for axis in range(wrong.ndim)]


def _inside(wrong: np.ndarray, axes: Sequence[str]) -> str:
    """The wrong places along each axis; of a line the lanes, where they say it shorter."""
    if wrong.all():
        return "that is all of them"
    along = zip(_axes(wrong, axes), np.argwhere(wrong).T.tolist(), wrong.shape, strict=True)
    told = ", ".join(f"{name}s {numbers(found, size)}" for name, found, size in along)
    return f"{told}{_lanes(wrong)}" if wrong.ndim == 1 and told.endswith(" more") else told


def _lanes(wrong: np.ndarray) -> str:
    """Lanes that are wrong in all vectors of some size, where all others are right."""
    index = np.arange(wrong.size)
    for lanes in (2, 4, 8, 16, 32, 64):
        found = np.unique(index[wrong] % lanes)
        if 2 * lanes < wrong.size and wrong.sum() == np.isin(index % lanes, found).sum():
            return f": lanes {numbers(found.tolist(), lanes)} of {lanes}"
    return ""


def _difference(wrong: np.ndarray, got: np.ndarray, right: np.ndarray) -> str:
    if got.dtype.kind in "iu" and right.dtype.kind in "iu" and (words := _bits(got[wrong], right[wrong])):
        return words
    if not all(x.dtype.kind in "biufV" and not x.dtype.names for x in (got, right)):  # V: bfloat16 and its like
        return f"the wrong ones are {_listed([str(v) for v in got[wrong]])}"
    got, right = got.astype(np.float64), right.astype(np.float64)
    a, b = got[wrong], right[wrong]
    if not a.any():
        return "all are 0"
    if np.isnan(a).all():
        return "all are NaN"
    return _moved(got, right) or _change(a, b)


def _bits(a: np.ndarray, b: np.ndarray) -> str:
    """Whether bytes are swapped, or a high bit is wrong in each."""
    if a.dtype.itemsize > 1 and np.array_equal(a.byteswap(), b):
        return "their bytes are swapped"
    flipped = np.unique((a.astype(np.int64) ^ b.astype(np.int64)) & 0xFFFFFFFF)
    one = len(flipped) == 1 and int(flipped[0]).bit_count() == 1 and flipped[0] >= _HIGH
    return f"bit {int(flipped[0]).bit_length() - 1} is wrong in each" if one else ""


def _moved(got: np.ndarray, right: np.ndarray) -> str:
    """Whether all values are there, at other places."""
    a, b = got.ravel(), right.ravel()
    for shift in range(1, min(SHIFTS, len(a) // 2) + 1):
        if np.array_equal(a[shift:], b[:-shift]):
            return f"what is right lies {shift} later"
        if np.array_equal(a[:-shift], b[shift:]):
            return f"what is right lies {shift} earlier"
    if got.ndim == 2 and np.array_equal(a, right.T.ravel()):
        return "it is transposed"
    return "the same values in another order" if np.array_equal(np.sort(a), np.sort(b)) else ""


def _change(a: np.ndarray, b: np.ndarray) -> str:
    with np.errstate(all="ignore"):
        if len(differences := np.unique(a - b)) == 1:
            return f"each is {abs(differences[0]):g} too {'large' if differences[0] > 0 else 'small'}"
        factors = np.unique(a[b != 0] / b[b != 0])
        if len(factors) == 1 and not a[b == 0].any():
            return f"each is {factors[0]:g} times what is right"
        if len(values := np.unique(a)) == 1:
            return f"each is {values[0]:g}"
        low, high = np.abs(a - b).min(), np.abs(a - b).max()
        return f"off by {low:g} to {high:g}" if low < high else f"off by {low:g} both ways"
