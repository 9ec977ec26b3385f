// 15. A hang: the order of BDs
// a is three blocks of 64 words: two pieces of x (16 words each), then two of
// w. The core needs one of each to make a piece of b = x * w, and has room for
// one of each. The memtile sends both on one channel, in packets: 1 is x, 2 is
// w. A packet that finds no room stops all behind it. Each lock counts BDs
// rightly; mend the order of the BDs that send.
module {
  aie.device(npu2_1col) {
    %shim = aie.tile(0, 0)
    %mem = aie.tile(0, 1)
    %core = aie.tile(0, 2)
    aie.flow(%shim, DMA : 0, %mem, DMA : 0)
    aie.packet_flow(1) { aie.packet_source<%mem, DMA : 0> aie.packet_dest<%core, DMA : 0> }
    aie.packet_flow(2) { aie.packet_source<%mem, DMA : 0> aie.packet_dest<%core, DMA : 1> }
    aie.flow(%core, DMA : 0, %shim, DMA : 0)
    aie.shim_dma_allocation @from_host (%shim, MM2S, 0)
    aie.shim_dma_allocation @to_host (%shim, S2MM, 0)

    %block = aie.buffer(%mem) {sym_name = "block"} : memref<64xi32>
    %block_free = aie.lock(%mem, 0) {init = 4 : i32, sym_name = "block_free"}
    %block_full = aie.lock(%mem, 1) {init = 0 : i32, sym_name = "block_full"}

    %x = aie.buffer(%core) {sym_name = "x"} : memref<16xi32>
    %x_free = aie.lock(%core, 0) {init = 1 : i32, sym_name = "x_free"}
    %x_full = aie.lock(%core, 1) {init = 0 : i32, sym_name = "x_full"}
    %w = aie.buffer(%core) {sym_name = "w"} : memref<16xi32>
    %w_free = aie.lock(%core, 2) {init = 1 : i32, sym_name = "w_free"}
    %w_full = aie.lock(%core, 3) {init = 0 : i32, sym_name = "w_full"}
    %product = aie.buffer(%core) {sym_name = "product"} : memref<16xi32>
    %product_free = aie.lock(%core, 4) {init = 1 : i32, sym_name = "product_free"}
    %product_full = aie.lock(%core, 5) {init = 0 : i32, sym_name = "product_full"}

    %mem_dma = aie.memtile_dma(%mem) {
      %0 = aie.dma_start(S2MM, 0, ^take, ^start_out)
    ^start_out:
      %1 = aie.dma_start(MM2S, 0, ^x_0, ^end)
    ^take:
      aie.use_lock(%block_free, AcquireGreaterEqual, 4)
      aie.dma_bd(%block : memref<64xi32>, 0, 64)
      aie.use_lock(%block_full, Release, 4)
      aie.next_bd ^take
    ^x_0:
      aie.use_lock(%block_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%block : memref<64xi32>, 0, 16) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 1>}
      aie.use_lock(%block_free, Release, 1)
      aie.next_bd ^x_1
    ^x_1:
      aie.use_lock(%block_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%block : memref<64xi32>, 16, 16) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 1>}
      aie.use_lock(%block_free, Release, 1)
      aie.next_bd ^w_0
    ^w_0:
      aie.use_lock(%block_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%block : memref<64xi32>, 32, 16) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 2>}
      aie.use_lock(%block_free, Release, 1)
      aie.next_bd ^w_1
    ^w_1:
      aie.use_lock(%block_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%block : memref<64xi32>, 48, 16) {packet = #aie.packet_info<pkt_type = 0, pkt_id = 2>}
      aie.use_lock(%block_free, Release, 1)
      aie.next_bd ^x_0
    ^end:
      aie.end
    }
    %core_dma = aie.mem(%core) {
      %0 = aie.dma_start(S2MM, 0, ^take_x, ^start_w)
    ^start_w:
      %1 = aie.dma_start(S2MM, 1, ^take_w, ^start_out)
    ^start_out:
      %2 = aie.dma_start(MM2S, 0, ^give, ^end)
    ^take_x:
      aie.use_lock(%x_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%x : memref<16xi32>, 0, 16)
      aie.use_lock(%x_full, Release, 1)
      aie.next_bd ^take_x
    ^take_w:
      aie.use_lock(%w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%w : memref<16xi32>, 0, 16)
      aie.use_lock(%w_full, Release, 1)
      aie.next_bd ^take_w
    ^give:
      aie.use_lock(%product_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%product : memref<16xi32>, 0, 16)
      aie.use_lock(%product_free, Release, 1)
      aie.next_bd ^give
    ^end:
      aie.end
    }

    func.func private @multiply(memref<16xi32>, memref<16xi32>, memref<16xi32>)
    %program = aie.core(%core) {
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %forever = arith.constant 4294967295 : index
      scf.for %piece = %c0 to %forever step %c1 {
        aie.use_lock(%x_full, AcquireGreaterEqual, 1)
        aie.use_lock(%w_full, AcquireGreaterEqual, 1)
        aie.use_lock(%product_free, AcquireGreaterEqual, 1)
        func.call @multiply(%x, %w, %product) : (memref<16xi32>, memref<16xi32>, memref<16xi32>) -> ()
        aie.use_lock(%x_free, Release, 1)
        aie.use_lock(%w_free, Release, 1)
        aie.use_lock(%product_full, Release, 1)
      }
      aie.end
    }

    aie.runtime_sequence @hang_order(%a: memref<192xi32>, %b: memref<96xi32>) {
      aiex.npu.dma_memcpy_nd(%b[0, 0, 0, 0][1, 1, 1, 96][0, 0, 0, 1])
        {id = 0 : i64, metadata = @to_host, issue_token = true} : memref<96xi32>
      aiex.npu.dma_memcpy_nd(%a[0, 0, 0, 0][1, 1, 1, 192][0, 0, 0, 1])
        {id = 1 : i64, metadata = @from_host} : memref<192xi32>
      aiex.npu.dma_wait {symbol = @to_host}
    }
  }
}
