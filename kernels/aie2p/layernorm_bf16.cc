// layernorm_bf16: y = (x - mean(x)) / sqrt(variance(x) + EPSILON) * w + b, a row of TILE_ELEMENTS bfloat16; also as codes.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, w, b, y   TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from the others. TILE_ELEMENTS * 2 % V == 0, <= 32768.
//   EPSILON   above 0, a float's literal (1e-5F).
//   n = bf16((x - mean) * r), y = bf16(n * w + b). Mean and the sum of squares of x - mean are summed in float32, lane by
//   lane, then lanes in pairs; the mean is the sum's product with 1 / TILE_ELEMENTS, in three bfloat16 parts each; x - mean are two bfloat16 parts, 2^-15 of itself off at most; r = 1 / sqrt(...) is made in
//   integers and within 2^-13 of itself. So y is within (2^-8 + 2^-11) |n w| + 2^-8 |y| of the formula, and where numbers
//   are near to each other, by what float32 loses of their mean: (TILE_ELEMENTS / 32 + 16) * 2^-24 of mean(|x|) (AIE2: / 16), times r w.
//   x, w and b are finite, and so is the sum of squares in float32. Numbers below 2^-126 count as 0 on the device.
//   X_F32=1: x is float32, and taken whole, as three bfloat16 parts; so are sums. RESIDUAL_F32=1: so is residual.
//   RESIDUAL=1: rows x and residual, then w, b, sum, y. sum = bf16(x + residual), and stands for x in all that follows.
//   CODES=1: instead of y, TILE_ELEMENTS int8 codes, V-byte aligned (TILE_ELEMENTS % V == 0), and a float32, their scale;
//     with RESIDUAL=1 sum, codes and scale one behind the other. Of h, the norm before it is rounded:
//     scale = D / 127, codes = round(127 h / D), ties to even, D = max(|h|, 1e-5). Codes are those of the formula unless
//     127 h / D lies within 127 (2^-20 + 2 L / D) of a half, L the most that an h of the row is off: of w r what the mean
//     loses, 2^-22 of |h - b| + |b|, and of |b| what r loses, R = 2^-22 + (TILE_ELEMENTS / 32 + 8) * 2^-25 (AIE2: / 16)
//     and the square of what r times the mean loses. scale is within R + L / D of itself. |h / r| is below 2^120.
//   Rounding: set to conv_even by every call, by those of sums or codes saturation to none, and stay.
//   Rows that come in chunks have the same results by layernorm_{sum,squares,results}_bf16.
//
// Codes: the root cancels, but for what is shifted: u = h / r = (x - mean) w + b / r, all of it in float32, whose sums may
// be zero of either sign, since codes and the largest |u| are those of its bits beside a larger float, and without signs.
//
// Cost (modelled, not measured): three passes; a vector takes a load and a product, then a load, two products, two
//   conversions and two products of its parts, then three loads, two products, two conversions, three products, a
//   conversion, a product and a store that converts: 1, 6 and 9 cycles of the busiest slots; about 400 for mean and r.
//   Machine code of codes takes four passes of 3, 31, 23 and 33 cycles, and 908 for a row (counted).
#include "../include/layernorm.h"

#if CODES
#if RESIDUAL
#define MADE_CODES row_norm::X *__restrict sum
#define Y reinterpret_cast<int8 *>(sum + TILE_ELEMENTS)
#define SCALE reinterpret_cast<int32 *>(Y + TILE_ELEMENTS)
#else
#define MADE_CODES int8 *__restrict y, int32 *__restrict scale
#define Y y
#define SCALE scale
#endif
extern "C" void layernorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, const bfloat16 *__restrict b, MADE_CODES) {
    using namespace layernorm;
    row_norm::begin();
    event0();
    const row_norm::X *row = ROW;
    const Totals zeros = aie::zeros<accfloat, lanes>(), less_mean = less_mean_of(added(zeros, row));
    const Totals squares = squares_added(zeros, row, less_mean);
    const auto largest = larger(aie::zeros<int32, lanes>(), row, w, b, less_mean, squares);
    codes(row, w, b, Y, SCALE, less_mean, squares, largest);
    event1();
}
#else
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
#endif
