module {
  aie.device(npu2) {
    %s0 = aie.tile(0, 0)
    %s1 = aie.tile(1, 0)
    %s2 = aie.tile(2, 0)
    %s3 = aie.tile(3, 0)
    %c02 = aie.tile(0, 2)
    %m01 = aie.tile(0, 1)
    aie.shim_dma_allocation @a0 (%s0, MM2S, 0)
    aie.shim_dma_allocation @b0 (%s0, MM2S, 1)
    aie.shim_dma_allocation @c0 (%s0, S2MM, 0)
    aie.shim_dma_allocation @c1 (%s0, S2MM, 1)
    aie.shim_dma_allocation @a3 (%s3, MM2S, 0)
    aie.shim_dma_allocation @c3 (%s3, S2MM, 1)
    aie.runtime_sequence(%x: memref<65536xi8>, %y: memref<4096xi32>) {
      %t0 = aiex.dma_configure_task(%s0, MM2S, 0) {
        aie.dma_bd(%x : memref<65536xi8>, 0, 4096, [<size = 4, stride = 8192>, <size = 16, stride = 512>, <size = 64, stride = 1>]) {bd_id = 0 : i32}
        aie.end
      } {repeat_count = 3 : i32}
      %t1 = aiex.dma_configure_task(%s0, S2MM, 0) {
        aie.dma_bd(%y : memref<4096xi32>, 0, 2048) {bd_id = 1 : i32}
        aie.next_bd ^bb1
      ^bb1:
        aie.dma_bd(%y : memref<4096xi32>, 2048, 2048) {bd_id = 2 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%t1)
      aiex.dma_start_task(%t0)
      aiex.dma_await_task(%t1)
      aiex.dma_free_task(%t0)
    }
  }
}
