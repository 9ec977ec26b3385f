// Softmax of rows of bfloat16 in three passes: the largest number, powers with their sum, and these over the sum.
#pragma once

#include "exp2.h"
#include "loops.h"
#include "row_factor.h"
#include "row_state.h"

#if !defined(TILE_ELEMENTS) || !defined(FACTOR)
#error "say how long a row is, and what it is multiplied with: -DTILE_ELEMENTS=elements -DFACTOR=1.0F"
#endif
// Of a row that comes in chunks of TILE_ELEMENTS.
#ifndef ROW_ELEMENTS
#define ROW_ELEMENTS TILE_ELEMENTS
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

/// Lanes of the largest numbers so far.
static inline Lanes lowest() { return aie::broadcast<bfloat16, lanes>(-0x1p100F); }
static inline Lanes larger(const Lanes &before, const bfloat16 *__restrict x) {
    Lanes found = before;
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) found = aie::max(found, aie::load_v<lanes>(x + i));
    return found;
}

/// The largest of the lanes, in all of them: -2^100 at least, +0 for both zeros.
static inline Lanes largest_of(const Lanes &found) {
    const auto largest = aie::broadcast<bfloat16, lanes>(aie::reduce_max(found));
    const auto negative_zero = aie::eq(largest.cast_to<int16>(), static_cast<int16>(-0x8000));
    return aie::select(largest, aie::zeros<bfloat16, lanes>(), negative_zero);
}

/// Stores e of x in y, and adds them to sums before.
static inline Powers::Sums powers_of(const bfloat16 *__restrict x, bfloat16 *__restrict y, const Lanes &largest,
                                     const Powers::Sums &before) {
    Powers::Sums sums = before;
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes e = powers(aie::load_v<lanes>(x + i), largest);
        aie::store_v(y + i, e);
        sums = aie::mac(sums, e, aie::broadcast<bfloat16, lanes>(1.0F));
    }
    return sums;
}

/// The inverse of a sum of 1 or more, below it by 2^-13 of itself at most.
static inline RowFactor<lanes> inverse_of(uint32 sum) {
    const uint32 x = (sum >> 8 & 0xffff) | 0x8000;  // from 1 to 2, with 15 bits behind the point
    uint32 inverse = 69508 - ((23831 - (10592 * x >> 16)) * x >> 14);
    for (unsigned step = 0; step < 2; ++step) inverse = inverse * (65536 - (inverse * x >> 15)) >> 15;
    return {inverse, (sum >> 23) - 127};
}

/// y over the sum, in place.
static inline void scale(bfloat16 *__restrict y, const Powers::Sums &sums) {
    const auto factor = inverse_of(first_bits(lane_sum(sums)));
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
        const Lanes e = aie::load_v<lanes>(y + i);
        const Lanes kept = aie::select(e, aie::zeros<bfloat16, lanes>(), aie::lt(e.cast_to<int16>(), least_kept));
        aie::store_v(y + i, factor.times(kept));
    }
}

/// What every call begins with.
static inline void begin() {
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    static_assert(ROW_ELEMENTS <= 32768, "a row has 32768 elements at most");
    static_assert(ROW_ELEMENTS % TILE_ELEMENTS == 0, "a row must be whole chunks");
    static_assert(FACTOR >= 1e-6F && FACTOR <= 1e6F, "FACTOR must be from 1e-6 to 1e6");
    aie::set_rounding(aie::rounding_mode::conv_even);
    aie::set_saturation(aie::saturation_mode::none);
}

/// What a core keeps between chunks: lanes of sums, and of the largest numbers.
static inline Powers::Sums sums_at(const int32 *state) {
    return Powers::Sums(row_state::load(state).template cast_to<float>());
}
static inline bfloat16 *largest_at(int32 *state) { return reinterpret_cast<bfloat16 *>(state + lanes); }
static inline Lanes largest_at(const int32 *state) {
    return largest_of(aie::load_v<lanes>(reinterpret_cast<const bfloat16 *>(state + lanes)));
}

}  // namespace softmax
