"""One memtile buffer handed out to four cores by channels that share two locks."""

from support.array_text import Task, acquire, bd, buffer, flow, lock, memcpy, module, program, release, ring, tile


def distribute(rounds: int = 3) -> str:
    """16 words a round, four for each core: `got0` to `got3` collect them."""
    cores = [f"0{i + 2}" for i in range(4)]
    fill = ring("S2MM", 0, acquire("free", 4), bd("buffer", 16), release("full", 4))
    sends = [ring("MM2S", i, acquire("full"), bd("buffer", 16, f"{4 * i}, 4"), release("free")) for i in range(4)]
    return module(
        "npu2", *(tile(0, row) for row in range(6)), buffer("buffer", "01", 16), lock("free", "01", 0, 4),
        lock("full", "01", 1), flow("00 DMA : 0", "01 DMA : 0"), "aie.shim_dma_allocation @in (%t00, MM2S, 0)",
        *(buffer(f"got{i}", at, 4 * rounds) for i, at in enumerate(cores)),
        *(flow(f"01 DMA : {i}", f"{at} DMA : 0") for i, at in enumerate(cores)),
        *(program(at, Task("S2MM", 0, [bd(f"got{i}", 4 * rounds)])) for i, at in enumerate(cores)),
        program("01", fill, *sends), f"aie.runtime_sequence @sequence(%a: memref<{16 * rounds}xi32>) {{",
        memcpy("a", "in", 0, 16 * rounds, token=True), "aiex.npu.dma_wait {symbol = @in}", "}",
    )  # fmt: skip
