"""Kernels of the GEMM int8 x int2 in numpy, by the contract of `kernels/aie2p/mm_i8_i2_i32.cc` for AIE2P: R = 8.

`bdforge emulate gemm.mlir --kernels ternary_kernels.py` takes them too.
"""

from math import isqrt

import numpy as np

FIELDS = np.arange(4)
"""A byte of B holds four codes: field j is that of column 32 q + 8 j + the column within the block."""


def zero_i32(c: np.ndarray) -> None:
    c[:] = 0


def mm_i8_i2_i32(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """c += a b, of which column block 4 q + j is scaled by 4^j.

    The sizes follow from those of a (m k bytes), b (k n / 4 bytes) and c (m n): k^2 = m k * k n / (m n).
    """
    k = isqrt(a.size * 4 * b.size // c.size)
    m, n = a.size // k, 4 * b.size // k
    rows = a.reshape(m // 8, k // 8, 8, 8).swapaxes(1, 2).reshape(m, k).astype(np.float32)
    codes = b.view(np.uint8).reshape(n // 32, k // 8, 8, 1, 8) >> (2 * FIELDS[:, None]).astype(np.uint8) & 3
    weights = (codes.astype(np.float32) - 1) * (4.0 ** FIELDS[:, None]).astype(np.float32)
    columns = weights.transpose(1, 2, 0, 3, 4).reshape(k, n)
    product = (rows @ columns).astype(np.int32)  # exact: less than 2^24 for every k that a core holds
    c += product.reshape(m // 8, 8, n // 8, 8).swapaxes(1, 2).reshape(c.shape)


def unscale_i32(c: np.ndarray) -> None:
    """Column block 4 q + j divided by 4^j; n is a multiple of 32, so that blocks of every row come in fours."""
    blocks = c.reshape(-1, 4, 64)
    blocks >>= (2 * FIELDS[:, None]).astype(np.int32)
