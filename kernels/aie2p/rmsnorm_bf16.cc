// rmsnorm_bf16: y = x * w / sqrt(mean(x^2) + EPSILON), a row of TILE_ELEMENTS bfloat16; also of a sum, also as codes.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, w, y   TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from x and w. TILE_ELEMENTS * 2 % V == 0, TILE_ELEMENTS <= 32768.
//   EPSILON   above 0, a float's literal (1e-6F).
//   y = bf16(x * bf16(w * r)). Squares are summed in float32, lane by lane, then lanes in pairs; r = 1 / sqrt(...) is made
//   in integers and within 2^-13 of itself. So y is within 2^-7 + 2^-12 of the formula, beside what is flushed to 0.
//   x and w are finite, and so is the sum of squares in float32: |x| up to 2^63 / sqrt(TILE_ELEMENTS). Squares below 2^-126 count as 0 on the device.
//   RESIDUAL=1: rows x and residual, then w, sum, y. sum = bf16(x + residual), and stands for x in all that follows.
//   CODES=1: instead of y, TILE_ELEMENTS int8 codes, V-byte aligned (TILE_ELEMENTS % V == 0), and a float32, their scale:
//     scale = D r / 127, codes = round(127 x w / D), ties to even, D = max(|x w|, 1e-5 / r): the int8 codes of y with a
//     scale for each token, max(|y|, 1e-5) / 127. Codes are those of the formula unless 127 x w / D lies within
//     127 * 2^-20 of a half; scale is within 2^-22 + (TILE_ELEMENTS / 32 + 8) * 2^-25 of itself (AIE2: / 16).
//     |x w| is below 2^120.
//   Rounding: set to conv_even by every call, by those of sums or codes saturation to none, and stay.
//
// r is made in integers since the core's own inverse square root is not published bit by bit, and a scalar float is
// slow: the mean's mantissa, from 1 to 4 beside an even power of two, goes through a quadratic (2.4e-2 at most) and two
// steps of Newton's. Its 15 bits are two bfloat16 parts, neither of which is 0.
// Codes: D is a row's, so that codes need 1 / D but neither r nor a division for each element. x w is added to a float
// 1.5 * 2^k of which the last bit is 2^-22 of D or less; what stands in its bits is x w in fixed point, never a float that
// may be 0. It is multiplied with 127 / D in integers of 32 bits and rounded once.
//
// Cost (modelled, not measured): a vector takes a load and a product for the sum, then two loads, a product, a sum of
//   products, a conversion, a product and a store that converts: 1 and 2 cycles of the busiest slots; about 250 for r.
//   Codes: two loads, two products, four moves and four logical operations for the maximum, two loads, a product, eight
//   moves, a subtraction and three products for the codes.
#include "../include/row_norm.h"

#ifndef CODES
#define CODES 0
#endif

namespace rmsnorm {

using namespace row_norm;

static inline void norm(const bfloat16 *__restrict x, const bfloat16 *__restrict w, bfloat16 *__restrict y) {
    auto squares = aie::zeros<accfloat, lanes>();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes part = aie::load_v<lanes>(x + i);
        squares = aie::mac(squares, part, part);
    }
    const auto r = inverse_root(sum_of(squares));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes weights = aie::load_v<lanes>(w + i);
        const Lanes scale = r.times(weights);
        aie::store_v(y + i, aie::mul(aie::load_v<lanes>(x + i), scale).template to_vector<bfloat16>());
    }
}

#if CODES
/// What codes of a row are made with: 1.5 * 2^k in bfloat16's bits, 127 / D beside 2^k; and the bits of their scale.
struct Coding {
    uint32 point, factor;
    int scale;
};

/// Of the bits of the sum of squares and of the largest |x w|.
static inline Coding coding(uint32 sum, uint32 largest) {
    using namespace row_floats;
    constexpr RowFloat width = Inverse().exact();
    const RowFloat root = row_floats::inverse_root(product(of_bits(sum), width)), most = of_bits(largest);
    const RowFloat normed = product(most, root);                             // the largest |y|
    const bool less = bits_of(normed) < 0x3727c5ac;                          // 1e-5
    const RowFloat clamped = product(root, RowFloat{3276800000U, 17});       // 1e5 r
    const RowFloat inverse_d = less ? clamped : row_floats::inverse(most);
    const int scale = bits_of(product(normed, RowFloat{2164392968U, -6}));   // 1 / 127
    return {static_cast<uint32>((129 - inverse_d.exponent) << 7 | 0x40), high(inverse_d.mantissa, 0xfe000000U),
            less ? 0x33a917dc : scale};  // 1e-5 / 127
}

using Words = aie::vector<uint16, lanes>;

/// Codes of a vector, in 16 bits.
static inline aie::vector<int16, lanes> codes(const Lanes &x, const Lanes &w, const Coding &how) {
    const Lanes one = aie::broadcast<bfloat16, lanes>(1.0F);
    const Words point = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.point));
    const auto start = aie::mul(point.template cast_to<bfloat16>(), one);
    const auto bits = aie::mac(start, x, w).template to_vector<float>().template cast_to<uint16>();
    const auto above = aie::sub(aie::filter_odd(bits), point).template cast_to<int16>();
    const Words below = aie::filter_even(bits);
    const Words top = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.factor >> 16));
    const Words rest = aie::broadcast<uint16, lanes>(static_cast<uint16>(how.factor & 0xffff));
    const auto first = aie::mac(aie::zeros<acc64, lanes>(), above, top).template to_vector<int32>(0);
    const auto more = aie::mac(aie::accum<acc64, lanes>(first, 16), above, rest);
    return aie::mac(more, below, top).template to_vector<int16>(30);
}

static inline void norm(const bfloat16 *__restrict x, const bfloat16 *__restrict w, int8 *__restrict y,
                        int32 *__restrict scale) {
    static_assert(TILE_ELEMENTS % (2 * lanes) == 0, "a row of codes must be whole vectors");
    aie::set_saturation(aie::saturation_mode::none);
    auto squares = aie::zeros<accfloat, lanes>();
    auto largest = aie::zeros<int32, lanes>();
    const auto magnitude = aie::broadcast<int32, lanes>(0x7fffffff);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes part = aie::load_v<lanes>(x + i);
        squares = aie::mac(squares, part, part);
        const auto u = aie::mul(part, aie::load_v<lanes>(w + i)).template to_vector<float>();
        largest = aie::max(largest, aie::bit_and(u.template cast_to<int32>(), magnitude));
    }
    const Coding how = coding(sum_of(squares), static_cast<uint32>(aie::reduce_max(largest)));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes / 2)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += 2 * lanes) {
        const auto first = codes(aie::load_v<lanes>(x + i), aie::load_v<lanes>(w + i), how);
        const auto second = codes(aie::load_v<lanes>(x + i + lanes), aie::load_v<lanes>(w + i + lanes), how);
        aie::store_v(y + i, aie::concat(first, second).pack());
    }
    *scale = how.scale;
}
#endif

}  // namespace rmsnorm

#if CODES
extern "C" void rmsnorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, MADE_SUM int8 *__restrict y,
                             int32 *__restrict scale) {
    row_norm::begin();
    event0();
    rmsnorm::norm(ROW, w, y, scale);
    event1();
}
#else
extern "C" void rmsnorm_bf16(GIVEN_ROW, const bfloat16 *__restrict w, MADE_SUM bfloat16 *__restrict y) {
    row_norm::begin();
    event0();
    rmsnorm::norm(ROW, w, y);
    event1();
}
#endif
