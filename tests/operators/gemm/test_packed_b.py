"""Packed B, byte by byte, as docs/operators/gemm.md writes its order: what the kernels' own tests read."""

from itertools import product

import numpy as np
import pytest

from bdforge.design.sequences.buffers import pack
from bdforge.devices import mlir_device_named
from bdforge.devices.formats import encode
from support.built_designs import small_gemm
from support.differences import same

K_TILE, N_TILE = 16, 64


def packed(type_b: str, device: str, b: np.ndarray) -> tuple[np.ndarray, int, int]:
    """Bytes of B, and the kernel's s and t."""
    made = small_gemm(16, K_TILE, N_TILE, device, types=("int8", type_b, "int32"))
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


def test_block_floats_are_tiles_whose_blocks_run_along_k():
    """`[N/n][K/k][n/8][k/8]` tiles of 72 bytes: of each column 8 values, an exponent before their mantissas."""
    made = small_gemm(16, K_TILE, N_TILE, types=("bf16", "bfp16", "f32"))
    b = np.random.default_rng(4).normal(size=(32, 128)).astype(np.float32)
    _, buffers = pack(made.program, mlir_device_named(made.mlir_device), {"B": b})
    wanted = [
        encode(np.ascontiguousarray(b[row : row + 8, column : column + 8].T)).tobytes()
        for n, k in product(range(0, 128, N_TILE), range(0, 32, K_TILE))
        for column, row in product(range(n, n + N_TILE, 8), range(k, k + K_TILE, 8))
    ]
    same(buffers[1].view(np.uint8), np.frombuffer(b"".join(wanted), np.uint8))


UNITS = {
    # Types: bits of what stands side by side in A, B and C, values and bias of codes of B.
    ("int8", "int8", "int16"): ((8, 8, 16), None, 0), ("int8", "int4", "int32"): ((8, 4, 32), [-8, 7], 0),
    ("int8", "int2", "int32"): ((8, 2, 32), [-1, 1], 1), ("bf16", "bf16", "f32"): ((16, 16, 32), None, 0),
    ("bf16", "bfp16", "f32"): ((16, 576, 32), None, 0), ("bf16", "bfp16", "bfp16"): ((16, 576, 576), None, 0),
}  # fmt: skip


@pytest.mark.parametrize("types", UNITS, ids=" ".join)
def test_operands_are_moved_by_elements_or_by_tiles_of_block_floats(types: tuple[str, str, str]):
    a, b, c = small_gemm(types=types).program.operands
    (bits, values, bias) = UNITS[types]
    assert (a.bits, b.bits, c.bits) == bits
    assert (b.values and list(b.values), b.bias) == (values, bias)
    blocked = ("across", "down", "across")
    assert [one.blocked for one in (a, b, c)] == [
        way if "bfp16" in name else None for way, name in zip(blocked, types, strict=True)
    ]
