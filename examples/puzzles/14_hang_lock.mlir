// 14. A hang: who waits for whom?
// b shall be 3 a + 1 by two cores, one behind the other, 16 words at a time.
// It hangs. Every party of the circle waits for the one below it in the
// report; a value that is as it was since the start should not be. Change one
// number.
module {
  aie.device(npu2_1col) {
    %shim = aie.tile(0, 0)
    %scaler = aie.tile(0, 2)
    %adder = aie.tile(0, 3)
    aie.flow(%shim, DMA : 0, %scaler, DMA : 0)
    aie.flow(%scaler, DMA : 0, %adder, DMA : 0)
    aie.flow(%adder, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @from_host (%shim, MM2S, 0)
    aie.shim_dma_allocation @to_host (%shim, S2MM, 0)

    %x = aie.buffer(%scaler) {sym_name = "x"} : memref<16xi32>
    %x_free = aie.lock(%scaler, 0) {init = 1 : i32, sym_name = "x_free"}
    %x_full = aie.lock(%scaler, 1) {init = 0 : i32, sym_name = "x_full"}
    %scaled = aie.buffer(%scaler) {sym_name = "scaled"} : memref<16xi32>
    %scaled_free = aie.lock(%scaler, 2) {init = 1 : i32, sym_name = "scaled_free"}
    %scaled_full = aie.lock(%scaler, 3) {init = 0 : i32, sym_name = "scaled_full"}

    %y = aie.buffer(%adder) {sym_name = "y"} : memref<16xi32>
    %y_free = aie.lock(%adder, 0) {init = 1 : i32, sym_name = "y_free"}
    %y_full = aie.lock(%adder, 1) {init = 0 : i32, sym_name = "y_full"}
    %sum = aie.buffer(%adder) {sym_name = "sum"} : memref<16xi32>
    %sum_free = aie.lock(%adder, 2) {init = 0 : i32, sym_name = "sum_free"}
    %sum_full = aie.lock(%adder, 3) {init = 0 : i32, sym_name = "sum_full"}

    %scaler_dma = aie.mem(%scaler) {
      %0 = aie.dma_start(S2MM, 0, ^take, ^start_out)
    ^start_out:
      %1 = aie.dma_start(MM2S, 0, ^give, ^end)
    ^take:
      aie.use_lock(%x_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%x : memref<16xi32>, 0, 16)
      aie.use_lock(%x_full, Release, 1)
      aie.next_bd ^take
    ^give:
      aie.use_lock(%scaled_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%scaled : memref<16xi32>, 0, 16)
      aie.use_lock(%scaled_free, Release, 1)
      aie.next_bd ^give
    ^end:
      aie.end
    }
    %adder_dma = aie.mem(%adder) {
      %0 = aie.dma_start(S2MM, 0, ^take, ^start_out)
    ^start_out:
      %1 = aie.dma_start(MM2S, 0, ^give, ^end)
    ^take:
      aie.use_lock(%y_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%y : memref<16xi32>, 0, 16)
      aie.use_lock(%y_full, Release, 1)
      aie.next_bd ^take
    ^give:
      aie.use_lock(%sum_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%sum : memref<16xi32>, 0, 16)
      aie.use_lock(%sum_free, Release, 1)
      aie.next_bd ^give
    ^end:
      aie.end
    }

    func.func private @scale(memref<16xi32>, memref<16xi32>, i32)
    func.func private @add_one(memref<16xi32>, memref<16xi32>)
    %scaler_program = aie.core(%scaler) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %forever = arith.constant 4294967295 : index
      %factor = arith.constant 3 : i32
      scf.for %piece = %c0 to %forever step %c1 {
        aie.use_lock(%x_full, AcquireGreaterEqual, 1)
        aie.use_lock(%scaled_free, AcquireGreaterEqual, 1)
        func.call @scale(%x, %scaled, %factor) : (memref<16xi32>, memref<16xi32>, i32) -> ()
        aie.use_lock(%x_free, Release, 1)
        aie.use_lock(%scaled_full, Release, 1)
      }
      aie.end
    }
    %adder_program = aie.core(%adder) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %forever = arith.constant 4294967295 : index
      scf.for %piece = %c0 to %forever step %c1 {
        aie.use_lock(%y_full, AcquireGreaterEqual, 1)
        aie.use_lock(%sum_free, AcquireGreaterEqual, 1)
        func.call @add_one(%y, %sum) : (memref<16xi32>, memref<16xi32>) -> ()
        aie.use_lock(%y_free, Release, 1)
        aie.use_lock(%sum_full, Release, 1)
      }
      aie.end
    }

    aie.runtime_sequence @hang_lock(%a: memref<96xi32>, %b: memref<96xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 0 : i64, metadata = @to_host, issue_token = true} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 1 : i64, metadata = @from_host} : memref<96xi32>
      aiex.npu.dma_wait {symbol = @to_host}
    }
  }
}
