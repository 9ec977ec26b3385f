// unscale_i32: divides the column blocks of one core tile of C by the 4^j that mm_i8_i2_i32 left in them.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   c   int32, m x n, micro-tiled [m/R][n/8][R][8], V-byte aligned, in place; m % R == 0, n % 32 == 0. Column block
//       4 q + j is shifted right by 2 j, then clamped below at 0 when RELU. Once per C tile, after the last step of K.
//   Rounding and saturation: set to floor and saturate, because another kernel on this core may have left others;
//       they stay so. On sums that mm_i8_i2_i32 made, all multiples of 4^j, the shift is exact and neither acts.
//   Overflow: none, magnitudes only shrink.
//
// This is finish_i32_i32 (include/finish.h) with FIELD_SCALED, floor and no shift of its own.
// Cost: 2 R lanes take a load with upshift and a store with shift-round-saturate: 3 of 4 column blocks, so about
//   3/4 * m * n / (2 R) cycles per C tile (modelled, not measured), 4/4 with RELU, and nothing per step of K.
#ifndef FIELD_SCALED
#define FIELD_SCALED
#endif
#ifdef BIAS
#error "unscale_i32 adds no bias: use finish_i32_i32 with FIELD_SCALED"
#endif
#undef SHIFT
#undef ROUNDING
#define SHIFT 0
#define ROUNDING floor
#include "../include/finish.h"

extern "C" void unscale_i32(int32_t *__restrict c PASS_PARAMETER) {
    finish<mac_rows, 8, int32>(bias, c + pass * c_elements);
}
