// mm_bfp16_bfp16_bf16: C += A * B for one core tile, A and B bfp16ebs8, C bfloat16.
//
// Contract
//   a   bfp16ebs8, m/rho x k, [m/rho/8][k/8][72 bytes]: blocks along K, 8 rows to a tile.
//   b   bfp16ebs8, k x n, [n/8][k/8][72 bytes]: column block outer; blocks along K, 8 columns to a tile.
//   c   bfloat16, m x n, [m/8][n/8][8][8]; inside column by column when C_TRANSPOSED; read and
//       written. Start from zero_bf16.
//   part   only when DIM_RHO > 1: which m/rho rows of C.
//   They do not overlap; bfloat16 and float32 are 64-byte aligned, block floats may lie at any byte.
//   m % (8 rho) == 0, k % 8 == 0, n % 8 == 0. A_TRANSPOSED and B_TRANSPOSED are refused: blocks are packed by the host.
//   Rounding: set to conv_even, and stays. Sums of 8 products are exact and join float32 registers with one rounding.
//     At the end of every call C is rounded to bfloat16. docs/block_floats.md has the bound.
//   Overflow: beyond the largest bfloat16 C is infinite.
//
// Idea: 2 x 2 blocks of micro-tiles, so that 4 tiles feed 4 products of 8x8x8 (include/multiply.h).
//
// Cost, by counting slots (modelled, not measured)
//   Per two depth blocks and 8 products (vec 8): each of four sequences of tiles opens a stream, a line into a load
//   FIFO, and pops two tiles: 12 of 16 load slots, 512 MAC per cycle. An odd number of depth blocks goes one by one, 8
//   of 8 load slots for 4 products.
//   Per block C is loaded and stored once: 8 loads and 8 stores, which convert.
#include "../include/block_floats.h"

extern "C" void mm_bfp16_bfp16_bf16(const uint8_t *__restrict a, const uint8_t *__restrict b,
                                    bfloat16 *__restrict c PART_PARAMETER) {
    multiply<BlocksTimesBlocks<bfloat16>>(a, b, c, part);
}
