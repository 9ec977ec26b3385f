// C (8 x 16) = A (8 x 128) B (128 x 16) on two cores, in sixteen K steps. A goes to both cores at once, a step of B for
// both comes through the memtile, which sends each core its half in packets of its own id.
module {
  aie.device(npu2_1col) {
    %shim = aie.tile(0, 0)
    %mem = aie.tile(0, 1)
    %core_2 = aie.tile(0, 2)
    %core_3 = aie.tile(0, 3)

    %b = aie.buffer(%mem) {sym_name = "b"} : memref<2x8x8xi32>
    %b_free = aie.lock(%mem, 0) {init = 1 : i32, sym_name = "b_free"}
    %b_full = aie.lock(%mem, 1) {init = 0 : i32, sym_name = "b_full"}

    %a_2 = aie.buffer(%core_2) {sym_name = "a_2"} : memref<8x8xi32>
    %b_2 = aie.buffer(%core_2) {sym_name = "b_2"} : memref<8x8xi32>
    %c_2 = aie.buffer(%core_2) {sym_name = "c_2"} : memref<8x8xi32>
    %a_2_free = aie.lock(%core_2, 0) {init = 1 : i32, sym_name = "a_2_free"}
    %a_2_full = aie.lock(%core_2, 1) {init = 0 : i32, sym_name = "a_2_full"}
    %b_2_free = aie.lock(%core_2, 2) {init = 1 : i32, sym_name = "b_2_free"}
    %b_2_full = aie.lock(%core_2, 3) {init = 0 : i32, sym_name = "b_2_full"}
    %c_2_full = aie.lock(%core_2, 4) {init = 0 : i32, sym_name = "c_2_full"}

    %a_3 = aie.buffer(%core_3) {sym_name = "a_3"} : memref<8x8xi32>
    %b_3 = aie.buffer(%core_3) {sym_name = "b_3"} : memref<8x8xi32>
    %c_3 = aie.buffer(%core_3) {sym_name = "c_3"} : memref<8x8xi32>
    %a_3_free = aie.lock(%core_3, 0) {init = 1 : i32, sym_name = "a_3_free"}
    %a_3_full = aie.lock(%core_3, 1) {init = 0 : i32, sym_name = "a_3_full"}
    %b_3_free = aie.lock(%core_3, 2) {init = 1 : i32, sym_name = "b_3_free"}
    %b_3_full = aie.lock(%core_3, 3) {init = 0 : i32, sym_name = "b_3_full"}
    %c_3_full = aie.lock(%core_3, 4) {init = 0 : i32, sym_name = "c_3_full"}

    aie.flow(%shim, DMA : 0, %core_2, DMA : 0)
    aie.flow(%shim, DMA : 0, %core_3, DMA : 0)
    aie.flow(%shim, DMA : 1, %mem, DMA : 0)
    aie.packet_flow(2) { aie.packet_source<%mem, DMA : 0> aie.packet_dest<%core_2, DMA : 1> }
    aie.packet_flow(3) { aie.packet_source<%mem, DMA : 0> aie.packet_dest<%core_3, DMA : 1> }
    aie.flow(%core_2, DMA : 0, %shim, DMA : 0)
    aie.flow(%core_3, DMA : 0, %shim, DMA : 1)
    aie.shim_dma_allocation @a_in (%shim, MM2S, 0)
    aie.shim_dma_allocation @b_in (%shim, MM2S, 1)
    aie.shim_dma_allocation @c_2_out (%shim, S2MM, 0)
    aie.shim_dma_allocation @c_3_out (%shim, S2MM, 1)

    %mem_dma = aie.memtile_dma(%mem) {
      %0 = aie.dma_start(S2MM, 0, ^fill, ^start)
    ^start:
      %1 = aie.dma_start(MM2S, 0, ^send_2, ^end)
    ^fill:
      aie.use_lock(%b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<2x8x8xi32>, 0, 128)
      aie.use_lock(%b_full, Release, 1)
      aie.next_bd ^fill
    ^send_2:
      aie.use_lock(%b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<2x8x8xi32>, 0, 64) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 2>}
      aie.use_lock(%b_full, Release, 1)
      aie.next_bd ^send_3
    ^send_3:
      aie.use_lock(%b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%b : memref<2x8x8xi32>, 64, 64) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 3>}
      aie.use_lock(%b_free, Release, 1)
      aie.next_bd ^send_2
    ^end:
      aie.end
    }

    %dma_2 = aie.mem(%core_2) {
      %0 = aie.dma_start(S2MM, 0, ^a, ^start_b)
    ^start_b:
      %1 = aie.dma_start(S2MM, 1, ^b, ^start_c)
    ^start_c:
      %2 = aie.dma_start(MM2S, 0, ^c, ^end)
    ^a:
      aie.use_lock(%a_2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%a_2 : memref<8x8xi32>, 0, 64)
      aie.use_lock(%a_2_full, Release, 1)
      aie.next_bd ^a
    ^b:
      aie.use_lock(%b_2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b_2 : memref<8x8xi32>, 0, 64)
      aie.use_lock(%b_2_full, Release, 1)
      aie.next_bd ^b
    ^c:
      aie.use_lock(%c_2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%c_2 : memref<8x8xi32>, 0, 64)
      aie.use_lock(%c_2_full, Release, 0)
      aie.next_bd ^end
    ^end:
      aie.end
    }
    %dma_3 = aie.mem(%core_3) {
      %0 = aie.dma_start(S2MM, 0, ^a, ^start_b)
    ^start_b:
      %1 = aie.dma_start(S2MM, 1, ^b, ^start_c)
    ^start_c:
      %2 = aie.dma_start(MM2S, 0, ^c, ^end)
    ^a:
      aie.use_lock(%a_3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%a_3 : memref<8x8xi32>, 0, 64)
      aie.use_lock(%a_3_full, Release, 1)
      aie.next_bd ^a
    ^b:
      aie.use_lock(%b_3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%b_3 : memref<8x8xi32>, 0, 64)
      aie.use_lock(%b_3_full, Release, 1)
      aie.next_bd ^b
    ^c:
      aie.use_lock(%c_3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%c_3 : memref<8x8xi32>, 0, 64)
      aie.use_lock(%c_3_full, Release, 0)
      aie.next_bd ^end
    ^end:
      aie.end
    }

    func.func private @zero(memref<8x8xi32>)
    func.func private @multiply(memref<8x8xi32>, memref<8x8xi32>, memref<8x8xi32>)
    %program_2 = aie.core(%core_2) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      func.call @zero(%c_2) : (memref<8x8xi32>) -> ()
      scf.for %k = %c0 to %c16 step %c1 {
        aie.use_lock(%a_2_full, AcquireGreaterEqual, 1)
        aie.use_lock(%b_2_full, AcquireGreaterEqual, 1)
        func.call @multiply(%a_2, %b_2, %c_2) : (memref<8x8xi32>, memref<8x8xi32>, memref<8x8xi32>) -> ()
        aie.use_lock(%a_2_free, Release, 1)
        aie.use_lock(%b_2_free, Release, 1)
      }
      aie.use_lock(%c_2_full, Release, 1)
      aie.end
    }
    %program_3 = aie.core(%core_3) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c16 = arith.constant 16 : index
      func.call @zero(%c_3) : (memref<8x8xi32>) -> ()
      scf.for %k = %c0 to %c16 step %c1 {
        aie.use_lock(%a_3_full, AcquireGreaterEqual, 1)
        aie.use_lock(%b_3_full, AcquireGreaterEqual, 1)
        func.call @multiply(%a_3, %b_3, %c_3) : (memref<8x8xi32>, memref<8x8xi32>, memref<8x8xi32>) -> ()
        aie.use_lock(%a_3_free, Release, 1)
        aie.use_lock(%b_3_free, Release, 1)
      }
      aie.use_lock(%c_3_full, Release, 1)
      aie.end
    }

    aie.runtime_sequence @gemm(%a: memref<16x8x8xi32>, %b_all: memref<16x2x8x8xi32>, %c: memref<2x8x8xi32>) {
      aiex.npu.dma_memcpy_nd(%c[0, 0, 0, 0][1, 1, 1, 64][0, 0, 0, 1])
        {id = 0 : i64, metadata = @c_2_out, issue_token = true} : memref<2x8x8xi32>
      aiex.npu.dma_memcpy_nd(%c[0, 0, 0, 64][1, 1, 1, 64][0, 0, 0, 1])
        {id = 1 : i64, metadata = @c_3_out, issue_token = true} : memref<2x8x8xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 16, 64][0, 0, 64, 1])
        {id = 2 : i64, metadata = @a_in} : memref<16x8x8xi32>
      aiex.npu.dma_memcpy_nd(%b_all[0, 0, 0, 0][1, 1, 16, 128][0, 0, 128, 1])
        {id = 3 : i64, metadata = @b_in} : memref<16x2x8x8xi32>
      aiex.npu.dma_wait {symbol = @c_2_out}
      aiex.npu.dma_wait {symbol = @c_3_out}
    }
  }
}
