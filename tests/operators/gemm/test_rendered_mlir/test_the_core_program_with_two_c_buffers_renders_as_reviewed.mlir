    %run_core_0_2 = aie.core(%core_0_2) {
      %zero = arith.constant 0 : index
      %one = arith.constant 1 : index
      %forever = arith.constant 9223372036854775807 : index
      %even = arith.constant false
      %flip = arith.constant true
      scf.for %gemm = %zero to %forever step %one iter_args(%turn = %even, %c_turn = %even) -> (i1, i1) {
        aie.use_lock(%core_0_2_go, AcquireGreaterEqual, 1)
        %k_steps_word = memref.load %core_0_2_rtp[%zero] : memref<16xi32>
        %tiles_word = memref.load %core_0_2_rtp[%one] : memref<16xi32>
        %k_steps = arith.index_cast %k_steps_word : i32 to index
        %tiles = arith.index_cast %tiles_word : i32 to index
        %after:2 = scf.for %tile = %zero to %tiles step %one iter_args(%tile_turn = %turn, %c_is_1 = %c_turn) -> (i1, i1) {
          %c_is_0 = arith.xori %c_is_1, %flip : i1
          aie.use_lock(%core_0_2_c_free, AcquireGreaterEqual, 1)
          scf.if %c_is_0 {
            func.call @zero_i32(%core_0_2_c_ping) : (memref<512xi32>) -> ()
          }
          scf.if %c_is_1 {
            func.call @zero_i32(%core_0_2_c_pong) : (memref<512xi32>) -> ()
          }
          %turns = scf.for %k = %zero to %k_steps step %one iter_args(%odd = %tile_turn) -> (i1) {
            aie.use_lock(%core_0_2_a_full, AcquireGreaterEqual, 1)
            aie.use_lock(%core_0_2_b_full, AcquireGreaterEqual, 1)
            scf.if %c_is_0 {
              scf.if %odd {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_ping) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_ping) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              }
            }
            scf.if %c_is_1 {
              scf.if %odd {
                func.call @mm_i8_i2_i32(%core_0_2_a_pong, %core_0_2_b_pong, %core_0_2_c_pong) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              } else {
                func.call @mm_i8_i2_i32(%core_0_2_a_ping, %core_0_2_b_ping, %core_0_2_c_pong) : (memref<256xi8>, memref<128xi8>, memref<512xi32>) -> ()
              }
            }
            aie.use_lock(%core_0_2_a_free, Release, 1)
            aie.use_lock(%core_0_2_b_free, Release, 1)
            %flipped = arith.xori %odd, %flip : i1
            scf.yield %flipped : i1
          }
          scf.if %c_is_0 {
            func.call @unscale_i32(%core_0_2_c_ping) : (memref<512xi32>) -> ()
          }
          scf.if %c_is_1 {
            func.call @unscale_i32(%core_0_2_c_pong) : (memref<512xi32>) -> ()
          }
          aie.use_lock(%core_0_2_c_full, Release, 1)
          scf.yield %turns, %c_is_0 : i1, i1
        }
        scf.yield %after#0, %after#1 : i1, i1
      }
      aie.end
    } {link_with = "small.o", stack_size = 4096 : i32}

    // C (40 x 64) = A (40 x 48) B (48 x 64), edges: A reads 8 rows again; C writes 8 rows again
    