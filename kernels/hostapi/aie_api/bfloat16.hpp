// bfloat16: the upper half of a float, and its rounding.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "config.hpp"

namespace hostapi {

HOSTAPI_INLINE constexpr float widened(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }

/// The nearest bfloat16, ties to even; beyond the largest one infinity; NaN stays NaN.
HOSTAPI_INLINE constexpr uint16_t nearest_bfloat16(float x) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    const uint32_t quiet = (bits >> 16) | 0x40;
    return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded);
}

}  // namespace hostapi

struct bfloat16 {
    uint16_t bits;
    bfloat16() = default;
    template <class X>
        requires std::is_arithmetic_v<X>
    constexpr bfloat16(X x) : bits(hostapi::nearest_bfloat16(static_cast<float>(x))) {}
    constexpr operator float() const { return hostapi::widened(bits); }
    constexpr bfloat16 &operator+=(float x) { return *this = *this + x; }
    constexpr bfloat16 &operator-=(float x) { return *this = *this - x; }
    constexpr bfloat16 &operator*=(float x) { return *this = *this * x; }
    constexpr bfloat16 &operator/=(float x) { return *this = *this / x; }
};

static_assert(sizeof(bfloat16) == 2);
