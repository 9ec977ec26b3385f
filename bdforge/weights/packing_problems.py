"""What every packing refuses, as lists of reasons."""

from numbers import Integral

import numpy as np

from bdforge.weights.errors import WeightError


def refuse(action: str, problems: list[str]) -> None:
    """Raise `WeightError` with all reasons at once, if there are any."""
    if problems:
        raise WeightError(f"{action}: {'; '.join(problems)}")


def tile_problems(k: int, n: int, s: int, t: int, blocks: int = 1) -> list[str]:
    """k x n must be whole s x t micro-tiles; `blocks` column blocks share their bytes."""
    sizes = {"k": k, "n": n, "s": s, "t": t}
    problems = [
        f"{name} is {size!r}, expected a positive integer"
        for name, size in sizes.items()
        if not isinstance(size, Integral) or size < 1
    ]
    if problems:
        return problems
    if k % s:
        problems.append(f"k = {k} is no multiple of s = {s}")
    if n % (blocks * t):
        columns = f"{blocks} * t" if blocks > 1 else "t"
        problems.append(f"n = {n} is no multiple of {columns} = {blocks * t}")
    return problems


def matrix_problems(w: np.ndarray, dtype: type | None = np.int8) -> list[str]:
    """A matrix must be 2-D and not empty; of `dtype`, unless that is None."""
    problems = []
    if dtype is not None and w.dtype != dtype:
        name = np.dtype(dtype).name
        problems.append(f"weights are {w.dtype}, expected {name}; convert with .astype(np.{name})")
    if w.ndim != 2:
        problems.append(f"weights have {w.ndim} dimensions, expected 2 (K x N)")
    elif not w.size:
        problems.append(f"weights are {w.shape[0]} x {w.shape[1]}, expected at least 1 x 1")
    return problems


def multiple_problems(w: np.ndarray, k: int, n: int) -> list[str]:
    """A matrix must be whole k x n tiles."""
    sides = (("K", w.shape[0], "k", k), ("N", w.shape[1], "n", n))
    return [
        f"{side} = {size} is no multiple of {name} = {tile}, pad it to {-(-size // tile) * tile}"
        for side, size, name, tile in sides
        if size % tile
    ]


def packed_problems(packed: np.ndarray, inner: tuple[int, ...], dtype: type | None = np.uint8) -> list[str]:
    """Packed weights must have shape (N//n, K//k, *inner) and, unless it is None, `dtype`."""
    problems = []
    if dtype is not None and packed.dtype != dtype:
        problems.append(f"packed weights are {packed.dtype}, expected {np.dtype(dtype).name}")
    if packed.ndim != 6 or packed.shape[2:] != inner or not packed.size:
        problems.append(f"packed weights have shape {packed.shape}, expected (N//n, K//k, {str(inner)[1:]}")
    return problems
