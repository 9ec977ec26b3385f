// b = a + 1 on one core, every step explicit: two BDs in the shim, two at the core, four locks, a loop of scf and arith.
// 96 words pass in six pieces of 16. The core's program is MLIR, so that no kernel is needed.
module {
  aie.device(npu2_1col) {
    %shim = aie.tile(0, 0)
    %tile = aie.tile(0, 2)
    aie.flow(%shim, DMA : 0, %tile, DMA : 0)
    aie.flow(%tile, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @from_host (%shim, MM2S, 0)
    aie.shim_dma_allocation @to_host (%shim, S2MM, 0)

    %in = aie.buffer(%tile) {sym_name = "in"} : memref<16xi32>
    %in_free = aie.lock(%tile, 0) {init = 1 : i32, sym_name = "in_free"}
    %in_full = aie.lock(%tile, 1) {init = 0 : i32, sym_name = "in_full"}
    %out = aie.buffer(%tile) {sym_name = "out"} : memref<16xi32>
    %out_free = aie.lock(%tile, 2) {init = 1 : i32, sym_name = "out_free"}
    %out_full = aie.lock(%tile, 3) {init = 0 : i32, sym_name = "out_full"}

    %dma = aie.mem(%tile) {
      %0 = aie.dma_start(S2MM, 0, ^take, ^start_out)
    ^start_out:
      %1 = aie.dma_start(MM2S, 0, ^give, ^end)
    ^take:
      aie.use_lock(%in_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%in : memref<16xi32>, 0, 16)
      aie.use_lock(%in_full, Release, 1)
      aie.next_bd ^take
    ^give:
      aie.use_lock(%out_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%out : memref<16xi32>, 0, 16)
      aie.use_lock(%out_free, Release, 1)
      aie.next_bd ^give
    ^end:
      aie.end
    }

    %core = aie.core(%tile) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      %forever = arith.constant 4294967295 : index
      %one = arith.constant 1 : i32
      scf.for %piece = %c0 to %forever step %c1 {
        aie.use_lock(%in_full, AcquireGreaterEqual, 1)
        aie.use_lock(%out_free, AcquireGreaterEqual, 1)
        scf.for %i = %c0 to %c16 step %c1 {
          %value = memref.load %in[%i] : memref<16xi32>
          %sum = arith.addi %value, %one : i32
          memref.store %sum, %out[%i] : memref<16xi32>
        }
        aie.use_lock(%in_free, Release, 1)
        aie.use_lock(%out_full, Release, 1)
      }
      aie.end
    }

    aie.runtime_sequence @add_one(%a: memref<96xi32>, %b: memref<96xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 0 : i64, metadata = @to_host, issue_token = true} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 1 : i64, metadata = @from_host} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @to_host}
    }
  }
}
