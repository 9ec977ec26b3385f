"""Modules with several devices: configurations that follow one another on one array."""

CONFIGURATION = """
  aie.device({device}) @{name} {{
    %s = aie.tile(0, 0)
    %m = aie.tile(0, 1)
    %c = aie.tile(0, 2)
    %x = aie.buffer(%c) {{sym_name = "x", address = 2048 : i32}} : memref<8xi32>
    %y = aie.buffer(%c) {{sym_name = "y", address = 3072 : i32}} : memref<8xi32>
    %count = aie.buffer(%c) {{sym_name = "count", address = 4096 : i32}} : memref<1xi32>
    %fresh = aie.buffer(%c) {{sym_name = "fresh", address = 5120 : i32}} : memref<1xi32> = dense<10>
    %x_free = aie.lock(%c, 0) {{init = 1 : i32, sym_name = "x_free"}}
    %x_full = aie.lock(%c, 1) {{sym_name = "x_full"}}
    %y_free = aie.lock(%c, 2) {{init = 1 : i32, sym_name = "y_free"}}
    %y_full = aie.lock(%c, 3) {{sym_name = "y_full"}}
    aie.flow(%s, DMA : 0, %c, DMA : 0)
    aie.flow(%c, DMA : 0, %s, DMA : 0)
    aie.packet_flow(27) {{
      aie.packet_source<%c, TileControl : 0>
      aie.packet_dest<%s, South : 0>
    }} {{keep_pkt_header = true}}
    aie.shim_dma_allocation @in (%s, MM2S, 0)
    aie.shim_dma_allocation @out (%s, S2MM, 0)
{extra}
    %mem = aie.mem(%c) {{
      %0 = aie.dma_start(S2MM, 0, ^fill, ^next)
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send, ^end)
    ^fill:
      aie.use_lock(%x_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%x : memref<8xi32>, 0, 8)
      aie.use_lock(%x_full, Release, 1)
      aie.next_bd ^fill
    ^send:
      aie.use_lock(%y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%y : memref<8xi32>, 0, 8)
      aie.use_lock(%y_free, Release, 1)
      aie.next_bd ^send
    ^end:
      aie.end
    }}
    %core = aie.core(%c) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c8 = arith.constant 8 : index
      %one = arith.constant 1 : i32
      %k = arith.constant {constant} : i32
      %loads = memref.load %count[%c0] : memref<1xi32>
      %more = arith.addi %loads, %one : i32
      memref.store %more, %count[%c0] : memref<1xi32>
      %f = memref.load %fresh[%c0] : memref<1xi32>
      %g = arith.addi %f, %one : i32
      memref.store %g, %fresh[%c0] : memref<1xi32>
      cf.br ^bb1
    ^bb1:
      aie.use_lock(%x_full, AcquireGreaterEqual, 1)
      aie.use_lock(%y_free, AcquireGreaterEqual, 1)
      scf.for %i = %c0 to %c8 step %c1 {{
        %v = memref.load %x[%i] : memref<8xi32>
        %w = arith.{operation} %v, %k : i32
        memref.store %w, %y[%i] : memref<8xi32>
      }}
      aie.use_lock(%x_free, Release, 1)
      aie.use_lock(%y_full, Release, 1)
      cf.br ^bb1
    }}
    aie.runtime_sequence @go(%a: memref<8xi32>, %b: memref<8xi32>) {{
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {{id = 1 : i64, metadata = @out}} : memref<8xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 8][0, 0, 0, 1]) {{id = 0 : i64, metadata = @in}} : memref<8xi32>
      aiex.npu.dma_wait {{symbol = @out}}
    }}
  }}
"""


def configuration(name: str, operation: str, constant: int, extra: str = "", device: str = "npu2") -> str:
    """A device whose core applies `arith.operation` with a constant to 8 words, for ever, and counts its starts."""
    return CONFIGURATION.format(name=name, operation=operation, constant=constant, extra=extra, device=device)


def run_of(device: str, source: str, target: str) -> str:
    """Configure a device and run its sequence on two arguments of the caller."""
    return f"""
      aiex.configure @{device} {{
        aiex.run @go(%{source}, %{target}) : (memref<8xi32>, memref<8xi32>)
      }}"""


def module(*steps: str, first: str = "", second: str = "", device: str = "npu2") -> str:
    """@main, which does `steps`, and the devices @first (adds 1) and @second (times 3) with additions of their own."""
    body = "".join(steps)
    return f"""module {{
  aie.device({device}) @main {{
    aie.runtime_sequence @whole(%a: memref<8xi32>, %b: memref<8xi32>, %c: memref<8xi32>) {{{body}
    }}
  }}
{configuration("first", "addi", 1, first, device)}{configuration("second", "muli", 3, second, device)}}}
"""
