// finish_i32_i8: makes int8 results of the int32 sums of one core tile of C, in place.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   c   int32, m x n, micro-tiled [m/R][n/8][R][8] (inside column by column when C_TRANSPOSED), V-byte aligned. The
//       int8 results replace it from its first byte on, dense, in the same order. Once per C tile, after the last
//       step of K.
//   bias   only when BIAS: int32, n, V-byte aligned, apart from c; added to every row first.
//   m % R == 0, n % 8 == 0; n % 32 == 0 when FIELD_SCALED, which says that column block 4 q + j of c is scaled by 4^j.
//   result = max(0 if RELU, saturate(round((sum + bias) / 2^SHIFT))). SHIFT is 0 by default, ROUNDING conv_even;
//       rounding and saturation are set by every call and stay.
//   Overflow: sum + bias wraps in 32 bit. When FIELD_SCALED the sum is scaled already, and bias * 4^j is clamped to
//       32 bit before it is added.
//
// Idea and cost: one micro-tile at a time through an accumulator: 4 loads and one or two stores with
//   shift-round-saturate for 8 R lanes, about m * n / (2 R) cycles per C tile (modelled, not measured), and nothing per
//   step of K. BIAS and RELU add 4 and 1 operations of the move slot.
#include "../include/finish.h"

extern "C" void finish_i32_i8(BIAS_PARAMETER int32_t *c PASS_PARAMETER) {
    finish<mac_rows, 8, int8>(bias, c + pass * c_elements);
}
