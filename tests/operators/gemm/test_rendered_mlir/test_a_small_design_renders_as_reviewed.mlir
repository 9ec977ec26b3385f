// small: int8 x int2 -> int32, tile 16 x 16 x 32 (m x k x n), 1 x 1 cores (rows x columns).
// Rendered by bdforge from spec bad90b5460dd32ee; edit the spec or the templates instead.
module {
  aie.device(npu2_1col) {
    %shim_0 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_0 = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %core_0_2 = aie.tile(0, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}


    // A: DRAM to memtiles
    aie.flow(%shim_0, DMA : 0, %mem_0, DMA : 1)

    // A: broadcast along each row of cores
    aie.flow(%mem_0, DMA : 1, %core_0_2, DMA : 0)

    // B: DRAM to memtiles
    aie.flow(%shim_0, DMA : 1, %mem_0, DMA : 0)

    // B: broadcast up each column
    aie.flow(%mem_0, DMA : 0, %core_0_2, DMA : 1)

    // C: tiles of a column join in its memtile
    aie.flow(%core_0_2, DMA : 0, %mem_0, DMA : 2)

    // C: memtiles to DRAM
    aie.flow(%mem_0, DMA : 2, %shim_0, DMA : 0)

    aie.shim_dma_allocation @a_0 (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @b_0 (%shim_0, MM2S, 1)
    aie.shim_dma_allocation @c_0 (%shim_0, S2MM, 0)

    func.func private @zero_i32(memref<512xi32>)
    func.func private @mm_i8_i2_i32(memref<256xi8>, memref<128xi8>, memref<512xi32>)
    func.func private @unscale_i32(memref<512xi32>)

    // memtile (0, 1)
    %mem_0_b_ping = aie.buffer(%mem_0) {address = 2560 : i32, sym_name = "mem_0_b_ping"} : memref<128xi8>  // B tile, packed, in the order of the kernel, ping; bank 0
    %mem_0_b_pong = aie.buffer(%mem_0) {address = 68096 : i32, sym_name = "mem_0_b_pong"} : memref<128xi8>  // B tile, packed, in the order of the kernel, pong; bank 1
    %mem_0_a0_ping = aie.buffer(%mem_0) {address = 2048 : i32, sym_name = "mem_0_a0_ping"} : memref<512xi8>  // slab of A, 16 x 32, for core row 0, ping; bank 0
    %mem_0_a0_pong = aie.buffer(%mem_0) {address = 67584 : i32, sym_name = "mem_0_a0_pong"} : memref<512xi8>  // slab of A, 16 x 32, for core row 0, pong; bank 1
    %mem_0_c0_ping = aie.buffer(%mem_0) {address = 0 : i32, sym_name = "mem_0_c0_ping"} : memref<512xi32>  // C tile of core row 0, ping; bank 0
    %mem_0_c0_pong = aie.buffer(%mem_0) {address = 65536 : i32, sym_name = "mem_0_c0_pong"} : memref<512xi32>  // C tile of core row 0, pong; bank 1
    %mem_0_b_free = aie.lock(%mem_0, 0) {init = 2 : i32, sym_name = "mem_0_b_free"}  // B: room
    %mem_0_b_full = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "mem_0_b_full"}  // B: data
    %mem_0_a0_free = aie.lock(%mem_0, 2) {init = 4 : i32, sym_name = "mem_0_a0_free"}  // A of core row 0, in slices of k: room
    %mem_0_a0_full = aie.lock(%mem_0, 3) {init = 0 : i32, sym_name = "mem_0_a0_full"}  // A of core row 0, in slices of k: data
    %mem_0_c0_free = aie.lock(%mem_0, 4) {init = 2 : i32, sym_name = "mem_0_c0_free"}  // C of core row 0: room
    %mem_0_c0_full = aie.lock(%mem_0, 5) {init = 0 : i32, sym_name = "mem_0_c0_full"}  // C of core row 0: data

    // core (0, 2)
    %core_0_2_a_ping = aie.buffer(%core_0_2) {address = 16384 : i32, sym_name = "core_0_2_a_ping"} : memref<256xi8>  // A tile, micro-tiles, ping; bank 1
    %core_0_2_a_pong = aie.buffer(%core_0_2) {address = 32896 : i32, sym_name = "core_0_2_a_pong"} : memref<256xi8>  // A tile, micro-tiles, pong; bank 2
    %core_0_2_b_ping = aie.buffer(%core_0_2) {address = 32768 : i32, sym_name = "core_0_2_b_ping"} : memref<128xi8>  // B tile, micro-tiles, ping; bank 2
    %core_0_2_b_pong = aie.buffer(%core_0_2) {address = 16640 : i32, sym_name = "core_0_2_b_pong"} : memref<128xi8>  // B tile, micro-tiles, pong; bank 1
    %core_0_2_c_ping = aie.buffer(%core_0_2) {address = 4160 : i32, sym_name = "core_0_2_c_ping"} : memref<512xi32>  // C tile, micro-tiles, ping; bank 0
    %core_0_2_c_pong = aie.buffer(%core_0_2) {address = 49152 : i32, sym_name = "core_0_2_c_pong"} : memref<512xi32>  // C tile, micro-tiles, pong; bank 3
    %core_0_2_rtp = aie.buffer(%core_0_2) {address = 4096 : i32, sym_name = "core_0_2_rtp"} : memref<16xi32>  // run-time parameters: K/k, output tiles; bank 0
    %core_0_2_a_free = aie.lock(%core_0_2, 0) {init = 2 : i32, sym_name = "core_0_2_a_free"}  // A: room
    %core_0_2_a_full = aie.lock(%core_0_2, 1) {init = 0 : i32, sym_name = "core_0_2_a_full"}  // A: data
    %core_0_2_b_free = aie.lock(%core_0_2, 2) {init = 2 : i32, sym_name = "core_0_2_b_free"}  // B: room
    %core_0_2_b_full = aie.lock(%core_0_2, 3) {init = 0 : i32, sym_name = "core_0_2_b_full"}  // B: data
    %core_0_2_c_free = aie.lock(%core_0_2, 4) {init = 2 : i32, sym_name = "core_0_2_c_free"}  // C: room
    %core_0_2_c_full = aie.lock(%core_0_2, 5) {init = 0 : i32, sym_name = "core_0_2_c_full"}  // C: data
    %core_0_2_go = aie.lock(%core_0_2, 6) {init = 0 : i32, sym_name = "core_0_2_go"}  // set by the host when the run-time parameters are in place

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
      %5 = aie.dma_start(MM2S, 2, ^mm2s2_bd0, ^end)  // C of the column, row-major, top tile first
    ^s2mm0_bd0:
      aie.use_lock(%mem_0_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_ping : memref<128xi8>, 0, 128) {bd_id = 0 : i32}
      aie.use_lock(%mem_0_b_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%mem_0_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_pong : memref<128xi8>, 0, 128) {bd_id = 1 : i32}
      aie.use_lock(%mem_0_b_full, Release, 1)
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
      aie.dma_bd(%mem_0_c0_ping : memref<512xi32>, 0, 512) {bd_id = 2 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd1
    ^s2mm2_bd1:
      aie.use_lock(%mem_0_c0_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_pong : memref<512xi32>, 0, 512) {bd_id = 3 : i32}
      aie.use_lock(%mem_0_c0_full, Release, 1)
      aie.next_bd ^s2mm2_bd0
    ^mm2s0_bd0:
      aie.use_lock(%mem_0_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_ping : memref<128xi8>, 0, 128) {bd_id = 4 : i32}
      aie.use_lock(%mem_0_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%mem_0_b_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_b_pong : memref<128xi8>, 0, 128) {bd_id = 5 : i32}
      aie.use_lock(%mem_0_b_free, Release, 1)
      aie.next_bd ^mm2s0_bd0
    ^mm2s1_bd0:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<512xi8>, 0, 256, [<size = 2, stride = 256>, <size = 2, stride = 8>, <size = 8, stride = 32>, <size = 8, stride = 1>]) {bd_id = 26 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd1
    ^mm2s1_bd1:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_ping : memref<512xi8>, 16, 256, [<size = 2, stride = 256>, <size = 2, stride = 8>, <size = 8, stride = 32>, <size = 8, stride = 1>]) {bd_id = 27 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd2
    ^mm2s1_bd2:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<512xi8>, 0, 256, [<size = 2, stride = 256>, <size = 2, stride = 8>, <size = 8, stride = 32>, <size = 8, stride = 1>]) {bd_id = 28 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd3
    ^mm2s1_bd3:
      aie.use_lock(%mem_0_a0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_a0_pong : memref<512xi8>, 16, 256, [<size = 2, stride = 256>, <size = 2, stride = 8>, <size = 8, stride = 32>, <size = 8, stride = 1>]) {bd_id = 29 : i32}
      aie.use_lock(%mem_0_a0_free, Release, 1)
      aie.next_bd ^mm2s1_bd0
    ^mm2s2_bd0:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_ping : memref<512xi32>, 0, 512, [<size = 2, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 6 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
      aie.next_bd ^mm2s2_bd1
    ^mm2s2_bd1:
      aie.use_lock(%mem_0_c0_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%mem_0_c0_pong : memref<512xi32>, 0, 512, [<size = 2, stride = 256>, <size = 8, stride = 8>, <size = 4, stride = 64>, <size = 8, stride = 1>]) {bd_id = 7 : i32}
      aie.use_lock(%mem_0_c0_free, Release, 1)
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
      aie.dma_bd(%core_0_2_a_ping : memref<256xi8>, 0, 256) {bd_id = 0 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%core_0_2_a_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_a_pong : memref<256xi8>, 0, 256) {bd_id = 1 : i32}
      aie.use_lock(%core_0_2_a_full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^s2mm1_bd0:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_ping : memref<128xi8>, 0, 128) {bd_id = 2 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd1
    ^s2mm1_bd1:
      aie.use_lock(%core_0_2_b_free, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_b_pong : memref<128xi8>, 0, 128) {bd_id = 3 : i32}
      aie.use_lock(%core_0_2_b_full, Release, 1)
      aie.next_bd ^s2mm1_bd0
    ^mm2s0_bd0:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_ping : memref<512xi32>, 0, 512) {bd_id = 4 : i32}
      aie.use_lock(%core_0_2_c_free, Release, 1)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%core_0_2_c_full, AcquireGreaterEqual, 1)
      aie.dma_bd(%core_0_2_c_pong : memref<512xi32>, 0, 512) {bd_id = 5 : i32}
      aie.use_lock(%core_0_2_c_free, Release, 1)
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
      %ab_turn_6, %c_turn_4 = scf.for %gemm = %c0 to %forever step %c1 iter_args(%ab_turn = %false, %c_turn = %false) -> (i1, i1) {
        aie.use_lock(%core_0_2_go, AcquireGreaterEqual, 1)
        %k_steps_word = memref.load %core_0_2_rtp[%c0] : memref<16xi32>
        %k_steps = arith.index_cast %k_steps_word : i32 to index
        %tiles_word = memref.load %core_0_2_rtp[%c1] : memref<16xi32>
        %tiles = arith.index_cast %tiles_word : i32 to index
        %ab_turn_5, %c_turn_3 = scf.for %tile = %c0 to %tiles step %c1 iter_args(%ab_turn_1 = %ab_turn, %c_turn_1 = %c_turn) -> (i1, i1) {
          aie.use_lock(%core_0_2_c_free, AcquireGreaterEqual, 1)
          scf.if %c_turn_1 {
            func.call @zero_i32(%core_0_2_c_pong) : (memref<512xi32>) -> ()
          } else {
            func.call @zero_i32(%core_0_2_c_ping) : (memref<512xi32>) -> ()
          }
          %ab_turn_4 = scf.for %k = %c0 to %k_steps step %c1 iter_args(%ab_turn_2 = %ab_turn_1) -> (i1) {
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
            scf.if %ab_turn_2 {
              scf.if %c_turn_1 {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_pong) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_ping) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              }
            } else {
              scf.if %c_turn_1 {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_pong) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_ping) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              }
            }
            aie.use_lock(%core_0_2_a_free, Release, 1)
            aie.use_lock(%core_0_2_b_free, Release, 1)
            %ab_turn_3 = arith.xori %ab_turn_2, %true : i1
            scf.yield %ab_turn_3 : i1
          }
          scf.if %c_turn_1 {
            func.call @unscale_i32(%core_0_2_c_pong) : (memref<512xi32>) -> ()
          } else {
            func.call @unscale_i32(%core_0_2_c_ping) : (memref<512xi32>) -> ()
          }
          aie.use_lock(%core_0_2_c_full, Release, 1)
          %c_turn_2 = arith.xori %c_turn_1, %true : i1
          scf.yield %ab_turn_4, %c_turn_2 : i1, i1
        }
        scf.yield %ab_turn_5, %c_turn_3 : i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    // C (16 x 64) = A (16 x 48) B (48 x 64), edges: A reads 16 columns again; B holds 0 for 16 rows of the last slab
    aie.runtime_sequence @gemm_16x48x64(%A: memref<768xi8>, %B: memref<1024xi8>, %C: memref<1024xi32>) {
      // step 0: 1 row panels from panel 0 on, 2 column steps from step 0 on
      %a0_step0 = aiex.dma_configure_task_for @a_0 {
        aie.dma_bd(%A : memref<768xi8>, 0, 1024, [<size = 2, stride = 16>, <size = 16, stride = 48>, <size = 32, stride = 1>]) {bd_id = 0 : i32}
        aie.end
      } {repeat_count = 1 : i32}
      aiex.dma_start_task(%a0_step0)
      %b0_step0 = aiex.dma_configure_task_for @b_0 {
        aie.dma_bd(%B : memref<1024xi8>, 0, 1024, [<size = 2, stride = 512>, <size = 1, stride = 512>, <size = 512, stride = 1>]) {bd_id = 1 : i32}
        aie.end
      }
      aiex.dma_start_task(%b0_step0)
      // cores may begin: their data are on the way
      aiex.npu.rtp_write(@core_0_2_rtp, 0, 4)
      aiex.npu.rtp_write(@core_0_2_rtp, 1, 2)
      aiex.set_lock(%core_0_2_go, 1)
      // step 0: 1 row panels from panel 0 on, 2 column steps from step 0 on
      %c0_step0 = aiex.dma_configure_task_for @c_0 {
        aie.dma_bd(%C : memref<1024xi32>, 0, 1024, [<size = 2, stride = 32>, <size = 16, stride = 64>, <size = 32, stride = 1>]) {bd_id = 2 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%c0_step0)
      // step 0 is complete when its tokens are here; its BDs are free again
      aiex.npu.sync {channel = 0 : i32, column = 0 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.dma_free_task(%a0_step0)
      aiex.dma_free_task(%b0_step0)
      aiex.dma_free_task(%c0_step0)
    }
  }
}
