"""Ternary weights: two-bit codes u = w + 1 of w in {-1, 0, 1}, a matrix from a file, packed ones for one.

Code 3 stands for no weight. WeightError is the one error of this package.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from bdforge.common.files import whole
from bdforge.common.messages import InputError
from bdforge.models.weights.ggml_blocks import QuantisedRows

NAMES_COMPARED_MAX = 4096  # looking for a near name must stay quick even in a file with a million tensors


class WeightError(InputError):
    """Weights that cannot be read, packed or used. The message names file, tensor, fault, limit and next step."""


INVALID = 2  # what decoding makes of code 3


def decode(packed: np.ndarray, bit: int) -> np.ndarray:
    """The weights (int8) that the uint8 array `packed` holds at bits `bit + 1 : bit`, 2 where the code is 3."""
    return ((packed >> bit) & 3).view(np.int8) - np.int8(1)


def refuse_invalid(weights: np.ndarray, where: str) -> None:
    """Raise `WeightError` naming the first decoded weight (K x N) that had code 3."""
    if weights.max() < INVALID:
        return
    row, column = divmod(int((weights == INVALID).argmax()), weights.shape[1])
    raise WeightError(
        f"{where}: code 3 at row {row}, column {column} (of K x N) is no ternary weight, codes are 0 to 2; "
        "the data are damaged or in another layout"
    )


@dataclass(frozen=True, slots=True, eq=False)
class TernaryMatrix:
    """Weights for C = A @ weights, made of one tensor or of several fused side by side along N.

    `weights` is int8 of shape (K, N), C-contiguous, every value -1, 0 or 1. Tensor i is called `names[i]`, gave
    `columns[i]` of the N columns and has the scale `scales[i]`: the number stored in the file, uninterpreted, or 1.0
    when the file stores none.
    """

    weights: np.ndarray
    names: tuple[str, ...]
    columns: tuple[int, ...]
    scales: tuple[float, ...]

    @property
    def name(self) -> str:
        """All tensor names in the order of their columns, as in `gate + up`."""
        return " + ".join(self.names)

    @property
    def shape(self) -> tuple[int, int]:
        """(K, N) in elements."""
        rows, columns = self.weights.shape
        return rows, columns

    def column_scales(self) -> np.ndarray:
        """The scale of every column: float32 of shape (N,)."""
        return np.repeat(np.asarray(self.scales, np.float32), self.columns)


class WeightFile(ABC):
    """A file of weights that is open. WeightError for a damaged file, and as its methods say."""

    path: Path

    @abstractmethod
    def names(self) -> list[str]:
        """Of every tensor, whatever its type."""

    def metadata(self) -> Mapping[str, Any] | None:
        """Numbers and strings of the file by key; None where its format has none."""
        return None

    @abstractmethod
    def problem(self, name: str) -> str:
        """Why a tensor is no ternary matrix; empty when it is."""

    @abstractmethod
    def shape(self, name: str) -> tuple[int, int]:
        """(K, N) of a ternary matrix."""

    @abstractmethod
    def weights(self, name: str) -> tuple[np.ndarray, float]:
        """A ternary matrix K x N as it is decoded, and its scale; ValueError says what is odd."""

    @abstractmethod
    def floats(self, name: str) -> np.ndarray | QuantisedRows | None:
        """A tensor of floats, mapped: what is not touched takes no memory. None where there is none of that name,
        WeightError for another type."""

    def tensors(self) -> dict[str, tuple[int, int]]:
        """(K, N) of every ternary matrix by name, in the file's order."""
        return {name: self.shape(name) for name in self.names() if not self.problem(name)}

    def read(self, name: str) -> TernaryMatrix:
        """A tensor, transposed to K x N; WeightError for one that is missing, of another type, shape or size, for
        code 3, and for a scale that is not finite."""
        where = f"{self.path}: tensor {name}"
        if name not in self.names():
            raise self._missing(name)
        if problem := self.problem(name):
            raise WeightError(f"{where} {problem}")
        try:
            weights, scale = self.weights(name)
        except ValueError as error:
            raise WeightError(f"{where}: {error}") from None
        refuse_invalid(weights, where)
        if not isfinite(scale):
            raise WeightError(f"{self.path}: the scale of tensor {name} is {scale}, expected a finite number")
        return TernaryMatrix(weights, (name,), weights.shape[1:], (scale,))

    def _missing(self, name: str) -> WeightError:
        """Says the nearest names that there are."""
        known = list(self.tensors())
        if not known:
            return WeightError(f"{self.path}: has no tensor {name!r}, nor any other ternary matrix; give another file")
        near = get_close_matches(name, known[:NAMES_COMPARED_MAX], n=3, cutoff=0.0)
        return WeightError(
            f"{self.path}: has no tensor {name!r}; the nearest of its {len(known)} ternary matrices: {', '.join(near)}"
        )


def fuse(matrices: Sequence[TernaryMatrix]) -> TernaryMatrix:
    """The matrices side by side along N, in order; each keeps its scale. They may come from different files.

    Raises `WeightError` when there is none, or when they differ in K.
    """
    if not matrices:
        raise WeightError("no tensor named; give at least one, `tensors(path)` lists them")
    if len(matrices) == 1:
        return matrices[0]
    if len({matrix.shape[0] for matrix in matrices}) > 1:
        depths = ", ".join(f"{matrix.name} has K = {matrix.shape[0]}" for matrix in matrices)
        raise WeightError(f"tensors fused along N need one K: {depths}; read them apart")
    return TernaryMatrix(
        weights=np.concatenate([matrix.weights for matrix in matrices], axis=1),
        names=tuple(name for matrix in matrices for name in matrix.names),
        columns=tuple(count for matrix in matrices for count in matrix.columns),
        scales=tuple(scale for matrix in matrices for scale in matrix.scales),
    )


def check_shape(matrix: TernaryMatrix, K: int, N: int) -> None:
    """Raise `WeightError` unless the matrix is K x N."""
    if matrix.shape == (K, N):
        return
    rows, columns = matrix.shape
    hint = "; it is the transpose, swap K and N" if (columns, rows) == (K, N) else ""
    raise WeightError(f"tensor {matrix.name} is {rows} x {columns}, expected {K} x {N} (K x N){hint}")


def write_packed(path: str | PathLike[str], packed: np.ndarray, *, force: bool = False) -> None:
    """Save packed weights as an .npy file, whole or not at all.

    Raises `WeightError` when the file exists and `force` is false, or when it cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise WeightError(f"{path}: exists already; give another name, or force to replace it")
    with whole(path, WeightError) as file:
        np.save(file, packed, allow_pickle=False)
