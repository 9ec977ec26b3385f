"""The first wrong element of an array."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True, slots=True)
class ElementMismatch:
    """The first wrong element of an output in row-major order, and how many there are."""

    name: str
    position: tuple[int, ...]
    got: float
    expected: float
    count: int

    def __str__(self) -> str:
        more = f"; {self.count} elements are wrong" if self.count > 1 else ""
        place = ", ".join(map(str, self.position))
        return f"{self.name}[{place}] is {self.got}, expected {self.expected}{more}"


def first_mismatch(
    got: np.ndarray, expected: np.ndarray, bound: np.ndarray | None = None, name: str = "C"
) -> ElementMismatch | None:
    """The first element that differs, by more than its `bound` if there is one; None when there is no such."""
    wrong = got != expected if bound is None else ~(np.abs(got.astype(np.float64) - expected) <= bound)
    if not wrong.any():
        return None
    position = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), wrong.shape))
    return ElementMismatch(name, position, got[position].item(), expected[position].item(), int(wrong.sum()))
