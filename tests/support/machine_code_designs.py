"""Designs whose cores run machine code: a GEMM of 64 x 64 x 64 through DMA."""

from pathlib import Path

import numpy as np

from bdforge.core.isa.assembler import assemble

SOURCES = Path(__file__).parents[1] / "emulator" / "cores" / "isa" / "data"
SIZE = 64

GEMM = """
module {{
  aie.device({device}) {{
    %shim = aie.tile(0, 0)
    %tile = aie.tile(0, 2)
    %a = aie.buffer(%tile) {{sym_name = "a", address = 1024 : i32}} : memref<4096xi8>
    %b = aie.buffer(%tile) {{sym_name = "b", address = 5120 : i32}} : memref<4096xi8>
    %c = aie.buffer(%tile) {{sym_name = "c", address = 9216 : i32}} : memref<4096xi32>
    %a_free = aie.lock(%tile, 0) {{init = 1 : i32}}
    %a_full = aie.lock(%tile, 1) {{init = 0 : i32}}
    %b_free = aie.lock(%tile, 2) {{init = 1 : i32}}
    %b_full = aie.lock(%tile, 3) {{init = 0 : i32}}
    %c_free = aie.lock(%tile, 4) {{init = 1 : i32}}
    %c_full = aie.lock(%tile, 5) {{init = 0 : i32}}
    {core}
    aie.flow(%shim, DMA : 0, %tile, DMA : 0)
    aie.flow(%shim, DMA : 1, %tile, DMA : 1)
    aie.flow(%tile, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @in_a (%shim, MM2S, 0)
    aie.shim_dma_allocation @in_b (%shim, MM2S, 1)
    aie.shim_dma_allocation @out (%shim, S2MM, 0)
    %dma = aie.mem(%tile) {{
      %0 = aie.dma_start(S2MM, 0, ^a, ^second)
    ^second:
      %1 = aie.dma_start(S2MM, 1, ^b, ^third)
    ^third:
      %2 = aie.dma_start(MM2S, 0, ^c, ^end)
    ^a:
      aie.use_lock(%a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%a : memref<4096xi8>, 0, 4096)
      aie.use_lock(%a_full, Release, 1)
      aie.next_bd ^a
    ^b:
      aie.use_lock(%b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<4096xi8>, 0, 4096)
      aie.use_lock(%b_full, Release, 1)
      aie.next_bd ^b
    ^c:
      aie.use_lock(%c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%c : memref<4096xi32>, 0, 4096)
      aie.use_lock(%c_free, Release, 1)
      aie.next_bd ^c
    ^end:
      aie.end
    }}
    aie.runtime_sequence @sequence(%a0: memref<{count}xi8>, %b0: memref<{count}xi8>, %c0: memref<{count}xi32>) {{
      aiex.npu.dma_memcpy_nd(%c0[0, 0, 0, 0][1, 1, 1, {count}][0, 0, 0, 1])
        {{id = 2 : i64, metadata = @out, issue_token = true}} : memref<{count}xi32>
      aiex.npu.dma_memcpy_nd(%a0[0, 0, 0, 0][1, 1, 1, {count}][0, 0, 0, 1])
        {{id = 0 : i64, metadata = @in_a}} : memref<{count}xi8>
      aiex.npu.dma_memcpy_nd(%b0[0, 0, 0, 0][1, 1, 1, {count}][0, 0, 0, 1])
        {{id = 1 : i64, metadata = @in_b}} : memref<{count}xi8>
      aiex.npu.dma_wait {{symbol = @out}}
    }}
  }}
}}
"""


def gemm_text(device: str, runs: int, core: str) -> str:
    """The design on a device, for some products one after the other; `core` is the text of its aie.core, or none."""
    return GEMM.format(device=device, count=runs * SIZE * SIZE, core=core)


def gemm_source(generation: str) -> str:
    """Assembly of the core's program."""
    return (SOURCES / f"gemm_{generation}.s").read_text()


def gemm_elf(generation: str) -> bytes:
    """The core's program as an ELF."""
    return assemble(gemm_source(generation), generation, f"gemm_{generation}.s").elf()


def tiled(matrix: np.ndarray, rows: int, columns: int) -> np.ndarray:
    """A matrix as tiles of rows x columns, one after the other."""
    height, width = matrix.shape
    return matrix.reshape(height // rows, rows, width // columns, columns).swapaxes(1, 2).reshape(-1)


def operands(generation: str, runs: int, seed: int) -> tuple[list[np.ndarray], np.ndarray]:
    """The arrays of the sequence for random products, and what numpy makes of them, in the order of C's tiles."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(-128, 128, (2, runs, SIZE, SIZE), np.int8)
    rows = 8 if generation == "aie2p" else 4
    c = a.astype(np.int32) @ b.astype(np.int32)
    first = np.concatenate([tiled(matrix, rows, 8) for matrix in a])
    second = np.concatenate([tiled(matrix, 8, 8) for matrix in b])
    return [first, second, np.zeros(runs * SIZE * SIZE, np.int32)], np.concatenate([tiled(m, rows, 8) for m in c])
