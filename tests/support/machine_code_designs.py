"""Designs whose cores run machine code: a GEMM of 64 x 64 x 64 through DMA."""

from pathlib import Path

import numpy as np

from bdforge.core.isa.assembler import assemble
from support.array_text import acquire, bd, memcpy, module, program, release, ring

SOURCES = Path(__file__).parents[1] / "emulator" / "cores" / "isa" / "data"
SIZE = 64

HELD = {"a": (1024, "i8"), "b": (5120, "i8"), "c": (9216, "i32")}


def gemm_text(device: str, runs: int, core: str) -> str:
    """The design on a device, for some products one after the other; `core` is the text of its aie.core, or none."""
    size, count = SIZE * SIZE, runs * SIZE * SIZE
    kind = {name: f"memref<{size}x{element}>" for name, (_, element) in HELD.items()}
    block = {name: bd(name, size, f"0, {size}", element=element) for name, (_, element) in HELD.items()}
    fills = [ring("S2MM", i, acquire(f"{n}_free"), block[n], release(f"{n}_full")) for i, n in enumerate("ab")]
    send = ring("MM2S", 0, acquire("c_full"), block["c"], release("c_free"))
    return module(
        device, "%shim = aie.tile(0, 0)", "%tile = aie.tile(0, 2)",
        *(
            f'%{name} = aie.buffer(%tile) {{sym_name = "{name}", address = {address} : i32}} : {kind[name]}'
            for name, (address, _) in HELD.items()
        ),
        *(
            f"%{name}_{state} = aie.lock(%tile, {2 * i + (state == 'full')}) {{init = {int(state == 'free')} : i32}}"
            for i, name in enumerate(HELD) for state in ("free", "full")
        ), core,
        "aie.flow(%shim, DMA : 0, %tile, DMA : 0)", "aie.flow(%shim, DMA : 1, %tile, DMA : 1)",
        "aie.flow(%tile, DMA : 0, %shim, DMA : 0)",
        *(f"aie.shim_dma_allocation @in_{name} (%shim, MM2S, {i})" for i, name in enumerate("ab")),
        "aie.shim_dma_allocation @out (%shim, S2MM, 0)",
        program("02", *fills, send).replace("%t02", "%tile"),
        f"aie.runtime_sequence @sequence({', '.join(f'%{n}0: memref<{count}x{e}>' for n, (_, e) in HELD.items())}) {{",
        memcpy("c0", "out", 2, count, token=True), memcpy("a0", "in_a", 0, count, "i8"),
        memcpy("b0", "in_b", 1, count, "i8"), "aiex.npu.dma_wait {symbol = @out}", "}",
    )  # fmt: skip


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
