// finish_f32_bf16: makes bfloat16 results of the float32 sums of one core tile of C, in place.
//
// Contract. R = 4 on AIE2, 8 on AIE2P; V = 32, 64 (include/arch.h).
//   c   float32, m x n, [m/R][n/R][R][R] (inside column by column when C_TRANSPOSED), V-byte aligned. The bfloat16
//       results replace it from its first byte on, dense, in the same order. Once per C tile, after the last step of K.
//   scales, core_row   only when SCALE or BIAS: the epilogue tile, float32, V-byte aligned, apart from c:
//       ARRAY_ROWS * m scales of rows, n scales of columns, n biases; and which m scales of rows, 0 to ARRAY_ROWS - 1.
//   m % R == 0, n % R == 0.
//   result = max(0 if RELU, sum * row scale * column scale + bias), computed in float32. Its error is below
//       2^-8 |result| + 2^-21 (|sum * row scale * column scale| + |bias|), unless the device flushes subnormals.
//       Without SCALE and BIAS it is the nearest bfloat16.
//   Rounding: set to conv_even by every call, and stays. Overflow: to infinity, as float32 and bfloat16 do.
//
// Cost (modelled, not measured): without SCALE and BIAS, 16 elements take a load (AIE2: two) and a store that
//   converts, m * n / 16 cycles. SCALE makes two float products, each of 9 products of bfloat16 parts and 4
//   subtractions that find them, for 4 R lanes: 26/(4 R) * m * n cycles. Nothing per step of K.
#include "../include/finish_floats.h"

extern "C" void finish_f32_bf16(EPILOGUE_TILE_PARAMETER float *c CORE_ROW_PARAMETER PASS_PARAMETER) {
    finish_floats<mac_rows, mac_rows>(scales, c + pass * c_elements, core_row * DIM_M + pass * pass_rows);
}
