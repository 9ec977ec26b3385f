// The least that can run: 16 KiB from DRAM through a memtile and back, in one column, with one token.
// Two BDs in the shim, four in the memtile, no core. docs/strix_halo.md takes it as the first step on an NPU.
module {
  aie.device(npu2_1col) {
    %shim_0 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_0 = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}

    aie.flow(%shim_0, DMA : 0, %mem_0, DMA : 0)
    aie.flow(%mem_0, DMA : 0, %shim_0, DMA : 0)
    aie.shim_dma_allocation @in_0 (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @out_0 (%shim_0, S2MM, 0)
    %ping_0 = aie.buffer(%mem_0) {address = 0 : i32, sym_name = "ping_0"} : memref<1024xi32>  // bank 0
    %pong_0 = aie.buffer(%mem_0) {address = 65536 : i32, sym_name = "pong_0"} : memref<1024xi32>  // bank 1
    %free_0 = aie.lock(%mem_0, 0) {init = 2 : i32, sym_name = "free_0"}
    %full_0 = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "full_0"}
    %dma_0 = aie.memtile_dma(%mem_0) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_0 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_0, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_0 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_0, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_0 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_0, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_0 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_0, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    aie.runtime_sequence @copy(%from: memref<4096xi32>, %to: memref<4096xi32>) {
      %in0 = aiex.dma_configure_task_for @in_0 {
        aie.dma_bd(%from : memref<4096xi32>, 0, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in0)
      %out0 = aiex.dma_configure_task_for @out_0 {
        aie.dma_bd(%to : memref<4096xi32>, 0, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out0)
      aiex.npu.sync {channel = 0 : i32, column = 0 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.dma_free_task(%in0)
      aiex.dma_free_task(%out0)
    }
  }
}
