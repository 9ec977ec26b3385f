"""BitNet-b1.58-2B-4T's packed safetensors, as published on Hugging Face.

A linear layer of K inputs and N outputs is a uint8 tensor of shape (N/4, K): byte [i, k] holds the codes w + 1 of
output rows i, i + N/4, i + N/2, i + 3N/4 at bits 0, 2, 4, 6. The header does not say what a uint8 matrix means, so
every one is taken for such a layer. Tensor `X.weight` has its scale in `X.weight_scale`, one float.

The `safetensors` library opens and checks the file. Its numpy side has no bf16, and maps nothing, so tensors are found
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

from bdforge.models.weights.matrix import WeightError, WeightFile, decode, refuse_invalid

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
        with safe_open(path, framework="np"), path.open("rb") as file:  # the library has checked the header then
            (header_bytes,) = struct.unpack("<Q", file.read(8))
            yield SafetensorsFile(path, json.loads(file.read(header_bytes)), 8 + header_bytes)
    except (SafetensorError, OSError) as error:
        raise WeightError(f"{path}: no intact safetensors file: {error}; get the file again") from error


class SafetensorsFile(WeightFile):
    """A safetensors file that is open; a model's sizes stand in other files. `start`: the byte at which data begin."""

    def __init__(self, path: Path, header: dict[str, Any], start: int):
        self.path, self._start = path, start
        self._tensors = {name: facts for name, facts in header.items() if name != "__metadata__"}

    def names(self) -> list[str]:
        return list(self._tensors)

    def problem(self, name: str) -> str:
        dtype, shape = self._kind(name)
        if dtype == "U8" and len(shape) == 2 and min(shape) > 0:
            return ""
        return (
            f"is {dtype} of shape {shape}, expected packed ternary weights, U8 of shape [N/4, K]; unpacked checkpoints "
            "(bf16, f32) are not read"
        )

    def shape(self, name: str) -> tuple[int, int]:
        _, (rows, depth) = self._kind(name)
        return depth, rows * ROWS_PER_BYTE

    def weights(self, name: str) -> tuple[np.ndarray, float]:
        """The scale is 1.0 where the file has none."""
        return decoded(self._mapped(name, np.dtype(np.uint8))), self._scale(f"{name}_scale")

    def floats(self, name: str) -> np.ndarray | None:
        """F32, F16 or BF16."""
        if name not in self._tensors:
            return None
        dtype, _ = self._kind(name)
        if dtype not in FLOATS:
            known = ", ".join(FLOATS)
            raise WeightError(f"{self.path}: tensor {name} is {dtype}, expected {known}: convert the model anew")
        return self._mapped(name, FLOATS[dtype])

    def _kind(self, name: str) -> tuple[str, list[int]]:
        return self._tensors[name]["dtype"], self._tensors[name]["shape"]

    def _mapped(self, name: str, dtype: np.dtype) -> np.ndarray:
        begin, _ = self._tensors[name]["data_offsets"]
        return np.memmap(self.path, dtype, "r", self._start + begin, tuple(self._tensors[name]["shape"]))

    def _scale(self, name: str) -> float:
        if name not in self._tensors:
            return 1.0
        dtype, shape = self._kind(name)
        if dtype not in FLOATS or shape not in ([], [1]):
            known = ", ".join(FLOATS)
            raise WeightError(f"{self.path}: scale {name} is {dtype} of shape {shape}, expected one of {known}")
        scale = float(self._mapped(name, FLOATS[dtype]).reshape(()))
        if not isfinite(scale):
            raise WeightError(f"{self.path}: scale {name} is {scale}, expected a finite number")
        return scale


def unpacked(rows: np.ndarray, where: str) -> np.ndarray:
    """As `decoded`; WeightError, with `where` at its head, for the code that is none."""
    weights = decoded(rows)
    refuse_invalid(weights, where)
    return weights


def decoded(rows: np.ndarray) -> np.ndarray:
    """Weights (int8, K x N) of packed ones: uint8 of N / 4 x K, a byte's fields a quarter of the N apart."""
    packed = np.ascontiguousarray(rows.T)
    return np.concatenate([decode(packed, 2 * field) for field in range(ROWS_PER_BYTE)], axis=1)
