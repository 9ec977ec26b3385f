"""Designs to show."""

from pathlib import Path

CHAIN = Path(__file__).resolve().parents[1] / "mlir" / "data" / "chain.mlir"

# Every kind of stream end, packets that meet, a multicast, a cascade, memory beyond a name's width, idle tiles.
MIXED = """
module {
  aie.device(npu1) @first {
    %s0 = aie.tile(0, 0)
    %s1 = aie.tile(1, 0)
    %m0 = aie.tile(0, 1)
    %m1 = aie.tile(1, 1)
    %a = aie.tile(0, 2)
    %b = aie.tile(0, 3)
    %c = aie.tile(1, 2)
    %d = aie.tile(1, 3)
    %e = aie.tile(2, 3)
    %big = aie.buffer(%m0) {sym_name = "big"} : memref<300x1024xi8>
    %x = aie.buffer(%a) {sym_name = "weights_of_the_first_layer"} : memref<40x1024xi8>
    %y = aie.buffer(%d) : memref<4xi32>
    %l = aie.lock(%a, 3) {init = 1 : i32, sym_name = "ready"}
    aie.cascade_flow(%b, %a)
    aie.cascade_flow(%a, %c)
    aie.flow(%s0, DMA : 0, %m0, DMA : 0)
    aie.flow(%m0, DMA : 0, %a, DMA : 0)
    aie.flow(%m0, DMA : 0, %b, DMA : 0)
    aie.flow(%m0, DMA : 0, %e, DMA : 1)
    aie.flow(%m0, DMA : 1, %d, DMA : 1)
    aie.flow(%e, DMA : 0, %a, DMA : 1)
    aie.flow(%e, DMA : 1, %m1, DMA : 3)
    aie.flow(%c, Core : 0, %d, Core : 0)
    aie.flow(%m1, DMA : 2, %s1, DMA : 1)
    aie.packet_flow(1) { aie.packet_source<%a, Trace : 0> aie.packet_dest<%s1, DMA : 0> }
    aie.packet_flow(2) { aie.packet_source<%b, Trace : 0> aie.packet_dest<%s1, DMA : 0> }
    aie.packet_flow(3) { aie.packet_source<%s0, DMA : 1> aie.packet_dest<%a, TileControl : 0> }
    aie.packet_flow(4) { aie.packet_source<%s0, DMA : 1> aie.packet_dest<%b, TileControl : 0> }
    aie.packet_flow(15) { aie.packet_source<%s0, TileControl : 0> aie.packet_dest<%s0, South : 0> }
  }
}
"""

TWO_DEVICES = """
module {
  aie.device(npu2_1col) @one { %t = aie.tile(0, 2) }
  aie.device(npu2_1col) @two { %t = aie.tile(0, 3) }
}
"""
