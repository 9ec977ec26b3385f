// finish_f32_bfp16: makes bfp16ebs8 results of the float32 sums of one core tile of C, in place.
//
// Contract
//   c   float32, m x n, micro-tiled [m/8][n/8][8][8], 64-byte aligned. The block floats replace it from its first byte
//       on: [m/8][n/8] tiles of 72 bytes, blocks along N, so that C can be the A of a next product. Once per C tile, after
//       the last step of K.
//   m % 8 == 0, n % 8 == 0. C_TRANSPOSED is refused: blocks lie along N.
//   result: each 8 values of a row, those below 0 as 0 when RELU, rounded to nearest even as a block
//       (docs/block_floats.md); infinity and NaN have no such form: undefined on the device, refused on the host.
//   Rounding: set to conv_even, and stays. Overflow: clamped at 127 * 2^121.
//
// Idea: a tile is read whole before the 72 bytes that replace it, which end before the next one begins.
//
// Cost (modelled, not measured): 4 loads, a conversion and a push into the store FIFO, which writes 9 lines for 8 of
//   them, for 64 elements: about m * n / 16 cycles per C tile, and nothing per step of K.
#include "../include/finish_blocks.h"

extern "C" void finish_f32_bfp16(float *c) { finish_blocks(c); }
