"""A ternary matrix as it came from a file, and packed ones on their way into one."""

from collections.abc import Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from bdforge.files import whole
from bdforge.weights.errors import WeightError


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
