// mm_i8_i4_i32: C += A * B for one core tile, A int8, B int4, C int32.
//
// Contract
//   a   int8, m/rho x k, [m/rho/4][k/16][4][16]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   int4, -8 to 7, k x n, packed [n/8][k/16][16][4] bytes: column block outer. A byte holds two columns, the
//       even one in its low nibble. No B_TRANSPOSED.
//   c   int32, m x n, [m/4][n/8][4][8], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_i32.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are 32-byte aligned and do not overlap. m % (4 rho) == 0, k % 16 == 0, n % 8 == 0.
//   Rounding and saturation: neither read nor written (acc32 to int32 is a bit copy).
//   Overflow: none while K < 2097152, as |partial sum| <= 128 * 8 * K < 2^31.
//
// Idea: AIE2 multiplies int8 by int4 as it is, 4x16x8 per cycle (../include/int4.h), twice its rate for int8; 2 x 2
//   blocks
//   (../include/multiply.h).
//
// Cost, by counting slots (modelled, not measured)
//   Per depth block and 4 products (vec 4 of 4): 8 of 8 load slots of 256 bit, 4 for A and 4 for B, mv 0 of 4, or 2
//   for each transposed operand: 512 MAC per cycle.
//   Per block C is loaded and stored once: 16 + 16 accesses of 256 bit of sums against 4 k / 16 cycles of products.
#include "../include/int4.h"
#include "arch.h"

extern "C" void mm_i8_i4_i32(const int8_t *__restrict a, const uint8_t *__restrict b,
                             int32_t *__restrict c PART_PARAMETER) {
    multiply<Int8Int4<4, 16, 8, int4, int32>>(a, b, c, part);
}
