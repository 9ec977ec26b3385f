"""What the designs beside it compute, by numpy."""

import numpy as np


def add_one(a: np.ndarray) -> np.ndarray:
    """a + 1."""
    return a + 1


def transpose(a: np.ndarray) -> np.ndarray:
    """a transposed."""
    return np.ascontiguousarray(a.T)


def gemm_i8(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A times B, int32."""
    return (A.astype(np.float64) @ B.astype(np.float64)).astype(np.int32)


def side_by_side(a: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """a + 1, and c transposed."""
    return a + 1, np.ascontiguousarray(c.T)


def modes(A: np.ndarray, B: np.ndarray, E: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A times B, int32, and E + F, rounded once."""
    return gemm_i8(A, B), (E.astype(np.float32) + F.astype(np.float32)).astype(E.dtype)
