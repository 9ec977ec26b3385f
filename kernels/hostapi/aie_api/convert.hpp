// Integer lanes to float lanes and back, times a power of two.
#pragma once

#include "float_accum.hpp"

namespace hostapi {

/// x * 2^shift, rounded down or to nearest even, clamped to 32 bit, then to T as a core narrows it.
template <class T> T fixed(const char *call, double x, int shift, bool down) {
    if (x != x)
        fail(call, "a lane is NaN, of which the device makes a number of its own");
    const double scaled = std::ldexp(x, shift);
    const double whole = down ? std::floor(scaled) : std::nearbyint(scaled);
    constexpr double lowest = -2147483648.0, highest = 2147483647.0;
    return saturated<T>(static_cast<int64_t>(whole < lowest ? lowest : whole > highest ? highest : whole),
                        core_state.saturation);
}

}  // namespace hostapi

namespace aie {

/// v / 2^shift as float or bfloat16; float is rounded to nearest even, bfloat16 made of it by the rounding mode.
template <class To = float, class T, unsigned N>
HOSTAPI_INLINE vector<To, N> to_float(const vector<T, N> &v, int shift = 0) {
    static_assert(hostapi::is_float<To>, "aie::to_float: the result must be float or bfloat16");
    static_assert(!hostapi::is_float<T>, "aie::to_float: the lanes must be integers of 4, 8, 16 or 32 bit");
    if constexpr (hostapi::element<T>::bits == 4) {
        return to_float<To>(v.unpack(), shift);
    } else if constexpr (std::is_same_v<To, bfloat16>) {
        return accum<accfloat, N>(to_float<float>(v, shift)).template to_vector<bfloat16>();
    } else {
        hostapi::require_range("aie::to_float", "shift", shift, 0, 31);
        const T *in = v.read("aie::to_float");
        const float scale = 1.0F / static_cast<float>(uint32_t{1} << shift);
        vector<float, N> result;
        float *out = result.write();
        for (unsigned i = 0; i < N; ++i)
            out[i] = static_cast<float>(in[i]) * scale;  // a power of two: exact
        return result;
    }
}

/// v * 2^shift as integers: of bfloat16 rounded down, of float to nearest even as by release 2026.1 (2025.1 rounds
/// otherwise, so results may differ by one there); clamped to 32 bit, narrower ones by the saturation mode.
template <class To = int32, class T, unsigned N>
    requires hostapi::is_float<T>
vector<To, N> to_fixed(const vector<T, N> &v, int shift = 0) {
    static_assert(hostapi::element<To>::exists && !hostapi::is_float<To>, "aie::to_fixed: the result must be integers");
    hostapi::require_range("aie::to_fixed", "shift", shift, -31, 31);
    const T *in = v.read("aie::to_fixed");
    vector<To, N> result;
    for (unsigned i = 0; i < N; ++i)
        result.set(hostapi::fixed<To>("aie::to_fixed", float(in[i]), shift, std::is_same_v<T, bfloat16>), i);
    return result;
}

/// The same of a scalar.
template <class To = float> To to_float(int32 x, int shift = 0) {
    return static_cast<To>(std::ldexp(static_cast<float>(x), -shift));
}
template <class To = int32> To to_fixed(float x, int shift = 0) {
    return hostapi::fixed<To>("aie::to_fixed", x, shift, false);
}

}  // namespace aie
