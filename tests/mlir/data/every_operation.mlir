// Every operation of the aie and aiex dialects once, in the spellings that people use.
#p = #aie.packet_info<pkt_type = 0, pkt_id = 3>
#dims = #aie<bd_dim_layout_array[<size = 2, stride = 8>, <size = 4, stride = 1>]>
!t = memref<16xi32>
#map = affine_map<(d0) -> (d0 * 2)>
module @top {
  aie.device("npu2") @one {
    %t = aie.tile(0x0, 1) {controller_id = #aie.packet_info<pkt_type = 0, pkt_id = 15>, allocation_scheme = "basic-sequential"} loc("a.mlir":3:4)
    %s = aie.tile(0, 0) loc(#loc1)
    aie.tile(1, 2)
    aie.lock(%t)
    %e = aie.external_buffer {sym_name = "e"} : memref<16xi32>
    %b = aie.buffer(%t) {sym_name = "b", mem_bank = 0 : i32, initial_value = dense<7> : tensor<16xi32>} : !t
    %h = aie.buffer(%t) : memref<4xi32> = dense<"0x01000000020000000300000004000000">
    %z = aie.buffer(%t) : memref<2x2xi32> = dense<[[4294967295, 0x10], [-1, 2]]>
    %f = aie.buffer(%t) : memref<2xbf16> = dense<[1.5, -2.0]>
    %u = aie.buffer(%t) : memref<2xui8> = dense<[255, 0]>
    %n = aie.buffer(%t) : memref<4xi8, 2 : i32>
    %g = aie.buffer(%t) : memref<4x4xi8, strided<[4, 1]>, 1>
    %x = aie.buffer(%t) : memref<4x!aiex.bfp<"v8bfp16ebs8">>
    %l = aie.lock(%t, 3) {sym_name = "l", init = 0x2 : i32}
    aie.flow(%s, "DMA":0, %t, DMA : 0x0)
    aie.flow(%t, Trace : 0, %s, South : 0)
    aie.flow(%t, TileControl : 0, %s, DMA : 1)
    aie.packet_flow(0xFF) { aie.packet_source<%t, "DMA" : 0> aie.packet_dest<%s, DMA:0> } {keep_pkt_header = true, priority_route = false}
    aie.shim_dma_allocation @a(%s, "MM2S", 0, <pkt_id = 3, pkt_type = 0>)
    %md = aie.memtile_dma(%t) {
      %0 = aie.dma_start("S2MM", 5, ^bd, ^end, repeat_count = 0x7)
    ^end:
      aie.end
    ^bd:
      %k = aie.lock(%t, 7)
      aie.use_lock(%k, AcquireGreaterEqual, 1, Blocking) {acq_en = false}
      aie.dma_bd_packet(0, 3)
      aie.dma_bd(%b : !t, 0, 8, [<stride = 8, size = 2>, <size = 4, stride = 1>], [<const_pad_after = 0, const_pad_before = 0>, <const_pad_before = 0, const_pad_after = 0>], pad_value = 0) {burst_length = 0 : i32, bd_id = 0 : i32, next_bd_id = 1 : i32, packet = #p, foo = "bar", ddr_id}
      aie.use_lock(%k, "Release")
      aie.next_bd ^b2
    ^b2:
      aie.dma_bd(%b : !t) {len = 8 : i32, offset = 4 : i32, dimensions = #dims}
      aie.next_bd ^b3
    ^b3:
      aie.dma_bd(%b : !t, 0, 8, [])
      aie.next_bd ^b4
    ^b4:
      aie.dma_bd(%b : !t, 4) {dimensions = #dims}
      aie.next_bd ^bd
    }
    aie.bd_chain @chain(%q: memref<16xi32>, %r: memref<8xi32>) {
      aie.dma_bd(%q : memref<16xi32>, 0, 16)
      aie.next_bd ^n
    ^n:
      aie.dma_bd(%r : memref<8xi32>)
      aie.end
    }
    aie.runtime_sequence @seq(%a: memref<*xi32>, %c: memref<16xi32> loc("x"), %sc: i32, %d: memref<8xi32>) {
      %c0 = arith.constant 0 : i64
      %c8 = arith.constant 8 : i64
      aiex.npu.dma_memcpy_nd (%a[0, %c0, 0, 0] [1, 1, 1, %c8] [0, 0, 0, 1], packet = <pkt_id=3, pkt_type=0>) {id = 0, metadata = @a, burst_length = 64 : i64, issue_token = false} : memref<*xi32>
      %t0 = aiex.dma_start_bd_chain @chain(%c, %d) : (memref<16xi32>, memref<8xi32>) on (%s, MM2S, 0) {issue_token = true}
      %t1 = aiex.dma_start_bd_chain_for @chain(%c, %d) : (memref<16xi32>, memref<8xi32>) for @a {repeat_count = 2 : i32}
      aiex.dma_await_task(%t0)
      %t2 = aiex.dma_configure_task(%s, MM2S, 0, <pkt_type = 0, pkt_id = 1>) {
        aie.next_bd ^l
      ^l:
        aie.dma_bd(%c : memref<16xi32>, 0, 16) 
        aie.next_bd ^l
      } {issue_token = true, repeat_count = 3 : i32}
      aiex.npu.preempt {level = 1 : ui8}
      aiex.npu.load_pdi {device_ref = @two}
      aiex.npu.load_pdi {device_ref = @two, id = 1 : i32, size = 4 : i32, address = 5 : ui64}
      aiex.control_packet {address = 0x1D000 : ui32, data = array<i32: 1, -2>, opcode = 0 : i32, stream_id = 1 : i32}
      aiex.control_packet {address = 0x1D000 : ui32, length = 2 : i32, opcode = 1 : i32, stream_id = 1 : i32}
      aiex.npu.push_queue(0, 0, MM2S : 0) {issue_token = false, repeat_count = 0 : i32, bd_id = 0 : i32}
      aiex.npu.address_patch {addr = 123 : ui32, arg_idx = 0 : i32, arg_plus = 4 : i32}
      aiex.npu.write32 {address = 0 : ui32, value = 4294967295 : ui32, buffer = @b}
      aiex.npu.rtp_write(@b, 0, -5)
      aiex.set_lock(%l, 63)
      aiex.configure @two {
        aiex.run @s2(%c) : (memref<16xi32>)
        aiex.run @s3() : ()
      }
      aiex.configure @two { }
      %v = memref.subview %c[8][8][1] : memref<16xi32> to memref<8xi32, strided<[1], offset: 8>>
      %rc = memref.reinterpret_cast %c to offset: [0], sizes: [4, 4], strides: [4, 1] : memref<16xi32> to memref<4x4xi32>
      %cast = memref.cast %c : memref<16xi32> to memref<?xi32>
      memref.assume_alignment %c, 64 : memref<16xi32>
      scf.for %i = %c0 to %c8 step %c8 : i64 { }
    }
  } {author = "me"}
  aie.device(npu2) {
     aie.runtime_sequence @s2(%a : memref<16xi32>) {}
     aie.runtime_sequence @s3() {}
     memref.global "public" @w : memref<4xi32>
     memref.global constant @w2 : memref<4xi32> = dense<3> {alignment = 64 : i64}
     memref.global @w3 : memref<4xi32> = uninitialized
     func.func @f(%x: i32, %l : index) -> i32 {
       aie.use_lock(%l, Acquire, 1)
       return %x : i32
     }
  } {sym_name = "two"}
}
#loc1 = loc("x.py":1:2)
