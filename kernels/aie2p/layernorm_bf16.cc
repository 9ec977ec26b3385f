// layernorm_bf16: y = (x - mean(x)) / sqrt(variance(x) + EPSILON) * w + b, a row of TILE_ELEMENTS bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, w, b, y   TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from the others. TILE_ELEMENTS * 2 % V == 0, <= 32768.
//   EPSILON   above 0, a float's literal (1e-5F).
//   n = bf16((x - mean) * r), y = bf16(n * w + b). Mean and the sum of squares of x - mean are summed in float32, lane by
//   lane, then lanes in pairs; x - mean are two bfloat16 parts, 2^-15 of itself off at most; r = 1 / sqrt(...) is made in
//   integers and within 2^-13 of itself. So y is within (2^-8 + 2^-11) |n w| + 2^-8 |y| of the formula, and where numbers
//   are near to each other, by what float32 loses of their mean: TILE_ELEMENTS * 2^-24 of the largest |x|, times r w.
//   x, w and b are finite, and so is the sum of squares in float32. Numbers below 2^-126 count as 0 on the device.
//   RESIDUAL=1: rows x and residual, then w, b, sum, y. sum = bf16(x + residual), and stands for x in all that follows.
//   Rounding: set to conv_even by every call, by those of sums saturation to none, and stay.
//
// Cost (modelled, not measured): three passes; a vector takes a load and a product, then a load, two products, two
//   conversions and two products of its parts, then three loads, two products, two conversions, three products, a
//   conversion, a product and a store that converts: 1, 6 and 9 cycles of the busiest slots; about 400 for mean and r.
#include "../include/row_norm.h"

namespace layernorm {

using namespace row_norm;
using Floats = aie::accum<accfloat, lanes>;

/// x - mean in two parts.
struct Centred {
    Lanes high, low;
    Centred(const bfloat16 *__restrict x, const Floats &less_mean) {
        const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
        const Floats exact = aie::mac(less_mean, aie::load_v<lanes>(x), one);
        high = exact.template to_vector<bfloat16>();
        low = aie::msc(exact, high, one).template to_vector<bfloat16>();
    }
};

static inline Floats less_mean_of(const bfloat16 *__restrict x) {
    const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
    Floats sums = aie::zeros<accfloat, lanes>();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) sums = aie::mac(sums, aie::load_v<lanes>(x + i), one);
    const float mean = lane_sum(sums).get(0) * (1.0F / TILE_ELEMENTS);
    return Floats(aie::broadcast<float, lanes>(-mean));
}

static inline void norm(const bfloat16 *__restrict x, const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                        bfloat16 *__restrict y) {
    const Floats less_mean = less_mean_of(x);
    Floats squares = aie::zeros<accfloat, lanes>();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Centred part(x + i, less_mean);
        squares = aie::mac(squares, part.high, part.high);
        squares = aie::mac(aie::mac(squares, part.high, part.low), part.high, part.low);
    }
    const auto r = inverse_root(sum_of(squares));
    const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Centred part(x + i, less_mean);
        const Floats normed = aie::mac(aie::mac(aie::mul(part.high, r.high), part.high, r.low), part.low, r.high);
        const Floats shift = aie::mul(aie::load_v<lanes>(b + i), one);
        const Lanes n = normed.template to_vector<bfloat16>();
        aie::store_v(y + i, aie::mac(shift, n, aie::load_v<lanes>(w + i)).template to_vector<bfloat16>());
    }
}

}  // namespace layernorm

extern "C" void layernorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, const bfloat16 *__restrict b,
                               MADE_SUM bfloat16 *__restrict y) {
    row_norm::begin();
    event0();
    layernorm::norm(ROW, w, b, y);
    event1();
}
