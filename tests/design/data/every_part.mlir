// first
// second
module {
  aie.device(npu2_2col) {
    %shim = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %core = aie.tile(0, 2) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}
    %beside = aie.tile(1, 2) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 27>}


    // down
    aie.flow(%shim, DMA : 0, %mem, DMA : 0)
    aie.flow(%mem, DMA : 1, %core, DMA : 0)
    aie.flow(%mem, DMA : 1, %beside, DMA : 0)

    // packets
    aie.packet_flow(7) { aie.packet_source<%mem, DMA : 0> aie.packet_dest<%core, DMA : 1> aie.packet_dest<%shim, DMA : 1> }
    aie.packet_flow(0) { aie.packet_source<%core, DMA : 1> aie.packet_dest<%shim, DMA : 0> } {keep_pkt_header = true}
    aie.cascade_flow(%core, %beside)

    aie.shim_dma_allocation @all_mm2s (%shim, MM2S, 0)
    aie.shim_dma_allocation @all_s2mm (%shim, S2MM, 0)

    func.func private @work(memref<16xf32>, memref<16xf32>, i32, i32)
    func.func private @other(memref<16xf32>, i32)

    // memtile (0, 1)
    %small = aie.buffer(%mem) {address = 0 : i32, sym_name = "small"} : memref<8xi32>  // numbers; bank 0
    %large = aie.buffer(%mem) {address = 65536 : i32, sym_name = "large"} : memref<70000xi8>  // banks 1 to 2
    %free = aie.lock(%mem, 0) {init = 2 : i32, sym_name = "free"}  // room
    %full = aie.lock(%mem, 1) {init = 0 : i32, sym_name = "full"}

    // core (0, 2)
    %parameters = aie.buffer(%core) {address = 2048 : i32, sym_name = "parameters"} : memref<65xi32>  // bank 0
    %line_0 = aie.buffer(%core) {address = 2368 : i32, sym_name = "line_0"} : memref<16xf32>  // bank 0
    %line_1 = aie.buffer(%core) {address = 2432 : i32, sym_name = "line_1"} : memref<16xf32> = dense<[0.5, -2.0, 0.5, -2.0, 0.5, -2.0, 0.5, -2.0, 0.5, -2.0, 0.5, -2.0, 0.5, -2.0, 0.5, -2.0]>  // bank 0
    %go = aie.lock(%core, 0) {init = 1 : i32, sym_name = "go"}  // set when parameters are there

    %dma_mem = aie.memtile_dma(%mem) {
      %0 = aie.dma_start(S2MM, 0, ^s2mm0_bd0, ^start1)  // from the host
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^mm2s0_bd0, ^start2)
    ^start2:
      %2 = aie.dma_start(MM2S, 0, ^mm2s0_task1_bd0, ^end, repeat_count = 1)  // twice
    ^s2mm0_bd0:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%small : memref<8xi32>, 0, 8) {bd_id = 0 : i32}
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^s2mm0_bd1
    ^s2mm0_bd1:
      aie.use_lock(%free, AcquireGreaterEqual, 1)
      aie.dma_bd(%large : memref<70000xi8>, 0, 70000) {bd_id = 1 : i32}
      aie.use_lock(%full, Release, 1)
      aie.next_bd ^s2mm0_bd0
    ^mm2s0_bd0:
      aie.use_lock(%full, AcquireGreaterEqual, 1)
      aie.dma_bd(%small : memref<8xi32>, 4, 4) {bd_id = 2 : i32, packet = #aie.packet_info<pkt_type = 3, pkt_id = 7>}
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_bd1:
      aie.use_lock(%full, Acquire, 1)
      aie.dma_bd(%small : memref<8xi32>, 0, 18, [<size = 2, stride = 4>, <size = 4, stride = 1>], [<const_pad_before = 1, const_pad_after = 0>, <const_pad_before = 0, const_pad_after = 2>]) {bd_id = 3 : i32}
      aie.use_lock(%free, Release, 2)
      aie.next_bd ^mm2s0_bd1
    ^mm2s0_task1_bd0:
      aie.dma_bd(%small : memref<8xi32>, 0, 8) {bd_id = 4 : i32}
      aie.next_bd ^end
    ^end:
      aie.end
    }

    %run_core = aie.core(%core) {
      %false = arith.constant false
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %cm3_i32 = arith.constant -3 : i32
      %true = arith.constant true
      %c2 = arith.constant 2 : index
      %c3 = arith.constant 3 : index
      %cm2 = arith.constant -2 : index
      %c2_i32 = arith.constant 2 : i32
      %c3_i32 = arith.constant 3 : i32
      %forever = arith.constant 9223372036854775807 : index
      %c1p5_f32 = arith.constant 1.5 : f32
      aie.use_lock(%go, AcquireGreaterEqual, 1)
      %rounds_word = memref.load %parameters[%c1] : memref<65xi32>
      %rounds = arith.index_cast %rounds_word : i32 to index
      %pair_turn_2 = scf.for %i = %c0 to %rounds step %c1 iter_args(%pair_turn = %false) -> (i1) {
        scf.if %pair_turn {
          func.call @work(%line_1, %line_0, %cm3_i32, %rounds_word) : (memref<16xf32>, memref<16xf32>, i32, i32) -> ()
        } else {
          func.call @work(%line_0, %line_0, %cm3_i32, %rounds_word) : (memref<16xf32>, memref<16xf32>, i32, i32) -> ()
        }
        %pair_turn_1 = arith.xori %pair_turn, %true : i1
        scf.yield %pair_turn_1 : i1
      }
      %three_turn_2 = scf.for %k = %c0 to %c2 step %c1 iter_args(%three_turn = %c0) -> (index) {
        %k_i32 = arith.index_cast %k : index to i32
        %mine = arith.cmpi eq, %three_turn, %c2 : index
        scf.if %mine {
          func.call @other(%line_0, %k_i32) : (memref<16xf32>, i32) -> ()
        } else {
          %mine_1 = arith.cmpi eq, %three_turn, %c1 : index
          scf.if %mine_1 {
            func.call @other(%line_0, %k_i32) : (memref<16xf32>, i32) -> ()
          } else {
            func.call @other(%line_1, %k_i32) : (memref<16xf32>, i32) -> ()
          }
        }
        %next = arith.addi %three_turn, %c1 : index
        %around = arith.cmpi eq, %next, %c3 : index
        %three_turn_1 = arith.select %around, %c0, %next : index
        scf.yield %three_turn_1 : index
      }
      %mine_2 = arith.cmpi eq, %rounds, %c1 : index
      %pair_turn_5, %three_turn_5 = scf.if %mine_2 -> (i1, index) {
        %pair_turn_3 = arith.xori %pair_turn_2, %true : i1
        %next_1 = arith.addi %three_turn_2, %c1 : index
        %around_1 = arith.cmpi eq, %next_1, %c3 : index
        %three_turn_3 = arith.select %around_1, %c0, %next_1 : index
        scf.yield %pair_turn_3, %three_turn_3 : i1, index
      } else {
        %mine_3 = arith.cmpi eq, %rounds, %cm2 : index
        %pair_turn_4, %three_turn_4 = scf.if %mine_3 -> (i1, index) {
          func.call @work(%line_0, %line_1, %c2_i32, %c3_i32) : (memref<16xf32>, memref<16xf32>, i32, i32) -> ()
          scf.yield %pair_turn_2, %three_turn_2 : i1, index
        } else {
          aie.use_lock(%go, Release, 1)
          scf.yield %pair_turn_2, %three_turn_2 : i1, index
        }
        scf.yield %pair_turn_4, %three_turn_4 : i1, index
      }
      %mine_4 = arith.cmpi eq, %rounds, %c0 : index
      scf.if %mine_4 {
        %more_word = memref.load %parameters[%rounds] : memref<65xi32>
        %more = arith.index_cast %more_word : i32 to index
        memref.store %more_word, %parameters[%c0] : memref<65xi32>
      }
      scf.for %round = %c0 to %forever step %c1 {
        memref.store %rounds_word, %parameters[%c2] : memref<65xi32>
        memref.store %c1p5_f32, %line_1[%c0] : memref<16xf32>
        aie.use_lock(%go, Release, 2)
      }
      aie.end
    } {link_with = "work.o", stack_size = 2048 : i32}

    %run_beside = aie.core(%beside) {
      aie.end
    } {stack_size = 1024 : i32}

    memref.global "private" constant @run_registers_0 : memref<3xi32> = dense<[1, 2, -1]>
    memref.global "private" constant @run_registers_1 : memref<2xi32> = dense<[4, 5]>
    // what runs
    aie.runtime_sequence @run(%a: memref<4096xi8>, %c: memref<512xi32>) {
      %run_registers_0 = memref.get_global @run_registers_0 : memref<3xi32>
      %run_registers_1 = memref.get_global @run_registers_1 : memref<2xi32>
      // step 0: all at once
      %allmm2s_step0 = aiex.dma_configure_task_for @all_mm2s {
        aie.dma_bd(%a : memref<4096xi8>, 128, 64) {bd_id = 3 : i32}
        aie.next_bd ^allmm2s_step0_bd1
      ^allmm2s_step0_bd1:
        aie.dma_bd(%a : memref<4096xi8>, 5, 32, [<size = 3, stride = 0>, <size = 2, stride = 64>, <size = 2, stride = 16>, <size = 8, stride = 1>]) {bd_id = 4 : i32}
        aie.end
      }
      aiex.dma_start_task(%allmm2s_step0)
      // cores may begin: their data are on the way
      aiex.npu.rtp_write(@parameters, 0, 9)
      aiex.npu.rtp_write(@parameters, 63, 8)
      aiex.npu.write32 {address = 2099456 : ui32, value = 7 : ui32}
      aiex.set_lock(%full, 2)
      // step 0: all at once
      %allmm2s_step0_2 = aiex.dma_configure_task_for @all_mm2s {
        aie.dma_bd(%a : memref<4096xi8>, 0, 64) {bd_id = 5 : i32}
        aie.end
      } {repeat_count = 2 : i32}
      aiex.dma_start_task(%allmm2s_step0_2)
      %alls2mm_step0 = aiex.dma_configure_task_for @all_s2mm {
        aie.dma_bd(%c : memref<512xi32>, 0, 32, [<size = 4, stride = 16>, <size = 8, stride = 1>]) {bd_id = 0 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%alls2mm_step0)
      %alls2mm_step0_2 = aiex.dma_configure_task_for @all_s2mm {
        aie.dma_bd(%c : memref<512xi32>, 64, 32, [<size = 4, stride = 16>, <size = 8, stride = 1>]) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true, repeat_count = 63 : i32}
      aiex.dma_start_task(%alls2mm_step0_2)
      // BDs, locks and tasks of memtiles
      aiex.npu.blockwrite(%run_registers_0) {address = 1703936 : ui32} : memref<3xi32>
      aiex.npu.blockwrite(%run_registers_0) {address = 1703968 : ui32} : memref<3xi32>
      aiex.npu.blockwrite(%run_registers_1) {address = 1704000 : ui32} : memref<2xi32>
      // step 0 is complete when its tokens are here; its BDs are free again
      aiex.npu.sync {channel = 0 : i32, column = 0 : i32, column_num = 2 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 1 : i32, column = 1 : i32, column_num = 1 : i32, direction = 1 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.dma_free_task(%allmm2s_step0)
      aiex.dma_free_task(%allmm2s_step0_2)
      aiex.dma_free_task(%alls2mm_step0)
      aiex.dma_free_task(%alls2mm_step0_2)
    }
  }
}
