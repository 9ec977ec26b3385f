"""Two-bit codes u = w + 1 of weights w in {-1, 0, 1}; code 3 stands for no weight."""

import numpy as np

from bdforge.weights.errors import WeightError

INVALID = 2  # what decoding makes of code 3


def decode(packed: np.ndarray, bit: int) -> np.ndarray:
    """The weights (int8) that the uint8 array `packed` holds at bits `bit + 1 : bit`, 2 where the code is 3."""
    return ((packed >> bit) & 3).view(np.int8) - np.int8(1)


def first(mask: np.ndarray) -> tuple[int, int]:
    """Row and column of the first true element of a 2-D mask, row by row."""
    row, column = divmod(int(mask.argmax()), mask.shape[1])
    return row, column


def refuse_invalid(weights: np.ndarray, where: str) -> None:
    """Raise `WeightError` naming the first decoded weight (K x N) that had code 3."""
    if weights.max() < INVALID:
        return
    row, column = first(weights == INVALID)
    raise WeightError(
        f"{where}: code 3 at row {row}, column {column} (of K x N) is no ternary weight, codes are 0 to 2; "
        "the data are damaged or in another layout"
    )
