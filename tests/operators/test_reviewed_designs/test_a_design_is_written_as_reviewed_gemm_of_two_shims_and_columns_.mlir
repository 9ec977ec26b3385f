// small: int8 x int8 -> int8, tile 32 x 16 x 16 (m x k x n), 1 x 2 cores (rows x columns).
// Rendered by bdforge from spec 182ac27c48996418; edit the spec or the templates instead.
module {
  aie.device(npu2_2col) {
    %shim_0 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %shim_1 = aie.tile(1, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_0 = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %mem_1 = aie.tile(1, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %core_0_2 = aie.tile(0, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}
    %core_1_2 = aie.tile(1, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}


    // A: DRAM to memtiles
    aie.flow(%shim_0, DMA : 0, %mem_0, DMA : 1)
    aie.flow(%shim_1, DMA : 0, %mem_1, DMA : 1)

    // A: broadcast along each row of cores
    aie.flow(%mem_0, DMA : 1, %core_0_2, DMA : 0)
    aie.flow(%mem_0, DMA : 1, %core_1_2, DMA : 0)

    // B: DRAM to memtiles
    aie.flow(%shim_0, DMA : 1, %mem_0, DMA : 0)
    aie.flow(%shim_1, DMA : 1, %mem_1, DMA : 0)

    // B: broadcast up each column
    aie.flow(%mem_0, DMA : 0, %core_0_2, DMA : 1)
    aie.flow(%mem_1, DMA : 0, %core_1_2, DMA : 1)

    // C: tiles of a column join in its memtile
    aie.flow(%core_0_2, DMA : 0, %mem_0, DMA : 2)
    aie.flow(%core_1_2, DMA : 0, %mem_1, DMA : 2)

    // C: memtiles to DRAM
    aie.flow(%mem_0, DMA : 2, %shim_0, DMA : 0)
    aie.flow(%mem_1, DMA : 2, %shim_1, DMA : 0)

    aie.shim_dma_allocation @a_0 (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @b_0 (%shim_0, MM2S, 1)
    aie.shim_dma_allocation @c_0 (%shim_0, S2MM, 0)
    aie.shim_dma_allocation @a_1 (%shim_1, MM2S, 0)
    aie.shim_dma_allocation @b_1 (%shim_1, MM2S, 1)
    aie.shim_dma_allocation @c_1 (%shim_1, S2MM, 0)

    func.func private @zero_i8(memref<512xi8>)
    func.func private @mm_i8_i8_i8(memref<512xi8>, memref<256xi8>, memref<512xi8>)

    // memtile (0, 1)
    %mem_0_b_ping = aie.buffer(%mem_0) {address = 0 : i32, sym_name = "mem_0_b_ping"} : memref<512xi8>  // slab of B, 32 x 16, ping; bank 0
    %mem_0_b_pong = aie.buffer(%mem_0) {address = 65536 : i32, sym_name = "mem_0_b_pong"} : memref<512xi8>  // slab of B, 32 x 16, pong; bank 1
    %mem_0_a0_ping = aie.buffer(%mem_0) {address = 512 : i32, sym_name = "mem_0_a0_ping"} : memref<512xi8>  // slab of A, 16 x 32, for core row 0, ping; bank 0
    %mem_0_a0_pong = aie.buffer(%mem_0) {address = 66048 : i32, sym_name = "mem_0_a0_pong"} : memref<512xi8>  // slab of A, 16 x 32, for core row 0, pong; bank 1
    %mem_0_c0_ping = aie.buffer(%mem_0) {address = 1024 : i32, sym_name = "mem_0_c0_ping"} : memref<512xi8>  // C tile of core row 0, ping; bank 0
    %mem_0_c0_pong = aie.buffer(%mem_0) {address = 66560 : i32, sym_name = "mem_0_c0_pong"} : memref<512xi8>  // C tile of core row 0, pong; bank 1
    %mem_0_b_free = aie.lock(%mem_0, 0) {init = 4 : i32, sym_name = "mem_0_b_free"}  // B, in slices of k: room
    %mem_0_b_full = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "mem_0_b_full"}  // B, in slices of k: data
    %mem_0_a0_free = aie.lock(%mem_0, 2) {init = 4 : i32, sym_name = "mem_0_a0_free"}  // A of core row 0, in slices of k: room
    %mem_0_a0_full = aie.lock(%mem_0, 3) {init = 0 : i32, sym_name = "mem_0_a0_full"}  // A of core row 0, in slices of k: data
    %mem_0_c0_free = aie.lock(%mem_0, 4) {init = 2 : i32, sym_name = "mem_0_c0_free"}  // C of core row 0: room
    %mem_0_c0_full = aie.lock(%mem_0, 5) {init = 0 : i32, sym_name = "mem_0_c0_full"}  // C of core row 0: data

    // memtile (1, 1)
    %mem_1_b_ping = aie.buffer(%mem_1) {address = 0 : i32, sym_name = "mem_1_b_ping"} : memref<512xi8>  // slab of B, 32 x 16, ping; bank 0
    %mem_1_b_pong = aie.buffer(%mem_1) {address = 65536 : i32, sym_name = "mem_1_b_pong"} : memref<512xi8>  // slab of B, 32 x 16, pong; bank 1
    %mem_1_a0_ping = aie.buffer(%mem_1) {address = 512 : i32, sym_name = "mem_1_a0_ping"} : memref<512xi8>  // slab of A, 16 x 32, for core row 0, ping; bank 0
    %mem_1_a0_pong = aie.buffer(%mem_1) {address = 66048 : i32, sym_name = "mem_1_a0_pong"} : memref<512xi8>  // slab of A, 16 x 32, for core row 0, pong; bank 1
    %mem_1_c0_ping = aie.buffer(%mem_1) {address = 1024 : i32, sym_name = "mem_1_c0_ping"} : memref<512xi8>  // C tile of core row 0, ping; bank 0
    %mem_1_c0_pong = aie.buffer(%mem_1) {address = 66560 : i32, sym_name = "mem_1_c0_pong"} : memref<512xi8>  // C tile of core row 0, pong; bank 1
    %mem_1_b_free = aie.lock(%mem_1, 0) {init = 4 : i32, sym_name = "mem_1_b_free"}  // B, in slices of k: room
    %mem_1_b_full = aie.lock(%mem_1, 1) {init = 0 : i32, sym_name = "mem_1_b_full"}  // B, in slices of k: data
    %mem_1_a0_free = aie.lock(%mem_1, 2) {init = 4 : i32, sym_name = "mem_1_a0_free"}  // A of core row 0, in slices of k: room
    %mem_1_a0_full = aie.lock(%mem_1, 3) {init = 0 : i32, sym_name = "mem_1_a0_full"}  // A of core row 0, in slices of k: data
    %mem_1_c0_free = aie.lock(%mem_1, 4) {init = 2 : i32, sym_name = "mem_1_c0_free"}  // C of core row 0: room
    %mem_1_c0_full = aie.lock(%mem_1, 5) {init = 0 : i32, sym_name = "mem_1_c0_full"}  // C of core row 0: data

    // core (0, 2)
    %core_0_2_a_ping = aie.buffer(%core_0_2) {address = 4160 : i32, sym_name = "core_0_2_a_ping"} : memref<512xi8>  // A tile, micro-tiles, ping; bank 0
    %core_0_2_a_pong = aie.buffer(%core_0_2) {address = 33024 : i32, sym_name = "core_0_2_a_pong"} : memref<512xi8>  // A tile, micro-tiles, pong; bank 2
    %core_0_2_b_ping = aie.buffer(%core_0_2) {address = 32768 : i32, sym_name = "core_0_2_b_ping"} : memref<256xi8>  // B tile, micro-tiles, ping; bank 2
    %core_0_2_b_pong = aie.buffer(%core_0_2) {address = 49152 : i32, sym_name = "core_0_2_b_pong"} : memref<256xi8>  // B tile, micro-tiles, pong; bank 3
    %core_0_2_c_ping = aie.buffer(%core_0_2) {address = 16384 : i32, sym_name = "core_0_2_c_ping"} : memref<512xi8>  // C tile, micro-tiles, ping; bank 1
    %core_0_2_rtp = aie.buffer(%core_0_2) {address = 4096 : i32, sym_name = "core_0_2_rtp"} : memref<16xi32>  // run-time parameters: K/k, output tiles; bank 0
    %core_0_2_a_free = aie.lock(%core_0_2, 0) {init = 2 : i32, sym_name = "core_0_2_a_free"}  // A: room
    %core_0_2_a_full = aie.lock(%core_0_2, 1) {init = 0 : i32, sym_name = "core_0_2_a_full"}  // A: data
    %core_0_2_b_free = aie.lock(%core_0_2, 2) {init = 2 : i32, sym_name = "core_0_2_b_free"}  // B: room
    %core_0_2_b_full = aie.lock(%core_0_2, 3) {init = 0 : i32, sym_name = "core_0_2_b_full"}  // B: data
    %core_0_2_c_free = aie.lock(%core_0_2, 4) {init = 1 : i32, sym_name = "core_0_2_c_free"}  // C: room
    %core_0_2_c_full = aie.lock(%core_0_2, 5) {init = 0 : i32, sym_name = "core_0_2_c_full"}  // C: data
    %core_0_2_go = aie.lock(%core_0_2, 6) {init = 0 : i32, sym_name = "core_0_2_go"}  // set by the host when the run-time parameters are in place

    // core (1, 2)
    %core_1_2_a_ping = aie.buffer(%core_1_2) {address = 4160 : i32, sym_name = "core_1_2_a_ping"} : memref<512xi8>  // A tile, micro-tiles, ping; bank 0
    %core_1_2_a_pong = aie.buffer(%core_1_2) {address = 33024 : i32, sym_name = "core_1_2_a_pong"} : memref<512xi8>  // A tile, micro-tiles, pong; bank 2
    %core_1_2_b_ping = aie.buffer(%core_1_2) {address = 32768 : i32, sym_name = "core_1_2_b_ping"} : memref<256xi8>  // B tile, micro-tiles, ping; bank 2
    %core_1_2_b_pong = aie.buffer(%core_1_2) {address = 49152 : i32, sym_name = "core_1_2_b_pong"} : memref<256xi8>  // B tile, micro-tiles, pong; bank 3
    %core_1_2_c_ping = aie.buffer(%core_1_2) {address = 16384 : i32, sym_name = "core_1_2_c_ping"} : memref<512xi8>  // C tile, micro-tiles, ping; bank 1
    %core_1_2_rtp = aie.buffer(%core_1_2) {address = 4096 : i32, sym_name = "core_1_2_rtp"} : memref<16xi32>  // run-time parameters: K/k, output tiles; bank 0
    %core_1_2_a_free = aie.lock(%core_1_2, 0) {init = 2 : i32, sym_name = "core_1_2_a_free"}  // A: room
    %core_1_2_a_full = aie.lock(%core_1_2, 1) {init = 0 : i32, sym_name = "core_1_2_a_full"}  // A: data
    %core_1_2_b_free = aie.lock(%core_1_2, 2) {init = 2 : i32, sym_name = "core_1_2_b_free"}  // B: room
    %core_1_2_b_full = aie.lock(%core_1_2, 3) {init = 0 : i32, sym_name = "core_1_2_b_full"}  // B: data
    %core_1_2_c_free = aie.lock(%core_1_2, 4) {init = 1 : i32, sym_name = "core_1_2_c_free"}  // C: room
    %core_1_2_c_full = aie.lock(%core_1_2, 5) {init = 0 : i32, sym_name = "core_1_2_c_full"}  // C: data
    %core_1_2_go = aie.lock(%core_1_2, 6) {init = 0 : i32, sym_name = "core_1_2_go"}  // set by the host when the run-time parameters are in place

    %dma_mem_0 = aie.memtile_dma(%mem_0) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // B from DRAM
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // A from DRAM
    ^start2:
      %2 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start3)  // C from core row 0
    ^start3:
      %3 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^start4)  // B up
    ^start4:
      %4 = aie.dma_start(MM2S, 1, ^mm2s1_bd0, ^start5)  // A along core row 0
    ^start5:
      %5 = aie.dma_start(MM2S, 2, ^mm2s2_bd0, ^end)  // C of the column, column-major, top tile first
    ^s2mm0_bd0:
      aie.use_lock(%mem_0_b_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_0_b_ping : memref<512xi8>, 0, 512) {bd_id = 0 : i32}
      aie.use_lock(%mem_0_b_full, Release, 2)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%mem_0_b_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_0_b_pong : memref<512xi8>, 0, 512) {bd_id = 1 : i32}
      aie.use_lock(%mem_0_b_full, Release, 2)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%mem_0_a0_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_0_a0_ping : memref<512xi8>, 0, 512) {bd_id = 24 : i32}
      aie.use_lock(%mem_0_a0_full, Release, 2)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%mem_0_a0_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_0_a0_pong : memref<512xi8>, 0, 512) {bd_id = 25 : i32}
      aie.use_lock(%mem_0_a0_full, Release, 2)
      aie.next_bd ^s2mm1_bd0
    ^s2mm2_bd0:
      aie.use_lock(%mem_0_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<512xi8>, 0, 512) {bd_id = 2 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd1
    ^s2mm2_bd1:
      aie.use_lock(%mem_0_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_pong : memref<512xi8>, 0, 512) {bd_id = 3 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^mm2s0_bd0:
      aie.use_lock(%mem_0_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_ping : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 4 : i32}
      aie.use_lock(%mem_0_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%mem_0_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_ping : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 5 : i32}
      aie.use_lock(%mem_0_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd2
    ^mm2s0_bd2:
      aie.use_lock(%mem_0_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_pong : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 6 : i32}
      aie.use_lock(%mem_0_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd3
    ^mm2s0_bd3:
      aie.use_lock(%mem_0_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_pong : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 7 : i32}
      aie.use_lock(%mem_0_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^mm2s1_bd0:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 26 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd1
    ^mm2s1_bd1:
      aie.use_lock(%mem_1_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_a0_ping : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 27 : i32}
      aie.use_lock(%mem_1_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd2
    ^mm2s1_bd2:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 28 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd3
    ^mm2s1_bd3:
      aie.use_lock(%mem_1_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_a0_ping : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 29 : i32}
      aie.use_lock(%mem_1_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd4
    ^mm2s1_bd4:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 30 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd5
    ^mm2s1_bd5:
      aie.use_lock(%mem_1_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_a0_pong : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 31 : i32}
      aie.use_lock(%mem_1_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd6
    ^mm2s1_bd6:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 32 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd7
    ^mm2s1_bd7:
      aie.use_lock(%mem_1_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_a0_pong : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 33 : i32}
      aie.use_lock(%mem_1_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd0
    ^mm2s2_bd0:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<512xi8>, 0, 512, [<size = 2, stride = 64>, <size = 8, stride = 8>, <size = 4, stride = 128>, <size = 8, stride = 1>]) {bd_id = 8 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
      aie.next_bd ^mm2s2_bd1
    ^mm2s2_bd1:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_pong : memref<512xi8>, 0, 512, [<size = 2, stride = 64>, <size = 8, stride = 8>, <size = 4, stride = 128>, <size = 8, stride = 1>]) {bd_id = 9 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
      aie.next_bd ^mm2s2_bd0
    ^end:
      aie.end
    }

    %dma_mem_1 = aie.memtile_dma(%mem_1) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // B from DRAM
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // A from DRAM
    ^start2:
      %2 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start3)  // C from core row 0
    ^start3:
      %3 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^start4)  // B up
    ^start4:
      %4 = aie.dma_start(MM2S, 2, ^mm2s2_bd0, ^end)  // C of the column, column-major, top tile first
    ^s2mm0_bd0:
      aie.use_lock(%mem_1_b_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_1_b_ping : memref<512xi8>, 0, 512) {bd_id = 0 : i32}
      aie.use_lock(%mem_1_b_full, Release, 2)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%mem_1_b_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_1_b_pong : memref<512xi8>, 0, 512) {bd_id = 1 : i32}
      aie.use_lock(%mem_1_b_full, Release, 2)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%mem_1_a0_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_1_a0_ping : memref<512xi8>, 0, 512) {bd_id = 24 : i32}
      aie.use_lock(%mem_1_a0_full, Release, 2)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%mem_1_a0_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_1_a0_pong : memref<512xi8>, 0, 512) {bd_id = 25 : i32}
      aie.use_lock(%mem_1_a0_full, Release, 2)
      aie.next_bd ^s2mm1_bd0
    ^s2mm2_bd0:
      aie.use_lock(%mem_1_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_ping : memref<512xi8>, 0, 512) {bd_id = 2 : i32}
      aie.use_lock(%mem_1_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd1
    ^s2mm2_bd1:
      aie.use_lock(%mem_1_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_pong : memref<512xi8>, 0, 512) {bd_id = 3 : i32}
      aie.use_lock(%mem_1_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^mm2s0_bd0:
      aie.use_lock(%mem_1_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_b_ping : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 4 : i32}
      aie.use_lock(%mem_1_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%mem_1_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_b_ping : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 5 : i32}
      aie.use_lock(%mem_1_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd2
    ^mm2s0_bd2:
      aie.use_lock(%mem_1_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_b_pong : memref<512xi8>, 0, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 6 : i32}
      aie.use_lock(%mem_1_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd3
    ^mm2s0_bd3:
      aie.use_lock(%mem_1_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_b_pong : memref<512xi8>, 256, 256, [<size = 2, stride = 8>, <size = 2, stride = 128>, <size = 8, stride = 16>, <size = 8, stride = 1>]) {bd_id = 7 : i32}
      aie.use_lock(%mem_1_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^mm2s2_bd0:
      aie.use_lock(%mem_1_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_ping : memref<512xi8>, 0, 512, [<size = 2, stride = 64>, <size = 8, stride = 8>, <size = 4, stride = 128>, <size = 8, stride = 1>]) {bd_id = 8 : i32}
      aie.use_lock(%mem_1_c0_free, Release, 1)
      aie.next_bd ^mm2s2_bd1
    ^mm2s2_bd1:
      aie.use_lock(%mem_1_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_pong : memref<512xi8>, 0, 512, [<size = 2, stride = 64>, <size = 8, stride = 8>, <size = 4, stride = 128>, <size = 8, stride = 1>]) {bd_id = 9 : i32}
      aie.use_lock(%mem_1_c0_free, Release, 1)
      aie.next_bd ^mm2s2_bd0
    ^end:
      aie.end
    }

    %dma_core_0_2 = aie.mem(%core_0_2) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // A in
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // B in
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // C out
    ^s2mm0_bd0:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_ping : memref<512xi8>, 0, 512) {bd_id = 0 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_pong : memref<512xi8>, 0, 512) {bd_id = 1 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_ping : memref<256xi8>, 0, 256) {bd_id = 2 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_pong : memref<256xi8>, 0, 256) {bd_id = 3 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_ping : memref<512xi8>, 0, 512) {bd_id = 4 : i32}
      aie.use_lock(%core_0_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %dma_core_1_2 = aie.mem(%core_1_2) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // A in
    ^start1:
      %1 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start2)  // B in
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^end)  // C out
    ^s2mm0_bd0:
      aie.use_lock(%core_1_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_a_ping : memref<512xi8>, 0, 512) {bd_id = 0 : i32}
      aie.use_lock(%core_1_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_1_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_a_pong : memref<512xi8>, 0, 512) {bd_id = 1 : i32}
      aie.use_lock(%core_1_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_1_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_b_ping : memref<256xi8>, 0, 256) {bd_id = 2 : i32}
      aie.use_lock(%core_1_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_1_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_b_pong : memref<256xi8>, 0, 256) {bd_id = 3 : i32}
      aie.use_lock(%core_1_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_1_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_c_ping : memref<512xi8>, 0, 512) {bd_id = 4 : i32}
      aie.use_lock(%core_1_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^end:
      aie.end
    }

    %run_core_0_2 = aie.core(%core_0_2) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %true = arith.constant true
      %ab_turn_6 = scf.for %gemm = %c0 to %forever step %c1 iter_args(%ab_turn = %false) -> (i1) {
        aie.use_lock(%core_0_2_go, AcquireGreaterEqual, 1)
        %k_steps_word = memref.load %core_0_2_rtp[%c0] : memref<16xi32>
        %k_steps = arith.index_cast %k_steps_word : i32 to index
        %tiles_word = memref.load %core_0_2_rtp[%c1] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %ab_turn_5 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%ab_turn_1 = %ab_turn) -> (i1) {
          aie.use_lock(%core_0_2_c_free, AcquireGreaterEqual, 1)
          func.call @zero_i8(%core_0_2_c_ping) : (memref<512xi8>) -> ()
          %ab_turn_4 = scf.for %k = %c0 to %k_steps step %c1 iter_args(%ab_turn_2 = %ab_turn_1) -> (i1) {
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
            scf.if %ab_turn_2 {
              func.call @mm_i8_i8_i8(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_ping) : (memref<512xi8>, memref<256xi8>, memref<512xi8>) -> ()
            } else {
              func.call @mm_i8_i8_i8(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_ping) : (memref<512xi8>, memref<256xi8>, memref<512xi8>) -> ()
            }
            aie.use_lock(%core_0_2_a_free, Release, 1)
            aie.use_lock(%core_0_2_b_free, Release, 1)
            %ab_turn_3 = arith.xori %ab_turn_2, %true : i1
            scf.yield %ab_turn_3 : i1
          }
          aie.use_lock(%core_0_2_c_full, Release, 1)
          scf.yield %ab_turn_4 : i1
        }
        scf.yield %ab_turn_5 : i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    %run_core_1_2 = aie.core(%core_1_2) {
      %false = arith.constant false
      %forever = arith.constant 9223372036854775807 : index
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %true = arith.constant true
      %ab_turn_6 = scf.for %gemm = %c0 to %forever step %c1 iter_args(%ab_turn = %false) -> (i1) {
        aie.use_lock(%core_1_2_go, AcquireGreaterEqual, 1)
        %k_steps_word = memref.load %core_1_2_rtp[%c0] : memref<16xi32>
        %k_steps = arith.index_cast %k_steps_word : i32 to index
        %tiles_word = memref.load %core_1_2_rtp[%c1] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %ab_turn_5 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%ab_turn_1 = %ab_turn) -> (i1) {
          aie.use_lock(%core_1_2_c_free, AcquireGreaterEqual, 1)
          func.call @zero_i8(%core_1_2_c_ping) : (memref<512xi8>) -> ()
          %ab_turn_4 = scf.for %k = %c0 to %k_steps step %c1 iter_args(%ab_turn_2 = %ab_turn_1) -> (i1) {
            aie.use_lock(%core_1_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_1_2_b_full, AcquireGreaterEqual, 1)
            scf.if %ab_turn_2 {
              func.call @mm_i8_i8_i8(%core_1_2_a_pong, %core_1_2_b_pong, %core_1_2_c_ping) : (memref<512xi8>, memref<256xi8>, memref<512xi8>) -> ()
            } else {
              func.call @mm_i8_i8_i8(%core_1_2_a_ping, %core_1_2_b_ping, %core_1_2_c_ping) : (memref<512xi8>, memref<256xi8>, memref<512xi8>) -> ()
            }
            aie.use_lock(%core_1_2_a_free, Release, 1)
            aie.use_lock(%core_1_2_b_free, Release, 1)
            %ab_turn_3 = arith.xori %ab_turn_2, %true : i1
            scf.yield %ab_turn_3 : i1
          }
          aie.use_lock(%core_1_2_c_full, Release, 1)
          scf.yield %ab_turn_4 : i1
        }
        scf.yield %ab_turn_5 : i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}
  }
}
