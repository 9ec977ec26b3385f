"""Packed B, byte by byte, as docs/designs.md writes its order: what the kernels' own tests read."""

from itertools import product

import numpy as np
import pytest

from bdforge.devices import device_named, mlir_device_named
from bdforge.operators.gemm import plan_gemm, spec_from
from bdforge.sequences.buffers import pack
from support.built_designs import spec_content

K_TILE, N_TILE = 16, 64


def packed(type_b: str, device: str, b: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Bytes of B, and the kernel's s and t."""
    content = spec_content(16, K_TILE, N_TILE, types=("int8", type_b, "int32"))
    made = plan_gemm(spec_from(content, "small"), device_named(device))
    _, buffers = pack(made.program, mlir_device_named(made.mlir_device), {"B": b})
    return buffers[1].view(np.uint8), made.kernel.s, made.kernel.t


def micro_tiles(b: np.ndarray, s: int, t: int, columns: int) -> list[np.ndarray]:
    """[N/n][K/k][n/columns][k/s] pieces of s x columns, in order; `t` columns belong to a micro-tile."""
    assert columns % t == 0
    (K, N), pieces = b.shape, []
    for n, k in product(range(0, N, N_TILE), range(0, K, K_TILE)):
        for column, row in product(range(n, n + N_TILE, columns), range(k, k + K_TILE, s)):
            pieces.append(b[row : row + s, column : column + columns])
    return pieces


@pytest.mark.parametrize("device", ["strix_halo", "phoenix"])
def test_whole_bytes_stand_micro_tile_by_micro_tile(device):
    b = np.random.default_rng(1).integers(-128, 128, (32, 128), np.int8)
    got, s, t = packed("int8", device, b)
    assert got.tobytes() == b"".join(piece.tobytes() for piece in micro_tiles(b, s, t, t))


@pytest.mark.parametrize("device", ["strix_halo", "phoenix"])
def test_two_columns_share_a_byte_of_int4(device):
    b = np.random.default_rng(2).integers(-8, 8, (32, 128), np.int8)
    got, s, t = packed("int4", device, b)
    nibbles = np.concatenate([piece.ravel() for piece in micro_tiles(b, s, t, t)]).reshape(-1, 2)
    assert got.tolist() == [(int(low) & 15) | (int(high) & 15) << 4 for low, high in nibbles]


@pytest.mark.parametrize("device", ["strix_halo", "phoenix"])
def test_four_blocks_of_columns_share_a_byte_of_ternary_weights(device):
    b = np.random.default_rng(3).integers(-1, 2, (32, 128), np.int8)
    got, s, t = packed("int2", device, b)
    wanted = [
        sum((int(piece[row, field * t + column]) + 1) << (2 * field) for field in range(4))
        for piece in micro_tiles(b, s, t, 4 * t)
        for row, column in product(range(s), range(t))
    ]
    assert got.tolist() == wanted
