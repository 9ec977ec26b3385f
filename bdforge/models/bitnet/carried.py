"""What the last layer leaves of tokens, before its product is added to their states."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True, slots=True)
class Carried:
    """States and a product (tokens x hidden) with a scale for each of its rows (tokens), which times `down`, that of
    its matrix, is still to be added; float32. `logits` are those behind the last token, where one list made both."""

    states: np.ndarray
    product: np.ndarray
    scales: np.ndarray
    down: float
    logits: np.ndarray | None = None

    @classmethod
    def whole(cls, states: np.ndarray) -> Self:
        """States to which nothing is to be added."""
        return cls(states, np.zeros_like(states), np.zeros(len(states), np.float32), 0.0)

    @classmethod
    def joined(cls, parts: Sequence[Self]) -> Self:
        """Of the tokens of one after the other, behind the same layer."""
        states, product, scales = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        return cls(states, product, scales, parts[-1].down, parts[-1].logits)

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter((self.states, self.product, self.scales))

    @property
    def last(self) -> "Carried":
        """Of the last token."""
        return Carried(self.states[-1:], self.product[-1:], self.scales[-1:], self.down, self.logits)

    def summed(self) -> np.ndarray:
        """States behind the layer."""
        return self.states + self.product * (self.scales[:, None] * np.float32(self.down))
