"""What b (or C) must be, by the name of the puzzle's file."""

import numpy as np


def copy(a: np.ndarray) -> np.ndarray:
    return a.reshape(96)


def stride(a: np.ndarray) -> np.ndarray:
    return a.reshape(48, 2)[:, 0]


def transpose(a: np.ndarray) -> np.ndarray:
    return a.reshape(3, 4, 8).swapaxes(1, 2)


def flow(a: np.ndarray) -> np.ndarray:
    return a.reshape(96) + 1


def double_buffer(a: np.ndarray) -> np.ndarray:
    return a.reshape(96) + 1


def rtp(a: np.ndarray) -> np.ndarray:
    return 7 * a.reshape(96)


def repeat(a: np.ndarray) -> np.ndarray:
    return a[16:].reshape(6, 16) * a[:16]


def split(a: np.ndarray) -> np.ndarray:
    return a.reshape(2, 2, 24).swapaxes(0, 1) + 1


def broadcast(a: np.ndarray) -> np.ndarray:
    return np.outer([1, 2, 3, 4], a.reshape(96))


def join(a: np.ndarray) -> np.ndarray:
    return np.outer([1, 2], a.reshape(96))


def padding(a: np.ndarray) -> np.ndarray:
    return np.pad(a.reshape(6, 10), ((1, 1), (3, 3)))


def gemm(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A.reshape(16, 64).astype(np.int32) @ B.reshape(64, 16)


def gemm_4x8(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    return A.reshape(64, 64).astype(np.int32) @ B.reshape(64, 128)


def hang_lock(a: np.ndarray) -> np.ndarray:
    return 3 * a.reshape(96) + 1


def hang_order(a: np.ndarray) -> np.ndarray:
    x, w = a.reshape(3, 2, 2, 16).swapaxes(0, 1)
    return x * w
