// Eight columns pass 16 KiB each from DRAM through their memtiles and back: eight tokens, one wait for each column.
// docs/strix_halo.md takes it as the second step on an NPU.
module {
  aie.device(npu2) {
    %shim_0 = aie.tile(0, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_0 = aie.tile(0, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_1 = aie.tile(1, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_1 = aie.tile(1, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_2 = aie.tile(2, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_2 = aie.tile(2, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_3 = aie.tile(3, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_3 = aie.tile(3, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_4 = aie.tile(4, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_4 = aie.tile(4, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_5 = aie.tile(5, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_5 = aie.tile(5, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_6 = aie.tile(6, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_6 = aie.tile(6, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}
    %shim_7 = aie.tile(7, 0) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>}
    %mem_7 = aie.tile(7, 1) {allocation_scheme = "basic-sequential", controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 26>}

    // column 0
    aie.flow(%shim_0, DMA : 0, %mem_0, DMA : 0)
    aie.flow(%mem_0, DMA : 0, %shim_0, DMA : 0)
    aie.shim_dma_allocation @in_0 (%shim_0, MM2S, 0)
    aie.shim_dma_allocation @out_0 (%shim_0, S2MM, 0)
    %ping_0 = aie.buffer(%mem_0) {address = 0 : i32, sym_name = "ping_0"} : memref<1024xi32>  // bank 0
    %pong_0 = aie.buffer(%mem_0) {address = 65536 : i32, sym_name = "pong_0"} : memref<1024xi32>  // bank 1
    %free_0 = aie.lock(%mem_0, 0) {init = 2 : i32, sym_name = "free_0"}
    %full_0 = aie.lock(%mem_0, 1) {init = 0 : i32, sym_name = "full_0"}
    %dma_0 = aie.memtile_dma(%mem_0) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_0 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_0, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_0 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_0, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_0 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_0, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_0, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_0 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_0, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 1
    aie.flow(%shim_1, DMA : 0, %mem_1, DMA : 0)
    aie.flow(%mem_1, DMA : 0, %shim_1, DMA : 0)
    aie.shim_dma_allocation @in_1 (%shim_1, MM2S, 0)
    aie.shim_dma_allocation @out_1 (%shim_1, S2MM, 0)
    %ping_1 = aie.buffer(%mem_1) {address = 0 : i32, sym_name = "ping_1"} : memref<1024xi32>  // bank 0
    %pong_1 = aie.buffer(%mem_1) {address = 65536 : i32, sym_name = "pong_1"} : memref<1024xi32>  // bank 1
    %free_1 = aie.lock(%mem_1, 0) {init = 2 : i32, sym_name = "free_1"}
    %full_1 = aie.lock(%mem_1, 1) {init = 0 : i32, sym_name = "full_1"}
    %dma_1 = aie.memtile_dma(%mem_1) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_1, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_1 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_1, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_1, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_1 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_1, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_1, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_1 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_1, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_1, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_1 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_1, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 2
    aie.flow(%shim_2, DMA : 0, %mem_2, DMA : 0)
    aie.flow(%mem_2, DMA : 0, %shim_2, DMA : 0)
    aie.shim_dma_allocation @in_2 (%shim_2, MM2S, 0)
    aie.shim_dma_allocation @out_2 (%shim_2, S2MM, 0)
    %ping_2 = aie.buffer(%mem_2) {address = 0 : i32, sym_name = "ping_2"} : memref<1024xi32>  // bank 0
    %pong_2 = aie.buffer(%mem_2) {address = 65536 : i32, sym_name = "pong_2"} : memref<1024xi32>  // bank 1
    %free_2 = aie.lock(%mem_2, 0) {init = 2 : i32, sym_name = "free_2"}
    %full_2 = aie.lock(%mem_2, 1) {init = 0 : i32, sym_name = "full_2"}
    %dma_2 = aie.memtile_dma(%mem_2) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_2, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_2 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_2, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_2, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_2 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_2, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_2, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_2 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_2, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_2, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_2 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_2, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 3
    aie.flow(%shim_3, DMA : 0, %mem_3, DMA : 0)
    aie.flow(%mem_3, DMA : 0, %shim_3, DMA : 0)
    aie.shim_dma_allocation @in_3 (%shim_3, MM2S, 0)
    aie.shim_dma_allocation @out_3 (%shim_3, S2MM, 0)
    %ping_3 = aie.buffer(%mem_3) {address = 0 : i32, sym_name = "ping_3"} : memref<1024xi32>  // bank 0
    %pong_3 = aie.buffer(%mem_3) {address = 65536 : i32, sym_name = "pong_3"} : memref<1024xi32>  // bank 1
    %free_3 = aie.lock(%mem_3, 0) {init = 2 : i32, sym_name = "free_3"}
    %full_3 = aie.lock(%mem_3, 1) {init = 0 : i32, sym_name = "full_3"}
    %dma_3 = aie.memtile_dma(%mem_3) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_3, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_3 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_3, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_3, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_3 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_3, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_3, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_3 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_3, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_3, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_3 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_3, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 4
    aie.flow(%shim_4, DMA : 0, %mem_4, DMA : 0)
    aie.flow(%mem_4, DMA : 0, %shim_4, DMA : 0)
    aie.shim_dma_allocation @in_4 (%shim_4, MM2S, 0)
    aie.shim_dma_allocation @out_4 (%shim_4, S2MM, 0)
    %ping_4 = aie.buffer(%mem_4) {address = 0 : i32, sym_name = "ping_4"} : memref<1024xi32>  // bank 0
    %pong_4 = aie.buffer(%mem_4) {address = 65536 : i32, sym_name = "pong_4"} : memref<1024xi32>  // bank 1
    %free_4 = aie.lock(%mem_4, 0) {init = 2 : i32, sym_name = "free_4"}
    %full_4 = aie.lock(%mem_4, 1) {init = 0 : i32, sym_name = "full_4"}
    %dma_4 = aie.memtile_dma(%mem_4) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_4, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_4 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_4, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_4, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_4 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_4, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_4, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_4 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_4, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_4, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_4 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_4, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 5
    aie.flow(%shim_5, DMA : 0, %mem_5, DMA : 0)
    aie.flow(%mem_5, DMA : 0, %shim_5, DMA : 0)
    aie.shim_dma_allocation @in_5 (%shim_5, MM2S, 0)
    aie.shim_dma_allocation @out_5 (%shim_5, S2MM, 0)
    %ping_5 = aie.buffer(%mem_5) {address = 0 : i32, sym_name = "ping_5"} : memref<1024xi32>  // bank 0
    %pong_5 = aie.buffer(%mem_5) {address = 65536 : i32, sym_name = "pong_5"} : memref<1024xi32>  // bank 1
    %free_5 = aie.lock(%mem_5, 0) {init = 2 : i32, sym_name = "free_5"}
    %full_5 = aie.lock(%mem_5, 1) {init = 0 : i32, sym_name = "full_5"}
    %dma_5 = aie.memtile_dma(%mem_5) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_5, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_5 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_5, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_5, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_5 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_5, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_5, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_5 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_5, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_5, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_5 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_5, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 6
    aie.flow(%shim_6, DMA : 0, %mem_6, DMA : 0)
    aie.flow(%mem_6, DMA : 0, %shim_6, DMA : 0)
    aie.shim_dma_allocation @in_6 (%shim_6, MM2S, 0)
    aie.shim_dma_allocation @out_6 (%shim_6, S2MM, 0)
    %ping_6 = aie.buffer(%mem_6) {address = 0 : i32, sym_name = "ping_6"} : memref<1024xi32>  // bank 0
    %pong_6 = aie.buffer(%mem_6) {address = 65536 : i32, sym_name = "pong_6"} : memref<1024xi32>  // bank 1
    %free_6 = aie.lock(%mem_6, 0) {init = 2 : i32, sym_name = "free_6"}
    %full_6 = aie.lock(%mem_6, 1) {init = 0 : i32, sym_name = "full_6"}
    %dma_6 = aie.memtile_dma(%mem_6) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_6, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_6 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_6, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_6, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_6 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_6, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_6, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_6 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_6, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_6, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_6 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_6, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    // column 7
    aie.flow(%shim_7, DMA : 0, %mem_7, DMA : 0)
    aie.flow(%mem_7, DMA : 0, %shim_7, DMA : 0)
    aie.shim_dma_allocation @in_7 (%shim_7, MM2S, 0)
    aie.shim_dma_allocation @out_7 (%shim_7, S2MM, 0)
    %ping_7 = aie.buffer(%mem_7) {address = 0 : i32, sym_name = "ping_7"} : memref<1024xi32>  // bank 0
    %pong_7 = aie.buffer(%mem_7) {address = 65536 : i32, sym_name = "pong_7"} : memref<1024xi32>  // bank 1
    %free_7 = aie.lock(%mem_7, 0) {init = 2 : i32, sym_name = "free_7"}
    %full_7 = aie.lock(%mem_7, 1) {init = 0 : i32, sym_name = "full_7"}
    %dma_7 = aie.memtile_dma(%mem_7) {
      %0 = aie.dma_start(S2MM, 0, ^in0, ^start1)
    ^start1:
      %1 = aie.dma_start(MM2S, 0, ^out0, ^end)
    ^in0:
      aie.use_lock(%free_7, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_7 : memref<1024xi32>, 0, 1024) {bd_id = 0 : i32}
      aie.use_lock(%full_7, Release, 1)
      aie.next_bd ^in1
    ^in1:
      aie.use_lock(%free_7, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_7 : memref<1024xi32>, 0, 1024) {bd_id = 1 : i32}
      aie.use_lock(%full_7, Release, 1)
      aie.next_bd ^in0
    ^out0:
      aie.use_lock(%full_7, AcquireGreaterEqual, 1)
      aie.dma_bd(%ping_7 : memref<1024xi32>, 0, 1024) {bd_id = 2 : i32}
      aie.use_lock(%free_7, Release, 1)
      aie.next_bd ^out1
    ^out1:
      aie.use_lock(%full_7, AcquireGreaterEqual, 1)
      aie.dma_bd(%pong_7 : memref<1024xi32>, 0, 1024) {bd_id = 3 : i32}
      aie.use_lock(%free_7, Release, 1)
      aie.next_bd ^out0
    ^end:
      aie.end
    }

    aie.runtime_sequence @copy(%from: memref<32768xi32>, %to: memref<32768xi32>) {
      %in0 = aiex.dma_configure_task_for @in_0 {
        aie.dma_bd(%from : memref<32768xi32>, 0, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in0)
      %out0 = aiex.dma_configure_task_for @out_0 {
        aie.dma_bd(%to : memref<32768xi32>, 0, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out0)
      %in1 = aiex.dma_configure_task_for @in_1 {
        aie.dma_bd(%from : memref<32768xi32>, 4096, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in1)
      %out1 = aiex.dma_configure_task_for @out_1 {
        aie.dma_bd(%to : memref<32768xi32>, 4096, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out1)
      %in2 = aiex.dma_configure_task_for @in_2 {
        aie.dma_bd(%from : memref<32768xi32>, 8192, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in2)
      %out2 = aiex.dma_configure_task_for @out_2 {
        aie.dma_bd(%to : memref<32768xi32>, 8192, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out2)
      %in3 = aiex.dma_configure_task_for @in_3 {
        aie.dma_bd(%from : memref<32768xi32>, 12288, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in3)
      %out3 = aiex.dma_configure_task_for @out_3 {
        aie.dma_bd(%to : memref<32768xi32>, 12288, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out3)
      %in4 = aiex.dma_configure_task_for @in_4 {
        aie.dma_bd(%from : memref<32768xi32>, 16384, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in4)
      %out4 = aiex.dma_configure_task_for @out_4 {
        aie.dma_bd(%to : memref<32768xi32>, 16384, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out4)
      %in5 = aiex.dma_configure_task_for @in_5 {
        aie.dma_bd(%from : memref<32768xi32>, 20480, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in5)
      %out5 = aiex.dma_configure_task_for @out_5 {
        aie.dma_bd(%to : memref<32768xi32>, 20480, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out5)
      %in6 = aiex.dma_configure_task_for @in_6 {
        aie.dma_bd(%from : memref<32768xi32>, 24576, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in6)
      %out6 = aiex.dma_configure_task_for @out_6 {
        aie.dma_bd(%to : memref<32768xi32>, 24576, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out6)
      %in7 = aiex.dma_configure_task_for @in_7 {
        aie.dma_bd(%from : memref<32768xi32>, 28672, 4096) {bd_id = 0 : i32}
        aie.end
      }
      aiex.dma_start_task(%in7)
      %out7 = aiex.dma_configure_task_for @out_7 {
        aie.dma_bd(%to : memref<32768xi32>, 28672, 4096) {bd_id = 1 : i32}
        aie.end
      } {issue_token = true}
      aiex.dma_start_task(%out7)
      aiex.npu.sync {channel = 0 : i32, column = 0 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 1 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 2 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 3 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 4 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 5 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 6 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.npu.sync {channel = 0 : i32, column = 7 : i32, column_num = 1 : i32, direction = 0 : i32, row = 0 : i32, row_num = 1 : i32}
      aiex.dma_free_task(%in0)
      aiex.dma_free_task(%out0)
      aiex.dma_free_task(%in1)
      aiex.dma_free_task(%out1)
      aiex.dma_free_task(%in2)
      aiex.dma_free_task(%out2)
      aiex.dma_free_task(%in3)
      aiex.dma_free_task(%out3)
      aiex.dma_free_task(%in4)
      aiex.dma_free_task(%out4)
      aiex.dma_free_task(%in5)
      aiex.dma_free_task(%out5)
      aiex.dma_free_task(%in6)
      aiex.dma_free_task(%out6)
      aiex.dma_free_task(%in7)
      aiex.dma_free_task(%out7)
    }
  }
}
