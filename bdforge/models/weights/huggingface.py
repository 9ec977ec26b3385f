"""BitNet-b1.58-2B-4T's packed safetensors, as published on Hugging Face.

A linear layer of K inputs and N outputs is a uint8 tensor of shape (N/4, K): byte [i, k] holds the codes w + 1 of
output rows i, i + N/4, i + N/2, i + 3N/4 at bits 0, 2, 4, 6. The header does not say what a uint8 matrix means, so
every one is taken for such a layer. Tensor `X.weight` has its scale in `X.weight_scale`, one float.

The `safetensors` library opens and checks the file. Its numpy side has no bf16, and maps nothing, so floats are found
by the header (8 bytes of length, then JSON; https://github.com/huggingface/safetensors, section Format).
"""

import json
import struct
from collections.abc import Iterator
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


@contextmanager
def opened(path: Path) -> Iterator["SafetensorsFile"]:
    """The file while it is open; WeightError for one that is not intact."""
    try:
        with safe_open(path, framework="np") as file:
            yield SafetensorsFile(path, file)
    except (SafetensorError, OSError) as error:
        raise WeightError(f"{path}: no intact safetensors file: {error}; get the file again") from error


class SafetensorsFile:
    """A safetensors file that is open, as `WeightFile` says."""

    def __init__(self, path: Path, file: Any):
        self.path, self._file = path, file

    def names(self) -> list[str]:
        return list(self._file.keys())

    def metadata(self) -> None:
        """Nothing: a model's sizes stand in other files."""

    def tensors(self) -> dict[str, tuple[int, int]]:
        kinds = {name: self._kind(name) for name in self.names()}
        return {
            name: (shape[1], shape[0] * ROWS_PER_BYTE)
            for name, (dtype, shape) in kinds.items()
            if dtype == "U8" and len(shape) == 2 and min(shape) > 0
        }

    def read(self, name: str) -> TernaryMatrix:
        """The scale is 1.0 where the file has none."""
        known = self.tensors()
        if name not in self.names():
            raise missing_tensor(self.path, name, list(known))
        if name not in known:
            dtype, shape = self._kind(name)
            raise WeightError(
                f"{self.path}: tensor {name} is {dtype} of shape {shape}, expected packed ternary weights, U8 of shape "
                "[N/4, K]; unpacked checkpoints (bf16, f32) are not read"
            )
        weights = unpacked(self._file.get_tensor(name), f"{self.path}: tensor {name}")
        return TernaryMatrix(weights, (name,), weights.shape[1:], (self._scale(f"{name}_scale"),))

    def floats(self, name: str) -> np.ndarray | None:
        """F32, F16 or BF16."""
        if name not in self.names():
            return None
        dtype, shape = self._kind(name)
        if dtype not in FLOATS:
            known = ", ".join(FLOATS)
            raise WeightError(f"{self.path}: tensor {name} is {dtype}, expected {known}: convert the model anew")
        return np.memmap(self.path, FLOATS[dtype], "r", _place(self.path, name), tuple(shape))

    def _kind(self, name: str) -> tuple[str, list[int]]:
        tensor = self._file.get_slice(name)
        return tensor.get_dtype(), tensor.get_shape()

    def _scale(self, name: str) -> float:
        if name not in self.names():
            return 1.0
        dtype, shape = self._kind(name)
        if dtype not in FLOATS or shape not in ([], [1]):
            known = ", ".join(FLOATS)
            raise WeightError(f"{self.path}: scale {name} is {dtype} of shape {shape}, expected one of {known}")
        found = self.floats(name)
        assert found is not None
        scale = float(found.reshape(()))
        if not isfinite(scale):
            raise WeightError(f"{self.path}: scale {name} is {scale}, expected a finite number")
        return scale


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


def _place(path: Path, name: str) -> int:
    """The byte at which a tensor of a file that the library has checked begins."""
    with path.open("rb") as file:
        (header_bytes,) = struct.unpack("<Q", file.read(8))
        begin, _ = json.loads(file.read(header_bytes))[name]["data_offsets"]
    return 8 + header_bytes + begin
