"""Weights: ternary ones read from files.

    matrix = read("model.gguf", ["blk.0.ffn_gate.weight", "blk.0.ffn_up.weight"])
    check_shape(matrix, 2560, 13824)
    packed = bdforge.load(folder).pack(matrix.weights)

Two formats are read, told apart by content: Hugging Face's packed safetensors of BitNet-b1.58-2B-4T (`huggingface`) and
GGUF with bitnet.cpp's `I2_S` or ggml's `TQ1_0` and `TQ2_0` (`gguf`). How a design's cores eat weights is said by
the operands of its sequence program (`bdforge.design.sequences.buffers`). Everything wrong with
a file or a tensor is a `WeightError`.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from os import PathLike
from pathlib import Path

import numpy as np

from bdforge.models.weights import gguf, huggingface
from bdforge.models.weights.ggml_blocks import QuantisedRows
from bdforge.models.weights.gguf_header import ARRAY_VALUE, Value
from bdforge.models.weights.matrix import TernaryMatrix, WeightError, WeightFile, check_shape, fuse, write_packed

__all__ = [
    "ARRAY_VALUE", "QuantisedRows", "TernaryMatrix", "WeightError", "check_shape", "floats", "fuse", "metadata",
    "names", "read", "tensors", "write_packed",
]  # fmt: skip

BEGINNING_BYTES = 16


def read(path: str | PathLike[str], names: Sequence[str]) -> TernaryMatrix:
    """The ternary matrix K x N of the tensors called `names`, side by side along N (gate and up make one matrix).

    Raises `WeightError` when the file cannot be read, is of no known format or damaged, when it lacks a tensor, or
    when a tensor is not ternary or differs in K from the others; so do the others, where it concerns them.
    """
    with _opened(path) as file:
        return fuse([file.read(name) for name in ([names] if isinstance(names, str) else names)])


def tensors(path: str | PathLike[str]) -> list[tuple[str, tuple[int, int]]]:
    """Name and (K, N) of every ternary matrix that `read` can read from the file, in the file's order."""
    with _opened(path) as file:
        return list(file.tensors().items())


def names(path: str | PathLike[str]) -> list[str]:
    """Of every tensor of the file, whatever its type."""
    with _opened(path) as file:
        return file.names()


def floats(path: str | PathLike[str], name: str) -> np.ndarray | QuantisedRows | None:
    """A tensor of float32, float16, bfloat16 or Q8_0, mapped from the file; None where there is none of that name."""
    with _opened(path) as file:
        return file.floats(name)


def metadata(path: str | PathLike[str]) -> Mapping[str, Value] | None:
    """Numbers and strings of a GGUF file by key, ARRAY_VALUE for arrays; None for safetensors."""
    with _opened(path) as file:
        return file.metadata()


def _opened(given: str | PathLike[str]) -> AbstractContextManager[WeightFile]:
    """The file, by the module that reads its format."""
    path = Path(given)
    beginning = _beginning(path)
    for reader in (gguf, huggingface):
        if reader.recognised(beginning):
            return reader.opened(path)
    shown = f"it begins with {beginning.hex(' ')}" if beginning else "it is empty"
    raise WeightError(f"{path}: neither GGUF nor safetensors, {shown}; give a .gguf or .safetensors file")


def _beginning(path: Path) -> bytes:
    if path.exists() and not path.is_file():
        raise WeightError(f"{path}: not a regular file; give a .gguf or .safetensors file")
    try:
        with path.open("rb") as file:
            return file.read(BEGINNING_BYTES)
    except OSError as error:
        raise WeightError(f"{path}: cannot be read: {error.strerror}") from error
