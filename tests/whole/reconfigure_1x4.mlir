// Two configurations of 4 columns, one after the other: each memtile sends the number that its program holds, then
// what it got. Locks and buffers stand in the programs, and differ between the configurations.
module {
  aie.device(npu2) @first {
    %s0 = aie.tile(0, 0)
    %m0 = aie.tile(0, 1)
    aie.flow(%s0, DMA : 0, %m0, DMA : 0)
    aie.flow(%m0, DMA : 0, %s0, DMA : 0)
    aie.shim_dma_allocation @in0 (%s0, MM2S, 0)
    aie.shim_dma_allocation @out0 (%s0, S2MM, 0)
    %d0 = aie.memtile_dma(%m0) {
      %tag = aie.buffer(%m0) {address = 1024 : i32} : memref<1xi32> = dense<100>
      %data = aie.buffer(%m0) {address = 2048 : i32} : memref<3xi32>
      %free = aie.lock(%m0, 0) {init = 1 : i32}
      %full = aie.lock(%m0, 1) {init = 0 : i32}
      %tag_full = aie.lock(%m0, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m0, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %s1 = aie.tile(1, 0)
    %m1 = aie.tile(1, 1)
    aie.flow(%s1, DMA : 0, %m1, DMA : 0)
    aie.flow(%m1, DMA : 0, %s1, DMA : 0)
    aie.shim_dma_allocation @in1 (%s1, MM2S, 0)
    aie.shim_dma_allocation @out1 (%s1, S2MM, 0)
    %d1 = aie.memtile_dma(%m1) {
      %tag = aie.buffer(%m1) {address = 1024 : i32} : memref<1xi32> = dense<101>
      %data = aie.buffer(%m1) {address = 2048 : i32} : memref<3xi32>
      %free = aie.lock(%m1, 0) {init = 1 : i32}
      %full = aie.lock(%m1, 1) {init = 0 : i32}
      %tag_full = aie.lock(%m1, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m1, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %s2 = aie.tile(2, 0)
    %m2 = aie.tile(2, 1)
    aie.flow(%s2, DMA : 0, %m2, DMA : 0)
    aie.flow(%m2, DMA : 0, %s2, DMA : 0)
    aie.shim_dma_allocation @in2 (%s2, MM2S, 0)
    aie.shim_dma_allocation @out2 (%s2, S2MM, 0)
    %d2 = aie.memtile_dma(%m2) {
      %tag = aie.buffer(%m2) {address = 1024 : i32} : memref<1xi32> = dense<102>
      %data = aie.buffer(%m2) {address = 2048 : i32} : memref<3xi32>
      %free = aie.lock(%m2, 0) {init = 1 : i32}
      %full = aie.lock(%m2, 1) {init = 0 : i32}
      %tag_full = aie.lock(%m2, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m2, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %s3 = aie.tile(3, 0)
    %m3 = aie.tile(3, 1)
    aie.flow(%s3, DMA : 0, %m3, DMA : 0)
    aie.flow(%m3, DMA : 0, %s3, DMA : 0)
    aie.shim_dma_allocation @in3 (%s3, MM2S, 0)
    aie.shim_dma_allocation @out3 (%s3, S2MM, 0)
    %d3 = aie.memtile_dma(%m3) {
      %tag = aie.buffer(%m3) {address = 1024 : i32} : memref<1xi32> = dense<103>
      %data = aie.buffer(%m3) {address = 2048 : i32} : memref<3xi32>
      %free = aie.lock(%m3, 0) {init = 1 : i32}
      %full = aie.lock(%m3, 1) {init = 0 : i32}
      %tag_full = aie.lock(%m3, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m3, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    aie.runtime_sequence @go(%a : memref<12xi32>, %b : memref<16xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out0} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in0} : memref<12xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 4][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out1} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 3][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in1} : memref<12xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 8][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out2} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 6][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in2} : memref<12xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 12][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out3} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 9][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in3} : memref<12xi32>
      aiex.npu.dma_wait {symbol = @out0}
      aiex.npu.dma_wait {symbol = @out1}
      aiex.npu.dma_wait {symbol = @out2}
      aiex.npu.dma_wait {symbol = @out3}
    }
  }
  aie.device(npu2) @second {
    %s0 = aie.tile(0, 0)
    %m0 = aie.tile(0, 1)
    aie.flow(%s0, DMA : 0, %m0, DMA : 0)
    aie.flow(%m0, DMA : 0, %s0, DMA : 0)
    aie.shim_dma_allocation @in0 (%s0, MM2S, 0)
    aie.shim_dma_allocation @out0 (%s0, S2MM, 0)
    %d0 = aie.memtile_dma(%m0) {
      %tag = aie.buffer(%m0) {address = 1024 : i32} : memref<1xi32> = dense<200>
      %data = aie.buffer(%m0) {address = 4096 : i32} : memref<3xi32>
      %free = aie.lock(%m0, 1) {init = 1 : i32}
      %full = aie.lock(%m0, 2) {init = 0 : i32}
      %tag_full = aie.lock(%m0, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m0, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %s1 = aie.tile(1, 0)
    %m1 = aie.tile(1, 1)
    aie.flow(%s1, DMA : 0, %m1, DMA : 0)
    aie.flow(%m1, DMA : 0, %s1, DMA : 0)
    aie.shim_dma_allocation @in1 (%s1, MM2S, 0)
    aie.shim_dma_allocation @out1 (%s1, S2MM, 0)
    %d1 = aie.memtile_dma(%m1) {
      %tag = aie.buffer(%m1) {address = 1024 : i32} : memref<1xi32> = dense<201>
      %data = aie.buffer(%m1) {address = 4096 : i32} : memref<3xi32>
      %free = aie.lock(%m1, 1) {init = 1 : i32}
      %full = aie.lock(%m1, 2) {init = 0 : i32}
      %tag_full = aie.lock(%m1, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m1, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %s2 = aie.tile(2, 0)
    %m2 = aie.tile(2, 1)
    aie.flow(%s2, DMA : 0, %m2, DMA : 0)
    aie.flow(%m2, DMA : 0, %s2, DMA : 0)
    aie.shim_dma_allocation @in2 (%s2, MM2S, 0)
    aie.shim_dma_allocation @out2 (%s2, S2MM, 0)
    %d2 = aie.memtile_dma(%m2) {
      %tag = aie.buffer(%m2) {address = 1024 : i32} : memref<1xi32> = dense<202>
      %data = aie.buffer(%m2) {address = 4096 : i32} : memref<3xi32>
      %free = aie.lock(%m2, 1) {init = 1 : i32}
      %full = aie.lock(%m2, 2) {init = 0 : i32}
      %tag_full = aie.lock(%m2, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m2, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %s3 = aie.tile(3, 0)
    %m3 = aie.tile(3, 1)
    aie.flow(%s3, DMA : 0, %m3, DMA : 0)
    aie.flow(%m3, DMA : 0, %s3, DMA : 0)
    aie.shim_dma_allocation @in3 (%s3, MM2S, 0)
    aie.shim_dma_allocation @out3 (%s3, S2MM, 0)
    %d3 = aie.memtile_dma(%m3) {
      %tag = aie.buffer(%m3) {address = 1024 : i32} : memref<1xi32> = dense<203>
      %data = aie.buffer(%m3) {address = 4096 : i32} : memref<3xi32>
      %free = aie.lock(%m3, 1) {init = 1 : i32}
      %full = aie.lock(%m3, 2) {init = 0 : i32}
      %tag_full = aie.lock(%m3, 7) {init = 1 : i32}
      %tag_free = aie.lock(%m3, 8) {init = 0 : i32}
      %0 = aie.dma_start(S2MM, 0, ^in, ^next)
    ^in:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^end
    ^next:
      %1 = aie.dma_start(MM2S, 0, ^send_tag, ^end)
    ^send_tag:
      aie.use_lock(%tag_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%tag : memref<1xi32>, 0, 1)
      aie.use_lock(%tag_free, Release, 1)
      aie.next_bd ^send
    ^send:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%data : memref<3xi32>, 0, 3)
      aie.use_lock(%free, Release, 1)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    aie.runtime_sequence @go(%a : memref<12xi32>, %b : memref<16xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out0} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in0} : memref<12xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 4][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out1} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 3][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in1} : memref<12xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 8][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out2} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 6][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in2} : memref<12xi32>
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 12][1, 1, 1, 4][0, 0, 0, 1]) {id = 1 : i64, metadata = @out3} : memref<16xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 9][1, 1, 1, 3][0, 0, 0, 1]) {id = 0 : i64, metadata = @in3} : memref<12xi32>
      aiex.npu.dma_wait {symbol = @out0}
      aiex.npu.dma_wait {symbol = @out1}
      aiex.npu.dma_wait {symbol = @out2}
      aiex.npu.dma_wait {symbol = @out3}
    }
  }
  aie.device(npu2) @main {
    aie.runtime_sequence @both(%a : memref<12xi32>, %b : memref<16xi32>, %c : memref<16xi32>) {
      aiex.configure @first {
        aiex.run @go(%a, %b) : (memref<12xi32>, memref<16xi32>)
      }
      aiex.configure @second {
        aiex.run @go(%a, %c) : (memref<12xi32>, memref<16xi32>)
      }
    }
  }
}
