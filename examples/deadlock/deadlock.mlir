// A copy through a memtile that never ends, to look at: `free` starts at 0 and nobody releases it, since the BD that
// reads gives `full` back. `init = 1`, or releasing `free` in ^give, mends it.
module {
  aie.device(npu2_1col) {
    %shim = aie.tile(0, 0)
    %mem = aie.tile(0, 1)
    aie.flow(%shim, DMA : 0, %mem, DMA : 0)
    aie.flow(%mem, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @from_host (%shim, MM2S, 0)
    aie.shim_dma_allocation @to_host (%shim, S2MM, 0)
    %piece = aie.buffer(%mem) {sym_name = "piece"} : memref<96xi32>
    %free = aie.lock(%mem, 0) {init = 0 : i32, sym_name = "free"}
    %full = aie.lock(%mem, 1) {init = 0 : i32, sym_name = "full"}
    %dma = aie.memtile_dma(%mem) {
      %0 = aie.dma_start(S2MM, 0, ^take, ^start_out)
    ^start_out:
      %1 = aie.dma_start(MM2S, 0, ^give, ^end)
    ^take:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%piece : memref<96xi32>, 0, 96)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^take
    ^give:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%piece : memref<96xi32>, 0, 96)
      aie.use_lock(%full, Release, 0)
      aie.next_bd ^give
    ^end:
      aie.end
    }
    aie.runtime_sequence @copy(%a: memref<96xi32>, %b: memref<96xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 0 : i64, metadata = @to_host, issue_token = true} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 1 : i64, metadata = @from_host} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @to_host}
    }
  }
}
