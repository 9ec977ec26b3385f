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
    aie.runtime_sequence(%x: memref<512x512xbf16>, %y: memref<16xi32>) {
      aiex.npu.dma_memcpy_nd(%x[0, 0, 32, 0][1, 8, 32, 64][0, 64, 512, 1]) {id = 15 : i64, metadata = @a3} : memref<512x512xbf16>
      aiex.npu.dma_memcpy_nd(%x[1, 2, 0, 0][2, 2, 16, 32][65536, 1024, 512, 1]) {id = 2 : i64, metadata = @b0} : memref<512x512xbf16>
    }
  }
}
