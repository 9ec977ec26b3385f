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
    aie.runtime_sequence(%x: memref<1048576xi8>) {
      %t0 = aiex.dma_configure_task(%s3, MM2S, 0) {
        aie.dma_bd(%x : memref<1048576xi8>, 131072, 32768, [<size = 2, stride = 524288>, <size = 4, stride = 128>, <size = 64, stride = 2048>, <size = 128, stride = 1>]) {bd_id = 9 : i32, burst_length = 256 : i32}
        aie.end
      } {issue_token = true, repeat_count = 1 : i32}
      aiex.dma_start_task(%t0)
      aiex.dma_await_task(%t0)
    }
  }
}
