// softmax_bf16: y = exp(FACTOR (x - max(x))) over its sum, of a row of TILE_ELEMENTS bfloat16.
//
// Contract. V = 32 on AIE2, 64 on AIE2P (include/arch.h).
//   x, y      TILE_ELEMENTS bfloat16 each, V-byte aligned; y apart from x. TILE_ELEMENTS * 2 % V == 0, <= 32768.
//   FACTOR    above 0, a float's literal, from 1e-6F to 1e6F.
//   y is within 2^-7 + 2^-12 + 2^-14 FACTOR (max(x) - x) of itself, and 2^-63, of the formula; what is below 2^-63 of the
//   largest is 0.
//   x is finite or minus infinity, which is taken as -2^100, as are all numbers below. So they give 0 beside a larger
//   one, and a row of them alone gives equal numbers.
//   Rounding: set to conv_even by every call, saturation to none, and stay.
//
// e = 2^-(FACTOR log2(e) (max - x)) is made in fixed point (include/exp2.h): max - x as a float is cut to 23 bits below
// a power of two by adding that one, and multiplied by a constant of 16 bits. e is rounded to bfloat16, and of these the
// sum is made in float32, so that y sums up to 1 as far as its own rounding lets it. Lanes that equal the largest are
// 1: the sign of a difference that is zero is not told by the core, so another number takes their place till then.
//
// Cost (modelled, not measured): three passes; a vector takes a load and a maximum, then ten products, seven shifts with
//   rounding and 32 operations of the move slot, then a load, two products, a selection and a store.
#include "../include/exp2.h"
#include "../include/loops.h"
#include "../include/row_factor.h"

#if !defined(TILE_ELEMENTS) || !defined(FACTOR)
#error "say how long a row is, and what it is multiplied with: -DTILE_ELEMENTS=elements -DFACTOR=1.0F"
#endif

namespace softmax {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
using Powers = FixedPowers<lanes>;
using Lanes = Powers::Lanes;

/// FACTOR log2(e) = multiplier / 2^9 / 2^point, the multiplier of 16 bits.
struct Exponent {
    int point = 0;
    unsigned multiplier = 0;
    constexpr Exponent() {
        double scaled = static_cast<double>(FACTOR) * 1.4426950408889634;
        for (; scaled < 64; scaled *= 2) ++point;
        for (; scaled >= 128; scaled /= 2) --point;
        multiplier = static_cast<unsigned>(scaled * 512 + 0.5);
        if (multiplier == 65536) multiplier = 65535;
    }
};
constexpr Exponent exponent;
constexpr unsigned base = (127 + exponent.point) << 7;  // the upper half of 2^point
constexpr unsigned steps = 100 * 65536 / exponent.multiplier - 1;
constexpr unsigned most = base + (steps < 127 ? steps : 127);  // so that e stays a normal number
constexpr int16 least_kept = (127 - 63) << 7;

/// e in lanes of x, which are not above the row's largest number.
static inline Lanes powers(const Lanes &x, const Lanes &largest) {
    const auto one = aie::broadcast<bfloat16, lanes>(1.0F);
    const Lanes cut = aie::max(x, aie::broadcast<bfloat16, lanes>(-0x1p100F));
    const auto equal = aie::eq(cut.cast_to<int16>(), largest.cast_to<int16>());
    const auto less = aie::select(cut, aie::broadcast<bfloat16, lanes>(-0x1p101F), equal);
    const auto apart = aie::msc(Powers::Sums(largest), less, one);
    const auto fixed = aie::mac(apart, aie::broadcast<bfloat16, lanes>(__builtin_ldexpf(1, exponent.point)), one);
    const auto factor = Powers::words(exponent.multiplier);
    const auto high = aie::sub(aie::min(Powers::upper(fixed), Powers::words(most)), Powers::words(base));
    const auto first = aie::msc(Powers::Wide(Powers::words(127), 16), high, factor).to_vector<int32>(0);
    const auto parts =
        aie::msc(Powers::Wide(first, 16), Powers::lower(fixed), factor).to_vector<int32>(16).cast_to<uint16>();
    const auto scaled = Powers::scaled(aie::filter_odd(parts), Powers::power(aie::filter_even(parts)));
    return aie::select(scaled.to_vector<uint16>(16).cast_to<bfloat16>(), one, equal);
}

/// The largest number, or -2^100; +0 for both zeros.
static inline Lanes largest_of(const bfloat16 *__restrict x) {
    auto found = aie::broadcast<bfloat16, lanes>(-0x1p100F);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) found = aie::max(found, aie::load_v<lanes>(x + i));
    const auto largest = aie::broadcast<bfloat16, lanes>(aie::reduce_max(found));
    const auto negative_zero = aie::eq(largest.cast_to<int16>(), static_cast<int16>(-0x8000));
    return aie::select(largest, aie::zeros<bfloat16, lanes>(), negative_zero);
}

/// The inverse of a sum of 1 or more, below it by 2^-13 of itself at most.
static inline RowFactor<lanes> inverse_of(uint32 sum) {
    const uint32 x = (sum >> 8 & 0xffff) | 0x8000;  // from 1 to 2, with 15 bits behind the point
    uint32 inverse = 69508 - ((23831 - (10592 * x >> 16)) * x >> 14);
    for (unsigned step = 0; step < 2; ++step) inverse = inverse * (65536 - (inverse * x >> 15)) >> 15;
    return {inverse, (sum >> 23) - 127};
}

}  // namespace softmax

extern "C" void softmax_bf16(const bfloat16 *__restrict x, bfloat16 *__restrict y) {
    using namespace softmax;
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    static_assert(TILE_ELEMENTS <= 32768, "a row has 32768 elements at most");
    static_assert(FACTOR >= 1e-6F && FACTOR <= 1e6F, "FACTOR must be from 1e-6 to 1e6");
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
    event0();
    const Lanes largest = largest_of(x);
    auto sums = aie::zeros<accfloat, lanes>();
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes e = powers(aie::load_v<lanes>(x + i), largest);
        aie::store_v(y + i, e);
        sums = aie::mac(sums, e, aie::broadcast<bfloat16, lanes>(1.0F));
    }
    const auto factor = inverse_of(first_bits(lane_sum(sums)));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes e = aie::load_v<lanes>(y + i);
        const Lanes kept = aie::select(e, aie::zeros<bfloat16, lanes>(), aie::lt(e.cast_to<int16>(), least_kept));
        aie::store_v(y + i, factor.times(kept));
    }
    event1();
}
