// finish_i32_bf16: makes bfloat16 results of the int32 sums of one core tile of C, scaled or as they are, in place.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   scales   only when SCALE or BIAS: the epilogue tile, float32, V-byte aligned, apart from c: ARRAY_ROWS * m scales of rows, n scales of
//       columns, and n biases when BIAS. It takes the place of a B tile, so it must not be longer than one.
//   c   int32, m x n, micro-tiled [m/R][n/8][R][8] (inside column by column when C_TRANSPOSED), V-byte aligned. The
//       bfloat16 results replace it from its first byte on, dense, in the same order. Once per C tile, after the last
//       step of K.
//   core_row   only when SCALE or BIAS, 0 to ARRAY_ROWS - 1: which m scales of rows.
//   m % R == 0, n % 8 == 0; n % 32 == 0 when FIELD_SCALED, which says that column block 4 q + j of c is scaled by 4^j.
//   result = max(0 if RELU, sum * row scale * column scale + bias), computed in float32. Its error is below
//       2^-8 |result| + 2^-21 (|sum * row scale * column scale| + |bias|), unless the device flushes subnormals.
//   Without SCALE and BIAS result = max(0 if RELU, sum) of the sum as float32, rounded once more: the nearest bfloat16 of
//       every sum below 2^24.
//   Rounding: set to conv_even by every call, and stays. Overflow: to infinity, as float32 and bfloat16 do.
//
// Idea and cost: 4 R lanes at a time, those of one float product: conversion, a product, a multiply-add, narrowing. AIE
//   makes each float product of 9 products of bfloat16 parts and 4 subtractions that find the parts, and the conversion
//   takes 5 more operations of the MAC slot: 31/(4 R) * m * n cycles per C tile (modelled, not measured), and nothing per
//   step of K.
#include "../include/finish_floats.h"

#if defined(ARRAY_ROWS) && !defined(SCALE) && !defined(BIAS)  // what scaled without SCALE once would have other arguments
#error "ARRAY_ROWS is for scales and biases: define SCALE or BIAS too, or leave it out"
#endif

extern "C" void finish_i32_bf16(EPILOGUE_TILE_PARAMETER int32_t *c CORE_ROW_PARAMETER PASS_PARAMETER) {
    finish_floats<mac_rows, 8>(scales, c + pass * c_elements, core_row * DIM_M + pass * pass_rows);
}
