"""Packed weights on disk."""

from os import PathLike
from pathlib import Path

import numpy as np

from bdforge.files import whole
from bdforge.weights.errors import WeightError


def write_packed(path: str | PathLike[str], packed: np.ndarray, *, force: bool = False) -> None:
    """Save what `pack` returned as an .npy file, whole or not at all.

    Raises `WeightError` when the file exists and `force` is false, or when it cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise WeightError(f"{path}: exists already; give another name, or force to replace it")
    with whole(path, WeightError) as file:
        np.save(file, packed, allow_pickle=False)
