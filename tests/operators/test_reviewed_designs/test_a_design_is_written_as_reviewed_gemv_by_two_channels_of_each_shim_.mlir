// small: int8 x int2 -> int32, tile 8 x 8 x 32 (m x k x n), 2 x 2 cores (rows x columns), W by 2 channels of each shim.
module {
  aie.device(npu2_2col) {
    %shim_0 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %shim_1 = aie.tile(1, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_0 = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %mem_1 = aie.tile(1, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %core_0_2 = aie.tile(0, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}
    %core_0_3 = aie.tile(0, 3) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 29>}
    %core_1_2 = aie.tile(1, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}
    %core_1_3 = aie.tile(1, 3) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 29>}


    // A: DRAM to a memtile
    aie.flow(%shim_0, DMA : 0, %mem_0, DMA : 1)

    // A: to every core
    aie.flow(%mem_0, DMA : 4, %core_0_2, DMA : 0)
    aie.flow(%mem_0, DMA : 4, %core_0_3, DMA : 0)
    aie.flow(%mem_0, DMA : 4, %core_1_2, DMA : 0)
    aie.flow(%mem_0, DMA : 4, %core_1_3, DMA : 0)

    // W: DRAM to memtiles
    aie.flow(%shim_0, DMA : 1, %mem_0, DMA : 0)
    aie.flow(%shim_1, DMA : 0, %mem_1, DMA : 0)
    aie.flow(%shim_1, DMA : 1, %mem_1, DMA : 1)

    // W: each core's tiles
    aie.flow(%mem_0, DMA : 0, %core_0_2, DMA : 1)
    aie.flow(%mem_0, DMA : 1, %core_0_3, DMA : 1)
    aie.flow(%mem_1, DMA : 0, %core_1_2, DMA : 1)
    aie.flow(%mem_1, DMA : 1, %core_1_3, DMA : 1)

    // C: tiles of a column join in its memtile
    aie.flow(%core_0_2, DMA : 0, %mem_0, DMA : 2)
    aie.flow(%core_0_3, DMA : 0, %mem_0, DMA : 3)
    aie.flow(%core_1_2, DMA : 0, %mem_1, DMA : 2)
    aie.flow(%core_1_3, DMA : 0, %mem_1, DMA : 3)

    // C: memtiles to DRAM
    aie.flow(%mem_0, DMA : 5, %shim_0, DMA : 0)
    aie.flow(%mem_1, DMA : 5, %shim_1, DMA : 0)

    aie.shim_dma_allocation @a (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @w_0_1 (%shim_0, MM2S, 1)
    aie.shim_dma_allocation @c_0 (%shim_0, S2MM, 0)
    aie.shim_dma_allocation @w_1_0 (%shim_1, MM2S, 0)
    aie.shim_dma_allocation @w_1_1 (%shim_1, MM2S, 1)
    aie.shim_dma_allocation @c_1 (%shim_1, S2MM, 0)

    func.func private @zero_i32(memref<256xi32>)
    func.func private @mm_i8_i2_i32(memref<64xi8>, memref<64xi8>, memref<256xi32>)
    func.func private @unscale_i32(memref<256xi32>)

    // memtile (0, 1)
    %mem_0_w0_ping = aie.buffer(%mem_0) {address = 2048 : i32, sym_name = "mem_0_w0_ping"} : memref<64xi8>  // W of core row 0, ping; bank 0
    %mem_0_w0_pong = aie.buffer(%mem_0) {address = 67584 : i32, sym_name = "mem_0_w0_pong"} : memref<64xi8>  // W of core row 0, pong; bank 1
    %mem_0_w1_ping = aie.buffer(%mem_0) {address = 2112 : i32, sym_name = "mem_0_w1_ping"} : memref<64xi8>  // W of core row 1, ping; bank 0
    %mem_0_w1_pong = aie.buffer(%mem_0) {address = 67648 : i32, sym_name = "mem_0_w1_pong"} : memref<64xi8>  // W of core row 1, pong; bank 1
    %mem_0_a_ping = aie.buffer(%mem_0) {address = 2176 : i32, sym_name = "mem_0_a_ping"} : memref<64xi8>  // chunk of A, ping; bank 0
    %mem_0_a_pong = aie.buffer(%mem_0) {address = 67712 : i32, sym_name = "mem_0_a_pong"} : memref<64xi8>  // chunk of A, pong; bank 1
    %mem_0_c0_ping = aie.buffer(%mem_0) {address = 0 : i32, sym_name = "mem_0_c0_ping"} : memref<256xi32>  // C of core row 0, ping; bank 0
    %mem_0_c0_pong = aie.buffer(%mem_0) {address = 65536 : i32, sym_name = "mem_0_c0_pong"} : memref<256xi32>  // C of core row 0, pong; bank 1
    %mem_0_c1_ping = aie.buffer(%mem_0) {address = 1024 : i32, sym_name = "mem_0_c1_ping"} : memref<256xi32>  // C of core row 1, ping; bank 0
    %mem_0_c1_pong = aie.buffer(%mem_0) {address = 66560 : i32, sym_name = "mem_0_c1_pong"} : memref<256xi32>  // C of core row 1, pong; bank 1
    %mem_0_w0_free = aie.lock(%mem_0, 0) {init = 2 : i32, sym_name = "mem_0_w0_free"}  // W of core row 0: room
    %mem_0_w0_full = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "mem_0_w0_full"}  // W of core row 0: data
    %mem_0_w1_free = aie.lock(%mem_0, 2) {init = 2 : i32, sym_name = "mem_0_w1_free"}  // W of core row 1: room
    %mem_0_w1_full = aie.lock(%mem_0, 3) {init = 0 : i32, sym_name = "mem_0_w1_full"}  // W of core row 1: data
    %mem_0_c0_free = aie.lock(%mem_0, 4) {init = 2 : i32, sym_name = "mem_0_c0_free"}  // C of core row 0: room
    %mem_0_c0_full = aie.lock(%mem_0, 5) {init = 0 : i32, sym_name = "mem_0_c0_full"}  // C of core row 0: data
    %mem_0_c1_free = aie.lock(%mem_0, 6) {init = 2 : i32, sym_name = "mem_0_c1_free"}  // C of core row 1: room
    %mem_0_c1_full = aie.lock(%mem_0, 7) {init = 0 : i32, sym_name = "mem_0_c1_full"}  // C of core row 1: data
    %mem_0_a_free = aie.lock(%mem_0, 8) {init = 2 : i32, sym_name = "mem_0_a_free"}  // chunk of A: room
    %mem_0_a_full = aie.lock(%mem_0, 9) {init = 0 : i32, sym_name = "mem_0_a_full"}  // chunk of A: data

    // memtile (1, 1)
    %mem_1_w0_ping = aie.buffer(%mem_1) {address = 2048 : i32, sym_name = "mem_1_w0_ping"} : memref<64xi8>  // W of core row 0, ping; bank 0
    %mem_1_w0_pong = aie.buffer(%mem_1) {address = 67584 : i32, sym_name = "mem_1_w0_pong"} : memref<64xi8>  // W of core row 0, pong; bank 1
    %mem_1_w1_ping = aie.buffer(%mem_1) {address = 2112 : i32, sym_name = "mem_1_w1_ping"} : memref<64xi8>  // W of core row 1, ping; bank 0
    %mem_1_w1_pong = aie.buffer(%mem_1) {address = 67648 : i32, sym_name = "mem_1_w1_pong"} : memref<64xi8>  // W of core row 1, pong; bank 1
    %mem_1_c0_ping = aie.buffer(%mem_1) {address = 0 : i32, sym_name = "mem_1_c0_ping"} : memref<256xi32>  // C of core row 0, ping; bank 0
    %mem_1_c0_pong = aie.buffer(%mem_1) {address = 65536 : i32, sym_name = "mem_1_c0_pong"} : memref<256xi32>  // C of core row 0, pong; bank 1
    %mem_1_c1_ping = aie.buffer(%mem_1) {address = 1024 : i32, sym_name = "mem_1_c1_ping"} : memref<256xi32>  // C of core row 1, ping; bank 0
    %mem_1_c1_pong = aie.buffer(%mem_1) {address = 66560 : i32, sym_name = "mem_1_c1_pong"} : memref<256xi32>  // C of core row 1, pong; bank 1
    %mem_1_w0_free = aie.lock(%mem_1, 0) {init = 2 : i32, sym_name = "mem_1_w0_free"}  // W of core row 0: room
    %mem_1_w0_full = aie.lock(%mem_1, 1) {init = 0 : i32, sym_name = "mem_1_w0_full"}  // W of core row 0: data
    %mem_1_w1_free = aie.lock(%mem_1, 2) {init = 2 : i32, sym_name = "mem_1_w1_free"}  // W of core row 1: room
    %mem_1_w1_full = aie.lock(%mem_1, 3) {init = 0 : i32, sym_name = "mem_1_w1_full"}  // W of core row 1: data
    %mem_1_c0_free = aie.lock(%mem_1, 4) {init = 2 : i32, sym_name = "mem_1_c0_free"}  // C of core row 0: room
    %mem_1_c0_full = aie.lock(%mem_1, 5) {init = 0 : i32, sym_name = "mem_1_c0_full"}  // C of core row 0: data
    %mem_1_c1_free = aie.lock(%mem_1, 6) {init = 2 : i32, sym_name = "mem_1_c1_free"}  // C of core row 1: room
    %mem_1_c1_full = aie.lock(%mem_1, 7) {init = 0 : i32, sym_name = "mem_1_c1_full"}  // C of core row 1: data

    // core (0, 2)
    %core_0_2_a_ping = aie.buffer(%core_0_2) {address = 16384 : i32, sym_name = "core_0_2_a_ping"} : memref<64xi8>  // chunk of A, micro-tiles, ping; bank 1
    %core_0_2_a_pong = aie.buffer(%core_0_2) {address = 32832 : i32, sym_name = "core_0_2_a_pong"} : memref<64xi8>  // chunk of A, micro-tiles, pong; bank 2
    %core_0_2_w_ping = aie.buffer(%core_0_2) {address = 32768 : i32, sym_name = "core_0_2_w_ping"} : memref<64xi8>  // tile of W, in the order of the kernel, ping; bank 2
    %core_0_2_w_pong = aie.buffer(%core_0_2) {address = 16448 : i32, sym_name = "core_0_2_w_pong"} : memref<64xi8>  // tile of W, in the order of the kernel, pong; bank 1
    %core_0_2_c_ping = aie.buffer(%core_0_2) {address = 4160 : i32, sym_name = "core_0_2_c_ping"} : memref<256xi32>  // tile of C, micro-tiles, ping; bank 0
    %core_0_2_c_pong = aie.buffer(%core_0_2) {address = 49152 : i32, sym_name = "core_0_2_c_pong"} : memref<256xi32>  // tile of C, micro-tiles, pong; bank 3
    %core_0_2_rtp = aie.buffer(%core_0_2) {address = 4096 : i32, sym_name = "core_0_2_rtp"} : memref<16xi32>  // run-time parameters: tiles of C, idle passes, K/k; bank 0
    %core_0_2_a_free = aie.lock(%core_0_2, 0) {init = 2 : i32, sym_name = "core_0_2_a_free"}  // chunk of A, micro-tiles: room
    %core_0_2_a_full = aie.lock(%core_0_2, 1) {init = 0 : i32, sym_name = "core_0_2_a_full"}  // chunk of A, micro-tiles: data
    %core_0_2_w_free = aie.lock(%core_0_2, 2) {init = 2 : i32, sym_name = "core_0_2_w_free"}  // tile of W, in the order of the kernel: room
    %core_0_2_w_full = aie.lock(%core_0_2, 3) {init = 0 : i32, sym_name = "core_0_2_w_full"}  // tile of W, in the order of the kernel: data
    %core_0_2_c_free = aie.lock(%core_0_2, 4) {init = 2 : i32, sym_name = "core_0_2_c_free"}  // tile of C, micro-tiles: room
    %core_0_2_c_full = aie.lock(%core_0_2, 5) {init = 0 : i32, sym_name = "core_0_2_c_full"}  // tile of C, micro-tiles: data
    %core_0_2_go = aie.lock(%core_0_2, 6) {init = 0 : i32, sym_name = "core_0_2_go"}  // set by the host when the run-time parameters are in place

    // core (0, 3)
    %core_0_3_a_ping = aie.buffer(%core_0_3) {address = 16384 : i32, sym_name = "core_0_3_a_ping"} : memref<64xi8>  // chunk of A, micro-tiles, ping; bank 1
    %core_0_3_a_pong = aie.buffer(%core_0_3) {address = 32832 : i32, sym_name = "core_0_3_a_pong"} : memref<64xi8>  // chunk of A, micro-tiles, pong; bank 2
    %core_0_3_w_ping = aie.buffer(%core_0_3) {address = 32768 : i32, sym_name = "core_0_3_w_ping"} : memref<64xi8>  // tile of W, in the order of the kernel, ping; bank 2
    %core_0_3_w_pong = aie.buffer(%core_0_3) {address = 16448 : i32, sym_name = "core_0_3_w_pong"} : memref<64xi8>  // tile of W, in the order of the kernel, pong; bank 1
    %core_0_3_c_ping = aie.buffer(%core_0_3) {address = 4160 : i32, sym_name = "core_0_3_c_ping"} : memref<256xi32>  // tile of C, micro-tiles, ping; bank 0
    %core_0_3_c_pong = aie.buffer(%core_0_3) {address = 49152 : i32, sym_name = "core_0_3_c_pong"} : memref<256xi32>  // tile of C, micro-tiles, pong; bank 3
    %core_0_3_rtp = aie.buffer(%core_0_3) {address = 4096 : i32, sym_name = "core_0_3_rtp"} : memref<16xi32>  // run-time parameters: tiles of C, idle passes, K/k; bank 0
    %core_0_3_a_free = aie.lock(%core_0_3, 0) {init = 2 : i32, sym_name = "core_0_3_a_free"}  // chunk of A, micro-tiles: room
    %core_0_3_a_full = aie.lock(%core_0_3, 1) {init = 0 : i32, sym_name = "core_0_3_a_full"}  // chunk of A, micro-tiles: data
    %core_0_3_w_free = aie.lock(%core_0_3, 2) {init = 2 : i32, sym_name = "core_0_3_w_free"}  // tile of W, in the order of the kernel: room
    %core_0_3_w_full = aie.lock(%core_0_3, 3) {init = 0 : i32, sym_name = "core_0_3_w_full"}  // tile of W, in the order of the kernel: data
    %core_0_3_c_free = aie.lock(%core_0_3, 4) {init = 2 : i32, sym_name = "core_0_3_c_free"}  // tile of C, micro-tiles: room
    %core_0_3_c_full = aie.lock(%core_0_3, 5) {init = 0 : i32, sym_name = "core_0_3_c_full"}  // tile of C, micro-tiles: data
    %core_0_3_go = aie.lock(%core_0_3, 6) {init = 0 : i32, sym_name = "core_0_3_go"}  // set by the host when the run-time parameters are in place

    // core (1, 2)
    %core_1_2_a_ping = aie.buffer(%core_1_2) {address = 16384 : i32, sym_name = "core_1_2_a_ping"} : memref<64xi8>  // chunk of A, micro-tiles, ping; bank 1
    %core_1_2_a_pong = aie.buffer(%core_1_2) {address = 32832 : i32, sym_name = "core_1_2_a_pong"} : memref<64xi8>  // chunk of A, micro-tiles, pong; bank 2
    %core_1_2_w_ping = aie.buffer(%core_1_2) {address = 32768 : i32, sym_name = "core_1_2_w_ping"} : memref<64xi8>  // tile of W, in the order of the kernel, ping; bank 2
    %core_1_2_w_pong = aie.buffer(%core_1_2) {address = 16448 : i32, sym_name = "core_1_2_w_pong"} : memref<64xi8>  // tile of W, in the order of the kernel, pong; bank 1
    %core_1_2_c_ping = aie.buffer(%core_1_2) {address = 4160 : i32, sym_name = "core_1_2_c_ping"} : memref<256xi32>  // tile of C, micro-tiles, ping; bank 0
    %core_1_2_c_pong = aie.buffer(%core_1_2) {address = 49152 : i32, sym_name = "core_1_2_c_pong"} : memref<256xi32>  // tile of C, micro-tiles, pong; bank 3
    %core_1_2_rtp = aie.buffer(%core_1_2) {address = 4096 : i32, sym_name = "core_1_2_rtp"} : memref<16xi32>  // run-time parameters: tiles of C, idle passes, K/k; bank 0
    %core_1_2_a_free = aie.lock(%core_1_2, 0) {init = 2 : i32, sym_name = "core_1_2_a_free"}  // chunk of A, micro-tiles: room
    %core_1_2_a_full = aie.lock(%core_1_2, 1) {init = 0 : i32, sym_name = "core_1_2_a_full"}  // chunk of A, micro-tiles: data
    %core_1_2_w_free = aie.lock(%core_1_2, 2) {init = 2 : i32, sym_name = "core_1_2_w_free"}  // tile of W, in the order of the kernel: room
    %core_1_2_w_full = aie.lock(%core_1_2, 3) {init = 0 : i32, sym_name = "core_1_2_w_full"}  // tile of W, in the order of the kernel: data
    %core_1_2_c_free = aie.lock(%core_1_2, 4) {init = 2 : i32, sym_name = "core_1_2_c_free"}  // tile of C, micro-tiles: room
    %core_1_2_c_full = aie.lock(%core_1_2, 5) {init = 0 : i32, sym_name = "core_1_2_c_full"}  // tile of C, micro-tiles: data
    %core_1_2_go = aie.lock(%core_1_2, 6) {init = 0 : i32, sym_name = "core_1_2_go"}  // set by the host when the run-time parameters are in place

    // core (1, 3)
    %core_1_3_a_ping = aie.buffer(%core_1_3) {address = 16384 : i32, sym_name = "core_1_3_a_ping"} : memref<64xi8>  // chunk of A, micro-tiles, ping; bank 1
    %core_1_3_a_pong = aie.buffer(%core_1_3) {address = 32832 : i32, sym_name = "core_1_3_a_pong"} : memref<64xi8>  // chunk of A, micro-tiles, pong; bank 2
    %core_1_3_w_ping = aie.buffer(%core_1_3) {address = 32768 : i32, sym_name = "core_1_3_w_ping"} : memref<64xi8>  // tile of W, in the order of the kernel, ping; bank 2
    %core_1_3_w_pong = aie.buffer(%core_1_3) {address = 16448 : i32, sym_name = "core_1_3_w_pong"} : memref<64xi8>  // tile of W, in the order of the kernel, pong; bank 1
    %core_1_3_c_ping = aie.buffer(%core_1_3) {address = 4160 : i32, sym_name = "core_1_3_c_ping"} : memref<256xi32>  // tile of C, micro-tiles, ping; bank 0
    %core_1_3_c_pong = aie.buffer(%core_1_3) {address = 49152 : i32, sym_name = "core_1_3_c_pong"} : memref<256xi32>  // tile of C, micro-tiles, pong; bank 3
    %core_1_3_rtp = aie.buffer(%core_1_3) {address = 4096 : i32, sym_name = "core_1_3_rtp"} : memref<16xi32>  // run-time parameters: tiles of C, idle passes, K/k; bank 0
    %core_1_3_a_free = aie.lock(%core_1_3, 0) {init = 2 : i32, sym_name = "core_1_3_a_free"}  // chunk of A, micro-tiles: room
    %core_1_3_a_full = aie.lock(%core_1_3, 1) {init = 0 : i32, sym_name = "core_1_3_a_full"}  // chunk of A, micro-tiles: data
    %core_1_3_w_free = aie.lock(%core_1_3, 2) {init = 2 : i32, sym_name = "core_1_3_w_free"}  // tile of W, in the order of the kernel: room
    %core_1_3_w_full = aie.lock(%core_1_3, 3) {init = 0 : i32, sym_name = "core_1_3_w_full"}  // tile of W, in the order of the kernel: data
    %core_1_3_c_free = aie.lock(%core_1_3, 4) {init = 2 : i32, sym_name = "core_1_3_c_free"}  // tile of C, micro-tiles: room
    %core_1_3_c_full = aie.lock(%core_1_3, 5) {init = 0 : i32, sym_name = "core_1_3_c_full"}  // tile of C, micro-tiles: data
    %core_1_3_go = aie.lock(%core_1_3, 6) {init = 0 : i32, sym_name = "core_1_3_go"}  // set by the host when the run-time parameters are in place

    %dma_mem_0 = aie.memtile_dma(%mem_0) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // W from DRAM
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // A from DRAM
    ^start2:
      %2 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start3)  // C from core row 0
    ^start3:
      %3 = aie.dma_start(S2MM, 3, ^s2mm3_bd0, ^start4)  // C from core row 1
    ^start4:
      %4 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^start5)  // W to core row 0
    ^start5:
      %5 = aie.dma_start(MM2S, 1, ^mm2s1_bd0, ^start6)  // W to core row 1
    ^start6:
      %6 = aie.dma_start(MM2S, 4, ^mm2s4_bd0, ^start7)  // A to every core
    ^start7:
      %7 = aie.dma_start(MM2S, 5, ^mm2s5_bd0, ^end)  // C of the column, line by line of each tile
    ^s2mm0_bd0:
      aie.use_lock(%mem_0_w0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w0_ping : memref<64xi8>, 0, 64) {bd_id = 0 : i32}
      aie.use_lock(%mem_0_w0_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%mem_0_w1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w1_ping : memref<64xi8>, 0, 64) {bd_id = 1 : i32}
      aie.use_lock(%mem_0_w1_full, Release, 1)
      aie.next_bd ^s2mm0_bd2
    ^s2mm0_bd2:
      aie.use_lock(%mem_0_w0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w0_pong : memref<64xi8>, 0, 64) {bd_id = 2 : i32}
      aie.use_lock(%mem_0_w0_full, Release, 1)
      aie.next_bd ^s2mm0_bd3
    ^s2mm0_bd3:
      aie.use_lock(%mem_0_w1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w1_pong : memref<64xi8>, 0, 64) {bd_id = 3 : i32}
      aie.use_lock(%mem_0_w1_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%mem_0_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a_ping : memref<64xi8>, 0, 64) {bd_id = 24 : i32}
      aie.use_lock(%mem_0_a_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%mem_0_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a_pong : memref<64xi8>, 0, 64) {bd_id = 25 : i32}
      aie.use_lock(%mem_0_a_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^s2mm2_bd0:
      aie.use_lock(%mem_0_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<256xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd1
    ^s2mm2_bd1:
      aie.use_lock(%mem_0_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_pong : memref<256xi32>, 0, 256) {bd_id = 5 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^s2mm3_bd0:
      aie.use_lock(%mem_0_c1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c1_ping : memref<256xi32>, 0, 256) {bd_id = 26 : i32}
      aie.use_lock(%mem_0_c1_full, Release, 1)
      aie.next_bd ^s2mm3_bd1
    ^s2mm3_bd1:
      aie.use_lock(%mem_0_c1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c1_pong : memref<256xi32>, 0, 256) {bd_id = 27 : i32}
      aie.use_lock(%mem_0_c1_full, Release, 1)
      aie.next_bd ^s2mm3_bd0
    ^mm2s0_bd0:
      aie.use_lock(%mem_0_w0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w0_ping : memref<64xi8>, 0, 64) {bd_id = 6 : i32}
      aie.use_lock(%mem_0_w0_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%mem_0_w0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w0_pong : memref<64xi8>, 0, 64) {bd_id = 7 : i32}
      aie.use_lock(%mem_0_w0_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^mm2s1_bd0:
      aie.use_lock(%mem_0_w1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w1_ping : memref<64xi8>, 0, 64) {bd_id = 28 : i32}
      aie.use_lock(%mem_0_w1_free, Release, 1)
      aie.next_bd ^mm2s1_bd1
    ^mm2s1_bd1:
      aie.use_lock(%mem_0_w1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_w1_pong : memref<64xi8>, 0, 64) {bd_id = 29 : i32}
      aie.use_lock(%mem_0_w1_free, Release, 1)
      aie.next_bd ^mm2s1_bd0
    ^mm2s4_bd0:
      aie.use_lock(%mem_0_a_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a_ping : memref<64xi8>, 0, 64) {bd_id = 8 : i32}
      aie.use_lock(%mem_0_a_free, Release, 1)
      aie.next_bd ^mm2s4_bd1
    ^mm2s4_bd1:
      aie.use_lock(%mem_0_a_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a_pong : memref<64xi8>, 0, 64) {bd_id = 9 : i32}
      aie.use_lock(%mem_0_a_free, Release, 1)
      aie.next_bd ^mm2s4_bd0
    ^mm2s5_bd0:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 30 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
      aie.next_bd ^mm2s5_bd1
    ^mm2s5_bd1:
      aie.use_lock(%mem_0_c1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c1_ping : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 31 : i32}
      aie.use_lock(%mem_0_c1_free, Release, 1)
      aie.next_bd ^mm2s5_bd2
    ^mm2s5_bd2:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_pong : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 32 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
      aie.next_bd ^mm2s5_bd3
    ^mm2s5_bd3:
      aie.use_lock(%mem_0_c1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c1_pong : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 33 : i32}
      aie.use_lock(%mem_0_c1_free, Release, 1)
      aie.next_bd ^mm2s5_bd0
    ^end:
      aie.end
    }

    %dma_mem_1 = aie.memtile_dma(%mem_1) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // W from DRAM
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // W from DRAM
    ^start2:
      %2 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start3)  // C from core row 0
    ^start3:
      %3 = aie.dma_start(S2MM, 3, ^s2mm3_bd0, ^start4)  // C from core row 1
    ^start4:
      %4 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^start5)  // W to core row 0
    ^start5:
      %5 = aie.dma_start(MM2S, 1, ^mm2s1_bd0, ^start6)  // W to core row 1
    ^start6:
      %6 = aie.dma_start(MM2S, 5, ^mm2s5_bd0, ^end)  // C of the column, line by line of each tile
    ^s2mm0_bd0:
      aie.use_lock(%mem_1_w0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w0_ping : memref<64xi8>, 0, 64) {bd_id = 0 : i32}
      aie.use_lock(%mem_1_w0_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%mem_1_w0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w0_pong : memref<64xi8>, 0, 64) {bd_id = 1 : i32}
      aie.use_lock(%mem_1_w0_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%mem_1_w1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w1_ping : memref<64xi8>, 0, 64) {bd_id = 24 : i32}
      aie.use_lock(%mem_1_w1_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%mem_1_w1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w1_pong : memref<64xi8>, 0, 64) {bd_id = 25 : i32}
      aie.use_lock(%mem_1_w1_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^s2mm2_bd0:
      aie.use_lock(%mem_1_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_ping : memref<256xi32>, 0, 256) {bd_id = 2 : i32}
      aie.use_lock(%mem_1_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd1
    ^s2mm2_bd1:
      aie.use_lock(%mem_1_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_pong : memref<256xi32>, 0, 256) {bd_id = 3 : i32}
      aie.use_lock(%mem_1_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^s2mm3_bd0:
      aie.use_lock(%mem_1_c1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c1_ping : memref<256xi32>, 0, 256) {bd_id = 26 : i32}
      aie.use_lock(%mem_1_c1_full, Release, 1)
      aie.next_bd ^s2mm3_bd1
    ^s2mm3_bd1:
      aie.use_lock(%mem_1_c1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c1_pong : memref<256xi32>, 0, 256) {bd_id = 27 : i32}
      aie.use_lock(%mem_1_c1_full, Release, 1)
      aie.next_bd ^s2mm3_bd0
    ^mm2s0_bd0:
      aie.use_lock(%mem_1_w0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w0_ping : memref<64xi8>, 0, 64) {bd_id = 4 : i32}
      aie.use_lock(%mem_1_w0_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%mem_1_w0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w0_pong : memref<64xi8>, 0, 64) {bd_id = 5 : i32}
      aie.use_lock(%mem_1_w0_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^mm2s1_bd0:
      aie.use_lock(%mem_1_w1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w1_ping : memref<64xi8>, 0, 64) {bd_id = 28 : i32}
      aie.use_lock(%mem_1_w1_free, Release, 1)
      aie.next_bd ^mm2s1_bd1
    ^mm2s1_bd1:
      aie.use_lock(%mem_1_w1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_w1_pong : memref<64xi8>, 0, 64) {bd_id = 29 : i32}
      aie.use_lock(%mem_1_w1_free, Release, 1)
      aie.next_bd ^mm2s1_bd0
    ^mm2s5_bd0:
      aie.use_lock(%mem_1_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_ping : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 30 : i32}
      aie.use_lock(%mem_1_c0_free, Release, 1)
      aie.next_bd ^mm2s5_bd1
    ^mm2s5_bd1:
      aie.use_lock(%mem_1_c1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c1_ping : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 31 : i32}
      aie.use_lock(%mem_1_c1_free, Release, 1)
      aie.next_bd ^mm2s5_bd2
    ^mm2s5_bd2:
      aie.use_lock(%mem_1_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_pong : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 32 : i32}
      aie.use_lock(%mem_1_c0_free, Release, 1)
      aie.next_bd ^mm2s5_bd3
    ^mm2s5_bd3:
      aie.use_lock(%mem_1_c1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c1_pong : memref<256xi32>, 0, 256, [<size = 1, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 33 : i32}
      aie.use_lock(%mem_1_c1_free, Release, 1)
      aie.next_bd ^mm2s5_bd0
    ^end:
      aie.end
    }

    %dma_core_0_2 = aie.mem(%core_0_2) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // A in
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // W in
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // C out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_ping : memref<64xi8>, 0, 64) {bd_id = 0 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_pong : memref<64xi8>, 0, 64) {bd_id = 1 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_0_2_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_w_ping : memref<64xi8>, 0, 64) {bd_id = 2 : i32}
      aie.use_lock(%core_0_2_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_0_2_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_w_pong : memref<64xi8>, 0, 64) {bd_id = 3 : i32}
      aie.use_lock(%core_0_2_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_ping : memref<256xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%core_0_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_pong : memref<256xi32>, 0, 256) {bd_id = 5 : i32}
      aie.use_lock(%core_0_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_0_3 = aie.mem(%core_0_3) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // A in
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // W in
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // C out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_3_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_a_ping : memref<64xi8>, 0, 64) {bd_id = 0 : i32}
      aie.use_lock(%core_0_3_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_3_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_a_pong : memref<64xi8>, 0, 64) {bd_id = 1 : i32}
      aie.use_lock(%core_0_3_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_0_3_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_w_ping : memref<64xi8>, 0, 64) {bd_id = 2 : i32}
      aie.use_lock(%core_0_3_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_0_3_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_w_pong : memref<64xi8>, 0, 64) {bd_id = 3 : i32}
      aie.use_lock(%core_0_3_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_3_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_c_ping : memref<256xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%core_0_3_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_3_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_c_pong : memref<256xi32>, 0, 256) {bd_id = 5 : i32}
      aie.use_lock(%core_0_3_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_1_2 = aie.mem(%core_1_2) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // A in
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // W in
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // C out
    ^s2mm0_bd0:
      aie.use_lock(%core_1_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_a_ping : memref<64xi8>, 0, 64) {bd_id = 0 : i32}
      aie.use_lock(%core_1_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_1_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_a_pong : memref<64xi8>, 0, 64) {bd_id = 1 : i32}
      aie.use_lock(%core_1_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_1_2_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_w_ping : memref<64xi8>, 0, 64) {bd_id = 2 : i32}
      aie.use_lock(%core_1_2_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_1_2_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_w_pong : memref<64xi8>, 0, 64) {bd_id = 3 : i32}
      aie.use_lock(%core_1_2_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_1_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_c_ping : memref<256xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%core_1_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_1_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_c_pong : memref<256xi32>, 0, 256) {bd_id = 5 : i32}
      aie.use_lock(%core_1_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_1_3 = aie.mem(%core_1_3) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // A in
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // W in
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // C out
    ^s2mm0_bd0:
      aie.use_lock(%core_1_3_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_3_a_ping : memref<64xi8>, 0, 64) {bd_id = 0 : i32}
      aie.use_lock(%core_1_3_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_1_3_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_3_a_pong : memref<64xi8>, 0, 64) {bd_id = 1 : i32}
      aie.use_lock(%core_1_3_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_1_3_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_3_w_ping : memref<64xi8>, 0, 64) {bd_id = 2 : i32}
      aie.use_lock(%core_1_3_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_1_3_w_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_3_w_pong : memref<64xi8>, 0, 64) {bd_id = 3 : i32}
      aie.use_lock(%core_1_3_w_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_1_3_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_3_c_ping : memref<256xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%core_1_3_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_1_3_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_3_c_pong : memref<256xi32>, 0, 256) {bd_id = 5 : i32}
      aie.use_lock(%core_1_3_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %run_core_0_2 = aie.core(%core_0_2) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %true = arith.constant true
      %a_turn_16, %w_turn_6, %c_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%a_turn = %false, %w_turn = %false, %c_turn = %false) -> (i1, i1, i1) {
        aie.use_lock(%core_0_2_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_0_2_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %idle_word = memref.load %core_0_2_rtp[%c1] : memref<16xi32>
        %idle = arith.index_cast %idle_word : i32 to index
        %chunks_word = memref.load %core_0_2_rtp[%c2] : memref<16xi32>
        %chunks = arith.index_cast %chunks_word : i32 to index
        %between_word = memref.load %core_0_2_rtp[%c3] : memref<16xi32>
        %between = arith.index_cast %between_word : i32 to index
        %a_turn_5 = scf.for %idle_pass = %c0 to %idle step %c1 iter_args(%a_turn_1 = %a_turn) -> (i1) {
          %a_turn_4 = scf.for %chunk = %c0 to %chunks step %c1 iter_args(%a_turn_2 = %a_turn_1) -> (i1) {
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_2_a_free, Release, 1)
            %a_turn_3 = arith.xori %a_turn_2, %true : i1
            scf.yield %a_turn_3 : i1
          }
          scf.yield %a_turn_4 : i1
        }
        %a_turn_15, %w_turn_5, %c_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%a_turn_6 = %a_turn_5, %w_turn_1 = %w_turn, %c_turn_1 = %c_turn) -> (i1, i1, i1) {
          %a_turn_11 = scf.for %idle_pass_1 = %c0 to %between step %c1 iter_args(%a_turn_7 = %a_turn_6) -> (i1) {
            %a_turn_10 = scf.for %chunk_1 = %c0 to %chunks step %c1 iter_args(%a_turn_8 = %a_turn_7) -> (i1) {
              aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
              aie.use_lock(%core_0_2_a_free, Release, 1)
              %a_turn_9 = arith.xori %a_turn_8, %true : i1
              scf.yield %a_turn_9 : i1
            }
            scf.yield %a_turn_10 : i1
          }
          aie.use_lock(%core_0_2_c_free, AcquireGreaterEqual, 1)
          scf.if %c_turn_1 {
            func.call @zero_i32(%core_0_2_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @zero_i32(%core_0_2_c_ping) : (memref<256xi32>) -> ()
          }
          %a_turn_14, %w_turn_4 = scf.for %chunk_2 = %c0 to %chunks step %c1 iter_args(%a_turn_12 = %a_turn_11, %w_turn_2 = %w_turn_1) -> (i1, i1) {
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_2_w_full, AcquireGreaterEqual, 1)
            scf.if %a_turn_12 {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_w_pong, %core_0_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_w_pong, %core_0_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_w_ping, %core_0_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_w_ping, %core_0_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            } else {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_w_pong, %core_0_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_w_pong, %core_0_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_w_ping, %core_0_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_w_ping, %core_0_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            }
            aie.use_lock(%core_0_2_a_free, Release, 1)
            aie.use_lock(%core_0_2_w_free, Release, 1)
            %a_turn_13 = arith.xori %a_turn_12, %true : i1
            %w_turn_3 = arith.xori %w_turn_2, %true : i1
            scf.yield %a_turn_13, %w_turn_3 : i1, i1
          }
          scf.if %c_turn_1 {
            func.call @unscale_i32(%core_0_2_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @unscale_i32(%core_0_2_c_ping) : (memref<256xi32>) -> ()
          }
          aie.use_lock(%core_0_2_c_full, Release, 1)
          %c_turn_2 = arith.xori %c_turn_1, %true : i1
          scf.yield %a_turn_14, %w_turn_4, %c_turn_2 : i1, i1, i1
        }
        scf.yield %a_turn_15, %w_turn_5, %c_turn_3 : i1, i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_0_3 = aie.core(%core_0_3) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %true = arith.constant true
      %a_turn_16, %w_turn_6, %c_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%a_turn = %false, %w_turn = %false, %c_turn = %false) -> (i1, i1, i1) {
        aie.use_lock(%core_0_3_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_0_3_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %idle_word = memref.load %core_0_3_rtp[%c1] : memref<16xi32>
        %idle = arith.index_cast %idle_word : i32 to index
        %chunks_word = memref.load %core_0_3_rtp[%c2] : memref<16xi32>
        %chunks = arith.index_cast %chunks_word : i32 to index
        %between_word = memref.load %core_0_3_rtp[%c3] : memref<16xi32>
        %between = arith.index_cast %between_word : i32 to index
        %a_turn_5 = scf.for %idle_pass = %c0 to %idle step %c1 iter_args(%a_turn_1 = %a_turn) -> (i1) {
          %a_turn_4 = scf.for %chunk = %c0 to %chunks step %c1 iter_args(%a_turn_2 = %a_turn_1) -> (i1) {
            aie.use_lock(%core_0_3_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_3_a_free, Release, 1)
            %a_turn_3 = arith.xori %a_turn_2, %true : i1
            scf.yield %a_turn_3 : i1
          }
          scf.yield %a_turn_4 : i1
        }
        %a_turn_15, %w_turn_5, %c_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%a_turn_6 = %a_turn_5, %w_turn_1 = %w_turn, %c_turn_1 = %c_turn) -> (i1, i1, i1) {
          %a_turn_11 = scf.for %idle_pass_1 = %c0 to %between step %c1 iter_args(%a_turn_7 = %a_turn_6) -> (i1) {
            %a_turn_10 = scf.for %chunk_1 = %c0 to %chunks step %c1 iter_args(%a_turn_8 = %a_turn_7) -> (i1) {
              aie.use_lock(%core_0_3_a_full, AcquireGreaterEqual, 1)
              aie.use_lock(%core_0_3_a_free, Release, 1)
              %a_turn_9 = arith.xori %a_turn_8, %true : i1
              scf.yield %a_turn_9 : i1
            }
            scf.yield %a_turn_10 : i1
          }
          aie.use_lock(%core_0_3_c_free, AcquireGreaterEqual, 1)
          scf.if %c_turn_1 {
            func.call @zero_i32(%core_0_3_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @zero_i32(%core_0_3_c_ping) : (memref<256xi32>) -> ()
          }
          %a_turn_14, %w_turn_4 = scf.for %chunk_2 = %c0 to %chunks step %c1 iter_args(%a_turn_12 = %a_turn_11, %w_turn_2 = %w_turn_1) -> (i1, i1) {
            aie.use_lock(%core_0_3_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_3_w_full, AcquireGreaterEqual, 1)
            scf.if %a_turn_12 {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_3_a_pong, %core_0_3_w_pong, %core_0_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_3_a_pong, %core_0_3_w_pong, %core_0_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_3_a_pong, %core_0_3_w_ping, %core_0_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_3_a_pong, %core_0_3_w_ping, %core_0_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            } else {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_3_a_ping, %core_0_3_w_pong, %core_0_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_3_a_ping, %core_0_3_w_pong, %core_0_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_0_3_a_ping, %core_0_3_w_ping, %core_0_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_3_a_ping, %core_0_3_w_ping, %core_0_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            }
            aie.use_lock(%core_0_3_a_free, Release, 1)
            aie.use_lock(%core_0_3_w_free, Release, 1)
            %a_turn_13 = arith.xori %a_turn_12, %true : i1
            %w_turn_3 = arith.xori %w_turn_2, %true : i1
            scf.yield %a_turn_13, %w_turn_3 : i1, i1
          }
          scf.if %c_turn_1 {
            func.call @unscale_i32(%core_0_3_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @unscale_i32(%core_0_3_c_ping) : (memref<256xi32>) -> ()
          }
          aie.use_lock(%core_0_3_c_full, Release, 1)
          %c_turn_2 = arith.xori %c_turn_1, %true : i1
          scf.yield %a_turn_14, %w_turn_4, %c_turn_2 : i1, i1, i1
        }
        scf.yield %a_turn_15, %w_turn_5, %c_turn_3 : i1, i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_1_2 = aie.core(%core_1_2) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %true = arith.constant true
      %a_turn_11, %w_turn_6, %c_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%a_turn = %false, %w_turn = %false, %c_turn = %false) -> (i1, i1, i1) {
        aie.use_lock(%core_1_2_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_1_2_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %idle_word = memref.load %core_1_2_rtp[%c1] : memref<16xi32>
        %idle = arith.index_cast %idle_word : i32 to index
        %chunks_word = memref.load %core_1_2_rtp[%c2] : memref<16xi32>
        %chunks = arith.index_cast %chunks_word : i32 to index
        %a_turn_5 = scf.for %idle_pass = %c0 to %idle step %c1 iter_args(%a_turn_1 = %a_turn) -> (i1) {
          %a_turn_4 = scf.for %chunk = %c0 to %chunks step %c1 iter_args(%a_turn_2 = %a_turn_1) -> (i1) {
            aie.use_lock(%core_1_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_1_2_a_free, Release, 1)
            %a_turn_3 = arith.xori %a_turn_2, %true : i1
            scf.yield %a_turn_3 : i1
          }
          scf.yield %a_turn_4 : i1
        }
        %a_turn_10, %w_turn_5, %c_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%a_turn_6 = %a_turn_5, %w_turn_1 = %w_turn, %c_turn_1 = %c_turn) -> (i1, i1, i1) {
          aie.use_lock(%core_1_2_c_free, AcquireGreaterEqual, 1)
          scf.if %c_turn_1 {
            func.call @zero_i32(%core_1_2_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @zero_i32(%core_1_2_c_ping) : (memref<256xi32>) -> ()
          }
          %a_turn_9, %w_turn_4 = scf.for %chunk_1 = %c0 to %chunks step %c1 iter_args(%a_turn_7 = %a_turn_6, %w_turn_2 = %w_turn_1) -> (i1, i1) {
            aie.use_lock(%core_1_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_1_2_w_full, AcquireGreaterEqual, 1)
            scf.if %a_turn_7 {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_w_pong, %core_1_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_w_pong, %core_1_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_w_ping, %core_1_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_w_ping, %core_1_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            } else {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_w_pong, %core_1_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_w_pong, %core_1_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_w_ping, %core_1_2_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_w_ping, %core_1_2_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            }
            aie.use_lock(%core_1_2_a_free, Release, 1)
            aie.use_lock(%core_1_2_w_free, Release, 1)
            %a_turn_8 = arith.xori %a_turn_7, %true : i1
            %w_turn_3 = arith.xori %w_turn_2, %true : i1
            scf.yield %a_turn_8, %w_turn_3 : i1, i1
          }
          scf.if %c_turn_1 {
            func.call @unscale_i32(%core_1_2_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @unscale_i32(%core_1_2_c_ping) : (memref<256xi32>) -> ()
          }
          aie.use_lock(%core_1_2_c_full, Release, 1)
          %c_turn_2 = arith.xori %c_turn_1, %true : i1
          scf.yield %a_turn_9, %w_turn_4, %c_turn_2 : i1, i1, i1
        }
        scf.yield %a_turn_10, %w_turn_5, %c_turn_3 : i1, i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_1_3 = aie.core(%core_1_3) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %true = arith.constant true
      %a_turn_11, %w_turn_6, %c_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%a_turn = %false, %w_turn = %false, %c_turn = %false) -> (i1, i1, i1) {
        aie.use_lock(%core_1_3_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_1_3_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %idle_word = memref.load %core_1_3_rtp[%c1] : memref<16xi32>
        %idle = arith.index_cast %idle_word : i32 to index
        %chunks_word = memref.load %core_1_3_rtp[%c2] : memref<16xi32>
        %chunks = arith.index_cast %chunks_word : i32 to index
        %a_turn_5 = scf.for %idle_pass = %c0 to %idle step %c1 iter_args(%a_turn_1 = %a_turn) -> (i1) {
          %a_turn_4 = scf.for %chunk = %c0 to %chunks step %c1 iter_args(%a_turn_2 = %a_turn_1) -> (i1) {
            aie.use_lock(%core_1_3_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_1_3_a_free, Release, 1)
            %a_turn_3 = arith.xori %a_turn_2, %true : i1
            scf.yield %a_turn_3 : i1
          }
          scf.yield %a_turn_4 : i1
        }
        %a_turn_10, %w_turn_5, %c_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%a_turn_6 = %a_turn_5, %w_turn_1 = %w_turn, %c_turn_1 = %c_turn) -> (i1, i1, i1) {
          aie.use_lock(%core_1_3_c_free, AcquireGreaterEqual, 1)
          scf.if %c_turn_1 {
            func.call @zero_i32(%core_1_3_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @zero_i32(%core_1_3_c_ping) : (memref<256xi32>) -> ()
          }
          %a_turn_9, %w_turn_4 = scf.for %chunk_1 = %c0 to %chunks step %c1 iter_args(%a_turn_7 = %a_turn_6, %w_turn_2 = %w_turn_1) -> (i1, i1) {
            aie.use_lock(%core_1_3_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_1_3_w_full, AcquireGreaterEqual, 1)
            scf.if %a_turn_7 {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_3_a_pong, %core_1_3_w_pong, %core_1_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_3_a_pong, %core_1_3_w_pong, %core_1_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_3_a_pong, %core_1_3_w_ping, %core_1_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_3_a_pong, %core_1_3_w_ping, %core_1_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            } else {
              scf.if %w_turn_2 {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_3_a_ping, %core_1_3_w_pong, %core_1_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_3_a_ping, %core_1_3_w_pong, %core_1_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              } else {
                scf.if %c_turn_1 {
                  func.call @mm_i8_i2_i32(%core_1_3_a_ping, %core_1_3_w_ping, %core_1_3_c_pong) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_3_a_ping, %core_1_3_w_ping, %core_1_3_c_ping) : (memref<64xi8>, memref<64xi8>, memref<256xi32>) -> ()
                }
              }
            }
            aie.use_lock(%core_1_3_a_free, Release, 1)
            aie.use_lock(%core_1_3_w_free, Release, 1)
            %a_turn_8 = arith.xori %a_turn_7, %true : i1
            %w_turn_3 = arith.xori %w_turn_2, %true : i1
            scf.yield %a_turn_8, %w_turn_3 : i1, i1
          }
          scf.if %c_turn_1 {
            func.call @unscale_i32(%core_1_3_c_pong) : (memref<256xi32>) -> ()
          } else {
            func.call @unscale_i32(%core_1_3_c_ping) : (memref<256xi32>) -> ()
          }
          aie.use_lock(%core_1_3_c_full, Release, 1)
          %c_turn_2 = arith.xori %c_turn_1, %true : i1
          scf.yield %a_turn_9, %w_turn_4, %c_turn_2 : i1, i1, i1
        }
        scf.yield %a_turn_10, %w_turn_5, %c_turn_3 : i1, i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}
  }
}
