// mm_i8_i4_i16: C += A * B for one core tile, A int8, B int4, C int16.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64; S = 16, 8 (include/arch.h).
//   a   int8, m/rho x k, [m/rho/R][k/S][R][S]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   int4, -8 to 7, k x n, packed [n/8][k/S][S][4] bytes: column block outer. A byte holds two columns, the
//       even one in its low nibble. No B_TRANSPOSED.
//   c   int16, m x n, [m/R][n/8][R][8], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_i16.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are V-byte aligned and do not overlap. m % (R rho) == 0, k % S == 0, n % 8 == 0.
//   Each call computes C = saturate(round(((C << SHIFT) + A * B) / 2^SHIFT)), SHIFT default 0. Rounding is ROUNDING,
//       default conv_even, and saturation is on: both are set by every call and stay.
//   Overflow: none inside a call, as 2^(15 + SHIFT) + 128 * 8 * k < 2^31 (a static assertion); any K, as C saturates.
//
// Idea: AIE2 multiplies int8 by int4 as it is, 4x16x8 per cycle, twice its rate for int8. AIE2P multiplies int8 only, so
//   nibbles become int8 on the way from memory (include/int4.h); the one shape that the API has for int4 there,
//   4x16x16, unpacks as well, at the same rate. Blocks of 2 x 2 micro-tiles (include/multiply.h).
//
// Cost, by counting slots (modelled, not measured), per depth block and 4 products (vec 4 of 4)
//   AIE2P: 4 of 8 load slots, 2 of them loads with unpacking in ldb, mv 0 of 4, or 2 when A_TRANSPOSED: 512 MAC per
//   cycle. Per block C is loaded with upshift and stored with shift-round-saturate once, 16 + 16 in the lda and st
//   slots, against 4 k / 8 cycles of products; C_TRANSPOSED adds a shuffle to each.
//   AIE2: 8 of 8 load slots of 256 bit, 4 for A and 4 for B, mv 0 of 4, or 2 for each transposed operand: 512 MAC per
//   cycle. Per block C is loaded and stored once: 16 + 16 accesses of 256 bit of sums against 4 k / 16 cycles of
//   products.
#include "../include/int4.h"

extern "C" void mm_i8_i4_i16(const int8_t *__restrict a, const uint8_t *__restrict b,
                             int16_t *__restrict c PART_PARAMETER) {
    multiply<PackedInt8Int4<int16>>(a, b, c, part);
}
