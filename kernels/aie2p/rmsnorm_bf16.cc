// rmsnorm_bf16: y = x * w / sqrt(mean(x^2) + EPSILON), a row of TILE_ELEMENTS bfloat16; also of a sum, also as codes.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, w, y   TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from x and w. TILE_ELEMENTS * 2 % V == 0, TILE_ELEMENTS <= 32768.
//   EPSILON   above 0, a float's literal (1e-6F).
//   y = bf16(x * bf16(w * r)). Squares are summed in float32, lane by lane, then lanes in pairs; r = 1 / sqrt(...) is made
//   in integers and within 2^-13 of itself. So y is within 2^-7 + 2^-12 of the formula, beside what is flushed to 0.
//   x and w are finite, and so is the sum of squares in float32: |x| up to 2^63 / sqrt(TILE_ELEMENTS). Squares below 2^-126 count as 0 on the device.
//   X_F32=1: x is float32, and taken whole, as three bfloat16 parts; so are sums, of which that of two -0 is either 0.
//   RESIDUAL_F32=1: so is residual.
//   RESIDUAL=1: rows x and residual, then w, sum, y. sum = bf16(x + residual), and stands for x in all that follows.
//   CODES=1: instead of y, TILE_ELEMENTS int8 codes, V-byte aligned (TILE_ELEMENTS % V == 0), and a float32, their scale:
//     scale = D r / 127, codes = round(127 x w / D), ties to even, D = max(|x w|, 1e-5 / r): the int8 codes of y with a
//     scale for each token, max(|y|, 1e-5) / 127. Codes are those of the formula unless 127 x w / D lies within
//     127 * 2^-20 of a half; scale is within 2^-22 + (TILE_ELEMENTS / 32 + 8) * 2^-25 of itself (AIE2: / 16).
//     |x w| is below 2^120.
//   Rounding: set to conv_even by every call, by those of sums or codes saturation to none, and stay.
//   Rows that come in chunks have the same results by rmsnorm_statistics_bf16 and rmsnorm_results_bf16.
//
// r is made in integers since the core's own inverse square root is not published bit by bit, and a scalar float is
// slow: the mean's mantissa, from 1 to 4 beside an even power of two, goes through a quadratic (2.4e-2 at most) and two
// steps of Newton's. Its 15 bits are two bfloat16 parts, neither of which is 0.
// Codes: D is a row's, so that codes need 1 / D but neither r nor a division for each element (include/row_coding.h).
//
// Cost (modelled, not measured): a vector takes a load and a product for the sum, then two loads, a product, a sum of
//   products, a conversion, a product and a store that converts: 1 and 2 cycles of the busiest slots; about 250 for r.
//   Codes: two loads, two products, four moves and four logical operations for the maximum, two loads, a product, eight
//   moves, a subtraction and three products for the codes.
#include "../include/rmsnorm.h"

#if CODES
extern "C" void rmsnorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, MADE_SUM int8 *__restrict y,
                             int32 *__restrict scale) {
    row_norm::begin();
    event0();
    const row_norm::X *row = ROW;
    rmsnorm::Statistics of;
    of.add(row, w);
    of.codes(row, w, y, scale);
    event1();
}
#else
extern "C" void rmsnorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, MADE_SUM bfloat16 *__restrict y) {
    row_norm::begin();
    event0();
    const row_norm::X *row = ROW;
    rmsnorm::Statistics of;
    of.add(row, w);
    of.results(row, w, y);
    event1();
}
#endif
