// mm_i8_i8_i16: C += A * B for one core tile, A and B int8, C int16.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   a   int8, m/rho x k, [m/rho/R][k/8][R][8]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   int8, k x n, [n/8][k/8][8][8]: column block outer; inside column by column when B_TRANSPOSED.
//   c   int16, m x n, [m/R][n/8][R][8], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_i16.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are V-byte aligned and do not overlap. m % (R rho) == 0, k % 8 == 0, n % 8 == 0.
//   Each call computes C = saturate(round(((C << SHIFT) + A * B) / 2^SHIFT)), SHIFT default 0. Rounding is ROUNDING,
//       default conv_even, and saturation is on: both are set by every call and stay.
//   Overflow: none inside a call, as 2^(15 + SHIFT) + 128 * 128 * k < 2^31 (a static assertion); any K, as C
//       saturates.
//
// Idea: 2 x 2 blocks of micro-tiles, so that 4 loads feed 4 products of Rx8x8 (include/multiply.h).
//
// Cost, by counting slots (modelled, not measured), per depth block and 4 products (vec 4 of 4)
//   AIE2P: 4 of 8 load slots, mv 0 of 4, or 2 for each transposed operand: 512 MAC per cycle. Per block C is loaded
//   with upshift and stored with shift-round-saturate once, 16 + 16 in the lda and st slots, against 4 k / 8 cycles of
//   products; C_TRANSPOSED adds a shuffle to each.
//   AIE2: 6 of 8 load slots of 256 bit, 2 for A and 4 for B, mv 0 of 4, or 2 for each transposed operand: 256 MAC per
//   cycle. Per block C is loaded and stored once: 16 + 16 accesses of 256 bit of sums against 4 k / 8 cycles of
//   products.
#include "../include/integer.h"

extern "C" void mm_i8_i8_i16(const int8_t *__restrict a, const int8_t *__restrict b,
                             int16_t *__restrict c PART_PARAMETER) {
    multiply<Int8<mac_rows, 8, 8, int16>>(a, b, c, part);
}
