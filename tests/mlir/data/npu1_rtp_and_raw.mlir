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
    %rtp = aie.buffer(%c02) {sym_name = "rtp", address = 32768 : i32} : memref<16xi32>
    aie.runtime_sequence(%x: memref<16xi32>, %y: memref<16xi32>, %z: memref<65536xi32>) {
      aiex.npu.rtp_write(@rtp, 0, 40)
      aiex.npu.rtp_write(@rtp, 3, 108)
      aiex.npu.write32 {address = 126976 : ui32, column = 2 : i32, row = 2 : i32, value = 1 : ui32}
      aiex.npu.maskwrite32 {address = 119296 : ui32, column = 1 : i32, row = 0 : i32, mask = 7936 : ui32, value = 3840 : ui32}
      aiex.npu.sync {channel = 1 : i32, column = 3 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.address_patch {addr = 118788 : ui32, arg_idx = 2 : i32, arg_plus = 65536 : i32}
    }
  }
}
