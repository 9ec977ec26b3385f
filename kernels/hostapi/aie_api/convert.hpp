// Integer lanes to float lanes.
#pragma once

#include "arithmetic.hpp"

namespace aie {

/// v / 2^shift as float, rounded to nearest even.
template <class To, class T, unsigned N> HOSTAPI_INLINE vector<To, N> to_float(const vector<T, N> &v, int shift = 0) {
    static_assert(std::is_same_v<To, float>, "aie::to_float: this stand-in converts to float only");
    static_assert(hostapi::element<T>::bits >= 8 && !hostapi::is_float<T>,
                  "aie::to_float: the lanes must be integers of 8, 16 or 32 bit");
    hostapi::require_range("aie::to_float", "shift", shift, 0, 31);
    const T *in = v.read("aie::to_float");
    const float scale = 1.0F / static_cast<float>(uint32_t{1} << shift);
    vector<float, N> result;
    float *out = result.write();
    for (unsigned i = 0; i < N; ++i)
        out[i] = static_cast<float>(in[i]) * scale;  // a power of two: exact
    return result;
}

}  // namespace aie
