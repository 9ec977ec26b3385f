"""One memtile buffer handed out to four cores by channels that share two locks."""

_HEAD = """module {
  aie.device(npu2) {
    %s = aie.tile(0, 0)
    %m = aie.tile(0, 1)
    %buffer = aie.buffer(%m) {sym_name = "buffer"} : memref<16xi32>
    %free = aie.lock(%m, 0) {init = 4 : i32, sym_name = "free"}
    %full = aie.lock(%m, 1) {init = 0 : i32, sym_name = "full"}
    aie.flow(%s, DMA : 0, %m, DMA : 0)
    aie.shim_dma_allocation @in (%s, MM2S, 0)
"""

_CORE = """
    %c{i} = aie.tile(0, {row})
    %got{i} = aie.buffer(%c{i}) {{sym_name = "got{i}"}} : memref<{words}xi32>
    aie.flow(%m, DMA : {i}, %c{i}, DMA : 0)
    %mem{i} = aie.mem(%c{i}) {{
      %0 = aie.dma_start(S2MM, 0, ^fill, ^end)
    ^fill:
      aie.dma_bd(%got{i} : memref<{words}xi32>)
      aie.next_bd ^end
    ^end:
      aie.end
    }}
"""

_SEND = """
    ^send{i}:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%buffer : memref<16xi32>, {offset}, 4)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^send{i}"""


def distribute(rounds: int = 3) -> str:
    """16 words a round, four for each core: `got0` to `got3` collect them."""
    cores = "".join(_CORE.format(i=i, row=2 + i, words=4 * rounds) for i in range(4))
    starts = "".join(
        f"\n    ^start{i}:\n      %m{i} = aie.dma_start(MM2S, {i}, ^send{i}, ^{f'start{i + 1}' if i < 3 else 'end'})"
        for i in range(4)
    )
    sends = "".join(_SEND.format(i=i, offset=4 * i) for i in range(4))
    words = 16 * rounds
    return f"""{_HEAD}{cores}
    %dma = aie.memtile_dma(%m) {{
      %0 = aie.dma_start(S2MM, 0, ^fill, ^start0){starts}
    ^fill:
      aie.use_lock(%free, AcquireGreaterEqual, 4)
      aie.dma_bd(%buffer : memref<16xi32>)
      aie.use_lock(%full, Release, 4)
      aie.next_bd ^fill{sends}
    ^end:
      aie.end
    }}
    aie.runtime_sequence @sequence(%a: memref<{words}xi32>) {{
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, {words}][0, 0, 0, 1])
        {{id = 0 : i64, metadata = @in, issue_token = true}} : memref<{words}xi32>
      aiex.npu.dma_wait {{symbol = @in}}
    }}
  }}
}}
"""
