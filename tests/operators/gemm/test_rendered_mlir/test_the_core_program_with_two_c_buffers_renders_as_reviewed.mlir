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

    // C (40 x 64) = A (40 x 48) B (48 x 64), edges: A reads 8 rows again; C writes 8 rows again
    