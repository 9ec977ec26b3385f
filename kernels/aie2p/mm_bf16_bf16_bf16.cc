// mm_bf16_bf16_bf16: C += A * B for one core tile, A and B bfloat16, C bfloat16; on AIE2P products in bfp16ebs8.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   a   bfloat16, m/rho x k, [m/rho/R][k/8][R][8]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   bfloat16, k x n, [n/R][k/8][8][R]: column block outer; inside column by column when B_TRANSPOSED.
//   c   bfloat16, m x n, [m/R][n/R][R][R], read and written; inside column by column when C_TRANSPOSED.
//       Start from zero_bf16.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   All are V-byte aligned and do not overlap. m % (R rho) == 0, k % 8 == 0, n % R == 0.
//   Rounding: set to conv_even, and stays.
//     AIE2: Products are exact. The device sums the 8 of one product of micro-tiles before it rounds, and flushes
//     subnormals; the host rounds every sum, in the order of K. At the end of every call C is rounded to bfloat16.
//     docs/block_floats.md has the bound.
//     AIE2P: Each 8 values along K, of a row of A and of a column of B, are rounded to multiples of 2^(e - 6), e the
//     exponent of the largest of them, or 2^(e - 5) where one would round up to 2^(e + 1). Sums of 8 products are
//     exact and join float32 registers with one rounding. At the end of every call C is rounded to bfloat16.
//     docs/block_floats.md has the bound. Infinity and NaN have no block-float form: undefined on the device, refused
//     on the host.
//   Overflow: beyond the largest bfloat16 C is infinite.
//
// Idea: 2 x 2 blocks of micro-tiles, so that 4 tiles feed 4 products (include/multiply.h): on AIE2 of 4x8x4.
//   AIE2P multiplies bfloat16 lane by lane, 32 or 64 MAC per issue; by way of block floats it is 512. Operands are
//   converted as they are loaded, once for two products each. A block of B is a column, so that column-major B needs
//   no shuffle and row-major B is turned by one.
//
// Cost, by counting slots (modelled, not measured)
//   AIE2: Per depth block and 4 products (vec 4 of 4): 8 of 8 load slots of 256 bit, mv 0 of 4, or 2 for each
//   transposed operand: 128 MAC per cycle, with no slot left for C. Per block it takes 4 + 4 accesses of 256 bit,
//   which convert, against 4 k / 8 cycles of products.
//   AIE2P: Per depth block and 4 products (vec 4): 8 loads of 64 bytes on 8 load slots; 4 conversions, each through an
//   accumulator: 2 or 4 moves up and as many st slots down, unless folded into loads and products by ones. About 8
//   cycles instead of 4: 256 MAC per cycle. Row-major B adds 4 shuffles. Per block C is loaded and stored once: 8
//   loads and 8 stores, which convert.
#include "../include/bf16.h"

extern "C" void mm_bf16_bf16_bf16(const bfloat16 *__restrict a, const bfloat16 *__restrict b,
                                  bfloat16 *__restrict c PART_PARAMETER) {
    multiply<Bfloat16Product<bfloat16>>(a, b, c, part);
}
