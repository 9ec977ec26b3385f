// mm_i8_i4_i32: C += A * B for one core tile, A int8, B int4, C int32.
//
// Contract
//   a   int8, m/rho x k, [m/rho/8][k/8][8][8]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   int4, -8 to 7, k x n, packed [n/8][k/8][8][4] bytes: column block outer. A byte holds two columns, the
//       even one in its low nibble. No B_TRANSPOSED.
//   c   int32, m x n, [m/8][n/8][8][8], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_i32.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are 64-byte aligned and do not overlap. m % (8 rho) == 0, k % 8 == 0, n % 8 == 0.
//   Rounding and saturation: neither read nor written (acc32 to int32 is a bit copy).
//   Overflow: none while K < 2097152, as |partial sum| <= 128 * 8 * K < 2^31.
//
// Idea: nibbles become int8 on the way from memory (../include/int4.h), as AIE2P multiplies int8 only; 2 x 2 blocks
//   of
//   8x8x8 (../include/multiply.h). The one shape that the API has for int4 here, 4x16x16, unpacks as well, at the
//   same rate.
//
// Cost, by counting slots (modelled, not measured)
//   Per depth block and 4 products (vec 4 of 4): 4 of 8 load slots, 2 of them loads with unpacking in ldb, mv 0 of 4,
//   or 2
//   when A_TRANSPOSED: 512 MAC per cycle.
//   Per block C is loaded and stored once: 16 loads and 16 stores against 4 k / 8 cycles of products, and
//   C_TRANSPOSED adds two shuffles to each.
#include "../include/int4.h"

extern "C" void mm_i8_i4_i32(const int8_t *__restrict a, const uint8_t *__restrict b,
                             int32_t *__restrict c PART_PARAMETER) {
    multiply<Int8Int4<8, 8, 8, int8, int32>>(a, b, c, part);
}
