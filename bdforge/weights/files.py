"""Packed weights on disk."""

import os
from os import PathLike
from pathlib import Path

import numpy as np

from bdforge.weights.errors import WeightError


def write_packed(path: str | PathLike[str], packed: np.ndarray, *, force: bool = False) -> None:
    """Save what `pack` returned as an .npy file, whole or not at all.

    Raises `WeightError` when the file exists and `force` is false, or when it cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise WeightError(f"{path}: exists already; give another name, or force to replace it")
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            np.save(file, packed, allow_pickle=False)
        part.replace(path)
    except OSError as error:
        raise WeightError(f"{path}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
