// What norms of a row of TILE_ELEMENTS bfloat16 share: sums of lanes, 1 / sqrt of a mean, and rows that are sums.
#pragma once

#include <type_traits>

#include "arch.h"
#include "loops.h"
#include "row_factor.h"
#include "row_floats.h"
#include "row_values.h"

#if !defined(TILE_ELEMENTS) || !defined(EPSILON)
#error "say how long a row is, and what is added to its mean square: -DTILE_ELEMENTS=elements -DEPSILON=1e-6F"
#endif
#ifndef RESIDUAL
#define RESIDUAL 0
#endif
// Whether x, and with it sums, and the residual are float32.
#ifndef X_F32
#define X_F32 0
#endif
#ifndef RESIDUAL_F32
#define RESIDUAL_F32 0
#endif
// Of a row that comes in chunks of TILE_ELEMENTS.
#ifndef ROW_ELEMENTS
#define ROW_ELEMENTS TILE_ELEMENTS
#endif

namespace row_norm {

constexpr unsigned lanes = aie::vector_decl_align / sizeof(bfloat16);
using Lanes = aie::vector<bfloat16, lanes>;
using X = std::conditional_t<X_F32, float, bfloat16>;

/// 1 / ROW_ELEMENTS = mantissa / 2^15 * 2^exponent, the mantissa from 2^15 to 2^16 - 1.
struct Inverse {
    int exponent = 0;
    uint32 mantissa = 0;
    constexpr Inverse() {
        while ((1u << -exponent) < ROW_ELEMENTS) --exponent;
        const uint64_t scaled = (uint64_t{1} << (16 - exponent)) / ROW_ELEMENTS;
        mantissa = static_cast<uint32>(scaled > 65536 ? (scaled + 1) / 2 : 32768);
        if (mantissa == 65536) mantissa = 65535;
    }
    /// With 32 bits of mantissa.
    constexpr RowFloat exact() const {
        const uint64_t scaled = (uint64_t{1} << (32 - exponent)) / ROW_ELEMENTS;
        return {scaled > (uint64_t{1} << 32) ? static_cast<uint32>((scaled + 1) / 2) : 0x80000000, exponent + 1};
    }
};

/// The sum of all lanes and ROW_ELEMENTS * EPSILON, as the bits of a float.
static inline uint32 sum_of(const aie::accum<accfloat, lanes> &squares) {
    const auto added = aie::broadcast<float, lanes>(static_cast<float>(EPSILON) * ROW_ELEMENTS);
    return first_bits(aie::add(lane_sum(squares), added));
}

/// 1 / sqrt(sum / ROW_ELEMENTS) in two parts, below it by 2^-13 of itself at most.
static inline RowFactor<lanes> inverse_root(uint32 sum) {
    constexpr Inverse inverse;
    const uint32 product = ((sum >> 8 & 0xffff) | 0x8000) * inverse.mantissa;
    const uint32 two = product >> 31;  // the product of mantissas, from 1 to 4, is 2 or more
    const uint32 normal = product << (1 - two);
    const int exponent = static_cast<int>(sum >> 23) - 127 + inverse.exponent + static_cast<int>(two);
    const uint32 root = row_floats::short_root(normal >> (17 - (exponent & 1)));
    return {root, static_cast<uint32>(exponent >> 1)};
}

/// What every call begins with.
static inline void begin() {
    static_assert(TILE_ELEMENTS > 0 && TILE_ELEMENTS % lanes == 0, "a row must be whole vectors");
    static_assert(ROW_ELEMENTS <= 32768, "a row has 32768 elements at most");
    static_assert(ROW_ELEMENTS % TILE_ELEMENTS == 0, "a row must be whole chunks");
    static_assert(EPSILON > 0, "EPSILON must be above 0");
    aie::set_rounding(aie::rounding_mode::conv_even);
}

#if RESIDUAL
using Residual = std::conditional_t<RESIDUAL_F32, float, bfloat16>;

/// x + residual, rounded to x's type, which stands for x from here on.
static inline const X *sum_of(const X *__restrict x, const Residual *__restrict residual, X *__restrict sum) {
    aie::set_saturation(aie::saturation_mode::none);
    LOOP_MIN_ITERATIONS(TILE_ELEMENTS / lanes)
    for (unsigned i = 0; i < TILE_ELEMENTS; i += lanes) {
#if X_F32
        row_values::store(sum + i, row_values::added(row_values::load_sums(x + i), row_values::load(residual + i)));
#elif RESIDUAL_F32
        row_values::store(sum + i, row_values::added(row_values::load_sums(residual + i), row_values::load(x + i)));
#else
        aie::store_v(sum + i, aie::add(aie::load_v<lanes>(x + i), aie::load_v<lanes>(residual + i)));
#endif
    }
    return sum;
}
#endif

}  // namespace row_norm

#if RESIDUAL
// A chunk of x with that of the residual behind it is `given`; where its sum is `made`, results follow.
#define CHUNK \
    row_norm::sum_of(given, reinterpret_cast<const row_norm::Residual *>(given + TILE_ELEMENTS), made)
#define GIVEN_ROW const row_norm::X *__restrict x, const row_norm::Residual *__restrict residual
#define MADE_SUM row_norm::X *__restrict sum,
#define ROW row_norm::sum_of(x, residual, sum)
#else
#define CHUNK given
#define GIVEN_ROW const row_norm::X *__restrict x
#define MADE_SUM
#define ROW x
#endif
