// mm_bf16_bf16_bf16: C += A * B for one core tile, A and B bfloat16, C bfloat16.
//
// Contract
//   a   bfloat16, m/rho x k, [m/rho/4][k/8][4][8]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   bfloat16, k x n, [n/4][k/8][8][4]: column block outer; inside column by column when B_TRANSPOSED.
//   c   bfloat16, m x n, [m/4][n/4][4][4], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_bf16.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are 32-byte aligned and do not overlap. m % (4 rho) == 0, k % 8 == 0, n % 4 == 0.
//   Rounding: set to conv_even, and stays. Products are exact. The device sums the 8 of one product of micro-tiles
//     before it rounds, and flushes subnormals; the host rounds every sum, in the order of K. At the end of every
//     call C is rounded to bfloat16. docs/block_floats.md has the bound.
//   Overflow: beyond the largest bfloat16 C is infinite.
//
// Idea: 2 x 2 blocks of micro-tiles, so that 4 tiles feed 4 products of 4x8x4 (../include/multiply.h).
//
// Cost, by counting slots (modelled, not measured)
//   Per depth block and 4 products (vec 4 of 4): 8 of 8 load slots of 256 bit, mv 0 of 4, or 2 for each transposed
//   operand: 128 MAC per cycle, with no slot left for C. Per block it takes 4 + 4 accesses of 256 bit, which convert,
//   against 4 k / 8 cycles of products.
#include "../include/floats.h"
#include "arch.h"

extern "C" void mm_bf16_bf16_bf16(const bfloat16 *__restrict a, const bfloat16 *__restrict b,
                                  bfloat16 *__restrict c PART_PARAMETER) {
    multiply<Floats<4, 8, 4, bfloat16>>(a, b, c, part);
}
