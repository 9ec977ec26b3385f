"""Host arrays in `.npy` files."""

import os
import warnings
from collections.abc import Sequence
from math import prod
from pathlib import Path
from typing import BinaryIO

import ml_dtypes
import numpy as np

from bdforge.common.arrays import host_array, unlike_numbers
from bdforge.common.files import named, new_file, opened, whole
from bdforge.common.messages import InputError, clip, clip_path

_WAY = "write one array of numbers with numpy.save"
_OTHERS = {
    b"PK": f"is an .npz archive of several arrays; {_WAY}",
    b"\x80": f"is a pickle, which is not read, since reading one runs code; {_WAY}",
}
"""What files are that begin like this."""
_HEADERS = {b"\1\0": np.lib.format.read_array_header_1_0, b"\2\0": np.lib.format.read_array_header_2_0}
_BF16, _BF16_IN_FILES = np.dtype(ml_dtypes.bfloat16), np.dtype("V2")  # whose name a file does not keep
_BYTES_MAX = np.iinfo(np.intp).max  # that an array without elements would have, if none of its sizes were 0
_RANK_MAX = 64  # numpy's NPY_MAXDIMS


class ArrayFileError(InputError):
    """A file that cannot be read or must not be overwritten."""


def load_arrays(paths: Sequence[Path]) -> list[np.ndarray]:
    """Arrays of `.npy` files, in order and in this machine's byte order; two raw bytes are read as bfloat16.

    ArrayFileError names the file that is no array of numbers and says what it is.
    """
    return [_load(path) for path in paths]


def _load(path: Path) -> np.ndarray:
    with opened(path, ArrayFileError) as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a header of Python 2 is as good, and one that warns is judged below
        shape, dtype = _header(file, clip_path(path))
        needed, left = prod(shape) * dtype.itemsize, os.fstat(file.fileno()).st_size - file.tell()
        if left < needed:
            raise ArrayFileError(
                f"{clip_path(path)}: is cut off: {'x'.join(map(str, shape))} elements of {dtype} take {needed} bytes, "
                f"{left} are there; write it again"
            )
        file.seek(0)
        array = np.load(file, allow_pickle=False)
    return host_array(array.view(_BF16) if dtype == _BF16_IN_FILES else array, clip_path(path), ArrayFileError)


def _header(file: BinaryIO, name: str) -> tuple[tuple[int, ...], np.dtype]:
    """Shape and type that the header promises; nothing of the array's size is read or allocated."""
    beginning = file.read(len(np.lib.format.MAGIC_PREFIX) + 2)
    if not beginning.startswith(np.lib.format.MAGIC_PREFIX):
        known = next((what for magic, what in _OTHERS.items() if beginning.startswith(magic)), None)
        shown = f"it begins with {beginning.hex(' ')}" if beginning else "it is empty"
        raise ArrayFileError(f"{name}: {known or f'is not an .npy array, {shown}; {_WAY}'}")
    read = _HEADERS.get(beginning[6:])
    if read is None:
        raise ArrayFileError(
            f"{name}: is an .npy of version {'.'.join(map(str, beginning[6:]))}, arrays of numbers have 1 or 2"
        )
    try:
        shape, _, dtype = read(file)
    except Exception as error:  # numpy evaluates the header as Python text, and raises whatever that does
        reason = clip(str(error).partition("\n")[0] or type(error).__name__)
        raise ArrayFileError(f"{name}: its .npy header is damaged: {reason}; {_WAY}") from None
    others = "elements without bytes" if not dtype.itemsize else unlike_numbers(dtype)
    if others and dtype != _BF16_IN_FILES:
        raise ArrayFileError(f"{name}: holds {others} (type {dtype}), not numbers; {_WAY}")
    held = prod(max(1, size) for size in shape) * dtype.itemsize
    if any(type(size) is not int or size < 0 for size in shape) or len(shape) > _RANK_MAX or held > _BYTES_MAX:
        raise ArrayFileError(f"{name}: its .npy header is damaged: no array has the shape {clip(shape)}; {_WAY}")
    return shape, dtype


def new_arrays(folder: Path, paths: Sequence[Path], *, force: bool = False) -> list[Path]:
    """Files in `folder`, which is made, for arrays under their files' names; ArrayFileError as of `new_file`."""
    targets = [folder / path.name for path in paths]
    if len(set(targets)) < len(targets):
        targets = [folder / f"{i}_{path.name}" for i, path in enumerate(paths)]
    with named(folder, "written", ArrayFileError):
        folder.mkdir(parents=True, exist_ok=True)
    return [new_file(target, force, ArrayFileError) for target in targets]


def save_array(target: Path, array: np.ndarray) -> None:
    """Write an array as .npy, whole or not at all; ArrayFileError when that fails."""
    with whole(target, ArrayFileError) as file:
        np.save(file, array)
