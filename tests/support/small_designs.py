"""Small explicit designs as text, put together from the pieces that a test changes."""

LOOPBACK = """
module {{
  aie.device({device}) {{
    %shim = aie.tile(0, 0)
    %mem = aie.tile(0, 1)
    %buffer = aie.buffer(%mem) {{sym_name = "buffer"}} : memref<{words}xi32>
    %free = aie.lock(%mem, 0) {{init = 1 : i32, sym_name = "free"}}
    %full = aie.lock(%mem, 1) {{init = 0 : i32, sym_name = "full"}}
    aie.flow(%shim, DMA : 0, %mem, DMA : 0)
    aie.flow(%mem, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @in (%shim, MM2S, 0)
    aie.shim_dma_allocation @out (%shim, S2MM, 0)
    %dma = aie.memtile_dma(%mem) {{
      %0 = aie.dma_start(S2MM, 0, ^fill, ^second)
    ^second:
      %1 = aie.dma_start(MM2S, 0, ^send, ^end)
    ^fill:
      {fill_acquire}
      aie.dma_bd(%buffer : memref<{words}xi32>, {fill})
      {fill_release}
      aie.next_bd ^fill
    ^send:
      {send_acquire}
      aie.dma_bd(%buffer : memref<{words}xi32>, {send})
      {send_release}
      aie.next_bd ^send
    ^end:
      aie.end
    }}
    aie.runtime_sequence @sequence(%a: memref<{elements}xi32>, %b: memref<{elements}xi32>) {{
{sequence}
    }}
  }}
}}
"""

COPY = """
      aiex.npu.dma_memcpy_nd(%{buffer}[0, 0, 0, 0][1, 1, 1, {elements}][0, 0, 0, 1])
        {{id = {bd} : i64, metadata = @{channel}{token}}} : memref<{elements}xi32>"""


def _copy_sequence(elements: int) -> str:
    out = COPY.format(buffer="b", bd=1, channel="out", token=", issue_token = true", elements=elements)
    into = COPY.format(buffer="a", bd=0, channel="in", token="", elements=elements)
    return f"{out}{into}\n      aiex.npu.dma_wait {{symbol = @out}}"


def loopback(words: int = 32, runs: int = 3, device: str = "npu2", **parts: str) -> str:
    """DRAM to a memtile buffer of `words` words and back, `runs` times; `parts` replaces pieces of the text.

    Pieces: `fill` and `send` (a BD's offset, length and dimensions), their four lock operations, `sequence`.
    """
    elements = words * runs
    pieces = {
        "fill": f"0, {words}",
        "send": f"0, {words}",
        "fill_acquire": "aie.use_lock(%free, AcquireGreaterEqual, 1)",
        "fill_release": "aie.use_lock(%full, Release, 1)",
        "send_acquire": "aie.use_lock(%full, AcquireGreaterEqual, 1)",
        "send_release": "aie.use_lock(%free, Release, 1)",
        "sequence": _copy_sequence(elements),
    } | parts
    return LOOPBACK.format(device=device, words=words, elements=elements, **pieces)


CORE = """
module {{
  aie.device({device}) {{
    %tile = aie.tile(0, 2)
    func.func private @probe(memref<8xi32>, i32)
    %data = aie.buffer(%tile) {{sym_name = "data"}} : memref<8xi32> = dense<[{values}]>
    %lock = aie.lock(%tile, 0) {{init = {init} : i32, sym_name = "gate"}}
    %core = aie.core(%tile) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c7 = arith.constant 7 : index
      %c8 = arith.constant 8 : index
{body}
    }}
  }}
}}
"""


def core(body: str, values: str = "0, 1, 2, 3, 4, 5, 6, 7", init: int = 0, device: str = "npu2") -> str:
    """One core with a buffer `data` of eight words and a lock; `body` is its program with `aie.end`."""
    return CORE.format(body=body, values=values, init=init, device=device)
