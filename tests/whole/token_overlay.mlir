// What aiecc's column overlay leaves: controller ids, and ways for tokens of which some are there twice.
// A memtile sends 16 numbers twice; its own channels' tokens are waited for too.
module {
  aie.device(npu2) {
    %t00 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %t01 = aie.tile(0, 1) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %b = aie.buffer(%t01) {sym_name = "b", address = 0 : i32} : memref<16xi32>
    %free = aie.lock(%t01, 0) {init = 1 : i32}
    %full = aie.lock(%t01, 1) {init = 0 : i32}
    aie.packet_flow(15) {
      aie.packet_source<%t00, TileControl : 0>
      aie.packet_dest<%t00, South : 0>
    }
    aie.packet_flow(26) {
      aie.packet_source<%t01, TileControl : 0>
      aie.packet_dest<%t00, South : 0>
      aie.packet_dest<%t00, South : 0>
    }
    aie.packet_flow(1) {
      aie.packet_source<%t00, DMA : 0>
      aie.packet_dest<%t01, DMA : 0>
    }
    aie.packet_flow(1) {
      aie.packet_source<%t00, DMA : 0>
      aie.packet_dest<%t01, DMA : 0>
    }
    aie.flow(%t01, DMA : 0, %t00, DMA : 0)
    aie.shim_dma_allocation @in0 (%t00, MM2S, 0, <pkt_type = 0, pkt_id = 1>)
    aie.shim_dma_allocation @out0 (%t00, S2MM, 0)
    aie.packet_flow(15) {
      aie.packet_source<%t00, TileControl : 0>
      aie.packet_dest<%t00, South : 0>
    } {keep_pkt_header = true, priority_route = true}
    aie.runtime_sequence(%a : memref<16xi32>, %c : memref<32xi32>) {
      %in = aiex.dma_configure_task(%t01, S2MM, 0) {
        aie.use_lock(%free, AcquireGreaterEqual, 1)
        aie.dma_bd(%b : memref<16xi32>, 0, 16) {bd_id = 0 : i32}
        aie.use_lock(%full, Release, 1)
        aie.end
      } {issue_token = true}
      %out = aiex.dma_configure_task(%t01, MM2S, 0) {
        aie.use_lock(%full, AcquireGreaterEqual, 1)
        aie.dma_bd(%b : memref<16xi32>, 0, 16) {bd_id = 1 : i32}
        aie.use_lock(%full, Release, 1)
        aie.end
      } {issue_token = true, repeat_count = 1 : i32}
      aiex.dma_start_task(%in)
      aiex.dma_start_task(%out)
      aiex.npu.dma_memcpy_nd(%c[0, 0, 0, 0][1, 1, 1, 32][0, 0, 0, 1]) {id = 1 : i64, metadata = @out0} : memref<32xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 16][0, 0, 0, 1]) {id = 0 : i64, metadata = @in0, issue_token = true} : memref<16xi32>
      aiex.dma_await_task(%in)
      aiex.dma_await_task(%out)
      aiex.npu.dma_wait {symbol = @in0}
      aiex.npu.dma_wait {symbol = @out0}
    }
  }
}
