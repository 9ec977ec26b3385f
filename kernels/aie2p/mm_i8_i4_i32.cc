// mm_i8_i4_i32: C += A * B for one core tile, A int8, B int4, C int32.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64; S = 16, 8 (include/arch.h).
//   a   int8, m/rho x k, [m/rho/R][k/S][R][S]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   int4, -8 to 7, k x n, packed [n/8][k/S][S][4] bytes: column block outer. A byte holds two columns, the
//       even one in its low nibble. No B_TRANSPOSED.
//   c   int32, m x n, [m/R][n/8][R][8], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_i32.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are V-byte aligned and do not overlap. m % (R rho) == 0, k % S == 0, n % 8 == 0.
//   Rounding and saturation: neither read nor written (acc32 to int32 is a bit copy).
//   Overflow: none while K < 2097152, as |partial sum| <= 128 * 8 * K < 2^31.
//
// Idea: AIE2 multiplies int8 by int4 as it is, 4x16x8 per cycle, twice its rate for int8. AIE2P multiplies int8 only, so
//   nibbles become int8 on the way from memory (include/int4.h); the one shape that the API has for int4 there,
//   4x16x16, unpacks as well, at the same rate. Blocks of 2 x 2 micro-tiles (include/multiply.h).
//
// Cost, by counting slots (modelled, not measured), per depth block and 4 products (vec 4 of 4)
//   AIE2P: 4 of 8 load slots, 2 of them loads with unpacking in ldb, mv 0 of 4, or 2 when A_TRANSPOSED: 512 MAC per
//   cycle. Per block C is loaded and stored once: 16 loads and 16 stores against 4 k / 8 cycles of products, and
//   C_TRANSPOSED adds two shuffles to each.
//   AIE2: 8 of 8 load slots of 256 bit, 4 for A and 4 for B, mv 0 of 4, or 2 for each transposed operand: 512 MAC per
//   cycle. Per block C is loaded and stored once: 16 + 16 accesses of 256 bit of sums against 4 k / 16 cycles of
//   products.
#include "../include/int4.h"

extern "C" void mm_i8_i4_i32(const int8_t *__restrict a, const uint8_t *__restrict b,
                             int32_t *__restrict c PART_PARAMETER) {
    multiply<PackedInt8Int4<int32>>(a, b, c, part);
}
