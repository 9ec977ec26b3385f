"""DRAM traffic of an output-stationary GEMM and what follows from it. Pure functions of sizes.

M, K, N is the problem, m, k, n a core's tile, all in elements; a, b, c are bytes of an element. Core rows share A,
columns share B. Sources: *S0* Taka et al. section 4.2, *S2* Wang et al. equations 10 to 12.
"""

from typing import Any


def padded(size: Any, step: Any) -> Any:
    """`size` in whole steps (numbers or arrays): a panel of zeros costs as much as one of data."""
    return -(-size // step) * step


def a_bytes(M: int, K: int, N: int, a: float, n: int, columns: int) -> float:
    """Bytes of A read: M·K·N·a / (n·columns), once for every panel of N (S0)."""
    return M * K * N * a / (n * columns)


def b_bytes(M: int, K: int, N: int, b: float, m: int, rows: int) -> float:
    """Bytes of B read: M·K·N·b / (m·rows), once for every panel of M (S0)."""
    return M * K * N * b / (m * rows)


def c_bytes(M: int, N: int, c: float) -> float:
    """Bytes of C written: M·N·c (S0)."""
    return M * N * c


def arithmetic_intensity(
    m: int, n: int, K: int, a: float, b: float, c: float, *, rows: int, columns: int
) -> float:  # fmt: skip
    """Operations per DRAM byte: 2 / (a/(n·columns) + b/(m·rows) + c/K) (S2 equation 10)."""
    return 2 / (a / (n * columns) + b / (m * rows) + c / K)


def compute_seconds(M: int, K: int, N: int, macs_per_cycle: float, cores: int, hz: float) -> float:
    """Seconds of M·K·N / (MACs per cycle and core · cores · Hz) (S0)."""
    return M * K * N / (macs_per_cycle * cores * hz)


def memory_seconds(size_bytes: float, gb_s: float) -> float:
    """Seconds of bytes / bandwidth (S0)."""
    return size_bytes / (gb_s * 1e9)


def ridge(tops: float, gb_s: float) -> float:
    """Operations per byte at which compute and memory take equally long: tops·10^12 / (GB/s·10^9)."""
    return tops * 1e12 / (gb_s * 1e9)


def balanced_m(
    n: int, K: int, a: float, b: float, c: float, *, rows: int, columns: int, intensity: float
) -> float:  # fmt: skip
    """The m at which the arithmetic intensity is `intensity` (the ridge): the balanced point of S0 for a given n.

    b / (rows · (2/intensity - a/(n·columns) - c/K)); infinite when A and C alone need more.
    """
    left = 2 / intensity - a / (n * columns) - c / K
    return b / (rows * left) if left > 0 else float("inf")
