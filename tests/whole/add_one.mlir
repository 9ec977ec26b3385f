// Adds 1, which the core declares, to 64 numbers, after the 64 sevens that the memtile program begins with.
module {
  aie.device(npu2) {
    %t00 = aie.tile(0, 0)
    %t01 = aie.tile(0, 1)
    %t02 = aie.tile(0, 2)
    %in = aie.buffer(%t02) {sym_name = "in", address = 1024 : i32} : memref<64xi32>
    %out = aie.buffer(%t02) {sym_name = "out", address = 2048 : i32} : memref<64xi32>
    %in_free = aie.lock(%t02, 0) {init = 1 : i32}
    %in_full = aie.lock(%t02, 1) {init = 0 : i32}
    %out_free = aie.lock(%t02, 2) {init = 1 : i32}
    %out_full = aie.lock(%t02, 3) {init = 0 : i32}
    aie.flow(%t00, DMA : 0, %t01, DMA : 0)
    aie.flow(%t01, DMA : 0, %t02, DMA : 0)
    aie.flow(%t02, DMA : 0, %t01, DMA : 1)
    aie.flow(%t01, DMA : 1, %t00, DMA : 0)
    aie.shim_dma_allocation @in0 (%t00, MM2S, 0)
    aie.shim_dma_allocation @out0 (%t00, S2MM, 0)
    %memtile = aie.memtile_dma(%t01) {
      %a = aie.buffer(%t01) {sym_name = "a", address = 4096 : i32} : memref<64xi32> = dense<7>
      %b = aie.buffer(%t01) {sym_name = "b", address = 8192 : i32} : memref<64xi32>
      %a_free = aie.lock(%t01, 3) {init = 0 : i32}
      %a_full = aie.lock(%t01, 4) {init = 1 : i32}
      %b_free = aie.lock(%t01, 5) {init = 1 : i32}
      %b_full = aie.lock(%t01, 6) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^a_in, ^second)
    ^a_in:
      aie.use_lock(%a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%a : memref<64xi32>, 0, 64)
      aie.use_lock(%a_full, Release, 1)
      aie.next_bd ^a_in
    ^second:
      %1 = aie.dma_start(MM2S, 0, ^a_out, ^third)
    ^a_out:
      aie.use_lock(%a_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%a : memref<64xi32>, 0, 64)
      aie.use_lock(%a_free, Release, 1)
      aie.next_bd ^a_out
    ^third:
      %2 = aie.dma_start(S2MM, 1, ^b_in, ^fourth)
    ^b_in:
      aie.use_lock(%b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<64xi32>, 0, 64)
      aie.use_lock(%b_full, Release, 1)
      aie.next_bd ^b_in
    ^fourth:
      %3 = aie.dma_start(MM2S, 1, ^b_out, ^end)
    ^b_out:
      aie.use_lock(%b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<64xi32>, 0, 64)
      aie.use_lock(%b_free, Release, 1)
      aie.next_bd ^b_out
    ^end:
      aie.end
    }
    %mem = aie.mem(%t02) {
      %0 = aie.dma_start(S2MM, 0, ^bd_in, ^second)
    ^bd_in:
      aie.use_lock(%in_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%in : memref<64xi32>, 0, 64)
      aie.use_lock(%in_full, Release, 1)
      aie.next_bd ^bd_in
    ^second:
      %1 = aie.dma_start(MM2S, 0, ^bd_out, ^end)
    ^bd_out:
      aie.use_lock(%out_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%out : memref<64xi32>, 0, 64)
      aie.use_lock(%out_free, Release, 1)
      aie.next_bd ^bd_out
    ^end:
      aie.end
    }
    %core = aie.core(%t02) {
      %addend = aie.buffer(%t02) {sym_name = "addend", address = 3072 : i32} : memref<1xi32> = dense<1>
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c64 = arith.constant 64 : index
      %forever = arith.constant 4294967295 : index
      scf.for %n = %c0 to %forever step %c1 {
        aie.use_lock(%in_full, AcquireGreaterEqual, 1)
        aie.use_lock(%out_free, AcquireGreaterEqual, 1)
        scf.for %i = %c0 to %c64 step %c1 {
          %one = memref.load %addend[%c0] : memref<1xi32>
          %x = memref.load %in[%i] : memref<64xi32>
          %y = arith.addi %x, %one : i32
          memref.store %y, %out[%i] : memref<64xi32>
        }
        aie.use_lock(%in_free, Release, 1)
        aie.use_lock(%out_full, Release, 1)
      }
      aie.end
    }
    aie.runtime_sequence(%a : memref<64xi32>, %b : memref<128xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 128][0, 0, 0, 1]) {id = 1 : i64, metadata = @out0} : memref<128xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 64][0, 0, 0, 1]) {id = 0 : i64, metadata = @in0} : memref<64xi32>
      aiex.npu.dma_wait {symbol = @out0}
    }
  }
}
