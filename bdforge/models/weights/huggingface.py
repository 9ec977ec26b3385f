"""BitNet-b1.58-2B-4T's packed safetensors, as published on Hugging Face.

A linear layer of K inputs and N outputs is a uint8 tensor of shape (N/4, K): byte [i, k] holds the codes w + 1 of
output rows i, i + N/4, i + N/2, i + 3N/4 at bits 0, 2, 4, 6. The header does not say what a uint8 matrix means, so
every one is taken for such a layer. Tensor `X.weight` has its scale in `X.weight_scale`, one float.

The `safetensors` library opens and checks the file. Its numpy side has no bf16, and maps nothing, so floats are found
by the header (8 bytes of length, then JSON; https://github.com/huggingface/safetensors, section Format).
"""

import json
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
from safetensors import SafetensorError, safe_open

from bdforge.models.weights.matrix import TernaryMatrix, WeightError, decode, missing_tensor, refuse_invalid

ROWS_PER_BYTE = 4
FLOATS = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(ml_dtypes.bfloat16)}
HEADER_BYTES_MAX = 100_000_000  # safetensors, `MAX_HEADER_SIZE`


def recognised(beginning: bytes) -> bool:
    """Whether a file with these first bytes looks like safetensors: a length, then JSON."""
    if len(beginning) < 9:
        return False
    (header_bytes,) = struct.unpack_from("<Q", beginning)
    return header_bytes <= HEADER_BYTES_MAX and beginning[8:9] == b"{"


def tensors(path: Path) -> list[tuple[str, tuple[int, int]]]:
    """Name and (K, N) of every uint8 matrix in the file."""
    with _opened(path) as file:
        return list(_matrices(file).items())


def names(path: Path) -> list[str]:
    """Of all tensors; WeightError for a damaged file."""
    with _opened(path) as file:
        return list(file.keys())


def read(path: Path, names: Sequence[str]) -> list[TernaryMatrix]:
    """The tensors called `names`, transposed to K x N; scale 1.0 where the file has none.

    Raises `WeightError` for a file that is no intact safetensors file, for a missing tensor, one that is no uint8
    matrix, code 3, and a scale that is not one finite float.
    """
    with _opened(path) as file:
        return [_read_one(path, file, name) for name in names]


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, framework="np") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise WeightError(f"{path}: no intact safetensors file: {error}; get the file again") from error


def _matrices(file: Any) -> dict[str, tuple[int, int]]:
    found = {}
    for name in file.keys():  # noqa: SIM118  a safe_open is no dict
        tensor = file.get_slice(name)
        shape = tensor.get_shape()
        if tensor.get_dtype() == "U8" and len(shape) == 2 and min(shape) > 0:
            found[name] = (shape[1], shape[0] * ROWS_PER_BYTE)
    return found


def _read_one(path: Path, file: Any, name: str) -> TernaryMatrix:
    matrices = _matrices(file)
    if name not in matrices:
        raise _unreadable(path, file, name, list(matrices))
    weights = unpacked(file.get_tensor(name), f"{path}: tensor {name}")
    return TernaryMatrix(weights, (name,), weights.shape[1:], (_scale(path, file, f"{name}_scale"),))


def unpacked(rows: np.ndarray, where: str) -> np.ndarray:
    """Weights (int8, K x N) of packed ones: uint8 of N / 4 x K, a byte's fields a quarter of the N apart.

    Raises `WeightError`, with `where` at its head, for the code that is none.
    """
    packed = np.ascontiguousarray(rows.T)
    depth, quarter = packed.shape
    weights = np.empty((depth, ROWS_PER_BYTE * quarter), np.int8)
    for field in range(ROWS_PER_BYTE):
        weights[:, field * quarter : (field + 1) * quarter] = decode(packed, 2 * field)
    refuse_invalid(weights, where)
    return weights


def floats(path: Path, name: str) -> np.ndarray | None:
    """A tensor of F32, F16 or BF16, mapped; None where there is none of that name.

    Raises `WeightError` for a damaged file and for a tensor of another type.
    """
    with _opened(path) as file:
        if name not in file.keys():  # noqa: SIM118
            return None
        tensor = file.get_slice(name)
        dtype, shape = tensor.get_dtype(), tensor.get_shape()
    if dtype not in FLOATS:
        raise WeightError(f"{path}: tensor {name} is {dtype}, expected {', '.join(FLOATS)}: convert the model anew")
    return np.memmap(path, FLOATS[dtype], "r", _place(path, name), tuple(shape))


def _unreadable(path: Path, file: Any, name: str, known: list[str]) -> WeightError:
    if name not in file.keys():  # noqa: SIM118
        return missing_tensor(path, name, known)
    tensor = file.get_slice(name)
    return WeightError(
        f"{path}: tensor {name} is {tensor.get_dtype()} of shape {tensor.get_shape()}, expected packed ternary "
        "weights, U8 of shape [N/4, K]; unpacked checkpoints (bf16, f32) are not read"
    )


def _scale(path: Path, file: Any, name: str) -> float:
    if name not in file.keys():  # noqa: SIM118
        return 1.0
    tensor = file.get_slice(name)
    dtype, shape = tensor.get_dtype(), tensor.get_shape()
    if dtype not in FLOATS or shape not in ([], [1]):
        raise WeightError(f"{path}: scale {name} is {dtype} of shape {shape}, expected one of {', '.join(FLOATS)}")
    found = floats(path, name)
    assert found is not None
    scale = float(found.reshape(()))
    if not isfinite(scale):
        raise WeightError(f"{path}: scale {name} is {scale}, expected a finite number")
    return scale


def _place(path: Path, name: str) -> int:
    """The byte at which a tensor of a file that the library has checked begins."""
    with path.open("rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        begin, _ = json.loads(file.read(header_bytes))[name]["data_offsets"]
    return 8 + header_bytes + begin
