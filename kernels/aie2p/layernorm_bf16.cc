// layernorm_bf16: y = (x - mean(x)) / sqrt(variance(x) + EPSILON) * w + b, a row of TILE_ELEMENTS bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, w, b, y   TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from the others. TILE_ELEMENTS * 2 % V == 0, <= 32768.
//   EPSILON   above 0, a float's literal (1e-5F).
//   n = bf16((x - mean) * r), y = bf16(n * w + b). Mean and the sum of squares of x - mean are summed in float32, lane by
//   lane, then lanes in pairs; the mean is the sum's product with 1 / TILE_ELEMENTS, in three bfloat16 parts each; x - mean are two bfloat16 parts, 2^-15 of itself off at most; r = 1 / sqrt(...) is made in
//   integers and within 2^-13 of itself. So y is within (2^-8 + 2^-11) |n w| + 2^-8 |y| of the formula, and where numbers
//   are near to each other, by what float32 loses of their mean: TILE_ELEMENTS * 2^-24 of the largest |x|, times r w.
//   x, w and b are finite, and so is the sum of squares in float32. Numbers below 2^-126 count as 0 on the device.
//   X_F32=1: x is float32, and taken whole, as three bfloat16 parts; so are sums. RESIDUAL_F32=1: so is residual.
//   RESIDUAL=1: rows x and residual, then w, b, sum, y. sum = bf16(x + residual), and stands for x in all that follows.
//   Rounding: set to conv_even by every call, by those of sums saturation to none, and stay.
//   Rows that come in chunks have the same results by layernorm_{sum,squares,results}_bf16.
//
// Cost (modelled, not measured): three passes; a vector takes a load and a product, then a load, two products, two
//   conversions and two products of its parts, then three loads, two products, two conversions, three products, a
//   conversion, a product and a store that converts: 1, 6 and 9 cycles of the busiest slots; about 400 for mean and r.
#include "../include/layernorm.h"

extern "C" void layernorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                               MADE_SUM bfloat16 *__restrict y) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    const row_norm::X *row = ROW;
    const Totals zeros = aie::zeros<accfloat, lanes>(), less_mean = less_mean_of(added(zeros, row));
    results(row, w, b, y, less_mean, squares_added(zeros, row, less_mean));
    event1();
}
