// small: y = add(a, b), int8, tile of 32 elements, 4 x 1 cores (rows x columns).
module {
  aie.device(npu1_1col) {
    %shim_0 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_0 = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %core_0_2 = aie.tile(0, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}
    %core_0_3 = aie.tile(0, 3) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 29>}
    %core_0_4 = aie.tile(0, 4) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 30>}
    %core_0_5 = aie.tile(0, 5) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 31>}


    // a and b: DRAM to memtiles
    aie.flow(%shim_0, DMA : 0, %mem_0, DMA : 0)
    aie.flow(%shim_0, DMA : 1, %mem_0, DMA : 1)

    // a and b: tiles in turn to each core
    aie.flow(%mem_0, DMA : 1, %core_0_2, DMA : 0)
    aie.flow(%mem_0, DMA : 3, %core_0_3, DMA : 0)
    aie.flow(%mem_0, DMA : 5, %core_0_4, DMA : 0)
    aie.flow(%mem_0, DMA : 0, %core_0_5, DMA : 0)

    // y: tiles of a column join in its memtile
    aie.flow(%core_0_2, DMA : 0, %mem_0, DMA : 2)
    aie.flow(%core_0_3, DMA : 0, %mem_0, DMA : 3)
    aie.flow(%core_0_4, DMA : 0, %mem_0, DMA : 4)
    aie.flow(%core_0_5, DMA : 0, %mem_0, DMA : 5)

    // y: memtiles to DRAM
    aie.flow(%mem_0, DMA : 4, %shim_0, DMA : 0)

    aie.shim_dma_allocation @a_0 (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @b_0 (%shim_0, MM2S, 1)
    aie.shim_dma_allocation @y_0 (%shim_0, S2MM, 0)

    func.func private @elementwise_i8(memref<32xi8>, memref<32xi8>, memref<32xi8>)

    // memtile (0, 1)
    %mem_0_a0_ping = aie.buffer(%mem_0) {address = 0 : i32, sym_name = "mem_0_a0_ping"} : memref<32xi8>  // a of core row 0, ping; bank 0
    %mem_0_a0_pong = aie.buffer(%mem_0) {address = 65536 : i32, sym_name = "mem_0_a0_pong"} : memref<32xi8>  // a of core row 0, pong; bank 1
    %mem_0_a1_ping = aie.buffer(%mem_0) {address = 64 : i32, sym_name = "mem_0_a1_ping"} : memref<32xi8>  // a of core row 1, ping; bank 0
    %mem_0_a1_pong = aie.buffer(%mem_0) {address = 65600 : i32, sym_name = "mem_0_a1_pong"} : memref<32xi8>  // a of core row 1, pong; bank 1
    %mem_0_a2_ping = aie.buffer(%mem_0) {address = 128 : i32, sym_name = "mem_0_a2_ping"} : memref<32xi8>  // a of core row 2, ping; bank 0
    %mem_0_a2_pong = aie.buffer(%mem_0) {address = 65664 : i32, sym_name = "mem_0_a2_pong"} : memref<32xi8>  // a of core row 2, pong; bank 1
    %mem_0_a3_ping = aie.buffer(%mem_0) {address = 192 : i32, sym_name = "mem_0_a3_ping"} : memref<32xi8>  // a of core row 3, ping; bank 0
    %mem_0_a3_pong = aie.buffer(%mem_0) {address = 65728 : i32, sym_name = "mem_0_a3_pong"} : memref<32xi8>  // a of core row 3, pong; bank 1
    %mem_0_b0_ping = aie.buffer(%mem_0) {address = 256 : i32, sym_name = "mem_0_b0_ping"} : memref<32xi8>  // b of core row 0, ping; bank 0
    %mem_0_b0_pong = aie.buffer(%mem_0) {address = 65792 : i32, sym_name = "mem_0_b0_pong"} : memref<32xi8>  // b of core row 0, pong; bank 1
    %mem_0_b1_ping = aie.buffer(%mem_0) {address = 320 : i32, sym_name = "mem_0_b1_ping"} : memref<32xi8>  // b of core row 1, ping; bank 0
    %mem_0_b1_pong = aie.buffer(%mem_0) {address = 65856 : i32, sym_name = "mem_0_b1_pong"} : memref<32xi8>  // b of core row 1, pong; bank 1
    %mem_0_b2_ping = aie.buffer(%mem_0) {address = 384 : i32, sym_name = "mem_0_b2_ping"} : memref<32xi8>  // b of core row 2, ping; bank 0
    %mem_0_b2_pong = aie.buffer(%mem_0) {address = 65920 : i32, sym_name = "mem_0_b2_pong"} : memref<32xi8>  // b of core row 2, pong; bank 1
    %mem_0_b3_ping = aie.buffer(%mem_0) {address = 448 : i32, sym_name = "mem_0_b3_ping"} : memref<32xi8>  // b of core row 3, ping; bank 0
    %mem_0_b3_pong = aie.buffer(%mem_0) {address = 65984 : i32, sym_name = "mem_0_b3_pong"} : memref<32xi8>  // b of core row 3, pong; bank 1
    %mem_0_y0_ping = aie.buffer(%mem_0) {address = 512 : i32, sym_name = "mem_0_y0_ping"} : memref<32xi8>  // y of core row 0, ping; bank 0
    %mem_0_y0_pong = aie.buffer(%mem_0) {address = 66048 : i32, sym_name = "mem_0_y0_pong"} : memref<32xi8>  // y of core row 0, pong; bank 1
    %mem_0_y1_ping = aie.buffer(%mem_0) {address = 576 : i32, sym_name = "mem_0_y1_ping"} : memref<32xi8>  // y of core row 1, ping; bank 0
    %mem_0_y1_pong = aie.buffer(%mem_0) {address = 66112 : i32, sym_name = "mem_0_y1_pong"} : memref<32xi8>  // y of core row 1, pong; bank 1
    %mem_0_y2_ping = aie.buffer(%mem_0) {address = 640 : i32, sym_name = "mem_0_y2_ping"} : memref<32xi8>  // y of core row 2, ping; bank 0
    %mem_0_y2_pong = aie.buffer(%mem_0) {address = 66176 : i32, sym_name = "mem_0_y2_pong"} : memref<32xi8>  // y of core row 2, pong; bank 1
    %mem_0_y3_ping = aie.buffer(%mem_0) {address = 704 : i32, sym_name = "mem_0_y3_ping"} : memref<32xi8>  // y of core row 3, ping; bank 0
    %mem_0_y3_pong = aie.buffer(%mem_0) {address = 66240 : i32, sym_name = "mem_0_y3_pong"} : memref<32xi8>  // y of core row 3, pong; bank 1
    %mem_0_a0_free = aie.lock(%mem_0, 0) {init = 2 : i32, sym_name = "mem_0_a0_free"}  // a of core row 0: room
    %mem_0_a0_full = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "mem_0_a0_full"}  // a of core row 0: data
    %mem_0_a1_free = aie.lock(%mem_0, 2) {init = 2 : i32, sym_name = "mem_0_a1_free"}  // a of core row 1: room
    %mem_0_a1_full = aie.lock(%mem_0, 3) {init = 0 : i32, sym_name = "mem_0_a1_full"}  // a of core row 1: data
    %mem_0_a2_free = aie.lock(%mem_0, 4) {init = 2 : i32, sym_name = "mem_0_a2_free"}  // a of core row 2: room
    %mem_0_a2_full = aie.lock(%mem_0, 5) {init = 0 : i32, sym_name = "mem_0_a2_full"}  // a of core row 2: data
    %mem_0_a3_free = aie.lock(%mem_0, 6) {init = 2 : i32, sym_name = "mem_0_a3_free"}  // a of core row 3: room
    %mem_0_a3_full = aie.lock(%mem_0, 7) {init = 0 : i32, sym_name = "mem_0_a3_full"}  // a of core row 3: data
    %mem_0_b0_free = aie.lock(%mem_0, 8) {init = 2 : i32, sym_name = "mem_0_b0_free"}  // b of core row 0: room
    %mem_0_b0_full = aie.lock(%mem_0, 9) {init = 0 : i32, sym_name = "mem_0_b0_full"}  // b of core row 0: data
    %mem_0_b1_free = aie.lock(%mem_0, 10) {init = 2 : i32, sym_name = "mem_0_b1_free"}  // b of core row 1: room
    %mem_0_b1_full = aie.lock(%mem_0, 11) {init = 0 : i32, sym_name = "mem_0_b1_full"}  // b of core row 1: data
    %mem_0_b2_free = aie.lock(%mem_0, 12) {init = 2 : i32, sym_name = "mem_0_b2_free"}  // b of core row 2: room
    %mem_0_b2_full = aie.lock(%mem_0, 13) {init = 0 : i32, sym_name = "mem_0_b2_full"}  // b of core row 2: data
    %mem_0_b3_free = aie.lock(%mem_0, 14) {init = 2 : i32, sym_name = "mem_0_b3_free"}  // b of core row 3: room
    %mem_0_b3_full = aie.lock(%mem_0, 15) {init = 0 : i32, sym_name = "mem_0_b3_full"}  // b of core row 3: data
    %mem_0_y0_free = aie.lock(%mem_0, 16) {init = 2 : i32, sym_name = "mem_0_y0_free"}  // y of core row 0: room
    %mem_0_y0_full = aie.lock(%mem_0, 17) {init = 0 : i32, sym_name = "mem_0_y0_full"}  // y of core row 0: data
    %mem_0_y1_free = aie.lock(%mem_0, 18) {init = 2 : i32, sym_name = "mem_0_y1_free"}  // y of core row 1: room
    %mem_0_y1_full = aie.lock(%mem_0, 19) {init = 0 : i32, sym_name = "mem_0_y1_full"}  // y of core row 1: data
    %mem_0_y2_free = aie.lock(%mem_0, 20) {init = 2 : i32, sym_name = "mem_0_y2_free"}  // y of core row 2: room
    %mem_0_y2_full = aie.lock(%mem_0, 21) {init = 0 : i32, sym_name = "mem_0_y2_full"}  // y of core row 2: data
    %mem_0_y3_free = aie.lock(%mem_0, 22) {init = 2 : i32, sym_name = "mem_0_y3_free"}  // y of core row 3: room
    %mem_0_y3_full = aie.lock(%mem_0, 23) {init = 0 : i32, sym_name = "mem_0_y3_full"}  // y of core row 3: data

    // core (0, 2)
    %core_0_2_a_ping = aie.buffer(%core_0_2) {address = 4160 : i32, sym_name = "core_0_2_a_ping"} : memref<32xi8>  // a tile, ping; bank 0
    %core_0_2_a_pong = aie.buffer(%core_0_2) {address = 16448 : i32, sym_name = "core_0_2_a_pong"} : memref<32xi8>  // a tile, pong; bank 1
    %core_0_2_b_ping = aie.buffer(%core_0_2) {address = 16384 : i32, sym_name = "core_0_2_b_ping"} : memref<32xi8>  // b tile, ping; bank 1
    %core_0_2_b_pong = aie.buffer(%core_0_2) {address = 4224 : i32, sym_name = "core_0_2_b_pong"} : memref<32xi8>  // b tile, pong; bank 0
    %core_0_2_y_ping = aie.buffer(%core_0_2) {address = 32768 : i32, sym_name = "core_0_2_y_ping"} : memref<32xi8>  // y tile, ping; bank 2
    %core_0_2_y_pong = aie.buffer(%core_0_2) {address = 49152 : i32, sym_name = "core_0_2_y_pong"} : memref<32xi8>  // y tile, pong; bank 3
    %core_0_2_rtp = aie.buffer(%core_0_2) {address = 4096 : i32, sym_name = "core_0_2_rtp"} : memref<16xi32>  // run-time parameters: tiles; bank 0
    %core_0_2_a_free = aie.lock(%core_0_2, 0) {init = 2 : i32, sym_name = "core_0_2_a_free"}  // a tile: room
    %core_0_2_a_full = aie.lock(%core_0_2, 1) {init = 0 : i32, sym_name = "core_0_2_a_full"}  // a tile: data
    %core_0_2_b_free = aie.lock(%core_0_2, 2) {init = 2 : i32, sym_name = "core_0_2_b_free"}  // b tile: room
    %core_0_2_b_full = aie.lock(%core_0_2, 3) {init = 0 : i32, sym_name = "core_0_2_b_full"}  // b tile: data
    %core_0_2_y_free = aie.lock(%core_0_2, 4) {init = 2 : i32, sym_name = "core_0_2_y_free"}  // y tile: room
    %core_0_2_y_full = aie.lock(%core_0_2, 5) {init = 0 : i32, sym_name = "core_0_2_y_full"}  // y tile: data
    %core_0_2_go = aie.lock(%core_0_2, 6) {init = 0 : i32, sym_name = "core_0_2_go"}  // set by the host when the run-time parameters are in place

    // core (0, 3)
    %core_0_3_a_ping = aie.buffer(%core_0_3) {address = 4160 : i32, sym_name = "core_0_3_a_ping"} : memref<32xi8>  // a tile, ping; bank 0
    %core_0_3_a_pong = aie.buffer(%core_0_3) {address = 16448 : i32, sym_name = "core_0_3_a_pong"} : memref<32xi8>  // a tile, pong; bank 1
    %core_0_3_b_ping = aie.buffer(%core_0_3) {address = 16384 : i32, sym_name = "core_0_3_b_ping"} : memref<32xi8>  // b tile, ping; bank 1
    %core_0_3_b_pong = aie.buffer(%core_0_3) {address = 4224 : i32, sym_name = "core_0_3_b_pong"} : memref<32xi8>  // b tile, pong; bank 0
    %core_0_3_y_ping = aie.buffer(%core_0_3) {address = 32768 : i32, sym_name = "core_0_3_y_ping"} : memref<32xi8>  // y tile, ping; bank 2
    %core_0_3_y_pong = aie.buffer(%core_0_3) {address = 49152 : i32, sym_name = "core_0_3_y_pong"} : memref<32xi8>  // y tile, pong; bank 3
    %core_0_3_rtp = aie.buffer(%core_0_3) {address = 4096 : i32, sym_name = "core_0_3_rtp"} : memref<16xi32>  // run-time parameters: tiles; bank 0
    %core_0_3_a_free = aie.lock(%core_0_3, 0) {init = 2 : i32, sym_name = "core_0_3_a_free"}  // a tile: room
    %core_0_3_a_full = aie.lock(%core_0_3, 1) {init = 0 : i32, sym_name = "core_0_3_a_full"}  // a tile: data
    %core_0_3_b_free = aie.lock(%core_0_3, 2) {init = 2 : i32, sym_name = "core_0_3_b_free"}  // b tile: room
    %core_0_3_b_full = aie.lock(%core_0_3, 3) {init = 0 : i32, sym_name = "core_0_3_b_full"}  // b tile: data
    %core_0_3_y_free = aie.lock(%core_0_3, 4) {init = 2 : i32, sym_name = "core_0_3_y_free"}  // y tile: room
    %core_0_3_y_full = aie.lock(%core_0_3, 5) {init = 0 : i32, sym_name = "core_0_3_y_full"}  // y tile: data
    %core_0_3_go = aie.lock(%core_0_3, 6) {init = 0 : i32, sym_name = "core_0_3_go"}  // set by the host when the run-time parameters are in place

    // core (0, 4)
    %core_0_4_a_ping = aie.buffer(%core_0_4) {address = 4160 : i32, sym_name = "core_0_4_a_ping"} : memref<32xi8>  // a tile, ping; bank 0
    %core_0_4_a_pong = aie.buffer(%core_0_4) {address = 16448 : i32, sym_name = "core_0_4_a_pong"} : memref<32xi8>  // a tile, pong; bank 1
    %core_0_4_b_ping = aie.buffer(%core_0_4) {address = 16384 : i32, sym_name = "core_0_4_b_ping"} : memref<32xi8>  // b tile, ping; bank 1
    %core_0_4_b_pong = aie.buffer(%core_0_4) {address = 4224 : i32, sym_name = "core_0_4_b_pong"} : memref<32xi8>  // b tile, pong; bank 0
    %core_0_4_y_ping = aie.buffer(%core_0_4) {address = 32768 : i32, sym_name = "core_0_4_y_ping"} : memref<32xi8>  // y tile, ping; bank 2
    %core_0_4_y_pong = aie.buffer(%core_0_4) {address = 49152 : i32, sym_name = "core_0_4_y_pong"} : memref<32xi8>  // y tile, pong; bank 3
    %core_0_4_rtp = aie.buffer(%core_0_4) {address = 4096 : i32, sym_name = "core_0_4_rtp"} : memref<16xi32>  // run-time parameters: tiles; bank 0
    %core_0_4_a_free = aie.lock(%core_0_4, 0) {init = 2 : i32, sym_name = "core_0_4_a_free"}  // a tile: room
    %core_0_4_a_full = aie.lock(%core_0_4, 1) {init = 0 : i32, sym_name = "core_0_4_a_full"}  // a tile: data
    %core_0_4_b_free = aie.lock(%core_0_4, 2) {init = 2 : i32, sym_name = "core_0_4_b_free"}  // b tile: room
    %core_0_4_b_full = aie.lock(%core_0_4, 3) {init = 0 : i32, sym_name = "core_0_4_b_full"}  // b tile: data
    %core_0_4_y_free = aie.lock(%core_0_4, 4) {init = 2 : i32, sym_name = "core_0_4_y_free"}  // y tile: room
    %core_0_4_y_full = aie.lock(%core_0_4, 5) {init = 0 : i32, sym_name = "core_0_4_y_full"}  // y tile: data
    %core_0_4_go = aie.lock(%core_0_4, 6) {init = 0 : i32, sym_name = "core_0_4_go"}  // set by the host when the run-time parameters are in place

    // core (0, 5)
    %core_0_5_a_ping = aie.buffer(%core_0_5) {address = 4160 : i32, sym_name = "core_0_5_a_ping"} : memref<32xi8>  // a tile, ping; bank 0
    %core_0_5_a_pong = aie.buffer(%core_0_5) {address = 16448 : i32, sym_name = "core_0_5_a_pong"} : memref<32xi8>  // a tile, pong; bank 1
    %core_0_5_b_ping = aie.buffer(%core_0_5) {address = 16384 : i32, sym_name = "core_0_5_b_ping"} : memref<32xi8>  // b tile, ping; bank 1
    %core_0_5_b_pong = aie.buffer(%core_0_5) {address = 4224 : i32, sym_name = "core_0_5_b_pong"} : memref<32xi8>  // b tile, pong; bank 0
    %core_0_5_y_ping = aie.buffer(%core_0_5) {address = 32768 : i32, sym_name = "core_0_5_y_ping"} : memref<32xi8>  // y tile, ping; bank 2
    %core_0_5_y_pong = aie.buffer(%core_0_5) {address = 49152 : i32, sym_name = "core_0_5_y_pong"} : memref<32xi8>  // y tile, pong; bank 3
    %core_0_5_rtp = aie.buffer(%core_0_5) {address = 4096 : i32, sym_name = "core_0_5_rtp"} : memref<16xi32>  // run-time parameters: tiles; bank 0
    %core_0_5_a_free = aie.lock(%core_0_5, 0) {init = 2 : i32, sym_name = "core_0_5_a_free"}  // a tile: room
    %core_0_5_a_full = aie.lock(%core_0_5, 1) {init = 0 : i32, sym_name = "core_0_5_a_full"}  // a tile: data
    %core_0_5_b_free = aie.lock(%core_0_5, 2) {init = 2 : i32, sym_name = "core_0_5_b_free"}  // b tile: room
    %core_0_5_b_full = aie.lock(%core_0_5, 3) {init = 0 : i32, sym_name = "core_0_5_b_full"}  // b tile: data
    %core_0_5_y_free = aie.lock(%core_0_5, 4) {init = 2 : i32, sym_name = "core_0_5_y_free"}  // y tile: room
    %core_0_5_y_full = aie.lock(%core_0_5, 5) {init = 0 : i32, sym_name = "core_0_5_y_full"}  // y tile: data
    %core_0_5_go = aie.lock(%core_0_5, 6) {init = 0 : i32, sym_name = "core_0_5_go"}  // set by the host when the run-time parameters are in place

    %dma_mem_0 = aie.memtile_dma(%mem_0) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // a from DRAM
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // b from DRAM
    ^start2:
      %2 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start3)  // y from core row 0
    ^start3:
      %3 = aie.dma_start(S2MM, 3, ^s2mm3_bd0, ^start4)  // y from core row 1
    ^start4:
      %4 = aie.dma_start(S2MM, 4, ^s2mm4_bd0, ^start5)  // y from core row 2
    ^start5:
      %5 = aie.dma_start(S2MM, 5, ^s2mm5_bd0, ^start6)  // y from core row 3
    ^start6:
      %6 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^start7)  // a and b to core row 3
    ^start7:
      %7 = aie.dma_start(MM2S, 1, ^mm2s1_bd0, ^start8)  // a and b to core row 0
    ^start8:
      %8 = aie.dma_start(MM2S, 3, ^mm2s3_bd0, ^start9)  // a and b to core row 1
    ^start9:
      %9 = aie.dma_start(MM2S, 4, ^mm2s4_bd0, ^start10)  // y of the column
    ^start10:
      %10 = aie.dma_start(MM2S, 5, ^mm2s5_bd0, ^end)  // a and b to core row 2
    ^s2mm0_bd0:
      aie.use_lock(%mem_0_a0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<32xi8>, 0, 32) {bd_id = 0 : i32}
      aie.use_lock(%mem_0_a0_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%mem_0_a1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a1_ping : memref<32xi8>, 0, 32) {bd_id = 1 : i32}
      aie.use_lock(%mem_0_a1_full, Release, 1)
      aie.next_bd ^s2mm0_bd2
    ^s2mm0_bd2:
      aie.use_lock(%mem_0_a2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a2_ping : memref<32xi8>, 0, 32) {bd_id = 2 : i32}
      aie.use_lock(%mem_0_a2_full, Release, 1)
      aie.next_bd ^s2mm0_bd3
    ^s2mm0_bd3:
      aie.use_lock(%mem_0_a3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a3_ping : memref<32xi8>, 0, 32) {bd_id = 3 : i32}
      aie.use_lock(%mem_0_a3_full, Release, 1)
      aie.next_bd ^s2mm0_bd4
    ^s2mm0_bd4:
      aie.use_lock(%mem_0_a0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<32xi8>, 0, 32) {bd_id = 4 : i32}
      aie.use_lock(%mem_0_a0_full, Release, 1)
      aie.next_bd ^s2mm0_bd5
    ^s2mm0_bd5:
      aie.use_lock(%mem_0_a1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a1_pong : memref<32xi8>, 0, 32) {bd_id = 5 : i32}
      aie.use_lock(%mem_0_a1_full, Release, 1)
      aie.next_bd ^s2mm0_bd6
    ^s2mm0_bd6:
      aie.use_lock(%mem_0_a2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a2_pong : memref<32xi8>, 0, 32) {bd_id = 6 : i32}
      aie.use_lock(%mem_0_a2_full, Release, 1)
      aie.next_bd ^s2mm0_bd7
    ^s2mm0_bd7:
      aie.use_lock(%mem_0_a3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a3_pong : memref<32xi8>, 0, 32) {bd_id = 7 : i32}
      aie.use_lock(%mem_0_a3_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%mem_0_b0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b0_ping : memref<32xi8>, 0, 32) {bd_id = 24 : i32}
      aie.use_lock(%mem_0_b0_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%mem_0_b1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b1_ping : memref<32xi8>, 0, 32) {bd_id = 25 : i32}
      aie.use_lock(%mem_0_b1_full, Release, 1)
      aie.next_bd ^s2mm1_bd2
    ^s2mm1_bd2:
      aie.use_lock(%mem_0_b2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b2_ping : memref<32xi8>, 0, 32) {bd_id = 26 : i32}
      aie.use_lock(%mem_0_b2_full, Release, 1)
      aie.next_bd ^s2mm1_bd3
    ^s2mm1_bd3:
      aie.use_lock(%mem_0_b3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b3_ping : memref<32xi8>, 0, 32) {bd_id = 27 : i32}
      aie.use_lock(%mem_0_b3_full, Release, 1)
      aie.next_bd ^s2mm1_bd4
    ^s2mm1_bd4:
      aie.use_lock(%mem_0_b0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b0_pong : memref<32xi8>, 0, 32) {bd_id = 28 : i32}
      aie.use_lock(%mem_0_b0_full, Release, 1)
      aie.next_bd ^s2mm1_bd5
    ^s2mm1_bd5:
      aie.use_lock(%mem_0_b1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b1_pong : memref<32xi8>, 0, 32) {bd_id = 29 : i32}
      aie.use_lock(%mem_0_b1_full, Release, 1)
      aie.next_bd ^s2mm1_bd6
    ^s2mm1_bd6:
      aie.use_lock(%mem_0_b2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b2_pong : memref<32xi8>, 0, 32) {bd_id = 30 : i32}
      aie.use_lock(%mem_0_b2_full, Release, 1)
      aie.next_bd ^s2mm1_bd7
    ^s2mm1_bd7:
      aie.use_lock(%mem_0_b3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b3_pong : memref<32xi8>, 0, 32) {bd_id = 31 : i32}
      aie.use_lock(%mem_0_b3_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^s2mm2_bd0:
      aie.use_lock(%mem_0_y0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y0_ping : memref<32xi8>, 0, 32) {bd_id = 8 : i32}
      aie.use_lock(%mem_0_y0_full, Release, 1)
      aie.next_bd ^s2mm2_bd1
    ^s2mm2_bd1:
      aie.use_lock(%mem_0_y0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y0_pong : memref<32xi8>, 0, 32) {bd_id = 9 : i32}
      aie.use_lock(%mem_0_y0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^s2mm3_bd0:
      aie.use_lock(%mem_0_y1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y1_ping : memref<32xi8>, 0, 32) {bd_id = 32 : i32}
      aie.use_lock(%mem_0_y1_full, Release, 1)
      aie.next_bd ^s2mm3_bd1
    ^s2mm3_bd1:
      aie.use_lock(%mem_0_y1_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y1_pong : memref<32xi8>, 0, 32) {bd_id = 33 : i32}
      aie.use_lock(%mem_0_y1_full, Release, 1)
      aie.next_bd ^s2mm3_bd0
    ^s2mm4_bd0:
      aie.use_lock(%mem_0_y2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y2_ping : memref<32xi8>, 0, 32) {bd_id = 10 : i32}
      aie.use_lock(%mem_0_y2_full, Release, 1)
      aie.next_bd ^s2mm4_bd1
    ^s2mm4_bd1:
      aie.use_lock(%mem_0_y2_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y2_pong : memref<32xi8>, 0, 32) {bd_id = 11 : i32}
      aie.use_lock(%mem_0_y2_full, Release, 1)
      aie.next_bd ^s2mm4_bd0
    ^s2mm5_bd0:
      aie.use_lock(%mem_0_y3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y3_ping : memref<32xi8>, 0, 32) {bd_id = 34 : i32}
      aie.use_lock(%mem_0_y3_full, Release, 1)
      aie.next_bd ^s2mm5_bd1
    ^s2mm5_bd1:
      aie.use_lock(%mem_0_y3_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y3_pong : memref<32xi8>, 0, 32) {bd_id = 35 : i32}
      aie.use_lock(%mem_0_y3_full, Release, 1)
      aie.next_bd ^s2mm5_bd0
    ^mm2s0_bd0:
      aie.use_lock(%mem_0_a3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a3_ping : memref<32xi8>, 0, 32) {bd_id = 12 : i32}
      aie.use_lock(%mem_0_a3_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%mem_0_b3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b3_ping : memref<32xi8>, 0, 32) {bd_id = 13 : i32}
      aie.use_lock(%mem_0_b3_free, Release, 1)
      aie.next_bd ^mm2s0_bd2
    ^mm2s0_bd2:
      aie.use_lock(%mem_0_a3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a3_pong : memref<32xi8>, 0, 32) {bd_id = 14 : i32}
      aie.use_lock(%mem_0_a3_free, Release, 1)
      aie.next_bd ^mm2s0_bd3
    ^mm2s0_bd3:
      aie.use_lock(%mem_0_b3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b3_pong : memref<32xi8>, 0, 32) {bd_id = 15 : i32}
      aie.use_lock(%mem_0_b3_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^mm2s1_bd0:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<32xi8>, 0, 32) {bd_id = 36 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd1
    ^mm2s1_bd1:
      aie.use_lock(%mem_0_b0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b0_ping : memref<32xi8>, 0, 32) {bd_id = 37 : i32}
      aie.use_lock(%mem_0_b0_free, Release, 1)
      aie.next_bd ^mm2s1_bd2
    ^mm2s1_bd2:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<32xi8>, 0, 32) {bd_id = 38 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd3
    ^mm2s1_bd3:
      aie.use_lock(%mem_0_b0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b0_pong : memref<32xi8>, 0, 32) {bd_id = 39 : i32}
      aie.use_lock(%mem_0_b0_free, Release, 1)
      aie.next_bd ^mm2s1_bd0
    ^mm2s3_bd0:
      aie.use_lock(%mem_0_a1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a1_ping : memref<32xi8>, 0, 32) {bd_id = 40 : i32}
      aie.use_lock(%mem_0_a1_free, Release, 1)
      aie.next_bd ^mm2s3_bd1
    ^mm2s3_bd1:
      aie.use_lock(%mem_0_b1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b1_ping : memref<32xi8>, 0, 32) {bd_id = 41 : i32}
      aie.use_lock(%mem_0_b1_free, Release, 1)
      aie.next_bd ^mm2s3_bd2
    ^mm2s3_bd2:
      aie.use_lock(%mem_0_a1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a1_pong : memref<32xi8>, 0, 32) {bd_id = 42 : i32}
      aie.use_lock(%mem_0_a1_free, Release, 1)
      aie.next_bd ^mm2s3_bd3
    ^mm2s3_bd3:
      aie.use_lock(%mem_0_b1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b1_pong : memref<32xi8>, 0, 32) {bd_id = 43 : i32}
      aie.use_lock(%mem_0_b1_free, Release, 1)
      aie.next_bd ^mm2s3_bd0
    ^mm2s4_bd0:
      aie.use_lock(%mem_0_y0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y0_ping : memref<32xi8>, 0, 32) {bd_id = 16 : i32}
      aie.use_lock(%mem_0_y0_free, Release, 1)
      aie.next_bd ^mm2s4_bd1
    ^mm2s4_bd1:
      aie.use_lock(%mem_0_y1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y1_ping : memref<32xi8>, 0, 32) {bd_id = 17 : i32}
      aie.use_lock(%mem_0_y1_free, Release, 1)
      aie.next_bd ^mm2s4_bd2
    ^mm2s4_bd2:
      aie.use_lock(%mem_0_y2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y2_ping : memref<32xi8>, 0, 32) {bd_id = 18 : i32}
      aie.use_lock(%mem_0_y2_free, Release, 1)
      aie.next_bd ^mm2s4_bd3
    ^mm2s4_bd3:
      aie.use_lock(%mem_0_y3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y3_ping : memref<32xi8>, 0, 32) {bd_id = 19 : i32}
      aie.use_lock(%mem_0_y3_free, Release, 1)
      aie.next_bd ^mm2s4_bd4
    ^mm2s4_bd4:
      aie.use_lock(%mem_0_y0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y0_pong : memref<32xi8>, 0, 32) {bd_id = 20 : i32}
      aie.use_lock(%mem_0_y0_free, Release, 1)
      aie.next_bd ^mm2s4_bd5
    ^mm2s4_bd5:
      aie.use_lock(%mem_0_y1_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y1_pong : memref<32xi8>, 0, 32) {bd_id = 21 : i32}
      aie.use_lock(%mem_0_y1_free, Release, 1)
      aie.next_bd ^mm2s4_bd6
    ^mm2s4_bd6:
      aie.use_lock(%mem_0_y2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y2_pong : memref<32xi8>, 0, 32) {bd_id = 22 : i32}
      aie.use_lock(%mem_0_y2_free, Release, 1)
      aie.next_bd ^mm2s4_bd7
    ^mm2s4_bd7:
      aie.use_lock(%mem_0_y3_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_y3_pong : memref<32xi8>, 0, 32) {bd_id = 23 : i32}
      aie.use_lock(%mem_0_y3_free, Release, 1)
      aie.next_bd ^mm2s4_bd0
    ^mm2s5_bd0:
      aie.use_lock(%mem_0_a2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a2_ping : memref<32xi8>, 0, 32) {bd_id = 44 : i32}
      aie.use_lock(%mem_0_a2_free, Release, 1)
      aie.next_bd ^mm2s5_bd1
    ^mm2s5_bd1:
      aie.use_lock(%mem_0_b2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b2_ping : memref<32xi8>, 0, 32) {bd_id = 45 : i32}
      aie.use_lock(%mem_0_b2_free, Release, 1)
      aie.next_bd ^mm2s5_bd2
    ^mm2s5_bd2:
      aie.use_lock(%mem_0_a2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a2_pong : memref<32xi8>, 0, 32) {bd_id = 46 : i32}
      aie.use_lock(%mem_0_a2_free, Release, 1)
      aie.next_bd ^mm2s5_bd3
    ^mm2s5_bd3:
      aie.use_lock(%mem_0_b2_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b2_pong : memref<32xi8>, 0, 32) {bd_id = 47 : i32}
      aie.use_lock(%mem_0_b2_free, Release, 1)
      aie.next_bd ^mm2s5_bd0
    ^end:
      aie.end
    }

    %dma_core_0_2 = aie.mem(%core_0_2) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // a and b in
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // y out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_ping : memref<32xi8>, 0, 32) {bd_id = 0 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_ping : memref<32xi8>, 0, 32) {bd_id = 1 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd2
    ^s2mm0_bd2:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_pong : memref<32xi8>, 0, 32) {bd_id = 2 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd3
    ^s2mm0_bd3:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_pong : memref<32xi8>, 0, 32) {bd_id = 3 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_2_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_y_ping : memref<32xi8>, 0, 32) {bd_id = 4 : i32}
      aie.use_lock(%core_0_2_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_2_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_y_pong : memref<32xi8>, 0, 32) {bd_id = 5 : i32}
      aie.use_lock(%core_0_2_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_0_3 = aie.mem(%core_0_3) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // a and b in
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // y out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_3_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_a_ping : memref<32xi8>, 0, 32) {bd_id = 0 : i32}
      aie.use_lock(%core_0_3_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_3_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_b_ping : memref<32xi8>, 0, 32) {bd_id = 1 : i32}
      aie.use_lock(%core_0_3_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd2
    ^s2mm0_bd2:
      aie.use_lock(%core_0_3_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_a_pong : memref<32xi8>, 0, 32) {bd_id = 2 : i32}
      aie.use_lock(%core_0_3_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd3
    ^s2mm0_bd3:
      aie.use_lock(%core_0_3_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_b_pong : memref<32xi8>, 0, 32) {bd_id = 3 : i32}
      aie.use_lock(%core_0_3_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_3_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_y_ping : memref<32xi8>, 0, 32) {bd_id = 4 : i32}
      aie.use_lock(%core_0_3_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_3_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_3_y_pong : memref<32xi8>, 0, 32) {bd_id = 5 : i32}
      aie.use_lock(%core_0_3_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_0_4 = aie.mem(%core_0_4) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // a and b in
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // y out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_4_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_4_a_ping : memref<32xi8>, 0, 32) {bd_id = 0 : i32}
      aie.use_lock(%core_0_4_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_4_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_4_b_ping : memref<32xi8>, 0, 32) {bd_id = 1 : i32}
      aie.use_lock(%core_0_4_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd2
    ^s2mm0_bd2:
      aie.use_lock(%core_0_4_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_4_a_pong : memref<32xi8>, 0, 32) {bd_id = 2 : i32}
      aie.use_lock(%core_0_4_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd3
    ^s2mm0_bd3:
      aie.use_lock(%core_0_4_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_4_b_pong : memref<32xi8>, 0, 32) {bd_id = 3 : i32}
      aie.use_lock(%core_0_4_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_4_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_4_y_ping : memref<32xi8>, 0, 32) {bd_id = 4 : i32}
      aie.use_lock(%core_0_4_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_4_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_4_y_pong : memref<32xi8>, 0, 32) {bd_id = 5 : i32}
      aie.use_lock(%core_0_4_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_0_5 = aie.mem(%core_0_5) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // a and b in
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // y out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_5_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_5_a_ping : memref<32xi8>, 0, 32) {bd_id = 0 : i32}
      aie.use_lock(%core_0_5_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_5_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_5_b_ping : memref<32xi8>, 0, 32) {bd_id = 1 : i32}
      aie.use_lock(%core_0_5_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd2
    ^s2mm0_bd2:
      aie.use_lock(%core_0_5_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_5_a_pong : memref<32xi8>, 0, 32) {bd_id = 2 : i32}
      aie.use_lock(%core_0_5_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd3
    ^s2mm0_bd3:
      aie.use_lock(%core_0_5_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_5_b_pong : memref<32xi8>, 0, 32) {bd_id = 3 : i32}
      aie.use_lock(%core_0_5_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_5_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_5_y_ping : memref<32xi8>, 0, 32) {bd_id = 4 : i32}
      aie.use_lock(%core_0_5_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_5_y_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_5_y_pong : memref<32xi8>, 0, 32) {bd_id = 5 : i32}
      aie.use_lock(%core_0_5_y_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %run_core_0_2 = aie.core(%core_0_2) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %c1 = arith.constant 1 : index
      %turn_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%turn_turn = %false) -> (i1) {
        aie.use_lock(%core_0_2_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_0_2_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %turn_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%turn_turn_1 = %turn_turn) -> (i1) {
          aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_2_y_free, AcquireGreaterEqual, 1)
          scf.if %turn_turn_1 {
            func.call @elementwise_i8(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_y_pong) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          } else {
            func.call @elementwise_i8(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_y_ping) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          }
          aie.use_lock(%core_0_2_a_free, Release, 1)
          aie.use_lock(%core_0_2_b_free, Release, 1)
          aie.use_lock(%core_0_2_y_full, Release, 1)
          %turn_turn_2 = arith.xori %turn_turn_1, %true : i1
          scf.yield %turn_turn_2 : i1
        }
        scf.yield %turn_turn_3 : i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_0_3 = aie.core(%core_0_3) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %c1 = arith.constant 1 : index
      %turn_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%turn_turn = %false) -> (i1) {
        aie.use_lock(%core_0_3_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_0_3_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %turn_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%turn_turn_1 = %turn_turn) -> (i1) {
          aie.use_lock(%core_0_3_a_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_3_b_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_3_y_free, AcquireGreaterEqual, 1)
          scf.if %turn_turn_1 {
            func.call @elementwise_i8(%core_0_3_a_pong, %core_0_3_b_pong, %core_0_3_y_pong) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          } else {
            func.call @elementwise_i8(%core_0_3_a_ping, %core_0_3_b_ping, %core_0_3_y_ping) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          }
          aie.use_lock(%core_0_3_a_free, Release, 1)
          aie.use_lock(%core_0_3_b_free, Release, 1)
          aie.use_lock(%core_0_3_y_full, Release, 1)
          %turn_turn_2 = arith.xori %turn_turn_1, %true : i1
          scf.yield %turn_turn_2 : i1
        }
        scf.yield %turn_turn_3 : i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_0_4 = aie.core(%core_0_4) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %c1 = arith.constant 1 : index
      %turn_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%turn_turn = %false) -> (i1) {
        aie.use_lock(%core_0_4_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_0_4_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %turn_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%turn_turn_1 = %turn_turn) -> (i1) {
          aie.use_lock(%core_0_4_a_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_4_b_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_4_y_free, AcquireGreaterEqual, 1)
          scf.if %turn_turn_1 {
            func.call @elementwise_i8(%core_0_4_a_pong, %core_0_4_b_pong, %core_0_4_y_pong) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          } else {
            func.call @elementwise_i8(%core_0_4_a_ping, %core_0_4_b_ping, %core_0_4_y_ping) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          }
          aie.use_lock(%core_0_4_a_free, Release, 1)
          aie.use_lock(%core_0_4_b_free, Release, 1)
          aie.use_lock(%core_0_4_y_full, Release, 1)
          %turn_turn_2 = arith.xori %turn_turn_1, %true : i1
          scf.yield %turn_turn_2 : i1
        }
        scf.yield %turn_turn_3 : i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_0_5 = aie.core(%core_0_5) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %true = arith.constant true
      %c1 = arith.constant 1 : index
      %turn_turn_4 = scf.for %problem = %c0 to %forever step %c1 iter_args(%turn_turn = %false) -> (i1) {
        aie.use_lock(%core_0_5_go, AcquireGreaterEqual, 1)
        %tiles_word = memref.load %core_0_5_rtp[%c0] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %turn_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%turn_turn_1 = %turn_turn) -> (i1) {
          aie.use_lock(%core_0_5_a_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_5_b_full, AcquireGreaterEqual, 1)
          aie.use_lock(%core_0_5_y_free, AcquireGreaterEqual, 1)
          scf.if %turn_turn_1 {
            func.call @elementwise_i8(%core_0_5_a_pong, %core_0_5_b_pong, %core_0_5_y_pong) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          } else {
            func.call @elementwise_i8(%core_0_5_a_ping, %core_0_5_b_ping, %core_0_5_y_ping) : (memref<32xi8>, memref<32xi8>, memref<32xi8>) -> ()
          }
          aie.use_lock(%core_0_5_a_free, Release, 1)
          aie.use_lock(%core_0_5_b_free, Release, 1)
          aie.use_lock(%core_0_5_y_full, Release, 1)
          %turn_turn_2 = arith.xori %turn_turn_1, %true : i1
          scf.yield %turn_turn_2 : i1
        }
        scf.yield %turn_turn_3 : i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}
  }
}
