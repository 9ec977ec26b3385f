// Integer lanes to float lanes.
#pragma once

#include "float_accum.hpp"

namespace aie {

/// v / 2^shift as float or bfloat16, rounded to nearest even.
template <class To, class T, unsigned N> HOSTAPI_INLINE vector<To, N> to_float(const vector<T, N> &v, int shift = 0) {
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

}  // namespace aie
