module {
  aie.device(npu1) {
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
    aie.runtime_sequence(%x: memref<4096xi32>, %y: memref<4096xi32>) {
      aiex.npu.dma_memcpy_nd(%x[0, 0, 0, 0][1, 1, 1, 4096][0, 0, 0, 1]) {id = 0 : i64, metadata = @a0} : memref<4096xi32>
      aiex.npu.dma_memcpy_nd(%y[0, 0, 0, 0][1, 1, 1, 4096][0, 0, 0, 1]) {id = 1 : i64, metadata = @c0, issue_token = true} : memref<4096xi32>
      aiex.npu.dma_wait {symbol = @c0}
    }
  }
}
