// mm_bf16_bfp16_bf16: C += A * B for one core tile, A bfloat16, B bfp16ebs8, C bfloat16.
//
// Contract
//   a   bfloat16, m/rho x k, [m/rho/8][k/8][8][8]; inside a micro-tile column by column when A_TRANSPOSED.
//   b   bfp16ebs8, k x n, [n/8][k/8][72 bytes]: column block outer; blocks along K, 8 columns to a tile.
//   c   bfloat16, m x n, [m/8][n/8][8][8]; inside column by column when C_TRANSPOSED; read and
//       written. Start from zero_bf16.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   They do not overlap; bfloat16 and float32 are 64-byte aligned, block floats may lie at any byte.
//   m % (8 rho) == 0, k % 8 == 0, n % 8 == 0. B_TRANSPOSED is refused: blocks are packed by the host.
//   Rounding: set to conv_even, and stays. Each 8 values of A along K become a block, rounded to nearest even;
//     infinity and NaN have no such form: undefined on the device, refused on the host. Sums of 8 products are exact
//     and join float32 registers with one rounding. At the end of every call C is rounded to bfloat16.
//     docs/block_floats.md has the bound.
//   Overflow: beyond the largest bfloat16 C is infinite.
//
// Idea: 2 x 2 blocks of micro-tiles, so that 4 tiles feed 4 products of 8x8x8 (include/multiply.h).
//
// Cost, by counting slots (modelled, not measured)
//   Per two depth blocks and 8 products (vec 8): A takes 2 loads and a conversion through an accumulator per tile, each
//   of B's two columns a line into a load FIFO and two pops: 14 of 16 load slots, and for each of 4 conversions 2 to 4
//   moves and as many st slots: 8 to 16 cycles, 256 to 512 MAC per cycle. An odd number of depth blocks goes one by
//   one, 8 of 8 load slots for 4 products.
//   Per block C is loaded and stored once: 8 loads and 8 stores, which convert.
#include "../include/block_floats.h"

extern "C" void mm_bf16_bfp16_bf16(const bfloat16 *__restrict a, const uint8_t *__restrict b,
                                   bfloat16 *__restrict c PART_PARAMETER) {
    multiply<Bfloat16TimesBlocks<bfloat16>>(a, b, c, part);
}
