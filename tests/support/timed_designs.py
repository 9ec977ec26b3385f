"""Designs whose times can be worked out by hand: DRAM through shims to cores or memtiles."""

from dataclasses import replace

from bdforge.devices.timing import STRIX_HALO, Timing
from support.array_text import (
    Task,
    acquire,
    bd,
    buffer,
    core,
    flow,
    lock,
    memcpy,
    module,
    program,
    release,
    sequence,
    tile,
)

FREE: Timing = replace(
    STRIX_HALO, array_hz=1e9, stream_bytes_per_cycle=8, control_bytes_per_cycle=4, switch_cycles=0,
    switch_local_cycles=0, packet_arbitration_cycles=0, bd_change_cycles=0, task_start_cycles=0,
    done_to_resume_cycles=0, memtile_turn_cycles=0, dma_lock_cycles=0, core_lock_cycles=0, kernel_call_cycles=0,
    core_bank_stall=1,
    shim_mm2s_first_ns=0, shim_mm2s_later_ns=0, shim_s2mm_first_ns=0, shim_s2mm_later_ns=0,
    shim_read_share=1, shim_write_share=1, shim_request_ns=0, shim_byte_ns=0, shim_line_bytes=0, shared_run_ns=0,
    far_run_ns=0, aligned_byte_ns=0, dram_read_gb_s=1e9, dram_write_gb_s=1e9, dram_gb_s=1e9, memory_exponent=200,
    controller_write_ns=0, controller_bd_ns=0, controller_transfer_ns=0, controller_sync_ns=0, dispatch_ns=0,
    reconfiguration_ns=0,
)  # fmt: skip
"""Nothing takes time but words in streams, two 32-bit words a cycle at 1 GHz: cycles are nanoseconds."""


def _core(row: int, kernel: str, words: int, runs: int, buffers: int) -> list[str]:
    at, name = f"0{row}", f"core_0_{row}"
    free, full, held = f"{name}_free", f"{name}_full", [f"{name}_buffer{number}" for number in range(buffers)]
    fills = ["\n".join((acquire(free), bd(one, words), release(full))) for one in held]
    calls = [f"func.call @{kernel}(%{held[run % buffers]}) : (memref<{words}xi32>) -> ()" for run in range(runs)]
    return [
        tile(0, row), f"func.func private @{kernel}(memref<{words}xi32>)", lock(free, at, 0, buffers),
        lock(full, at, 1), flow("00 DMA : 0", f"{at} DMA : 0"), *(buffer(one, at, words) for one in held),
        program(at, Task("S2MM", 0, fills, loop=True)),
        core(at, *(line for call in calls for line in (acquire(full), call, release(free)))),
    ]  # fmt: skip


def to_cores(kernels: list[str], words: int, runs: int, buffers: int, extra: str = "", wait: bool = False) -> str:
    """`runs` pieces of `words` words from DRAM to every core, which calls its kernel on each.

    `extra` stands at the end of the sequence, before the wait for the transfer.
    """
    cores = [line for row, kernel in enumerate(kernels, 2) for line in _core(row, kernel, words, runs, buffers)]
    copy = memcpy("a", "in", 0, words * runs, token=wait)
    end = ["aiex.npu.dma_wait {symbol = @in}"] * wait
    return module(
        "npu2", tile(0, 0), "aie.shim_dma_allocation @in (%t00, MM2S, 0)", *cores,
        sequence(copy, extra, *end, arguments=f"%a: memref<{words * runs}xi32>"),
    )  # fmt: skip


def columns(count: int, words: int, runs: int = 1, stride: int = 0) -> str:
    """`words` words from DRAM to the memtile of each of `count` columns, all at the same time.

    They lie in `runs` runs whose starts are `stride` words apart; the argument has count · max(words, runs · stride).
    """
    extent = max(words, runs * stride)
    whole = f"memref<{count * extent}xi32>"
    walk = f"[1, 1, {runs}, {words // runs}][0, 0, {stride}, 1]"
    tiles = [
        part
        for c in range(count)
        for part in (
            tile(c, 0), tile(c, 1), buffer(f"b{c}", f"{c}1", words), flow(f"{c}0 DMA : 0", f"{c}1 DMA : 0"),
            f"aie.shim_dma_allocation @in{c} (%t{c}0, MM2S, 0)",
            program(f"{c}1", Task("S2MM", 0, [bd(f"b{c}", words)])),
        )
    ]  # fmt: skip
    copies = (
        f"aiex.npu.dma_memcpy_nd(%a[0, 0, 0, {c * extent}]{walk}) {{id = 0 : i64, metadata = @in{c}}} : {whole}"
        for c in range(count)
    )
    return module("npu2", *tiles, sequence(*copies, arguments=f"%a: {whole}"))
