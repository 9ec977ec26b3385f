"""Designs whose times can be worked out by hand: DRAM through shims to cores or memtiles."""

from dataclasses import replace

from bdforge.devices.timing import STRIX_HALO, Timing

FREE: Timing = replace(
    STRIX_HALO, array_hz=1e9, stream_bytes_per_cycle=8, control_bytes_per_cycle=4, switch_cycles=0,
    switch_local_cycles=0, packet_arbitration_cycles=0, bd_change_cycles=0, task_start_cycles=0,
    done_to_resume_cycles=0, memtile_turn_cycles=0, dma_lock_cycles=0, core_lock_cycles=0, kernel_call_cycles=0,
    core_bank_stall=1,
    shim_mm2s_first_ns=0, shim_mm2s_later_ns=0, shim_s2mm_first_ns=0, shim_s2mm_later_ns=0,
    shim_read_share=1, shim_write_share=1, shim_request_ns=0, shim_byte_ns=0, shim_line_bytes=0, shared_run_ns=0,
    far_run_ns=0, dram_read_gb_s=1e9, dram_write_gb_s=1e9, dram_gb_s=1e9, memory_exponent=200,
    controller_write_ns=0, controller_bd_ns=0, controller_transfer_ns=0, controller_sync_ns=0, dispatch_ns=0,
    reconfiguration_ns=0,
)  # fmt: skip
"""Nothing takes time but words in streams, two 32-bit words a cycle at 1 GHz: cycles are nanoseconds."""

_CORE = """
    %c{i} = aie.tile(0, {row})
    func.func private @{kernel}(memref<{words}xi32>)
    %c{i}_free = aie.lock(%c{i}, 0) {{init = {buffers} : i32, sym_name = "core_0_{row}_free"}}
    %c{i}_full = aie.lock(%c{i}, 1) {{init = 0 : i32, sym_name = "core_0_{row}_full"}}
    aie.flow(%shim, DMA : 0, %c{i}, DMA : 0)
{memory}
    %dma{i} = aie.mem(%c{i}) {{
      %0 = aie.dma_start(S2MM, 0, ^bd0, ^end)
{bds}
    ^end:
      aie.end
    }}
    %core{i} = aie.core(%c{i}) {{
{program}
      aie.end
    }}
"""


def _core(i: int, kernel: str, words: int, runs: int, buffers: int) -> str:
    names = [f"%c{i}_buffer{b}" for b in range(buffers)]
    memory = "\n".join(f"    {n} = aie.buffer(%c{i}) : memref<{words}xi32>" for n in names)
    bds = "\n".join(
        f"""    ^bd{b}:
      aie.use_lock(%c{i}_free, AcquireGreaterEqual, 1)
      aie.dma_bd({name} : memref<{words}xi32>)
      aie.use_lock(%c{i}_full, Release, 1)
      aie.next_bd ^bd{(b + 1) % buffers}"""
        for b, name in enumerate(names)
    )
    program = "\n".join(
        f"""      aie.use_lock(%c{i}_full, AcquireGreaterEqual, 1)
      func.call @{kernel}({names[run % buffers]}) : (memref<{words}xi32>) -> ()
      aie.use_lock(%c{i}_free, Release, 1)"""
        for run in range(runs)
    )
    return _CORE.format(i=i, row=2 + i, kernel=kernel, words=words, buffers=buffers, memory=memory, bds=bds,
                        program=program)  # fmt: skip


def to_cores(kernels: list[str], words: int, runs: int, buffers: int, extra: str = "", wait: bool = False) -> str:
    """`runs` pieces of `words` words from DRAM to every core, which calls its kernel on each.

    `extra` stands at the end of the sequence, before the wait for the transfer.
    """
    cores = "".join(_core(i, kernel, words, runs, buffers) for i, kernel in enumerate(kernels))
    token, end = (", issue_token = true", "      aiex.npu.dma_wait {symbol = @in}\n") if wait else ("", "")
    return f"""
module {{
  aie.device(npu2) {{
    %shim = aie.tile(0, 0)
    aie.shim_dma_allocation @in (%shim, MM2S, 0)
{cores}
    aie.runtime_sequence @sequence(%a: memref<{words * runs}xi32>) {{
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, {words * runs}][0, 0, 0, 1])
        {{id = 0 : i64, metadata = @in{token}}} : memref<{words * runs}xi32>
{extra}{end}    }}
  }}
}}
"""


def columns(count: int, words: int, runs: int = 1, stride: int = 0) -> str:
    """`words` words from DRAM to the memtile of each of `count` columns, all at the same time.

    They lie in `runs` runs whose starts are `stride` words apart; the argument has count · max(words, runs · stride).
    """
    extent = max(words, runs * stride)
    walk = f"[1, 1, {runs}, {words // runs}][0, 0, {stride}, 1]"
    tiles = "".join(
        f"""
    %s{c} = aie.tile({c}, 0)
    %m{c} = aie.tile({c}, 1)
    %b{c} = aie.buffer(%m{c}) : memref<{words}xi32>
    aie.flow(%s{c}, DMA : 0, %m{c}, DMA : 0)
    aie.shim_dma_allocation @in{c} (%s{c}, MM2S, 0)
    %dma{c} = aie.memtile_dma(%m{c}) {{
      %0 = aie.dma_start(S2MM, 0, ^bd, ^end)
    ^bd:
      aie.dma_bd(%b{c} : memref<{words}xi32>)
      aie.next_bd ^end
    ^end:
      aie.end
    }}"""
        for c in range(count)
    )
    copies = "".join(
        f"""
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, {c * extent}]{walk})
        {{id = 0 : i64, metadata = @in{c}}} : memref<{count * extent}xi32>"""
        for c in range(count)
    )
    return f"""
module {{
  aie.device(npu2) {{{tiles}
    aie.runtime_sequence @sequence(%a: memref<{count * extent}xi32>) {{{copies}
    }}
  }}
}}
"""
