"""Ternary weights in the order in which the cores eat B (design: weights are packed once, on the host).

A core holds one k x n tile of B at a time. Its 2-bit codes u = w + 1 lie four to a byte; the four codes of a byte
belong to four neighbouring column blocks of t columns, so that masking one field of 64 bytes in place yields one
s x t micro-tile of B with 8-bit lanes.
"""

from math import gcd
from os import PathLike
from pathlib import Path

import numpy as np

from bdforge.files import whole
from bdforge.weights.codes import first, refuse_invalid
from bdforge.weights.errors import WeightError
from bdforge.weights.packing_problems import matrix_problems, multiple_problems, packed_problems, refuse, tile_problems

CODES_PER_BYTE = 4


def pack(w: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """Pack ternary weights `w`, int8 of shape (K, N), for cores with k x n tiles of B and s x t micro-tiles.

    Returns uint8 of shape (N//n, K//k, n//(4*t), k//s, s, t), C-contiguous. Byte [jt, kt, q, kb, s', t'] holds in
    field f (bits 2f+1:2f) the code w + 1 of w[kt*k + kb*s + s', jt*n + q*4*t + f*t + t'].

    Raises `WeightError` for another dtype or rank, for sizes that are not multiples (every reason at once) and for a
    value other than -1, 0, 1 (row, column and value of the first). `pad` first where K or N does not fit.
    """
    refuse("pack", tile_problems(k, n, s, t, CODES_PER_BYTE) or matrix_problems(w) or multiple_problems(w, k, n))
    _refuse_values(w)
    lane, lane_bytes = _lane(t)
    rows, columns = w.shape
    codes = np.add(w, np.int8(1), order="C").view(lane)
    fields = codes.reshape(rows // k, k // s, s, columns // n, n // (CODES_PER_BYTE * t), CODES_PER_BYTE, -1)
    packed = fields[..., 0, :].copy()
    for field in range(1, CODES_PER_BYTE):
        packed |= fields[..., field, :] << (2 * field)
    tiles = packed.transpose(3, 0, 4, 1, 2, 5).copy(order="C")
    return tiles.view(np.uint8).reshape(*tiles.shape[:-1], tiles.shape[-1] * lane_bytes)


def unpack(packed: np.ndarray, *, k: int, n: int, s: int = 8, t: int = 8) -> np.ndarray:
    """The weights, int8 of shape (K, N), of which `pack` with the same k, n, s, t makes `packed`.

    Raises `WeightError` for another dtype or shape, and for code 3 (row and column of the first).
    """
    refuse(
        "unpack",
        tile_problems(k, n, s, t, CODES_PER_BYTE) or packed_problems(packed, (n // (CODES_PER_BYTE * t), k // s, s, t)),
    )
    lane, lane_bytes = _lane(t)
    words = np.ascontiguousarray(packed).view(lane).transpose(1, 3, 4, 0, 2, 5)
    fields = np.empty((*words.shape[:-1], CODES_PER_BYTE, words.shape[-1]), lane)
    mask = lane.type(int.from_bytes(b"\x03" * lane_bytes))
    for field in range(CODES_PER_BYTE):
        fields[..., field, :] = (words >> (2 * field)) & mask
    weights = fields.reshape(packed.shape[1] * k, -1).view(np.int8)
    weights -= 1
    refuse_invalid(weights, "unpack")
    return weights


def pad(w: np.ndarray, K: int, N: int) -> np.ndarray:
    """`w`, int8 (rows, columns), grown to (K, N) with weights 0 below and to the right; `w` itself when it fits.

    Raises `WeightError` for another dtype or rank, or when K or N is smaller than what `w` has.
    """
    refuse("pad", matrix_problems(w))
    rows, columns = w.shape
    sides = (("K", K, "rows", rows), ("N", N, "columns", columns))
    refuse("pad", [f"{name} = {to} is less than the {what}, {has}" for name, to, what, has in sides if to < has])
    if (rows, columns) == (K, N):
        return w
    padded = np.zeros((K, N), np.int8)
    padded[:rows, :columns] = w
    return padded


def _lane(t: int) -> tuple[np.dtype, int]:
    """The widest unsigned dtype whose bytes divide t, and its bytes: shifts by field then work on many codes at once.

    No code leaves its byte when shifted left (3 << 6 fits); when shifted right a mask drops what came from the next.
    """
    lane_bytes = gcd(t, 8)
    return np.dtype(f"u{lane_bytes}"), lane_bytes


def _refuse_values(w: np.ndarray) -> None:
    if w.min() >= -1 and w.max() <= 1:
        return
    row, column = first((w < -1) | (w > 1))
    raise WeightError(f"pack: the weight at row {row}, column {column} is {w[row, column]}, expected -1, 0 or 1")


def write_packed(path: str | PathLike[str], packed: np.ndarray, *, force: bool = False) -> None:
    """Save what `pack` returned as an .npy file, whole or not at all.

    Raises `WeightError` when the file exists and `force` is false, or when it cannot be written.
    """
    path = Path(path)
    if path.exists() and not force:
        raise WeightError(f"{path}: exists already; give another name, or force to replace it")
    with whole(path, WeightError) as file:
        np.save(file, packed, allow_pickle=False)
