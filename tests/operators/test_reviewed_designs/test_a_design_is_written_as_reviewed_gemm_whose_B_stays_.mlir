// small: int8 x int2 -> int32, tile 16 x 64 x 32 (m x k x n), 1 x 2 cores (rows x columns).
// Rendered by bdforge from spec a905a0eb4b4b88d8; edit the spec or the templates instead.
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
    aie.flow(%mem_0, DMA : 3, %shim_0, DMA : 0)
    aie.flow(%mem_1, DMA : 3, %shim_1, DMA : 0)

    aie.shim_dma_allocation @a_0 (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @b_0 (%shim_0, MM2S, 1)
    aie.shim_dma_allocation @c_0 (%shim_0, S2MM, 0)
    aie.shim_dma_allocation @b_1 (%shim_1, MM2S, 1)
    aie.shim_dma_allocation @c_1 (%shim_1, S2MM, 0)

    func.func private @zero_i32(memref<512xi32>, i32)
    func.func private @mm_i8_i2_i32(memref<512xi8>, memref<512xi8>, memref<512xi32>, i32)
    func.func private @unscale_i32(memref<512xi32>, i32)

    // memtile (0, 1)
    %mem_0_b = aie.buffer(%mem_0) {address = 64 : i32, sym_name = "mem_0_b"} : memref<517632xi8>  // panels of B, room for 1011 tiles of 512 bytes; sequences divide it; banks 0 to 7
    %mem_0_a0_ping = aie.buffer(%mem_0) {address = 517696 : i32, sym_name = "mem_0_a0_ping"} : memref<2048xi8>  // slab of A, 16 x 128, for core row 0, ping; bank 7
    %mem_0_a0_pong = aie.buffer(%mem_0) {address = 521792 : i32, sym_name = "mem_0_a0_pong"} : memref<2048xi8>  // slab of A, 16 x 128, for core row 0, pong; bank 7
    %mem_0_c0_ping = aie.buffer(%mem_0) {address = 519744 : i32, sym_name = "mem_0_c0_ping"} : memref<512xi32>  // C tile of core row 0, ping; bank 7
    %mem_0_b_free = aie.lock(%mem_0, 0) {init = 0 : i32, sym_name = "mem_0_b_free"}  // parts of B, set by sequences: room
    %mem_0_b_full = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "mem_0_b_full"}  // parts of B, set by sequences: data
    %mem_0_b_chunk_free = aie.lock(%mem_0, 2) {init = 2 : i32, sym_name = "mem_0_b_chunk_free"}  // chunks of B: room
    %mem_0_b_chunk_full = aie.lock(%mem_0, 3) {init = 0 : i32, sym_name = "mem_0_b_chunk_full"}  // chunks of B: data
    %mem_0_a0_free = aie.lock(%mem_0, 4) {init = 4 : i32, sym_name = "mem_0_a0_free"}  // A of core row 0, in slices of k: room
    %mem_0_a0_full = aie.lock(%mem_0, 5) {init = 0 : i32, sym_name = "mem_0_a0_full"}  // A of core row 0, in slices of k: data
    %mem_0_c0_free = aie.lock(%mem_0, 6) {init = 1 : i32, sym_name = "mem_0_c0_free"}  // C of core row 0: room
    %mem_0_c0_full = aie.lock(%mem_0, 7) {init = 0 : i32, sym_name = "mem_0_c0_full"}  // C of core row 0: data

    // memtile (1, 1)
    %mem_1_b = aie.buffer(%mem_1) {address = 64 : i32, sym_name = "mem_1_b"} : memref<517632xi8>  // panels of B, room for 1011 tiles of 512 bytes; sequences divide it; banks 0 to 7
    %mem_1_c0_ping = aie.buffer(%mem_1) {address = 517696 : i32, sym_name = "mem_1_c0_ping"} : memref<512xi32>  // C tile of core row 0, ping; bank 7
    %mem_1_b_free = aie.lock(%mem_1, 0) {init = 0 : i32, sym_name = "mem_1_b_free"}  // parts of B, set by sequences: room
    %mem_1_b_full = aie.lock(%mem_1, 1) {init = 0 : i32, sym_name = "mem_1_b_full"}  // parts of B, set by sequences: data
    %mem_1_b_chunk_free = aie.lock(%mem_1, 2) {init = 2 : i32, sym_name = "mem_1_b_chunk_free"}  // chunks of B: room
    %mem_1_b_chunk_full = aie.lock(%mem_1, 3) {init = 0 : i32, sym_name = "mem_1_b_chunk_full"}  // chunks of B: data
    %mem_1_c0_free = aie.lock(%mem_1, 4) {init = 1 : i32, sym_name = "mem_1_c0_free"}  // C of core row 0: room
    %mem_1_c0_full = aie.lock(%mem_1, 5) {init = 0 : i32, sym_name = "mem_1_c0_full"}  // C of core row 0: data

    // core (0, 2)
    %core_0_2_a_ping = aie.buffer(%core_0_2) {address = 16384 : i32, sym_name = "core_0_2_a_ping"} : memref<512xi8>  // A tile, micro-tiles, ping; bank 1
    %core_0_2_a_pong = aie.buffer(%core_0_2) {address = 33280 : i32, sym_name = "core_0_2_a_pong"} : memref<512xi8>  // A tile, micro-tiles, pong; bank 2
    %core_0_2_b_ping = aie.buffer(%core_0_2) {address = 32768 : i32, sym_name = "core_0_2_b_ping"} : memref<512xi8>  // B tile, micro-tiles, ping; bank 2
    %core_0_2_b_pong = aie.buffer(%core_0_2) {address = 49152 : i32, sym_name = "core_0_2_b_pong"} : memref<512xi8>  // B tile, micro-tiles, pong; bank 3
    %core_0_2_c_ping = aie.buffer(%core_0_2) {address = 4160 : i32, sym_name = "core_0_2_c_ping"} : memref<512xi32>  // C tile, micro-tiles, ping; bank 0
    %core_0_2_rtp = aie.buffer(%core_0_2) {address = 4096 : i32, sym_name = "core_0_2_rtp"} : memref<16xi32>  // run-time parameters: K/k, output tiles; bank 0
    %core_0_2_a_free = aie.lock(%core_0_2, 0) {init = 2 : i32, sym_name = "core_0_2_a_free"}  // A: room
    %core_0_2_a_full = aie.lock(%core_0_2, 1) {init = 0 : i32, sym_name = "core_0_2_a_full"}  // A: data
    %core_0_2_b_free = aie.lock(%core_0_2, 2) {init = 2 : i32, sym_name = "core_0_2_b_free"}  // B: room
    %core_0_2_b_full = aie.lock(%core_0_2, 3) {init = 0 : i32, sym_name = "core_0_2_b_full"}  // B: data
    %core_0_2_c_free = aie.lock(%core_0_2, 4) {init = 2 : i32, sym_name = "core_0_2_c_free"}  // C: room
    %core_0_2_c_full = aie.lock(%core_0_2, 5) {init = 0 : i32, sym_name = "core_0_2_c_full"}  // C: data
    %core_0_2_go = aie.lock(%core_0_2, 6) {init = 0 : i32, sym_name = "core_0_2_go"}  // set by the host when the run-time parameters are in place

    // core (1, 2)
    %core_1_2_a_ping = aie.buffer(%core_1_2) {address = 16384 : i32, sym_name = "core_1_2_a_ping"} : memref<512xi8>  // A tile, micro-tiles, ping; bank 1
    %core_1_2_a_pong = aie.buffer(%core_1_2) {address = 33280 : i32, sym_name = "core_1_2_a_pong"} : memref<512xi8>  // A tile, micro-tiles, pong; bank 2
    %core_1_2_b_ping = aie.buffer(%core_1_2) {address = 32768 : i32, sym_name = "core_1_2_b_ping"} : memref<512xi8>  // B tile, micro-tiles, ping; bank 2
    %core_1_2_b_pong = aie.buffer(%core_1_2) {address = 49152 : i32, sym_name = "core_1_2_b_pong"} : memref<512xi8>  // B tile, micro-tiles, pong; bank 3
    %core_1_2_c_ping = aie.buffer(%core_1_2) {address = 4160 : i32, sym_name = "core_1_2_c_ping"} : memref<512xi32>  // C tile, micro-tiles, ping; bank 0
    %core_1_2_rtp = aie.buffer(%core_1_2) {address = 4096 : i32, sym_name = "core_1_2_rtp"} : memref<16xi32>  // run-time parameters: K/k, output tiles; bank 0
    %core_1_2_a_free = aie.lock(%core_1_2, 0) {init = 2 : i32, sym_name = "core_1_2_a_free"}  // A: room
    %core_1_2_a_full = aie.lock(%core_1_2, 1) {init = 0 : i32, sym_name = "core_1_2_a_full"}  // A: data
    %core_1_2_b_free = aie.lock(%core_1_2, 2) {init = 2 : i32, sym_name = "core_1_2_b_free"}  // B: room
    %core_1_2_b_full = aie.lock(%core_1_2, 3) {init = 0 : i32, sym_name = "core_1_2_b_full"}  // B: data
    %core_1_2_c_free = aie.lock(%core_1_2, 4) {init = 2 : i32, sym_name = "core_1_2_c_free"}  // C: room
    %core_1_2_c_full = aie.lock(%core_1_2, 5) {init = 0 : i32, sym_name = "core_1_2_c_full"}  // C: data
    %core_1_2_go = aie.lock(%core_1_2, 6) {init = 0 : i32, sym_name = "core_1_2_go"}  // set by the host when the run-time parameters are in place

    %dma_mem_0 = aie.memtile_dma(%mem_0) {
      %0 = aie.dma_start(S2MM, 1, ^s2mm1_bd0, ^start1)  // A from DRAM
    ^start1:
      %1 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start2)  // C from core row 0
    ^start2:
      %2 = aie.dma_start(MM2S, 1, ^mm2s1_bd0, ^start3)  // A along core row 0
    ^start3:
      %3 = aie.dma_start(MM2S, 3, ^mm2s3_bd0, ^end)  // C of the column, row-major, top tile first
    ^s2mm1_bd0:
      aie.use_lock(%mem_0_a0_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_0_a0_ping : memref<2048xi8>, 0, 2048) {bd_id = 24 : i32}
      aie.use_lock(%mem_0_a0_full, Release, 2)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%mem_0_a0_free, AcquireGreaterEqual, 2)
      aie.dma_bd(%mem_0_a0_pong : memref<2048xi8>, 0, 2048) {bd_id = 25 : i32}
      aie.use_lock(%mem_0_a0_full, Release, 2)
      aie.next_bd ^s2mm1_bd0
    ^s2mm2_bd0:
      aie.use_lock(%mem_0_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<512xi32>, 0, 512) {bd_id = 22 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^mm2s1_bd0:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<2048xi8>, 0, 1024, [<size = 2, stride = 1024>, <size = 8, stride = 8>, <size = 8, stride = 128>, <size = 8, stride = 1>]) {bd_id = 26 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd1
    ^mm2s1_bd1:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<2048xi8>, 64, 1024, [<size = 2, stride = 1024>, <size = 8, stride = 8>, <size = 8, stride = 128>, <size = 8, stride = 1>]) {bd_id = 27 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd2
    ^mm2s1_bd2:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<2048xi8>, 0, 1024, [<size = 2, stride = 1024>, <size = 8, stride = 8>, <size = 8, stride = 128>, <size = 8, stride = 1>]) {bd_id = 28 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd3
    ^mm2s1_bd3:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<2048xi8>, 64, 1024, [<size = 2, stride = 1024>, <size = 8, stride = 8>, <size = 8, stride = 128>, <size = 8, stride = 1>]) {bd_id = 29 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd0
    ^mm2s3_bd0:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<512xi32>, 0, 512, [<size = 2, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 30 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
      aie.next_bd ^mm2s3_bd0
    ^end:
      aie.end
    }

    %dma_mem_1 = aie.memtile_dma(%mem_1) {
      %0 = aie.dma_start(S2MM, 2, ^s2mm2_bd0, ^start1)  // C from core row 0
    ^start1:
      %1 = aie.dma_start(MM2S, 3, ^mm2s3_bd0, ^end)  // C of the column, row-major, top tile first
    ^s2mm2_bd0:
      aie.use_lock(%mem_1_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_ping : memref<512xi32>, 0, 512) {bd_id = 22 : i32}
      aie.use_lock(%mem_1_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^mm2s3_bd0:
      aie.use_lock(%mem_1_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_1_c0_ping : memref<512xi32>, 0, 512, [<size = 2, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 24 : i32}
      aie.use_lock(%mem_1_c0_free, Release, 1)
      aie.next_bd ^mm2s3_bd0
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
      aie.dma_bd(%core_0_2_b_ping : memref<512xi8>, 0, 512) {bd_id = 2 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_pong : memref<512xi8>, 0, 512) {bd_id = 3 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_ping : memref<512xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%core_0_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_ping : memref<512xi32>, 256, 256) {bd_id = 5 : i32}
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
      aie.dma_bd(%core_1_2_b_ping : memref<512xi8>, 0, 512) {bd_id = 2 : i32}
      aie.use_lock(%core_1_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_1_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_b_pong : memref<512xi8>, 0, 512) {bd_id = 3 : i32}
      aie.use_lock(%core_1_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_1_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_c_ping : memref<512xi32>, 0, 256) {bd_id = 4 : i32}
      aie.use_lock(%core_1_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_1_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_1_2_c_ping : memref<512xi32>, 256, 256) {bd_id = 5 : i32}
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
      %c2 = arith.constant 2 : index
      %true = arith.constant true
      %a_turn_14, %b_turn_8 = scf.for %gemm = %c0 to %forever step %c1 iter_args(%a_turn = %false, %b_turn = %false) -> (i1, i1) {
        aie.use_lock(%core_0_2_go, AcquireGreaterEqual, 1)
        %k_steps_word = memref.load %core_0_2_rtp[%c0] : memref<16xi32>
        %k_steps = arith.index_cast %k_steps_word : i32 to index
        %tiles_word = memref.load %core_0_2_rtp[%c1] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %a_turn_13, %b_turn_7 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%a_turn_1 = %a_turn, %b_turn_1 = %b_turn) -> (i1, i1) {
          aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
          %a_turn_4 = scf.for %part = %c0 to %c2 step %c1 iter_args(%a_turn_2 = %a_turn_1) -> (i1) {
            aie.use_lock(%core_0_2_c_free, AcquireGreaterEqual, 1)
            %part_i32 = arith.index_cast %part : index to i32
            func.call @zero_i32(%core_0_2_c_ping, %part_i32) : (memref<512xi32>, i32) -> ()
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            %part_i32_1 = arith.index_cast %part : index to i32
            scf.if %a_turn_2 {
              scf.if %b_turn_1 {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_ping, %core_0_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            } else {
              scf.if %b_turn_1 {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_pong, %core_0_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            }
            aie.use_lock(%core_0_2_a_free, Release, 1)
            %a_turn_3 = arith.xori %a_turn_2, %true : i1
            scf.yield %a_turn_3 : i1
          }
          aie.use_lock(%core_0_2_b_free, Release, 1)
          %b_turn_2 = arith.xori %b_turn_1, %true : i1
          %a_turn_9, %b_turn_5 = scf.for %k = %c0 to %k_steps step %c1 iter_args(%a_turn_5 = %a_turn_4, %b_turn_3 = %b_turn_2) -> (i1, i1) {
            aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
            %a_turn_8 = scf.for %part_1 = %c0 to %c2 step %c1 iter_args(%a_turn_6 = %a_turn_5) -> (i1) {
              aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
              %part_i32_2 = arith.index_cast %part_1 : index to i32
              scf.if %a_turn_6 {
                scf.if %b_turn_3 {
                  func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_ping, %core_0_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                }
              } else {
                scf.if %b_turn_3 {
                  func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_pong, %core_0_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                }
              }
              aie.use_lock(%core_0_2_a_free, Release, 1)
              %a_turn_7 = arith.xori %a_turn_6, %true : i1
              scf.yield %a_turn_7 : i1
            }
            aie.use_lock(%core_0_2_b_free, Release, 1)
            %b_turn_4 = arith.xori %b_turn_3, %true : i1
            scf.yield %a_turn_8, %b_turn_4 : i1, i1
          }
          aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
          %a_turn_12 = scf.for %part_2 = %c0 to %c2 step %c1 iter_args(%a_turn_10 = %a_turn_9) -> (i1) {
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            %part_i32_3 = arith.index_cast %part_2 : index to i32
            scf.if %a_turn_10 {
              scf.if %b_turn_5 {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_ping, %core_0_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            } else {
              scf.if %b_turn_5 {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_pong, %core_0_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            }
            aie.use_lock(%core_0_2_a_free, Release, 1)
            %a_turn_11 = arith.xori %a_turn_10, %true : i1
            %part_i32_4 = arith.index_cast %part_2 : index to i32
            func.call @unscale_i32(%core_0_2_c_ping, %part_i32_4) : (memref<512xi32>, i32) -> ()
            aie.use_lock(%core_0_2_c_full, Release, 1)
            scf.yield %a_turn_11 : i1
          }
          aie.use_lock(%core_0_2_b_free, Release, 1)
          %b_turn_6 = arith.xori %b_turn_5, %true : i1
          scf.yield %a_turn_12, %b_turn_6 : i1, i1
        }
        scf.yield %a_turn_13, %b_turn_7 : i1, i1
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
      %a_turn_14, %b_turn_8 = scf.for %gemm = %c0 to %forever step %c1 iter_args(%a_turn = %false, %b_turn = %false) -> (i1, i1) {
        aie.use_lock(%core_1_2_go, AcquireGreaterEqual, 1)
        %k_steps_word = memref.load %core_1_2_rtp[%c0] : memref<16xi32>
        %k_steps = arith.index_cast %k_steps_word : i32 to index
        %tiles_word = memref.load %core_1_2_rtp[%c1] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %a_turn_13, %b_turn_7 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%a_turn_1 = %a_turn, %b_turn_1 = %b_turn) -> (i1, i1) {
          aie.use_lock(%core_1_2_b_full, AcquireGreaterEqual, 1)
          %a_turn_4 = scf.for %part = %c0 to %c2 step %c1 iter_args(%a_turn_2 = %a_turn_1) -> (i1) {
            aie.use_lock(%core_1_2_c_free, AcquireGreaterEqual, 1)
            %part_i32 = arith.index_cast %part : index to i32
            func.call @zero_i32(%core_1_2_c_ping, %part_i32) : (memref<512xi32>, i32) -> ()
            aie.use_lock(%core_1_2_a_full, AcquireGreaterEqual, 1)
            %part_i32_1 = arith.index_cast %part : index to i32
            scf.if %a_turn_2 {
              scf.if %b_turn_1 {
                func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_b_pong, %core_1_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_b_ping, %core_1_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            } else {
              scf.if %b_turn_1 {
                func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_b_pong, %core_1_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_b_ping, %core_1_2_c_ping, %part_i32_1) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            }
            aie.use_lock(%core_1_2_a_free, Release, 1)
            %a_turn_3 = arith.xori %a_turn_2, %true : i1
            scf.yield %a_turn_3 : i1
          }
          aie.use_lock(%core_1_2_b_free, Release, 1)
          %b_turn_2 = arith.xori %b_turn_1, %true : i1
          %a_turn_9, %b_turn_5 = scf.for %k = %c0 to %k_steps step %c1 iter_args(%a_turn_5 = %a_turn_4, %b_turn_3 = %b_turn_2) -> (i1, i1) {
            aie.use_lock(%core_1_2_b_full, AcquireGreaterEqual, 1)
            %a_turn_8 = scf.for %part_1 = %c0 to %c2 step %c1 iter_args(%a_turn_6 = %a_turn_5) -> (i1) {
              aie.use_lock(%core_1_2_a_full, AcquireGreaterEqual, 1)
              %part_i32_2 = arith.index_cast %part_1 : index to i32
              scf.if %a_turn_6 {
                scf.if %b_turn_3 {
                  func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_b_pong, %core_1_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_b_ping, %core_1_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                }
              } else {
                scf.if %b_turn_3 {
                  func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_b_pong, %core_1_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                } else {
                  func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_b_ping, %core_1_2_c_ping, %part_i32_2) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
                }
              }
              aie.use_lock(%core_1_2_a_free, Release, 1)
              %a_turn_7 = arith.xori %a_turn_6, %true : i1
              scf.yield %a_turn_7 : i1
            }
            aie.use_lock(%core_1_2_b_free, Release, 1)
            %b_turn_4 = arith.xori %b_turn_3, %true : i1
            scf.yield %a_turn_8, %b_turn_4 : i1, i1
          }
          aie.use_lock(%core_1_2_b_full, AcquireGreaterEqual, 1)
          %a_turn_12 = scf.for %part_2 = %c0 to %c2 step %c1 iter_args(%a_turn_10 = %a_turn_9) -> (i1) {
            aie.use_lock(%core_1_2_a_full, AcquireGreaterEqual, 1)
            %part_i32_3 = arith.index_cast %part_2 : index to i32
            scf.if %a_turn_10 {
              scf.if %b_turn_5 {
                func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_b_pong, %core_1_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_1_2_a_pong, %core_1_2_b_ping, %core_1_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            } else {
              scf.if %b_turn_5 {
                func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_b_pong, %core_1_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_1_2_a_ping, %core_1_2_b_ping, %core_1_2_c_ping, %part_i32_3) : (memref<512xi8>, memref<512xi8>, memref<512xi32>, i32) -> ()
              }
            }
            aie.use_lock(%core_1_2_a_free, Release, 1)
            %a_turn_11 = arith.xori %a_turn_10, %true : i1
            %part_i32_4 = arith.index_cast %part_2 : index to i32
            func.call @unscale_i32(%core_1_2_c_ping, %part_i32_4) : (memref<512xi32>, i32) -> ()
            aie.use_lock(%core_1_2_c_full, Release, 1)
            scf.yield %a_turn_11 : i1
          }
          aie.use_lock(%core_1_2_b_free, Release, 1)
          %b_turn_6 = arith.xori %b_turn_5, %true : i1
          scf.yield %a_turn_12, %b_turn_6 : i1, i1
        }
        scf.yield %a_turn_13, %b_turn_7 : i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}
  }
}
