// Two cores' memories send a packet each to one channel of the memtile, headers kept; locks and data stand in regions.
module {
  aie.device(npu2) {
    %t00 = aie.tile(0, 0)
    %t01 = aie.tile(0, 1)
    %t02 = aie.tile(0, 2)
    %t03 = aie.tile(0, 3)
    aie.packet_flow(2) {
      aie.packet_source<%t02, DMA : 0>
      aie.packet_dest<%t01, DMA : 0>
    } {keep_pkt_header = true}
    aie.packet_flow(3) {
      aie.packet_source<%t03, DMA : 1>
      aie.packet_dest<%t01, DMA : 0>
    } {keep_pkt_header = true}
    aie.flow(%t01, DMA : 5, %t00, DMA : 1)
    aie.shim_dma_allocation @out0 (%t00, S2MM, 1)
    %m02 = aie.mem(%t02) {
      %b = aie.buffer(%t02) {sym_name = "b02", address = 1024 : i32} : memref<4xi32> = dense<[20, 21, 22, 23]>
      %go = aie.lock(%t02, 0) {init = 1 : i32}
      %went = aie.lock(%t02, 1) {init = 0 : i32}
      %0 = aie.dma_start(MM2S, 0, ^bd, ^end)
    ^bd:
      aie.use_lock(%go, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<4xi32>, 0, 4) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 2>}
      aie.use_lock(%went, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %m03 = aie.mem(%t03) {
      %b = aie.buffer(%t03) {sym_name = "b03", address = 1024 : i32} : memref<4xi32> = dense<[30, 31, 32, 33]>
      %go = aie.lock(%t03, 0) {init = 1 : i32}
      %went = aie.lock(%t03, 1) {init = 0 : i32}
      %0 = aie.dma_start(MM2S, 1, ^bd, ^end)
    ^bd:
      aie.use_lock(%go, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<4xi32>, 0, 4) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 3>}
      aie.use_lock(%went, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %memtile = aie.memtile_dma(%t01) {
      %b = aie.buffer(%t01) {sym_name = "joined", address = 512 : i32} : memref<10xi32> = dense<-1>
      %free = aie.lock(%t01, 8) {init = 1 : i32}
      %full = aie.lock(%t01, 9) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<10xi32>, 0, 10)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^in
    ^next:
      %1 = aie.dma_start(MM2S, 5, ^out, ^end)
    ^out:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<10xi32>, 0, 10)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^out
    ^end:
      aie.end
    }
    aie.runtime_sequence(%b : memref<10xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 10][0, 0, 0, 1]) {id = 0 : i64, metadata = @out0} : memref<10xi32>
      aiex.npu.dma_wait {symbol = @out0}
    }
  }
}
