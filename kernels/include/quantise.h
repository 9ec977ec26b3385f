// int8 codes of rows of bfloat16, 127 x over their largest number (quantise_bf16.cc tells how).
#pragma once

#include "arch.h"
#include "loops.h"

#if !defined(TILE_ELEMENTS)
#error "say how long a row is, or a chunk of one: -DTILE_ELEMENTS=elements"
#endif

namespace quantise {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
constexpr uint32 least = 27 << 7;  // the bits of 2^-100
using Lanes = aie::vector<bfloat16, lanes>;
using Sums = aie::accum<accfloat, lanes>;

using Largest = aie::vector<int16, lanes>;

/// Bits of the largest magnitudes before, and of x.
static inline Largest larger(const Largest &before, const bfloat16 *__restrict x) {
    Largest found = before;
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const auto bits = aie::load_v<lanes>(x + i).template cast_to<int16>();
        found = aie::max(found, aie::bit_and(bits, aie::broadcast<int16, lanes>(0x7fff)));
    }
    return found;
}

/// A float's bits of the largest number over 127: of a mantissa m, (m (2^21 + 2^14 + 2^7 + 1) + 1) / 2^28 and less than 2^-28 more.
static inline uint32 scale_of(uint32 largest) {
    const uint32 sum = ((largest & 127) | 128) * 0x204081 + 1, above = sum >> 29;
    const uint32 mantissa = (sum >> (5 + above)) + (sum >> (4 + above) & 1);
    return (((largest >> 7) - 8 + above) << 23) + mantissa;
}

/// digit * 2^(exponent - 134), of a digit from 64 to 255.
static inline Lanes part(uint32 digit, uint32 exponent) {
    const uint32 less = digit < 128;
    const uint32 bits = (exponent - less) << 7 | (digit << less & 127);
    return aie::broadcast<uint16, lanes>(static_cast<uint16>(bits)).template cast_to<bfloat16>();
}

struct Factor {
    Lanes first, second, third;
};

/// 127 over the largest number.
static inline Factor factor_of(uint32 largest) {
    const uint32 mantissa = (largest & 127) | 128, exponent = largest >> 7;
    uint32 quotient = 0, rest = 127;
    for (unsigned bit = 0; bit < 22; ++bit) {
        rest <<= 1;
        const uint32 fits = rest >= mantissa;
        quotient = quotient << 1 | fits;
        rest -= fits ? mantissa : 0;
    }
    // in digits of 7 bits, of which the lower two borrow, so that none is near 0
    return {part((quotient >> 14) - 1, 260 - exponent), part((quotient >> 7 & 127) + 127, 253 - exponent),
            part((quotient & 127) + 128, 246 - exponent)};
}

static inline auto codes_of(const Lanes &x, const Factor &factor) {
    const Sums start(aie::broadcast<bfloat16, lanes>(0x1p-100F));
    const auto found = aie::mac(aie::mac(aie::mac(start, x, factor.third), x, factor.second), x, factor.first);
    const auto rounded = aie::mac(found, aie::broadcast<bfloat16, lanes>(0x1.8p23F), aie::broadcast<bfloat16, lanes>(1.0F));
    return aie::filter_even(rounded.template to_vector<float>().template cast_to<int16>()).template cast_to<int8>();
}

/// Codes of x and the scale of its row.
static inline void codes(const bfloat16 *__restrict x, int8 *__restrict y, int32 *__restrict s, const Largest &of_row) {
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % (2 * lanes) == 0, "a row of codes must be whole vectors");
    const uint32 largest = static_cast<uint32>(aie::reduce_max(of_row));
    const bool none = largest < least;
    *s = none ? 0 : static_cast<int32>(scale_of(largest));
    const Factor factor = factor_of(none ? least : largest);
    const auto kept = aie::broadcast<int8, 2 * lanes>(static_cast<int8>(none ? 0 : -1));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes / 2)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += 2 * lanes) {
        const auto first = codes_of(aie::load_v<lanes>(x + i), factor);
        const auto second = codes_of(aie::load_v<lanes>(x + i + lanes), factor);
        const auto [found, above] = aie::interleave_unzip(first, second, 1);
        aie::store_v(y + i, aie::bit_and(found, kept));
    }
}

}  // namespace quantise
