// Shift-round-saturate (SRS) and its inverse (UPS): the only places where rounding and saturation act.
#pragma once

#include <bit>

#include "fault.hpp"
#include "modes.hpp"
#include "types.hpp"

namespace hostapi {

inline constexpr int shift_max = 59;  // of the headers' check

inline bool rounds_up(int64_t value, int64_t quotient, uint64_t rest, uint64_t half, aie::rounding_mode mode) {
    using enum aie::rounding_mode;
    switch (mode) {
        case floor: return false;
        case ceil: return rest != 0;
        case symmetric_floor: return value < 0 && rest != 0;
        case symmetric_ceil: return value >= 0 && rest != 0;
        case negative_inf: return rest > half;
        case positive_inf: return rest >= half;
        case symmetric_zero: return value >= 0 ? rest > half : rest >= half;
        case symmetric_inf: return value >= 0 ? rest >= half : rest > half;
        case conv_even: return rest > half || (rest == half && (quotient & 1) != 0);
        case conv_odd: return rest > half || (rest == half && (quotient & 1) == 0);
    }
    fail("aie::set_rounding", "code " + std::to_string(static_cast<unsigned>(mode)) + " is no rounding mode");
}

/// value / 2^shift, rounded by `mode`.
inline int64_t round_shift(int64_t value, unsigned shift, aie::rounding_mode mode) {
    if (shift == 0)
        return value;
    const int64_t quotient = value >> shift;
    const uint64_t rest = static_cast<uint64_t>(value) & ((uint64_t{1} << shift) - 1);
    return quotient + rounds_up(value, quotient, rest, uint64_t{1} << (shift - 1), mode);
}

/// The bits of x as a bfloat16, rounded by `mode` as a signed number; overflow is infinite, NaN stays NaN.
inline uint16_t rounded_bfloat16(float x, aie::rounding_mode mode) {
    const auto bits = std::bit_cast<uint32_t>(x);
    const auto magnitude = static_cast<int64_t>(bits & 0x7fffffff);
    if (magnitude >= 0x7f800000)
        return nearest_bfloat16(x);
    const int64_t rounded = round_shift(bits >> 31 ? -magnitude : magnitude, 16, mode);
    return static_cast<uint16_t>((bits >> 31) << 15 | static_cast<uint32_t>(rounded < 0 ? -rounded : rounded));
}

/// The low bits of `value`, or `value` clamped to T.
template <class T> T saturated(int64_t value, aie::saturation_mode mode) {
    using traits = element<T>;
    if (mode == aie::saturation_mode::none)
        return static_cast<T>(value);
    const bool symmetric = mode == aie::saturation_mode::symmetric && traits::is_signed;
    const int64_t lowest = symmetric ? -traits::highest : traits::lowest;
    return static_cast<T>(value < lowest ? lowest : value > traits::highest ? traits::highest : value);
}

/// One accumulator lane to T, under the core's modes.
template <class T> T shift_round_saturate(int64_t value, int shift) {
    return saturated<T>(round_shift(value, static_cast<unsigned>(shift), core_state.rounding), core_state.saturation);
}

/// value * 2^shift in Bits (32 or 64): wraps, or clamps when saturation is on.
template <unsigned Bits> int64_t upshifted(int64_t value, int shift) {
    constexpr int64_t highest = static_cast<int64_t>(~uint64_t{0} >> (65 - Bits));
    const auto wide = static_cast<int64_t>(static_cast<uint64_t>(value) << shift);
    if (core_state.saturation == aie::saturation_mode::none)
        return wide;
    const int64_t lowest = -highest - (core_state.saturation == aie::saturation_mode::symmetric ? 0 : 1);
    if (wide >> shift == value && wide <= highest && wide >= lowest)
        return wide;
    return value > 0 ? highest : lowest;
}

}  // namespace hostapi
