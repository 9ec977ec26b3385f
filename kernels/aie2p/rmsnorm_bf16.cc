// rmsnorm_bf16: y = x * w / sqrt(mean(x^2) + EPSILON), a row of TILE_ELEMENTS bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, w, y   TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from x and w. TILE_ELEMENTS * 2 % V == 0, TILE_ELEMENTS <= 32768.
//   EPSILON   above 0, a float's literal (1e-6F).
//   y = bf16(x * bf16(w * r)). Squares are summed in float32, lane by lane, then lanes in pairs; r = 1 / sqrt(...) is made
//   in integers and within 2^-13 of itself. So y is within 2^-7 + 2^-12 of the formula, beside what is flushed to 0.
//   x and w are finite, and so is the sum of squares in float32: |x| up to 2^63 / sqrt(TILE_ELEMENTS). Squares below 2^-126 count as 0 on the device.
//   Rounding: set to conv_even by every call, and stays.
//
// r is made in integers since the core's own inverse square root is not published bit by bit, and a scalar float is
// slow: the mean's mantissa, from 1 to 4 beside an even power of two, goes through a quadratic (2.4e-2 at most) and two
// steps of Newton's. Its 15 bits are two bfloat16 parts, neither of which is 0.
//
// Cost (modelled, not measured): a vector takes a load and a product for the sum, then two loads, a product, a sum of
//   products, a conversion, a product and a store that converts: 1 and 2 cycles of the busiest slots; about 250 for r.
#include "../include/arch.h"
#include "../include/loops.h"

#if !defined(TILE_ELEMENTS) || !defined(EPSILON)
#error "say how long a row is, and what is added to its mean square: -DTILE_ELEMENTS=elements -DEPSILON=1e-6F"
#endif

namespace rmsnorm {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
using Lanes = aie::vector<bfloat16, lanes>;

/// 1 / TILE_ELEMENTS = mantissa / 2^15 * 2^exponent, the mantissa from 2^15 to 2^16 - 1.
struct Inverse {
    int exponent = 0;
    uint32 mantissa = 0;
    constexpr Inverse() {
        while ((1u << -exponent) < TILE_ELEMENTS) --exponent;
        const uint64_t scaled = (uint64_t{1} << (16 - exponent)) / TILE_ELEMENTS;
        mantissa = static_cast<uint32>(scaled > 65536 ? (scaled + 1) / 2 : 32768);
        if (mantissa == 65536) mantissa = 65535;
    }
};

/// The sum of all lanes and TILE_ELEMENTS * EPSILON, as the bits of a float.
static inline uint32 sum_of(const aie::accum<accfloat, lanes> &squares) {
    aie::vector<float, lanes> sums = squares.template to_vector<float>();
    for (unsigned pairs = lanes / 2; pairs > 0; pairs /= 2) {
        const auto [even, odd] = aie::interleave_unzip(sums, sums, 1);
        sums = aie::add(even, odd);
    }
    sums = aie::add(sums, aie::broadcast<float, lanes>(static_cast<float>(EPSILON) * TILE_ELEMENTS));
    return static_cast<uint32>(sums.template cast_to<int32>().get(0));
}

struct Parts {
    bfloat16 high, low;
};

static inline bfloat16 from_bits(uint32 bits) {
    return aie::broadcast<uint16, lanes>(static_cast<uint16>(bits)).template cast_to<bfloat16>().get(0);
}

/// 1 / sqrt(sum / TILE_ELEMENTS) in two parts, below it by 2^-13 of itself at most.
static inline Parts inverse_root(uint32 sum) {
    constexpr Inverse inverse;
    const uint32 product = ((sum >> 8 & 0xffff) | 0x8000) * inverse.mantissa;
    const uint32 two = product >> 31;  // the product of mantissas, from 1 to 4, is 2 or more
    const uint32 normal = product << (1 - two);
    const int exponent = static_cast<int>(sum >> 23) - 127 + inverse.exponent + static_cast<int>(two);
    const uint32 x = normal >> (17 - (exponent & 1));  // from 1 to 4, with 14 bits behind the point
    uint32 root = 43759 - ((13457 - (3356 * x >> 15)) * x >> 14);
    for (unsigned step = 0; step < 2; ++step) {
        const uint32 near_one = (root * root >> 15) * x >> 14;
        root = root * (98304 - near_one) >> 16;
    }
    // root / 2^15 = high / 2^8 + low / 2^15, high from 127 to 254, low from 128 to 255; times 2^-power
    const uint32 high = (root >> 7) - 1, rest = root & 127, less = high < 128;
    const uint32 power = static_cast<uint32>(exponent >> 1);
    return {from_bits((126 - power - less) << 7 | (high << less & 127)), from_bits((119 - power) << 7 | rest)};
}

}  // namespace rmsnorm

extern "C" void rmsnorm_bf16(const bfloat16 *__restrict x, const bfloat16 *__restrict w, bfloat16 *__restrict y) {
    using namespace rmsnorm;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    static_assert(TILE_ELEMENTS <= 32768, "a row has 32768 elements at most");
    static_assert(EPSILON > 0, "EPSILON must be above 0");
    aie::set_rounding(aie::rounding_mode::conv_even);
    event0();
    auto squares = aie::zeros<accfloat, lanes>();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes part = aie::load_v<lanes>(x + i);
        squares = aie::mac(squares, part, part);
    }
    const Parts r = inverse_root(sum_of(squares));
    const Lanes high = aie::broadcast<bfloat16, lanes>(r.high), low = aie::broadcast<bfloat16, lanes>(r.low);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes weights = aie::load_v<lanes>(w + i);
        const Lanes scale = aie::mac(aie::mul(weights, high), weights, low).template to_vector<bfloat16>();
        aie::store_v(y + i, aie::mul(aie::load_v<lanes>(x + i), scale).template to_vector<bfloat16>());
    }
    event1();
}
