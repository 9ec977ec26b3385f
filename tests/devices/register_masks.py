"""Every register field as the register lists have it: name, word of its group and mask."""

MASKS = {
    "CORE_BD": (
        "address 0 0fffc000, length 0 00003fff, compress 1 80000000, packet_enable 1 40000000, out_of_order_id 1 "
        "3f000000, packet_id 1 00f80000, packet_type 1 00070000, d1_step 2 03ffe000, d0_step 2 00001fff, d1_wrap 3 "
        "1fe00000, d0_wrap 3 001fe000, d2_step 3 00001fff, iteration_current 4 01f80000, iteration_wrap 4 0007e000, "
        "iteration_step 4 00001fff, suppress_tlast 5 80000000, next 5 78000000, use_next 5 04000000, valid 5 "
        "02000000, release_value 5 01fc0000, release_id 5 0001e000, acquire_enable 5 00001000, acquire_value 5 "
        "00000fe0, acquire_id 5 0000000f"
    ),
    "MEMTILE_BD": (
        "packet_enable 0 80000000, packet_type 0 70000000, packet_id 0 0f800000, out_of_order_id 0 007e0000, length 0 "
        "0001ffff, d0_pad_before 1 fc000000, next 1 03f00000, use_next 1 00080000, address 1 0007ffff, suppress_tlast "
        "2 80000000, d0_wrap 2 07fe0000, d0_step 2 0001ffff, d1_pad_before 3 f8000000, d1_wrap 3 07fe0000, d1_step 3 "
        "0001ffff, compress 4 80000000, d2_pad_before 4 78000000, d2_wrap 4 07fe0000, d2_step 4 0001ffff, "
        "d2_pad_after 5 f0000000, d1_pad_after 5 0f800000, d0_pad_after 5 007e0000, d3_step 5 0001ffff, "
        "iteration_current 6 1f800000, iteration_wrap 6 007e0000, iteration_step 6 0001ffff, valid 7 80000000, "
        "release_value 7 7f000000, release_id 7 00ff0000, acquire_enable 7 00008000, acquire_value 7 00007f00, "
        "acquire_id 7 000000ff"
    ),
    "SHIM_BD": (
        "length 0 ffffffff, address_low 1 ffffffff, address_high 2 0000ffff, packet_enable 2 40000000, "
        "out_of_order_id 2 3f000000, packet_id 2 00f80000, packet_type 2 00070000, d0_wrap 3 3ff00000, d0_step 3 "
        "000fffff, burst 4 c0000000, d1_wrap 4 3ff00000, d1_step 4 000fffff, axi_cache 5 0f000000, axi_qos 5 "
        "00f00000, d2_step 5 000fffff, iteration_current 6 fc000000, iteration_wrap 6 03f00000, iteration_step 6 "
        "000fffff, suppress_tlast 7 80000000, next 7 78000000, use_next 7 04000000, valid 7 02000000, release_value 7 "
        "01fc0000, release_id 7 0001e000, acquire_enable 7 00001000, acquire_value 7 00000fe0, acquire_id 7 0000000f"
    ),
    "QUEUE": "token 0 80000000, repeat 0 00ff0000, bd 0 0000000f",
    "MEMTILE_QUEUE": "token 0 80000000, repeat 0 00ff0000, bd 0 0000003f",
    "SHIM_CONTROL": (
        "finish_on_tlast 0 00030000, controller_id 0 0000ff00, out_of_order 0 00000008, pause_stream 0 00000004, "
        "pause_memory 0 00000002"
    ),
    "CONTROL": (
        "finish_on_tlast 0 00030000, controller_id 0 0000ff00, compression 0 00000010, out_of_order 0 00000008, reset "
        "0 00000002, enable 0 00000001"
    ),
    "PACKET_HEADER": (
        "parity 0 80000000, source_column 0 0fe00000, source_row 0 001f0000, type 0 00007000, id 0 0000001f"
    ),
    "CONTROL_PACKET": (
        "parity 0 80000000, response_id 0 7f000000, operation 0 00c00000, words 0 00300000, offset 0 000fffff"
    ),
    "STATUS": (
        "bd 0 0f000000, queue_size 0 00700000, running 0 00080000, queue_overflow 0 00040000, stream_stall 0 "
        "00000010, acquire_stall 0 00000004, state 0 00000003"
    ),
    "MEMTILE_STATUS": (
        "bd 0 3f000000, queue_size 0 00700000, running 0 00080000, queue_overflow 0 00040000, stream_stall 0 "
        "00000010, acquire_stall 0 00000004, state 0 00000003"
    ),
    "CIRCUIT_MASTER": "enable 0 80000000, packet 0 40000000, slave 0 0000007f",
    "PACKET_MASTER": (
        "enable 0 80000000, packet 0 40000000, drop_header 0 00000080, msels 0 00000078, arbiter 0 00000007"
    ),
    "SLAVE": "enable 0 80000000, packet 0 40000000",
    "RULE": "id 0 1f000000, mask 0 001f0000, enable 0 00000100, msel 0 00000030, arbiter 0 00000007",
    "SHIM_MUX": "south_2 0 00000300, south_3 0 00000c00, south_6 0 00003000, south_7 0 0000c000",
    "SHIM_DEMUX": "south_2 0 00000030, south_3 0 000000c0, south_4 0 00000300, south_5 0 00000c00",
    "CASCADE": "output_east 0 00000002, input_west 0 00000001",
}
