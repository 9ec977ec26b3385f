"""Host arrays in `.npy` files."""

from collections.abc import Sequence
from pathlib import Path
from zipfile import BadZipFile

import numpy as np


class ArrayFileError(ValueError):
    """A file that cannot be read or must not be overwritten."""


def load_arrays(paths: Sequence[Path]) -> list[np.ndarray]:
    """Arrays of `.npy` files, in order; ArrayFileError names the file that is no array."""
    return [_load(path) for path in paths]


def _load(path: Path) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except OSError as error:
        raise ArrayFileError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, EOFError, BadZipFile):
        raise ArrayFileError(f"{path}: not an .npy array; write one with numpy.save, of numbers") from None
    if not isinstance(array, np.ndarray):
        raise ArrayFileError(f"{path}: not an .npy array; give one array to a file")
    return array


def save_arrays(folder: Path, paths: Sequence[Path], arrays: Sequence[np.ndarray]) -> list[Path]:
    """Write arrays under their files' names into `folder`; ArrayFileError when a file is there already."""
    targets = [folder / path.name for path in paths]
    if len(set(targets)) < len(targets):
        targets = [folder / f"{i}_{path.name}" for i, path in enumerate(paths)]
    for target in targets:
        if target.exists():
            raise ArrayFileError(f"{target} exists; choose another --out folder or remove it")
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for target, array in zip(targets, arrays, strict=True):
            np.save(target, array)
    except OSError as error:
        raise ArrayFileError(f"{folder}: cannot be written: {error.strerror}") from None
    return targets
